"""A day of two agents that are killed and paused, on the clock and the tasks of the simulation.

Either agent serves every bookie and the upkeep. Ledgers are written, deleted and damaged meanwhile.
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from math import inf
from random import Random

import pytest

from bkspark import environment, verbs
from bkspark.admin.agents import EVERY_SECONDS, UPKEEP, Agent, BookieRounds, Rounds, UpkeepRounds
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.format import layout
from bkspark.storage.changes import Changes
from bkspark.verbs.declaring import VERBS
from tests.integration.rig import Rig
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.scheduler import Policy, Process, Scheduler

from .scenes import ENTRIES, members, take, written

HOUR = 3_600.0
HOURS = 26
BOOKIES = ("bookie-1", "bookie-2", "bookie-3")
HURT = "bookie-2"
"""It loses copies: one member of each ledger."""

LAST_DAMAGE = 23 * HOUR
"""An audit finds what is lost, at the latest a day later, and the next repair makes it again."""

STEPS_PER_SECOND = 1_000
SERVES, NO_LONGER = "this agent serves it", "no longer"

ELSEWHERE_SECONDS = 30.0
"""Another agent goes on so soon."""

ROUND_SECONDS = EVERY_SECONDS + ELSEWHERE_SECONDS
"""The next round of a bookie begins at the latest so long after the one before. A deleted ledger is
freed as soon.
"""


class DayEnvironment(SimulatedEnvironment):
    """That of the simulation; the time of day goes on as well."""

    def __init__(self, scheduler: Scheduler, chance: Callable[[], Random]) -> None:
        super().__init__(scheduler, chance)
        self._began_ms = environment.now_ms()

    def now_ms(self) -> int:
        return self._began_ms + int(self.monotonic() * 1_000)


class SeenRounds:
    """Rounds of which is noted when they began."""

    def __init__(self, rounds: Rounds, began: list[float]) -> None:
        self.subject, self.election = rounds.subject, rounds.election
        self._rounds = rounds
        self._began = began

    def round(self) -> str:
        self._began.append(environment.monotonic())
        return self._rounds.round()

    def watch(self, changes: Changes) -> None:
        self._rounds.watch(changes)

    def news(self) -> str:
        return self._rounds.news()


class Day:
    """What happens, and what is noted of it.

    Attributes:
        kept: ledgers with all their entries.
        deleted: when each deletion was done, by ledger id, with the members; until all is freed.
        rounds: when the rounds of a subject began.
        runs: when the runs of a command ended.
        leaders: the agents that serve a subject, as far as they have told.
        hurts: how often an agent was killed or paused.
        made: how many ledgers were made.
    """

    def __init__(self, rig: Rig, chance: Random) -> None:
        self.rig = rig
        self.chance = chance
        self.scheduler = Scheduler(Policy(chance), steps_per_second=STEPS_PER_SECOND)
        self.scheduler.steps_max = 10**9
        self.agents: dict[str, Process] = {}
        self.kept: list[int] = []
        self.deleted: dict[int, tuple[float, list[str]]] = {}
        self.rounds: dict[str, list[float]] = defaultdict(list)
        self.runs: dict[str, list[float]] = defaultdict(list)
        self.leaders: dict[str, set[str]] = defaultdict(set)
        self.hurts = self.made = 0
        self.is_over = False

    def live(self) -> None:
        for name in ("agent-1", "agent-2"):
            self.begin_agent(name)
        life, chaos = Process("life"), Process("chaos")
        self.scheduler.spawn(life, "main", self.use)
        self.scheduler.spawn(chaos, "main", self.hurt)
        self.scheduler.run()

    # --- agents ----------------------------------------------------------------------------------

    def begin_agent(self, name: str) -> None:
        self.agents[name] = process = Process(name)
        self.scheduler.spawn(process, "main", partial(self.serve, name))

    def serve(self, name: str) -> None:
        tell = partial(self.tell, name)
        with Cluster(self.rig.uri) as cluster:
            calls = {verb: partial(self.run, verb) for verb in UPKEEP}
            served: list[Rounds] = [BookieRounds(cluster, bookie, tell) for bookie in BOOKIES]
            served.append(UpkeepRounds(cluster, calls, tell))
            seen = [SeenRounds(one, self.rounds[one.subject]) for one in served]
            Agent(cluster, seen, tell).run()

    def tell(self, name: str, subject: str, event: str) -> None:
        """An agent goes on where no other one is at work."""
        if event == SERVES:
            for other in self.leaders[subject] - {name}:
                process = self.agents[other]
                awake = self.scheduler.step - ELSEWHERE_SECONDS * STEPS_PER_SECOND
                assert process.is_dead or process.paused_until > awake, (other, subject)
            self.leaders[subject].add(name)
        elif NO_LONGER in event:
            self.leaders[subject].discard(name)

    def run(self, verb: str) -> Report:
        report = VERBS[verb].run(self.rig.uri, {})
        self.runs[verb].append(environment.monotonic())
        return report

    # --- what happens ----------------------------------------------------------------------------

    def use(self) -> None:
        """Write and delete ledgers, and take copies away."""
        while environment.monotonic() < HOURS * HOUR:
            environment.sleep(self.chance.uniform(60, 600))
            with environment.use(environment.RealEnvironment()):  # at one moment of the day
                self.kept.append(written(self.rig))
                self.made += 1
                doomed = self.kept.pop(0) if len(self.kept) > 5 else None
                self.check()
            if doomed is not None:
                self.delete(doomed)
            if self.chance.random() < 0.1 and environment.monotonic() < LAST_DAMAGE:
                take(self.rig, HURT, "journal", self.kept[-1])
        with environment.use(environment.RealEnvironment()):
            assert verbs.audit(self.rig.uri).left == []
        self.is_over = True

    def delete(self, ledger_id: int) -> None:
        where = members(self.rig, ledger_id)
        with BookKeeper(self.rig.uri) as keeper:
            keeper.delete_ledger(ledger_id)
        self.deleted[ledger_id] = environment.monotonic(), where

    def hurt(self) -> None:
        """Kill or pause one agent after the other, and see that what is deleted goes."""
        while not self.is_over:
            self.sleep(self.chance.uniform(0, 1_200))
            self.hurts += 1
            name = self.chance.choice(list(self.agents))
            process = self.agents[name]
            if self.chance.random() < 0.5:
                process.is_dead = True
                for leaders in self.leaders.values():
                    leaders.discard(name)
                self.sleep(self.chance.uniform(0, 600))
                self.begin_agent(name)
            else:
                seconds = self.chance.uniform(0, 600)
                process.paused_until = self.scheduler.step + int(seconds * STEPS_PER_SECOND)
                self.sleep(seconds)
        for process in self.agents.values():
            process.is_dead = True

    def sleep(self, seconds: float) -> None:
        """Let the others go on, and look every few seconds at what has been freed."""
        until = environment.monotonic() + seconds
        while environment.monotonic() < until:
            environment.sleep(5)
            for ledger_id, (since, where) in list(self.deleted.items()):
                folder = layout.ledger_folder(ledger_id)
                if not any(name.startswith(folder) for b in where for name in self.rig.names(b)):
                    del self.deleted[ledger_id]
                else:
                    assert environment.monotonic() - since < ROUND_SECONDS, ledger_id

    def check(self) -> None:
        """Every entry is there."""
        with BookKeeper(self.rig.uri) as keeper:
            for ledger_id in self.kept:
                found = [entry.value for entry in keeper.open_ledger(ledger_id).read()]
                assert found == [b"%d" % number for number in range(ENTRIES)]


def gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in zip(times, times[1:])]


@pytest.mark.thorough
def test_agents_do_their_work_all_day_while_they_are_killed_and_paused(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=len(BOOKIES))
    chance = Random(1)
    day = Day(rig, chance)
    with environment.use(DayEnvironment(day.scheduler, lambda: chance)):
        day.live()
    assert day.hurts > 2 * HOURS
    assert day.made > 2 * HOURS
    for bookie_id in BOOKIES:
        assert max(gaps(day.rounds[bookie_id])) < ROUND_SECONDS
    assert set(day.runs) == set(UPKEEP)
    for verb, times in day.runs.items():
        # A repair begins with a recovery, so the next one is due later.
        done = sorted([*times, *day.runs["repair"]]) if verb == "recover" else times
        assert max(gaps(done), default=0.0) < UPKEEP[verb] + ROUND_SECONDS, verb
        assert min(gaps(times), default=inf) > UPKEEP[verb] - 1, verb
