"""One schedule of a log: from a seed to what happened.

Rule: as in ``schedule``. A log is founded, without faults. Two or three clients want to write to
it, others read it, make it shorter, append batches to it or stream into it, while everything may
fail. Then the faults end: it must be possible to write to the log and to read all of it, and what
is on no list can be deleted.
"""

from random import Random

from bkspark.client.cluster import Cluster
from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.client.logs.founding import found_log
from bkspark.client.logs.log_handle import LogHandle
from bkspark.client.password import Password
from bkspark.client.upkeep import maintenance
from bkspark.errors import BookKeeperError
from bkspark.protocol.ledger import DigestSpec
from bkspark.protocol.quorum import Quorum
from bkspark.testing.simulation.disks import URI
from bkspark.testing.simulation.faults import Chance, Kind
from bkspark.testing.simulation.log_batches import Batches
from bkspark.testing.simulation.log_clients import LOG, LeaderPlan, LogClients
from bkspark.testing.simulation.log_oracle import LogOracle
from bkspark.testing.simulation.log_runtime import tasks_for_threads, watched
from bkspark.testing.simulation.runtime import SimulatedRuntime, determined
from bkspark.testing.simulation.schedule import Outcome
from bkspark.testing.simulation.scheduler import Policy, Scheduler, Violation
from bkspark.testing.simulation.storage import Storage

_QUORUMS = ((3, 3, 2), (2, 2, 2), (2, 2, 1), (3, 2, 2))
_LENGTHS = (150, 400, 1000)
_STEPS_MAX = 30_000
_WRITERS = (
    *((1, 0, 0), (1, 0, 0), (2, 0, 0), (2, 0, 0), (2, 0, 0), (3, 0, 0), (3, 0, 0)),
    *((0, 1, 0), (0, 2, 0), (0, 2, 0), (0, 2, 1), (0, 1, 1)),
    *((1, 0, 1), (1, 1, 0), (2, 0, 1), (1, 1, 1), (0, 0, 2)),
)
"""How many would-be leaders, drivers of one query and batch appends."""
_ROLLING_SHARE = 0.3
"""Of schedules whose leaders roll at every entry and tell readers at once."""
_NEAR_LOOKS = 8
CURSOR = "reader"


def run_log_schedule(seed: int, *, checks_reasons: bool = True) -> Outcome:
    """Run the schedule of ``seed``; a violation is in the outcome, not raised."""
    random = Random(f"log {seed}")
    outcome = Outcome(seed)
    with determined(
        seed,
        sleep=lambda seconds: run.scheduler.sleep(seconds),
        clock=lambda: run.scheduler.seconds,
    ):
        run = _Run(random, outcome, checks_reasons)
        try:
            with (
                run.storage.installed(),
                tasks_for_threads(run.scheduler),
                watched(run.oracle, run.scheduler),
            ):
                run.play()
        except Violation as violation:
            outcome.violation = str(violation)
        finally:
            run.storage.clear()
    outcome.take(run.scheduler, run.storage, run.oracle)
    return outcome


class _Run:
    """A cluster with one log, its clients and who goes next."""

    def __init__(self, random: Random, outcome: Outcome, checks_reasons: bool) -> None:
        self._random = random
        self._quorum = Quorum(*random.choice(_QUORUMS))
        self._rolls = random.random() < _ROLLING_SHARE
        is_uniform = random.random() < 0.5 and not self._rolls
        length, change_count = random.choice(_LENGTHS), random.randint(1, 12 if self._rolls else 5)
        changes = frozenset(random.randrange(length) for _ in range(change_count))
        policy = Policy(random, None if is_uniform else changes)
        spares = random.randint(0, 2)
        time_out_rate = random.choice((0.0, 0.0, 0.0, 0.001))
        self._ends_waits = time_out_rate > 0
        self.scheduler = Scheduler(policy, time_out_rate=time_out_rate, steps_max=_STEPS_MAX)
        self.oracle = LogOracle(URI, LOG, checks_reasons=checks_reasons)
        chance = Chance(random, losses_left=self._quorum.losses_max)
        self._losses_max = chance.losses_left
        bookie_count = self._quorum.ensemble_size + spares
        self.storage = Storage(self.scheduler, chance, self.oracle, bookie_count)
        self._clients = LogClients(self.scheduler, self.oracle, random, URI)
        self._batches = Batches(self._clients, random, URI)
        how = "uniform" if is_uniform else f"priorities, changed at {sorted(changes)}"
        outcome.setting = (
            f"a log, E/Qw/Qa {self._quorum.ensemble_size}/{self._quorum.write_quorum_size}/"
            f"{self._quorum.ack_quorum_size}, {spares} spare bookies, {how}"
        )

    def play(self) -> None:
        self._found()
        self._start_writers()
        self._start_others()
        self.scheduler.run()
        excused = None if self._is_undisturbed else self._excused()
        self._require_no_orphans("and their makers know it", excused)
        self._finish()

    def _found(self) -> None:
        with Cluster(URI) as cluster:
            found_log(cluster, LOG, self._quorum, DigestSpec(), VALUE_SCHEMA)
            self.oracle.logs.see("-", f"logs/{LOG}")
            LogHandle(cluster, LOG, Password()).cursor(CURSOR)

    def _start_writers(self) -> None:
        random = self._random
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
        random, clients = self._random, self._clients
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
            clients.consume("consumer", CURSOR, may_miss=self._truncates)
        if random.random() < 0.15:
            clients.seal("sealer")

    @property
    def _is_undisturbed(self) -> bool:
        """Whether nothing at all went wrong so far."""
        return not (self.storage.chance.counts or self._ends_waits or self._clients.deaths)

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
            or not process.startswith("leader")
            or ((" on metadata: " in what or "dies" in what) and what.split(": ")[-1] in faults)
        }

    def _require_no_orphans(self, when: str, excused: set[str] | None = None) -> None:
        orphans = [
            ledger.ledger_id
            for ledger in self.oracle.unlisted()
            if self.oracle.made_by(ledger.ledger_id) not in (excused or ())
        ]
        if orphans:
            raise Violation(f"ledgers {orphans} are on no list, {when} (RB-20b)")

    def _finish(self) -> None:
        """No more faults; all of the log can be read and written to."""
        self.storage.heal()
        self.scheduler.time_out_rate = 0.0
        has_all = self.storage.chance.losses_left == self._losses_max
        self._collect()
        if not self.oracle.history.record.is_sealed:
            plan, rule = LeaderPlan(count=1, terms=3, actions=()), "RB-21" if has_all else ""
            self._clients.lead("last-leader", plan, must_succeed=lambda: rule, delays=(0,))
        self.scheduler.run()
        self._clients.look("last-reader", looks=1, must_succeed=has_all)
        self.scheduler.run()
        tail = self.oracle.history.record.tail
        if tail and has_all:
            raise Violation(f"the log is closed, and its tail is {tail} (RB-21)")

    def _collect(self) -> None:
        """Delete what is on no list; it must be possible, and take nothing else away."""

        def work(_runtime: SimulatedRuntime) -> None:
            with Cluster(URI) as cluster:
                for ledger in self.oracle.unlisted():
                    try:
                        maintenance.delete_ledger(cluster, ledger.ledger_id)
                    except BookKeeperError as error:
                        raise Violation(
                            f"ledger {ledger.ledger_id} cannot be collected: {error} (RB-20b)"
                        ) from error

        self._clients.start("collector", work)
        self.scheduler.run()
        self._require_no_orphans("behind a collection")
