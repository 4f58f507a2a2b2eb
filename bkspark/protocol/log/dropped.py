"""Ledgers dropped by a log: none of them joins the log (again) until deleted."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from bkspark.protocol.log import ledger_list
from bkspark.protocol.log.ledger_list import LogPage, PageSource


@dataclass(frozen=True, slots=True)
class DroppedLedgers:
    """The dropped ledgers of one version of a log's record ("contents", rules 3 and 5).

    Attributes:
        ids: the ledgers that are on no page.
        to_delete: the ledgers of ``ids`` that are unneeded and not deleted yet.
        pages: pages of more ledgers, none to be deleted.
        pages_to_delete: pages of more ledgers, all to be deleted.
        of_tail: number of hidden entries at the beginning of the tail's first ledger, which stays.
    """

    ids: tuple[int, ...] = ()
    to_delete: tuple[int, ...] = ()
    pages: tuple[LogPage, ...] = ()
    pages_to_delete: tuple[LogPage, ...] = ()
    of_tail: int = 0

    @property
    def all_pages(self) -> tuple[LogPage, ...]:
        return (*self.pages, *self.pages_to_delete)

    def has(self, ledger_id: int, source: PageSource) -> bool:
        return ledger_id in self.ids or ledger_list.have(self.all_pages, ledger_id, source)

    def with_tail(self, of_tail: int) -> "DroppedLedgers":
        """Return these with ``of_tail`` hidden entries of the tail."""
        return replace(self, of_tail=of_tail)

    def with_more(self, ids: Iterable[int], pages: Iterable[LogPage] = ()) -> "DroppedLedgers":
        """Return these with more ledgers, not to be deleted, or not yet."""
        return replace(self, ids=(*self.ids, *ids), pages=(*self.pages, *pages))

    def with_more_to_delete(
        self, ids: Collection[int], pages: Iterable[LogPage] = ()
    ) -> "DroppedLedgers":
        """Return these with more ledgers, to be deleted."""
        return replace(
            self,
            ids=(*self.ids, *ids),
            to_delete=(*self.to_delete, *ids),
            pages_to_delete=(*self.pages_to_delete, *pages),
        )

    def all_to_delete(self) -> "DroppedLedgers":
        """Return these with all ledgers to be deleted."""
        pages = (*self.pages_to_delete, *self.pages)
        return DroppedLedgers(self.ids, self.ids, pages_to_delete=pages)

    def forgetting(self, gone: Collection[int], source: PageSource) -> "DroppedLedgers":
        """Return these without the ledgers ``gone``, and without pages of such ledgers only."""
        return replace(
            self,
            ids=tuple(x for x in self.ids if x not in gone),
            to_delete=tuple(x for x in self.to_delete if x not in gone),
            pages=ledger_list.not_all_in(self.pages, set(gone), source),
            pages_to_delete=ledger_list.not_all_in(self.pages_to_delete, set(gone), source),
        )

    def with_page_opened(self, source: PageSource) -> "DroppedLedgers":
        """Return these with pages to delete opened until a page shows ids of its own."""
        if not self.pages_to_delete:
            return self
        *others, page = self.pages_to_delete
        found = source.contents(page)
        ids = found.ids or ledger_list.ids_of(found.ledgers)
        opened = replace(self, pages_to_delete=tuple(others)).with_more_to_delete(ids, found.pages)
        return opened if ids else opened.with_page_opened(source)
