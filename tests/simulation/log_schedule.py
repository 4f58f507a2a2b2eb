"""One schedule of a log: from a seed to what happened.

Rule: as in ``schedule``. A log is created, without faults. Two or three clients want to write to
it, others read it, make it shorter, append batches to it or stream into it, while everything may
fail. Pages have room for a ledger or two, so records have pages wherever there are a few ledgers.
Then the faults end: it must be possible to write to the log and to read all of it, and what
is on no list can be deleted.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import replace
from random import Random

from bkspark.admin.views import LISTED, ledgers
from bkspark.cluster.client_metrics import ClientCounts
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_records import PageMemory
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.format import layout
from bkspark.ledger import deleting
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.creating import create_log
from bkspark.log.log_handle import LogHandle
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from tests.simulation import log_healing, log_merges, log_pages
from tests.simulation.damage import NAME
from tests.simulation.disks import URI
from tests.simulation.faults import Kind
from tests.simulation.frame import Outcome, Run, Shape, outcome_of
from tests.simulation.log_batches import Batches
from tests.simulation.log_clients import LOG, LeaderPlan, LogClients
from tests.simulation.log_holders import Holders
from tests.simulation.log_oracle import LogOracle
from tests.simulation.log_witness import ToldCounts
from tests.simulation.scheduler import Violation

_QUORUMS = ((3, 3, 2), (2, 2, 2), (2, 2, 1), (3, 2, 2))
_LENGTHS = (150, 400, 1000)
_CHANGES_MAX, _ROLLING_CHANGES_MAX = 5, 12
_STEPS_MAX = 30_000
_WRITERS = (
    *((1, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (2, 0, 0), (3, 0, 0), (3, 0, 0)),
    *((0, 1, 0), (0, 2, 0), (0, 2, 0), (0, 2, 1), (0, 1, 1)),
    *((1, 0, 1), (1, 1, 0), (2, 0, 1), (1, 1, 1), (0, 0, 2)),
)
"""How many would-be leaders, drivers of one query and batch appends."""
_ROLLING_SHARE = 0.3
"""Of schedules whose leaders roll at every entry and tell readers at once."""
_DELETED_SHARE = 0.3
"""Of schedules in which the log is deleted, and mostly made anew."""
_COMPACTED_SHARE = 0.25
"""Of schedules in which the log is compacted meanwhile."""
_NEAR_LOOKS = 8
_ROTTING = Quorum(3, 3, 2)
"""Each file may lose one copy, and two are left on as many bookies as it takes."""
_ROTTING_SHARE = 0.5
_TASKS = 2
CURSOR = "reader"


def run_log_schedule(
    seed: int,
    *,
    checks_reasons: bool = True,
    frees_pages: bool = False,
    is_unbounded: bool = False,
    heals: bool = False,
    **losses: bool,
) -> Outcome:
    """Run the schedule of ``seed``; a violation is in the outcome, not raised.

    Args:
        frees_pages: whether pages that nothing names are collected meanwhile.
        is_unbounded: whether the log is one ledger, which its writers take over in turn.
        heals: whether a repair comes last, and the log is to be whole behind it.
        losses: ``loses_files``, ``loses_power``; see ``Shape``.
    """
    oracle = LogOracle(URI, LOG, checks_reasons=checks_reasons)
    kinds = {"frees_pages": frees_pages, "is_unbounded": is_unbounded, "heals": heals}
    run = _Run(seed, oracle, **kinds, **losses)
    return outcome_of(run)


class _Run(Run[LogOracle]):
    """A cluster with one log and its clients."""

    def __init__(
        self,
        seed: int,
        oracle: LogOracle,
        *,
        frees_pages: bool,
        is_unbounded: bool,
        heals: bool,
        **losses: bool,
    ) -> None:
        random = Random(f"log {seed}")
        quorum = log_healing.QUORUM if heals else Quorum(*random.choice(_QUORUMS))
        self._rolls = random.random() < _ROLLING_SHARE
        changes_max = _ROLLING_CHANGES_MAX if self._rolls else _CHANGES_MAX
        shape = Shape(
            quorum,
            _LENGTHS,
            changes_max,
            has_priorities=self._rolls,
            steps_max=_STEPS_MAX,
            **losses,
        )
        self._rots = (
            quorum == _ROTTING and not heals and Random(f"rot {seed}").random() < _ROTTING_SHARE
        )
        if self._rots or heals:
            shape = replace(shape, spares_max=0)
        super().__init__(seed, random, shape, oracle)
        self.environment.made[ClientCounts] = lambda: ToldCounts(oracle, self.scheduler)
        self.environment.made[PageMemory] = lambda: PageMemory(page_length=1 + seed % 2)
        self._rotten = set[int]()
        if self._rots:
            self.storage.chance.losses_left = 0
        self.setting = f"a log, {self.setting}"
        self._ends_waits = self.scheduler.time_out_rate > 0
        self._clients = LogClients(self.scheduler, oracle, random, URI)
        self._batches = Batches(self._clients, random, URI)
        if self._rots:
            self.storage.dies_in_front_of = self._rots_behind
        self._holders = Holders(self._clients)
        self._frees_pages = frees_pages
        self._is_unbounded = is_unbounded
        self._heals = heals

    def surroundings(self) -> Iterable[AbstractContextManager[object]]:
        yield from super().surroundings()

    def play(self) -> None:
        self._found()
        self._start_writers()
        self._start_others()
        self.scheduler.run()
        excused = None if self._is_undisturbed else self._excused()
        self._require_no_orphans(excused)
        self._finish()

    def _found(self) -> None:
        with Cluster(URI) as cluster:
            settings = LogSettings(self.quorum, is_unbounded=self._is_unbounded)
            create_log(cluster, LOG, settings, VALUE_SCHEMA)
            self.oracle.logs.see("-", f"logs/{LOG}")
            LogHandle(cluster, LOG, Password()).cursor(CURSOR)

    def _start_writers(self) -> None:
        random = self.random
        leaders, drivers, appends = random.choice(_WRITERS)
        self._truncates = random.random() < 0.5
        is_alone = leaders + drivers + appends == 1
        for number in range(leaders):
            plan = LeaderPlan.drawn(random, truncates=self._truncates, rolls=self._rolls)
            self._clients.lead(
                f"leader-{number + 1}",
                plan,
                must_succeed=lambda: "RB-44" if is_alone and self._has_peace else "",
            )
        batch_count, is_one_run = random.choice((1, 2, 3, 4)), random.random() < 0.3
        for number in range(1, drivers + 1):
            run_name = "run" if is_one_run else f"run-{number}"
            self._batches.drive(f"driver-{number}", batch_count, run_name)
        app_ids = random.choice((("app-1", "app-2"), ("app-1", "app-1")))
        is_overwrite = random.random() < 0.3
        for number, app_id in enumerate(app_ids[:appends], start=1):
            self._batches.append(f"append-{number}", app_id, is_overwrite=is_overwrite)
        self._truncates |= is_overwrite and appends > 0

    def _start_others(self) -> None:
        random, clients = self.random, self._clients
        if self._rolls:
            for number in (1, 2):
                clients.look(f"near-reader-{number}", looks=_NEAR_LOOKS, waits_for_news=True)
        if random.random() < 0.4:
            clients.look("reader")
        if random.random() < 0.4:
            clients.follow("follower")
        if self._truncates and random.random() < 0.3:
            clients.truncate("truncator")
        if random.random() < 0.3:
            clients.retain("keeper")
            clients.consume(
                "consumer", CURSOR, may_miss=self._truncates, holds=random.random() < 0.5
            )
        if random.random() < 0.15:
            clients.seal("sealer")
        if random.random() < _DELETED_SHARE:
            self._start_deleters()
        if Random(f"compact {self.seed}").random() < _COMPACTED_SHARE:
            for number in (1, 2):
                chance = Random(f"compactor {number} {self.seed}")
                log_merges.compact(clients, chance, f"compactor-{number}")
        if self._frees_pages:
            for number in (1, 2):
                log_pages.collect(clients, f"page-collector-{number}")
        if random.random() < (0.5 if self._holders.deletions else 0.1):
            self._holders.query("query", fails_on_loss=random.random() < 0.5)

    def _start_deleters(self) -> None:
        random = self.random
        possible = [
            quorum
            for quorum in (Quorum(*sizes) for sizes in _QUORUMS)
            if quorum.ensemble_size <= len(list(self.storage.disks))
            and quorum.losses_max >= self.quorum.losses_max
        ]
        for number in range(random.choice((1, 1, 2, 2, 3))):
            recreated = random.choice((None, self.quorum, self.quorum, *possible))
            self._holders.delete(f"deleter-{number + 1}", recreated=recreated)
        for number in range(random.choice((0, 1, 2))):
            self._clients.follow(f"clinging-follower-{number + 1}")

    @property
    def _is_undisturbed(self) -> bool:
        """Whether nothing at all went wrong so far."""
        wrong = (self.storage.chance.counts, self._ends_waits, self._clients.deaths)
        return not any(wrong) and not self._holders.deletions

    @property
    def _has_peace(self) -> bool:
        return self._is_undisturbed and not self.oracle.history.record.is_sealed

    def _excused(self) -> set[str]:
        """Who may have left a ledger behind: those that died, or lost sight of the metadata."""
        faults = {kind.value for kind in Kind}
        return {
            process
            for _, process, _, what in self.scheduler.log
            if what == "dies"
            or not process.startswith(("leader", "compactor"))
            or ((" on metadata: " in what or "dies" in what) and what.split(": ")[-1] in faults)
        }

    def _require_no_orphans(self, excused: set[str] | None) -> None:
        """Whoever made a ledger that is on no list after all has dropped it."""
        orphans = [
            ledger.ledger_id
            for ledger in self.oracle.unlisted()
            if self.oracle.made_by(ledger.ledger_id) not in (excused or ())
        ]
        if orphans:
            raise Violation(f"ledgers {orphans} are on no list, their makers know it (RB-20b)")

    def _rots_behind(self, journal: str) -> bool:
        """Each file of what was just acked loses a copy, those of each task on another bookie.

        Returns whether that was done: then nobody is to hear that it is confirmed.
        """
        match = NAME.fullmatch(journal)
        assert match is not None
        ledger_id, disks = int(match[1], 16), self.storage.disks
        ledger = self.oracle.ledgers[ledger_id]
        record = ledger.group_of(ledger.acked)
        if record is None or record.quorum != _ROTTING or len(record.attempts) < _TASKS:
            return False
        if ledger_id in self._rotten or any(
            known.last_add_confirmed >= ledger.acked for known in ledger.groups.values()
        ):
            return False
        self._rotten.add(ledger_id)
        ensemble = ledger.metadata.fragment_of(record.first_entry_id).ensemble
        for attempt, member in zip(record.attempts, ensemble):
            for log in attempt.entry_logs:
                name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
                if name in disks.at(member.bookie_id).files:
                    disks.rot(member.bookie_id, name)
        return True

    def _finish(self) -> None:
        """No more faults; all of the log can be read and written to."""
        has_all = self.heal() or self._rots
        if self.oracle.history.record.is_tombstone:
            self._holders.found("last-founder", self.quorum)
            self.scheduler.run()
        self._collect()
        rests = self._heals and self.oracle.history.record.is_unbounded  # as writers have left it
        if not (rests or self.oracle.history.record.is_sealed):
            plan, rule = LeaderPlan(count=1, terms=3, actions=()), "RB-21" if has_all else ""
            self._clients.lead("last-leader", plan, must_succeed=lambda: rule, delays=(0,))
        self.scheduler.run()
        self._clients.look("last-reader", looks=1, must_succeed=has_all)
        self.scheduler.run()
        if self._heals and has_all and not self._rots:
            log_healing.make_whole(self._clients, self.scheduler)
        tail = self.oracle.history.record.tail
        if tail and has_all and not self.oracle.history.record.is_unbounded:
            raise Violation(f"the log is closed, and its tail is {tail} (RB-21)")

    def _collect(self) -> None:
        """Delete what the ledgers' view shows to be on no list; then nothing is left."""

        def work() -> None:
            with Cluster(URI) as cluster:
                for row in ledgers(cluster, None):
                    if row["place"] == LISTED or row["state"] == LedgerState.DELETING.value:
                        continue
                    try:
                        deleting.delete_ledger(cluster, row["ledger_id"])
                    except BookKeeperError as error:
                        raise Violation(
                            f"ledger {row['ledger_id']} cannot be collected: {error} (RB-20b)"
                        ) from error

        self._clients.start("collector", work)
        self.scheduler.run()
        if self.oracle.left():
            raise Violation(f"ledgers {self.oracle.left()} are left by a collection (RB-20b)")
