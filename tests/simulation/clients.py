"""The clients of a schedule: writers, recoverers, readers and DataFrame commits.

Rule: each is a process that runs the real client code and tells the oracle what its user would
know, at the moment he would know it. Errors that the client may raise end it; any other is a find.
"""

from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from bkspark.admin.auditing.audit import dropped_ledgers
from bkspark.admin.collecting.collection import collect
from bkspark.admin.draining import DecommissionRequest as Decommission
from bkspark.admin.draining import decommission
from bkspark.admin.maintenance import Execution
from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep
from bkspark.admin.repairing.repair_command import RepairRequest, repair
from bkspark.admin.scrubbing.scrub import ScrubRequest as Scrubbed
from bkspark.admin.scrubbing.scrub import scrub
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    NoSuchEntryError,
)
from bkspark.ledger import deleting
from bkspark.ledger.deleting import truncate_ledger
from bkspark.ledger.handles.read_handle import ReadHandle
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.log.batch import AttemptReport
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way
from tests.simulation.environment import run_all
from tests.simulation.scheduler import Task, Violation
from tests.simulation.writers import DELAYS, Writers, digester

RECOVERY_TRIES = 4
_LOOKS = 3


class Clients(Writers):
    """Starts clients; ``random`` decides what each of them does."""

    def recover(
        self,
        name: str,
        ledger_id: int,
        *,
        must_succeed: bool = False,
        tries: int = RECOVERY_TRIES,
        delays: Sequence[int] = DELAYS,
    ) -> Task:
        return self.start(
            name,
            lambda: self._recover(ledger_id, tries, must_succeed=must_succeed),
            delays,
            works_alone=True,
        )

    def _recover(self, ledger_id: int, tries: int, *, must_succeed: bool) -> None:
        with Cluster(self._uri) as cluster:
            for _ in range(tries):
                try:
                    runs = partial(run_all, self._scheduler)
                    report = recover(cluster, ledger_id, Password(), run=runs, tell=self.hear)
                except BookKeeperError as error:
                    self._scheduler.note(f"recovery ends: {error.args[0]}")
                    why = str(error)
                    continue
                self._scheduler.note(f"recovered up to entry {report.last_entry_id}")
                end = self._oracle.ledgers[ledger_id].metadata.last_entry_id
                if report.last_entry_id != end:
                    raise Violation(f"recovery says {report.last_entry_id}, closed at {end} (I1)")
                return
        if must_succeed:
            raise Violation(
                f"ledger {ledger_id} cannot be recovered with all bookies back: {why} (I9)"
            )

    def read(
        self,
        name: str,
        ledger_id: int,
        *,
        must_succeed: bool = False,
        looks: int = _LOOKS,
        delays: Sequence[int] = DELAYS,
    ) -> Task:
        """Look for news a few times and read everything that is confirmed."""
        return self.start(
            name,
            lambda: self._read(name, ledger_id, looks, must_succeed=must_succeed),
            delays,
        )

    def _read(
        self,
        name: str,
        ledger_id: int,
        looks: int,
        *,
        must_succeed: bool,
    ) -> None:
        with Cluster(self._uri) as cluster:
            handle: ReadHandle | None = None
            for _ in range(looks):
                before = self._oracle.shown_by_now(ledger_id)
                try:
                    if handle is None:
                        handle = ReadHandle(cluster, ledger_id, digester())
                    else:
                        handle.read_last_add_confirmed()
                except BookieUnavailableError as error:
                    if must_succeed:
                        raise Violation(f"{name} cannot read: {error} (I2)") from error
                    self.hear(str(error))
                    self._scheduler.note(f"cannot tell how far it may read: {error.args[0]}")
                    continue
                self._oracle.shown(name, ledger_id, handle.last_add_confirmed, before)
                self._read_all(name, handle, must_succeed=must_succeed)

    def _read_all(self, name: str, handle: ReadHandle, *, must_succeed: bool) -> None:
        begin = handle.metadata.first_available
        try:
            entries = list(handle.read()) if handle.last_add_confirmed >= 0 else []
        except (CorruptDataError, NoSuchEntryError) as error:
            now = self._oracle.ledgers[handle.ledger_id].metadata.first_available
            if must_succeed or (isinstance(error, NoSuchEntryError) and now <= begin):
                raise Violation(f"{name} cannot read: {error} (I2)") from error
            entries = []
        for number, entry in enumerate(entries, start=begin):
            if number != entry.entry_id:
                raise Violation(f"{name} reads entry {entry.entry_id} at {number} (I4)")
            self._oracle.has_read(name, handle.ledger_id, entry.entry_id, entry.value)
        self._scheduler.note(f"has read {len(entries)} entries")

    def commit(self, name: str, target: BatchTarget, row_counts: Sequence[int]) -> Task:
        """Write the partitions of a DataFrame, one after the other, and commit them."""
        return self.start(name, lambda: self._commit(name, target, row_counts), works_alone=True)

    def _commit(self, name: str, target: BatchTarget, row_counts: Sequence[int]) -> None:
        reports: list[AttemptReport | None] = []
        for partition, count in enumerate(row_counts):
            rows = pa.record_batch(
                [pa.array([partition * 1000 + n for n in range(count)], pa.int64())], names=["n"]
            )
            reports.append(AttemptWriter(target, partition).write([rows]))
        result = batch_commit.commit(target, reports)
        self._scheduler.note(f"has committed {result.row_count} rows")
        self._oracle.committed(name, target.ledger_id, result.row_count)
        end = self._oracle.ledgers[target.ledger_id].metadata.last_entry_id
        if end != sum(row_counts) - 1:
            raise Violation(f"{name} committed {sum(row_counts)} rows, closed at {end} (I1)")

    def delete(self, name: str, ledger_id: int) -> Task:
        """Delete a ledger, whatever others do with it."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                deleting.delete_ledger(cluster, ledger_id)

        return self.start(name, work, DELAYS, works_alone=True)

    def repair(
        self, name: str, ledger_id: int, *, is_last: bool = False, delays: Sequence[int] = DELAYS
    ) -> Task:
        """Make missing copies again; bookies that are silent are given up at once.

        Args:
            is_last: whether nothing goes wrong any more: what it does not leave is whole then.
        """

        def work() -> None:
            wanted = RepairRequest(ledgers=[ledger_id], lost_after=0.0)
            with Cluster(self._uri) as cluster, Survey(self._uri) as survey:
                report = repair(cluster, survey, wanted, self._how())
                is_dropped = ledger_id in dropped_ledgers(cluster)
            self._scheduler.note(f"has repaired {report.done}, left are {report.left}")
            if is_last and not (report.left or is_dropped):
                self._oracle.require_whole(ledger_id)

        return self.start(name, work, delays)

    def move(self, name: str, ledger_id: int, *, delays: Sequence[int] = DELAYS) -> Task:
        """Give a place to a bookie that a plan names, as a rebalance does: chance has made it."""
        index, to = self._random.randrange(5), self._random.randrange(7)

        def work() -> None:
            with Cluster(self._uri) as cluster:
                ledger = cluster.ledger(ledger_id).value
                names = sorted(cluster.bookies())
                fragment = ledger.fragments[index % len(ledger.fragments)]
                at = index % len(fragment.ensemble)
                place = Place(ledger_id, fragment.first_entry_id, at, fragment.ensemble[at])
                need = Need(place, MemberState.ANSWERS, 0, "by chance")
                step = RepairStep(need, Way.REPLACE, is_move=True, to=names[to % len(names)])
                repair = Repair(cluster, Password(), partial(run_all, self._scheduler), None)
                repair.carry_out(RepairPlan((step,)), lambda _done, _total: None)
            self._scheduler.note(f"has moved {repair.counts}, left are {repair.left}")

        return self.start(name, work, delays)

    def decommission(
        self, name: str, bookie_id: str, *, delays: Sequence[int] = DELAYS, is_last: bool = False
    ) -> Task:
        """Empty a bookie, and remove it if nothing is in the way.

        Args:
            is_last: whether nothing goes wrong any more: only who could not be replaced stays.
        """

        def work() -> None:
            with Cluster(self._uri) as cluster:
                wanted = Decommission((bookie_id,))
                report = decommission(cluster, wanted, self._how())
                is_removed = bookie_id not in cluster.bookies()
            self._scheduler.note(f"has emptied {report.done}, left are {report.left}")
            if is_last and is_removed == bool(report.left):
                raise Violation(f"{bookie_id} is removed: {is_removed}; left: {report.left}")

        return self.start(name, work, delays)

    def truncate_ledger(
        self, name: str, ledger_id: int, entry_id: int, *, delays: Sequence[int] = DELAYS
    ) -> Task:
        """Let go of what lies in front of an entry, whatever others do with the ledger."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                ledger = truncate_ledger(cluster, ledger_id, entry_id)
            self._scheduler.note(f"the ledger begins at {ledger.first_available}")

        return self.start(name, work, delays)

    def _how(self) -> Execution:
        return Execution(run=partial(run_all, self._scheduler))

    def collect(self, name: str, *, delays: Sequence[int] = DELAYS) -> Task:
        """Free what nobody wants, as far as bookies answer."""

        def work() -> None:
            with Cluster(self._uri) as cluster:
                report = collect(cluster, self._how(), abandoned_after=0.0)
            self._scheduler.note(f"has freed {report.done}, left are {report.left}")

        return self.start(name, work, delays)

    def scrub(self, name: str, *, delays: Sequence[int] = DELAYS) -> Task:
        """Read every byte, and mark what is damaged."""

        def work() -> None:
            with Survey(self._uri) as survey:
                report = scrub(survey, Scrubbed(), self._how())
            self._scheduler.note(f"has read {report.done}, left are {report.left}")

        return self.start(name, work, delays)

    def abort(self, name: str, target: BatchTarget) -> Task:
        return self.start(name, lambda: batch_commit.abort(target), DELAYS, works_alone=True)
