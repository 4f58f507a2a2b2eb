"""One maintenance verb while another one is at work: each beside each, itself too, without a lease.

The second runs from beginning to end in front of one operation of the first. Whatever becomes of
either, no row and no copy is lost, and the next run of each finds nothing left to do.

    BKSPARK_SOAK_PAIRS=1000 pytest -s -n0 -m soak tests/integration/upkeep/test_pairs_of_verbs.py
"""

import os
import random
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin.maintenance import Left, Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from tests.integration.log_scenes import NAME, SILENT, fill
from tests.integration.log_scenes import values as entries_of
from tests.integration.rig import LOG, Rig
from tests.kit.faulty import Crash, Fault, Operation, no_fault
from tests.thorough import always

from .flipping import flip
from .scenes import audited, copies, members, take, written
from .small_ledgers import filled, ids
from .test_repair import VALUES, values

HOURS_MS = 3_600_000
SOAK_PAIRS = int(os.environ.get("BKSPARK_SOAK_PAIRS", "1000"))
NAMES = (
    *("recover", "scrub", "repair", "compact wal", "compact rows"),
    *("collect", "rebalance", "decommission"),
)
OPERATIONS, PUTS = 150, 10
"""So many operations have most of them here, and so many of them change metadata."""
TWO_RUNS = 16
"""Of so many bytes the four entries make two."""
SKEW = 5
"""So many hours are clocks off."""
LATER = 2 * SKEW
"""So many hours later all is done: ages delay what they are asked about, and do nothing else."""
ROUNDS = 3
"""So often all verbs are run at most until nothing is left: a scrub leaves what it finds."""


class Skewed(environment.RealEnvironment):
    """A process whose clock is hours off."""

    def __init__(self, hours: int) -> None:
        super().__init__()
        self._skew_ms = hours * HOURS_MS

    def now_ms(self) -> int:
        return super().now_ms() + self._skew_ms


@dataclass(frozen=True)
class Moment:
    """When others are at work in the midst of a verb.

    Attributes:
        number: in front of this operation.
        is_of_puts: whether only changes of metadata are counted: between what was read for one and
            itself lies what others can do harm to.
        hours: how far the clocks of the others are off.
        dies: whether the verb ends there, killed.
    """

    number: int
    is_of_puts: bool
    hours: int
    dies: bool

    @classmethod
    def by(cls, chance: random.Random) -> "Moment":
        is_of_puts = chance.random() < 0.6
        number = chance.randrange(PUTS if is_of_puts else OPERATIONS)
        return cls(number, is_of_puts, chance.choice((0, -SKEW, SKEW)), chance.random() < 0.2)


@dataclass
class Scene:
    """A cluster in which there is something to do for every verb.

    Attributes:
        leaving: the bookie that is to be emptied.
        rows, sent: of the two logs.
    """

    rig: Rig
    leaving: str = ""
    whole: int = 0
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        rig = self.rig
        self.rows = filled(rig, 3, quorum=(3, 3, 2))
        self.whole = written(rig, (4, 3, 2))
        with BookKeeper(rig.uri) as keeper:
            self.sent = fill(keeper.create_log(NAME), 1, 1, 1, 1)
            with keeper.create_ledger(settings=SILENT) as ledger:
                ledger.append(b"garbage")
            left = keeper.create_ledger(settings=SILENT)
            left.append(b"left")
            left.release()
            keeper.delete_ledger(ledger.ledger_id)
        self.leaving = members(rig, self.whole)[0]
        take(rig, members(rig, self.whole)[1], "/journal/", self.whole)
        damaged = members(rig, ids(rig)[0])[1]
        flip(rig, damaged, next(name for name in rig.names(damaged) if "/entries/" in name), 100)
        with Cluster(rig.uri) as cluster:
            url = f"{rig.urls['bookie-1']}-new"
            rig.urls[cluster.add_bookie("", url, accepts_risk=True).bookie_id] = url

    @property
    def verbs(self) -> dict[str, Callable[[], Report]]:
        uri = self.rig.uri
        return {
            "recover": lambda: verbs.recover(uri, open_grace=0, no_lease=True),
            "scrub": lambda: verbs.scrub(uri, no_lease=True),
            "repair": lambda: verbs.repair(uri, open_grace=0, no_lease=True),
            "compact wal": lambda: verbs.compact(uri, log=NAME, target_bytes=TWO_RUNS),
            "compact rows": lambda: verbs.compact(uri, log=LOG),
            "collect": lambda: verbs.collect(uri, abandoned_after=0, no_lease=True),
            "rebalance": lambda: verbs.rebalance(uri, threshold=0.01, no_lease=True),
            "decommission": lambda: verbs.decommission(uri, bookies=[self.leaving]),
        }

    def interrupt(self, moment: Moment, first: str, *others: str) -> bool:
        """Run ``others`` at a moment of ``first``; whether that came."""
        faults, is_reached, count = self.rig.faults, False, 0

        def decide(_now: int, operation: Operation) -> Fault | None:
            nonlocal is_reached, count
            if not is_reached:
                count += not moment.is_of_puts or operation.call == "put"
                if count <= moment.number:
                    return None
                is_reached = True
                faults.decide = no_fault
                with environment.use(Skewed(moment.hours)), suppress(BookKeeperError):
                    for name in others:
                        self.verbs[name]()
                faults.decide = decide if moment.dies else no_fault
            return Fault(error=Crash) if moment.dies else None

        with faults.installed():
            faults.forget()
            faults.decide = decide
            with suppress(BookKeeperError, Crash):
                self.verbs[first]()
            faults.forget()
        return is_reached

    def finish(self) -> None:
        self.compare()
        left: list[Left] = []
        with environment.use(Skewed(LATER)):
            for _ in range(ROUNDS):
                left = [one for verb in self.verbs.values() for one in verb().left]
                if not left:
                    break
        assert left == []
        self.compare()
        assert copies(audited(self.rig)) == []

    def compare(self) -> None:
        assert self.rig.rows() == self.rows
        with BookKeeper(self.rig.uri) as keeper:
            assert entries_of(keeper.open_log(NAME)) == self.sent
        assert values(self.rig, self.whole) == VALUES


def pair(make_rig: Callable[..., Rig], chance: random.Random, first: str, second: str) -> None:
    """One verb in the midst of another one, and behind it mostly what removes what it can."""
    scene = Scene(make_rig(kind="memory", metadata="memory", bookie_count=6))
    others = (second, "collect")[: chance.choice((1, 2, 2))]
    moment = Moment.by(chance)
    print(f"{first}: {', '.join(others)} at {moment}", flush=True)
    scene.interrupt(moment, first, *others)
    scene.finish()


@pytest.fixture
def chance() -> random.Random:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


@pytest.mark.parametrize("other", always(["itself"], ["itself", "another"]))
@pytest.mark.parametrize("name", always(["repair", "compact wal", "collect"], NAMES))
def test_one_verb_in_the_midst_of_another(
    make_rig: Callable[..., Rig], chance: random.Random, name: str, other: str
) -> None:
    pair(make_rig, chance, name, name if other == "itself" else chance.choice(NAMES))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_pairs(tmp_path: Path, chance: random.Random) -> None:
    for number in range(SOAK_PAIRS):
        first, second = (chance.choice(NAMES) for _ in range(2))
        pair(partial(Rig, tmp_path / f"cluster{number}"), chance, first, second)
