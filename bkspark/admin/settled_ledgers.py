"""The note of ledgers that a maintenance verb need not look at again.

``protocol.upkeep.settling`` says what the note may claim. Runs at the same time add to one note by
compare-and-set. A note that cannot be read or stored only costs further looks.
"""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.records import UPDATE_TRIES_MAX, Notes, back_off
from bkspark.errors import BookKeeperError, MetadataVersionError
from bkspark.format import layout, upkeep_records
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.upkeep.settling import LedgersSeen, Settled

logger = logging.getLogger(__name__)

RECOVER = "recover"
"""The verb for which ledgers are settled once they are closed, deleted or gone."""

WALKED_MAX = 1024
"""New ids that are asked for one by one; if there are more, one listing names the ledgers."""

Change = Callable[[Settled], Settled]
_OVER = (LedgerState.CLOSED, LedgerState.DELETING)


@dataclass(frozen=True, slots=True)
class UnclosedLedgers:
    """A look at the ledgers that are not settled.

    Attributes:
        ledgers: those that are OPEN or IN_RECOVERY.
        look: to be noted.
    """

    ledgers: Sequence[LedgerMetadata]
    look: LedgersSeen


class SettledLedgers:
    """The note about ``recover``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._notes: Notes[Settled] = Notes(
            cluster.store,
            cluster.cluster_id,
            layout.settled_key,
            lambda settled, nonce: upkeep_records.encode_settled(RECOVER, settled, nonce),
            upkeep_records.decode_settled,
        )

    def look(self, now_ms: int) -> UnclosedLedgers:
        """Read the ledgers that are not settled; store no note."""
        known = self._known()
        end = self._cluster.next_ledger_id()  # before any record is read
        ids = sorted({*known.exceptions, *self._new_ids(known.below, end)})
        unclosed: list[LedgerMetadata] = []
        unsettled, absent = set[int](), set[int]()
        for name, answer in self._cluster.ledgers.answers(map(str, ids)):
            seen = answer()
            if seen is None:
                absent.add(int(name))
            elif seen.value.state not in _OVER:
                unclosed.append(seen.value)
                unsettled.add(int(name))
        unsettled.update(self._unborn(known, absent, now_ms))
        begin = known.below
        read = frozenset(ids), frozenset(unsettled)
        return UnclosedLedgers(unclosed, LedgersSeen(begin, max(begin, end or 0), *read, now_ms))

    def note(self, look: LedgersSeen) -> None:
        """Note what a look has settled."""
        self._change(lambda known: known.after(look))

    def missed(self, ledger_ids: Collection[int], now_ms: int) -> list[int]:
        """Return the unclosed ledgers among ``ledger_ids`` that the note calls settled.

        The next look reads them.
        """
        known = self._known()
        named = sorted(ledger_id for ledger_id in ledger_ids if known.has(ledger_id))
        found = self._cluster.ledgers.present(map(str, named))
        wrong = [seen.value.ledger_id for seen in found if seen.value.state not in _OVER]
        if wrong:
            self._change(lambda known: known.doubting(wrong, now_ms))
        return wrong

    def _new_ids(self, below: int, end: int | None) -> Iterator[int]:
        """Yield the ids of ledgers that may have come since the note."""
        walked_from = below
        if end is None or end - below > WALKED_MAX:
            walked_from = max(below, (end or 0) - WALKED_MAX)
            yield from (i for i in self._cluster.ledger_ids() if i >= below)
        yield from range(walked_from, end or 0)

    def _unborn(self, known: Settled, absent: Collection[int], now_ms: int) -> Iterator[int]:
        """Yield the absent ledgers that may have a record, now or later."""
        gone = GoneLedgers(self._cluster.store, self._cluster.cluster_id).among(absent)
        for ledger_id in absent:
            is_unreadable = layout.ledger_key(ledger_id) in self._cluster.unreadable
            if is_unreadable or not (ledger_id in gone or known.is_given_up(ledger_id, now_ms)):
                yield ledger_id

    def _known(self) -> Settled:
        seen = self._notes.get(RECOVER)
        return Settled() if seen is None else seen.value

    def _change(self, change: Change) -> None:
        try:
            self._changed(change)
        except BookKeeperError as error:
            logger.warning("%s could not be stored: %s", layout.settled_key(RECOVER), error.args[0])

    def _changed(self, change: Change) -> None:
        for attempt in range(UPDATE_TRIES_MAX):
            seen = self._notes.get(RECOVER)
            before = Settled() if seen is None else seen.value
            after = change(before)
            if after == before:
                return
            try:
                if seen is None:
                    self._notes.write_over(RECOVER, after)
                else:
                    self._notes.replace(RECOVER, after, seen)
                return
            except MetadataVersionError:
                back_off(attempt)
