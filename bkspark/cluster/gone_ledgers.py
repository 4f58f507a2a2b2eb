"""Ids of completely deleted ledgers: files of a gone ledger on a bookie may be removed.

The rule: **an id is noted before the ledger's record goes, and for ever.** An absent record proves
nothing: its ledger may be in creation, and have files already. A noted id had a record in state
DELETING. Ids are given out once, so any file with a noted id is a late writer's, and counts for
nothing (R11, R13).

An unreadable note says nothing: none of its ids counts as gone, no id is added to it, and no record
that needs the note is removed. All other work goes on.
"""

from collections.abc import Collection, Iterable

from bkspark.cluster.records import Records
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import GoneIds
from bkspark.metadata.contract import MetadataStore

_UNREADABLE = (CorruptDataError, NothingSentError, OutcomeUnknownError)
"""Errors of one unreadable note, such as a pipe in its place. If the whole store is away, other
requests raise too.
"""


class GoneLedgers:
    """The gone ledgers of one cluster.

    Attributes:
        unreadable: reason by key, for each unreadable note.
    """

    def __init__(self, store: MetadataStore, cluster_id: str) -> None:
        self.unreadable: dict[str, str] = {}
        self._store = store
        self._pages: Records[tuple[int, GoneIds]] = Records(
            store,
            cluster_id,
            lambda name: layout.gone_key(int(name)),
            lambda page, nonce: upkeep_records.encode_gone(*page, nonce),
            lambda name, data: (int(name), upkeep_records.decode_gone(int(name), data)),
        )

    def all(self) -> set[int]:
        """Ids of all gone ledgers."""
        pages = map(layout.parse_ledger_key, self._store.list(layout.GONE_PREFIX))
        return {ledger_id for page in pages for ledger_id in self._page(page)}

    def among(self, ledger_ids: Iterable[int]) -> set[int]:
        """The ``ledger_ids`` that are gone."""
        wanted = set(ledger_ids)
        pages = {ledger_id // layout.GONE_PAGE_LENGTH for ledger_id in wanted}
        return wanted & set().union(*map(self._page, pages))

    def note(self, ledger_ids: Collection[int]) -> set[int]:
        """Add ids of ledgers whose records say DELETING, and of which no file is left.

        Returns:
            The ids that are noted now; the notes of all other ids are unreadable.
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
