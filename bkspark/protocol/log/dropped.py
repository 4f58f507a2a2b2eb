"""Ledgers that a log has let go of: none of them joins it (again) until it is deleted."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import Page, PageSource


@dataclass(frozen=True, slots=True)
class DroppedLedgers:
    """Those of one version of a log's record ("contents", rules 3 and 5).

    Attributes:
        ids: those that are on no page.
        to_delete: those of ``ids`` that are not needed and not deleted yet.
        pages: more of them, none to be deleted.
        pages_to_delete: more of them, all to be deleted.
        of_tail: so many entries at the beginning of the first ledger of the tail, which stays.
    """

    ids: tuple[int, ...] = ()
    to_delete: tuple[int, ...] = ()
    pages: tuple[Page, ...] = ()
    pages_to_delete: tuple[Page, ...] = ()
    of_tail: int = 0

    @property
    def all_pages(self) -> tuple[Page, ...]:
        return (*self.pages, *self.pages_to_delete)

    def has(self, ledger_id: int, source: PageSource) -> bool:
        return ledger_id in self.ids or ledger_list.have(self.all_pages, ledger_id, source)

    def with_tail(self, of_tail: int) -> "DroppedLedgers":
        """And so many entries of the tail, no more."""
        return replace(self, of_tail=of_tail)

    def with_more(self, ids: Iterable[int], pages: Iterable[Page] = ()) -> "DroppedLedgers":
        """And these, which are not to be deleted, or not yet."""
        return replace(self, ids=(*self.ids, *ids), pages=(*self.pages, *pages))

    def with_more_to_delete(
        self, ids: Collection[int], pages: Iterable[Page] = ()
    ) -> "DroppedLedgers":
        """And these, which nobody needs."""
        return replace(
            self,
            ids=(*self.ids, *ids),
            to_delete=(*self.to_delete, *ids),
            pages_to_delete=(*self.pages_to_delete, *pages),
        )

    def all_to_delete(self) -> "DroppedLedgers":
        """None of them is needed."""
        pages = (*self.pages_to_delete, *self.pages)
        return DroppedLedgers(self.ids, self.ids, pages_to_delete=pages)

    def forgetting(self, gone: Collection[int], source: PageSource) -> "DroppedLedgers":
        """Without those that are ``gone``, and without pages that have no others."""
        return replace(
            self,
            ids=tuple(x for x in self.ids if x not in gone),
            to_delete=tuple(x for x in self.to_delete if x not in gone),
            pages=ledger_list.not_all_in(self.pages, set(gone), source),
            pages_to_delete=ledger_list.not_all_in(self.pages_to_delete, set(gone), source),
        )

    def with_page_opened(self, source: PageSource) -> "DroppedLedgers":
        """With one of the pages of those to be deleted opened, until one had ids on it itself."""
        if not self.pages_to_delete:
            return self
        *others, page = self.pages_to_delete
        found = source.contents(page)
        ids = found.ids or ledger_list.ids_of(found.ledgers)
        opened = replace(self, pages_to_delete=tuple(others)).with_more_to_delete(ids, found.pages)
        return opened if ids else opened.with_page_opened(source)
