"""Ledgers of which nothing is left, by id: what is found of one on a bookie may be removed.

The rule: **an id is noted before the ledger's record goes, and for ever.** That a record is absent
proves nothing: its ledger may be just about to be made, and have files already. An id that is noted
here had a record, which said DELETING; ids are given out once, so whatever bears it is a late
writer's, and counts for nothing (R11, R13).

A note that cannot be read says nothing: none of its ids counts as gone, none is added to it, and so
no record goes that needs it. It stops nothing else.
"""

from collections.abc import Collection, Iterable

from bkspark.cluster.records import Records
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import gone_record, layout
from bkspark.format.gone_record import GoneIds
from bkspark.metadata.contract import MetadataStore

_UNREADABLE = (CorruptDataError, NothingSentError, OutcomeUnknownError)
"""Of one note, say a pipe in its place. Where the whole store is away, others raise it, too."""


class GoneLedgers:
    """What one metadata store says of ledgers that are gone.

    Attributes:
        unreadable: by key, why a note says nothing.
    """

    def __init__(self, store: MetadataStore) -> None:
        self.unreadable: dict[str, str] = {}
        self._store = store
        self._pages: Records[tuple[int, GoneIds]] = Records(
            store,
            lambda name: layout.gone_key(int(name)),
            lambda page, nonce: gone_record.encode(*page, nonce),
            lambda name, data: (int(name), gone_record.decode(int(name), data)),
        )

    def all(self) -> set[int]:
        """Every id."""
        pages = map(layout.parse_ledger_key, self._store.list(layout.GONE_PREFIX))
        return {ledger_id for page in pages for ledger_id in self._page(page)}

    def among(self, ledger_ids: Iterable[int]) -> set[int]:
        """Those of ``ledger_ids`` that are gone."""
        wanted = set(ledger_ids)
        pages = {ledger_id // layout.GONE_PAGE_LENGTH for ledger_id in wanted}
        return wanted & set().union(*map(self._page, pages))

    def note(self, ledger_ids: Collection[int]) -> set[int]:
        """Add ids of ledgers whose records say DELETING, and of which nothing is left.

        Returns:
            Those that are noted now; the notes of the others cannot be read.
        """
        noted: set[int] = set()
        for page in sorted({ledger_id // layout.GONE_PAGE_LENGTH for ledger_id in ledger_ids}):
            own = {i for i in ledger_ids if i // layout.GONE_PAGE_LENGTH == page}

            def with_own(
                before: tuple[int, GoneIds] | None, page: int = page, own: set[int] = own
            ) -> tuple[int, GoneIds]:
                return page, (before[1] if before else frozenset()) | own

            try:
                self._pages.update(str(page), with_own)
            except _UNREADABLE as error:
                self._step_over(page, error)
            else:
                noted |= own
        return noted

    def _page(self, page: int) -> GoneIds:
        try:
            seen = self._pages.get(str(page))
        except _UNREADABLE as error:
            self._step_over(page, error)
            return frozenset()
        return frozenset() if seen is None else seen.value[1]

    def _step_over(self, page: int, error: BookKeeperError) -> None:
        self.unreadable[layout.gone_key(page)] = str(error.args[0])
