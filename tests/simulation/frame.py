"""What every schedule has: storage, a scheduler, an oracle, and an outcome.

Rule: all chance comes from the seed, and a violation is in the outcome, not raised. What clients
there are and what they do is up to the kind of schedule.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from random import Random
from typing import Generic, TypeVar

from bkspark import environment
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.faults import Chance, Kind
from tests.simulation.oracle import Oracle
from tests.simulation.scheduler import STEPS_MAX, Policy, Scheduler, Violation
from tests.simulation.storage import Storage

Watcher = TypeVar("Watcher", bound=Oracle)

_TIME_OUT_RATES = (0.0, 0.0, 0.0, 0.001)


@dataclass
class Outcome:
    """What a schedule did.

    Attributes:
        violation: what was found; empty if nothing.
        digest: of every step; equal for equal seeds.
        log: every step: (step, process, task, what).
    """

    seed: int
    violation: str = ""
    digest: str = ""
    steps: int = 0
    operations: int = 0
    acks: int = 0
    faults: Counter[Kind] = field(default_factory=Counter)
    setting: str = ""
    log: list[tuple[int, str, str, str]] = field(default_factory=list)

    def take(self, scheduler: Scheduler, storage: Storage, oracle: Oracle) -> None:
        """Note what they have counted by the end."""
        self.log = scheduler.log
        self.digest = blake2b("\n".join(map(str, self.log)).encode(), digest_size=16).hexdigest()
        self.steps, self.operations = scheduler.moves, storage.operations
        self.acks, self.faults = oracle.acks, storage.chance.counts
        self.faults[Kind.TIMED_OUT] = scheduler.time_outs


@dataclass(frozen=True)
class Shape:
    """How schedules of one kind are drawn.

    Attributes:
        lengths: steps within which the one that goes first is changed.
        changes_max: how often it is, >= 1.
        has_priorities: whether the next task is never chosen uniformly.
        loses_files: whether bookies lose single files and folders, cookies intact.
        loses_power: whether they lose what is not durable.
        spares_max: bookies that no ledger needs, at most.
    """

    quorum: Quorum
    lengths: Sequence[int]
    changes_max: int
    has_priorities: bool = False
    steps_max: int = STEPS_MAX
    loses_files: bool = False
    loses_power: bool = False
    spares_max: int = 2


class Run(ABC, Generic[Watcher]):
    """A cluster, who goes next in it and what goes wrong."""

    def __init__(self, seed: int, random: Random, shape: Shape, oracle: Watcher) -> None:
        self.seed, self.random = seed, random
        self.quorum = quorum = shape.quorum
        is_uniform = random.random() < 0.5 and not shape.has_priorities
        length, change_count = random.choice(shape.lengths), random.randint(1, shape.changes_max)
        changes = frozenset(random.randrange(length) for _ in range(change_count))
        spares = random.randint(0, shape.spares_max)
        self.scheduler = Scheduler(
            Policy(random, None if is_uniform else changes),
            time_out_rate=random.choice(_TIME_OUT_RATES),
            steps_max=shape.steps_max,
        )
        self.oracle = oracle
        chance = Chance(
            random,
            losses_left=quorum.losses_max,
            loses_files=shape.loses_files,
            loses_power=shape.loses_power,
        )
        of_clients = Random(f"client {seed}")
        self.environment = SimulatedEnvironment(self.scheduler, lambda: of_clients)
        with environment.use(self.environment):
            self.storage = Storage(self.scheduler, chance, oracle, quorum.ensemble_size + spares)
        self.environment.before = self.storage.before
        how = "uniform" if is_uniform else f"priorities, changed at {sorted(changes)}"
        self.setting = (
            f"E/Qw/Qa {quorum.ensemble_size}/{quorum.write_quorum_size}/"
            f"{quorum.ack_quorum_size}, {spares} spare bookies, {how}"
        )

    @abstractmethod
    def play(self) -> None:
        """Start the clients and let them run.

        Raises:
            Violation: a promise was broken.
        """

    def surroundings(self) -> Iterable[AbstractContextManager[object]]:
        """What holds while it is played."""
        return (environment.use(self.environment),)

    def heal(self) -> bool:
        """No more faults; returns whether no bookie has lost anything."""
        self.storage.heal()
        self.scheduler.time_out_rate = 0.0
        return self.storage.chance.losses_left == self.quorum.losses_max


def outcome_of(run: Run[Watcher]) -> Outcome:
    """Play ``run``."""
    outcome = Outcome(run.seed, setting=run.setting)
    try:
        with ExitStack() as stack:
            for surrounding in run.surroundings():
                stack.enter_context(surrounding)
            run.play()
    except Violation as violation:
        outcome.violation = str(violation)
    finally:
        run.storage.clear()
    outcome.take(run.scheduler, run.storage, run.oracle)
    return outcome
