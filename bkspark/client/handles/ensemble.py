"""The bookies of an open ledger, as its writer uses them: lanes to the current ensemble.

A bookie that fails is replaced by CAS before any ack from its successor counts (RB-06); acks of the
one that was replaced are taken back before anything completes (RB-07, RB-08). One that fails behind
an ack is replaced all the same, and gets what is not acknowledged (RB-43, H9).
"""

import logging
import math

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.client import ensemble_log, ensembles
from bkspark.client.cluster import Cluster
from bkspark.client.ensembles import Vacancy
from bkspark.client.handles.lane import Lane, Report
from bkspark.client.metadata_check import still_current
from bkspark.client.records import Seen
from bkspark.errors import LedgerClosedError, LedgerFencedError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.format.journal import EncodedRecord
from bkspark.protocol.ledger import LedgerMetadata, Member

logger = logging.getLogger(__name__)

CHANGES_MAX = 100
"""A writer whose bookies fail this often has another problem; BookKeeper has the same cap."""

LANE_BYTES_MAX = 32 * 2**20
"""What may wait for one bookie: some seconds of work for a disk that is slow but well."""


class Ensemble:
    """Lanes to the members of the last fragment, and the metadata that names them."""

    def __init__(
        self,
        cluster: Cluster,
        seen: Seen[LedgerMetadata],
        report: Report,
    ) -> None:
        self.seen = seen
        self.failures: dict[str, str] = {}
        self._cluster = cluster
        self._report = report
        self._term = seen.value.term
        self._token = seen.value.token
        self._ledger_id = seen.value.ledger_id
        self._changes = 0
        ensemble, addresses = seen.value.last_fragment.ensemble, cluster.addresses()
        for member in ensemble:
            if member not in addresses:
                raise NotEnoughBookiesError(
                    f"ledger {seen.value.ledger_id}: bookie {member.bookie_id} was initialised "
                    "anew since it was chosen",
                    hint="nothing was written; create another ledger",
                )
        self._lanes: list[Lane | None] = [
            self._lane(index, addresses[member]) for index, member in enumerate(ensemble)
        ]

    def send(self, record: EncodedRecord) -> None:
        """Send ``record`` to every bookie of its write sets.

        First it is made ready for all of them: a thread that still has to do so when others begin
        to write would take turns with them, and each turn costs more than the work.
        """
        indexes = {i for write_set in record.record.write_sets() for i in write_set}
        lanes = [lane for lane in map(self._lanes.__getitem__, indexes) if lane is not None]
        ready = [(lane, lane.framed(record)) for lane in lanes]
        for lane, framed in ready:
            lane.send(framed)

    def send_to(self, index: int, record: EncodedRecord) -> None:
        """Send ``record`` to one bookie, if it belongs there."""
        lane = self._lanes[index]
        if lane is not None and any(index in ws for ws in record.record.write_sets()):
            lane.send(lane.framed(record))

    def has(self, index: int, bookie_id: str) -> bool:
        """Whether ``bookie_id`` is at ``index`` now: late reports of replaced bookies are none."""
        lane = self._lanes[index]
        return lane is not None and lane.address.bookie_id == bookie_id

    def stored(self, index: int, first_entry_id: int) -> None:
        """The bookie at ``index`` answered for the record that begins at ``first_entry_id``."""
        lane = self._lanes[index]
        if lane is not None:
            lane.answered(first_entry_id)

    # --- what the slowest of them allows ---------------------------------------------------

    @property
    def is_congested(self) -> bool:
        """Whether a bookie has so much before it that no more should be sent.

        A slow bookie then slows its writer down: dropping it would leave entries with fewer
        copies, and queueing for it would take all memory. One that hangs is replaced in time.
        """
        return any(lane is not None and lane.waiting_bytes > LANE_BYTES_MAX for lane in self._lanes)

    def slowest(self) -> Lane | None:
        """The bookie whose time for the oldest that was sent to it is over first."""
        found, first = None, math.inf
        for lane in self._lanes:
            if lane is not None and lane.since + lane.extra_seconds < first:
                found, first = lane, lane.since + lane.extra_seconds
        return found

    # --- changes ---------------------------------------------------------------------------

    @property
    def failed(self) -> set[int]:
        """Indexes whose bookie failed and was not replaced."""
        return {index for index, lane in enumerate(self._lanes) if lane is None}

    def drop(self, index: int, reason: str) -> None:
        """Use the bookie at ``index`` no more; it stays in the metadata."""
        lane, self._lanes[index] = self._lanes[index], None
        if lane is not None:
            member = self.seen.value.last_fragment.ensemble[index]
            self.failures[member.bookie_id] = reason
            self._cluster.note_failure(member)
            lane.abandon()
            ensemble_log.given_up(logger, self._ledger_id, member.bookie_id, reason)

    def replace(self, index: int, reason: str, first_entry_id: int) -> bool:
        """Put another bookie at ``index``, from ``first_entry_id`` on; False if there is none.

        Raises:
            LedgerFencedError: the ledger is not this writer's any more.
        """
        self.drop(index, reason)
        ensemble = self.seen.value.last_fragment.ensemble
        address = self._choose() if self._changes < CHANGES_MAX else None
        if address is None:
            return False
        self._changes += 1
        member = address.member
        changed = (*ensemble[:index], member, *ensemble[index + 1 :])
        name = str(self.seen.value.ledger_id)
        try:
            self.seen = self._cluster.ledgers.update(
                name, lambda metadata: self._changed(metadata, first_entry_id, changed)
            )
        except LedgerClosedError as error:
            # Not "closed": whoever closed it may have kept entries that have no ack (RB-35).
            raise LedgerFencedError(f"ledger {name} was closed by another client") from error
        self._lanes[index] = self._lane(index, address)
        old, new = ensemble[index].bookie_id, member.bookie_id
        ensemble_log.replaced(logger, self._ledger_id, old, new, first_entry_id, reason)
        return True

    def tell_of_gaps(self, first_entry_id: int) -> None:
        """Log that entries from here on get fewer copies, if members failed and stay."""
        ensemble = self.seen.value.last_fragment.ensemble
        names = [ensemble[index].bookie_id for index in sorted(self.failed)]
        lacking = {name: self.failures[name] for name in names}
        ensemble_log.fewer_copies(logger, self.seen.value, first_entry_id, lacking)

    def require_current(self) -> None:
        """Raises ``LedgerFencedError`` if somebody has taken the ledger over."""
        self.seen = still_current(
            self._cluster,
            self.seen,
            hint="recovery decides about entries without an ack; open the ledger to see",
            is_waited_for=True,
        )

    def stop(self, timeout: float) -> None:
        """End all lanes after what was sent, waiting at most ``timeout`` seconds for them."""
        lanes = [lane for lane in self._lanes if lane is not None]
        for lane in lanes:
            lane.stop()
        deadline = environment.monotonic() + timeout
        for lane in lanes:
            lane.end_within(max(0.0, deadline - environment.monotonic()))

    def _choose(self) -> BookieAddress | None:
        """A bookie that is not in use, has not failed, and holds the writer's permission."""
        ledger_id, ensemble = self.seen.value.ledger_id, self.seen.value.last_fragment.ensemble
        gone = self.failed
        vacancy = Vacancy(
            ledger_id,
            layout.permission(ledger_id, self._term, self._token),
            staying=[member for index, member in enumerate(ensemble) if index not in gone],
            exclude={member.bookie_id for member in ensemble} | set(self.failures),
        )
        address, failed = ensembles.replace(self._cluster, vacancy)
        self.failures.update(failed)
        return address

    def _changed(
        self,
        metadata: LedgerMetadata | None,
        first_entry_id: int,
        ensemble: tuple[Member, ...],
    ) -> LedgerMetadata:
        assert metadata is not None
        return metadata.with_ensemble(first_entry_id, ensemble, term=self._term, token=self._token)

    def _lane(self, index: int, address: BookieAddress) -> Lane:
        return Lane(
            index,
            address,
            ledger_id=self.seen.value.ledger_id,
            term=self._term,
            token=self._token,
            report=self._report,
        )
