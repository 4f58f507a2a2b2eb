"""The notes of ledgers that a maintenance verb need not look at again.

``protocol.upkeep.settling`` says what a note may claim. Runs at the same time add to one note by
compare-and-set. A note that cannot be read or stored only costs further looks.
"""

import hashlib
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.records import UPDATE_TRIES_MAX, Notes, back_off
from bkspark.errors import BookKeeperError, MetadataVersionError
from bkspark.format import layout, upkeep_records
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.upkeep.settling import LedgersSeen, Settled

# --- notes ---------------------------------------------------------------------------------------
# The note of one verb: which ledgers are to be looked at, and what a look has settled.


logger = logging.getLogger(__name__)

RECOVER = "recover"
"""The verb for which ledgers are settled once they are closed, deleted or gone."""

REPAIR = "repair"
"""The verb for which ledgers are settled while they are closed and have all copies."""

COLLECT = "collect"
"""The verb for which ledgers are settled while they are needed, and all files of them are."""

WALKED_MAX = 1024
"""New ids that are asked for one by one; if there are more, one listing names the ledgers."""

Change = Callable[[Settled], Settled]


@dataclass(frozen=True, slots=True)
class ToLookAt:
    """The ledgers that are not settled.

    Attributes:
        known: the note at the begin of the look.
        end: no ledger has this id or a higher one yet.
    """

    known: Settled
    end: int
    ledger_ids: tuple[int, ...]
    now_ms: int


class SettledLedgers:
    """The note of one verb."""

    def __init__(self, cluster: Cluster, verb: str) -> None:
        self._cluster = cluster
        self._verb = verb
        self._notes: Notes[Settled] = Notes(
            cluster.store,
            cluster.cluster_id,
            layout.settled_key,
            lambda settled, nonce: upkeep_records.encode_settled(verb, settled, nonce),
            upkeep_records.decode_settled,
        )

    def to_look_at(self, now_ms: int, members: str = "", *, is_all: bool = False) -> ToLookAt:
        """Return the ledgers that are not settled; read no record of a ledger.

        Args:
            members: the bookies that are there, if they matter (``members_of``).
            is_all: whether no ledger counts as settled.
        """
        known = self.known().among(members)
        known = replace(known, below=0) if is_all else known
        end = self._cluster.next_ledger_id()  # before any record is read
        ids = sorted({*known.exceptions, *self._new_ids(known.below, end)})
        return ToLookAt(known, max(known.below, end or 0), tuple(ids), now_ms)

    def seen(
        self, asked: ToLookAt, unsettled: Collection[int], absent: Collection[int]
    ) -> LedgersSeen:
        """Return what a look at all of ``asked`` has found.

        Args:
            unsettled: ids of ledgers that are not settled.
            absent: ids of ledgers without a record, or with a record that cannot be read.
        """
        known, read = asked.known, frozenset(asked.ledger_ids)
        left = frozenset({*unsettled, *self._unborn(known, absent, asked.now_ms)})
        return LedgersSeen(
            known.below, asked.end, read, left, asked.now_ms, known.members, known.doubts
        )

    def note(self, look: LedgersSeen) -> None:
        """Note what a look has settled."""
        self._change(lambda known: known.after(look))

    def doubt(self, ledger_ids: Collection[int], now_ms: int) -> None:
        """Have the next run look at these ledgers."""
        if ledger_ids:
            self._change(lambda known: known.doubting(ledger_ids, now_ms))

    def known(self) -> Settled:
        seen = self._notes.get(self._verb)
        return Settled() if seen is None else seen.value

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

    def _change(self, change: Change) -> None:
        try:
            self._changed(change)
        except BookKeeperError as error:
            key = layout.settled_key(self._verb)
            logger.warning("%s could not be stored: %s", key, error.args[0])

    def _changed(self, change: Change) -> None:
        for attempt in range(UPDATE_TRIES_MAX):
            seen = self._notes.get(self._verb)
            before = Settled() if seen is None else seen.value
            after = change(before)
            if after == before:
                return
            try:
                if seen is None:
                    self._notes.write_over(self._verb, after)
                else:
                    self._notes.replace(self._verb, after, seen)
                return
            except MetadataVersionError:
                back_off(attempt)


def tell_collections(cluster: Cluster, ledger_ids: Collection[int]) -> None:
    """Have the next collection look at ledgers that need less than before (rule 6).

    If that cannot be stored, the next audit tells it.
    """
    SettledLedgers(cluster, COLLECT).doubt(ledger_ids, environment.now_ms())


def members_of(cluster: Cluster, silent: Collection[str]) -> str:
    """Return a text that changes with the bookies that are there (rule 5 of ``settling``)."""
    there = sorted(
        (one.bookie_id, one.incarnation, one.bookie_id in silent) for one in cluster.addresses()
    )
    lost = sorted((one.bookie_id, one.incarnation) for one in cluster.lost_members())
    return hashlib.sha256(repr((there, lost)).encode()).hexdigest()


# --- unclosed ------------------------------------------------------------------------------------
# The ledgers that ``recover`` looks at.


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


def unclosed_ledgers(cluster: Cluster, now_ms: int) -> UnclosedLedgers:
    """Read the ledgers that are not settled; store no note."""
    settled = SettledLedgers(cluster, RECOVER)
    asked = settled.to_look_at(now_ms)
    unclosed: list[LedgerMetadata] = []
    absent = set[int]()
    for name, answer in cluster.ledgers.answers(map(str, asked.ledger_ids)):
        seen = answer()
        if seen is None:
            absent.add(int(name))
        elif seen.value.state not in _OVER:
            unclosed.append(seen.value)
    unsettled = {ledger.ledger_id for ledger in unclosed}
    return UnclosedLedgers(unclosed, settled.seen(asked, unsettled, absent))


def missed(cluster: Cluster, ledger_ids: Collection[int], now_ms: int) -> list[int]:
    """Return the unclosed ledgers among ``ledger_ids`` that ``recover`` takes for settled.

    The next look reads them.
    """
    settled = SettledLedgers(cluster, RECOVER)
    known = settled.known()
    named = sorted(ledger_id for ledger_id in ledger_ids if known.has(ledger_id))
    found = cluster.ledgers.present(map(str, named))
    wrong = [seen.value.ledger_id for seen in found if seen.value.state not in _OVER]
    settled.doubt(wrong, now_ms)
    return wrong
