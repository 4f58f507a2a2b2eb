"""Unbounded logs whose writers, appends and streams are killed and paused at random moments.

One log is of handles, another of DataFrames and of a streaming query, all in processes of their
own, each of which takes its log's ledger over from whoever had it. Beside them bookies go and come
back, leading fragments are truncated, repairs, recoveries and collections run. In the end all that
was acknowledged is there, once, and so is each batch of the stream.

    pytest -s -n0 -m soak tests/integration/crash/test_killed_unbounded_logs.py    # 1,000 takeovers
"""

import os
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import BookKeeperError
from bkspark.protocol.ledger.metadata import FRAGMENTS_MAX
from tests.integration.rig import LOG, Rig
from tests.integration.stream_driver import expected, settled_rows

from .log_work import APART, WAL, entry_of, rows_of_append
from .processes import Child, Processes

KILLS = 24
TAKEOVERS = int(os.environ.get("BKSPARK_SOAK_TAKEOVERS", "1000"))
LIFE_SECONDS = 0.2
SLEEPERS_MAX = 3
REFUSED = {
    "InvalidTermError",
    "LedgerFencedError",
    "LedgerClosedError",
    "NotEnoughBookiesError",
    "OutcomeUnknownError",
}
REFUSED_STREAM = {*REFUSED, "InvalidRequestError"}
"""A run that slept repeats a batch that lies below the last one of the run after it."""
"""What may be said to who was overtaken, or in whose turn a bookie was away."""


@dataclass
class Running:
    """A child: what it does, by which number, from where on."""

    work: str
    number: int
    child: Child


@dataclass
class Turns:
    """Two logs, and who writes to them.

    Attributes:
        awake, asleep, ended: children, those that live first.
        known: what the log of handles had in front of its truncations, by offset.
        away: a bookie that is not there, and its disk.
    """

    forks: Processes
    rig: Rig
    chance: random.Random
    awake: list[Running] = field(default_factory=list)
    asleep: list[Running] = field(default_factory=list)
    ended: list[Running] = field(default_factory=list)
    known: dict[int, bytes] = field(default_factory=dict)
    away: tuple[str, Any] | None = None
    done: Counter[str] = field(default_factory=Counter)

    def run(self, is_over: "Callable[[Turns], bool]") -> None:
        with BookKeeper(self.rig.uri) as keeper:
            keeper.create_log(WAL, unbounded=True)
        while not is_over(self):
            self._turn()
        self._end()
        self._compare_entries()
        self._compare_rows()
        self._look_after()
        print(dict(self.done), f"{self.terms} takeovers")

    @property
    def terms(self) -> int:
        """How often a ledger was taken over, of those that are there still."""
        with Cluster(self.rig.uri) as cluster:
            ledgers = [cluster.ledgers.get(str(number)) for number in cluster.ledger_ids()]
        return sum(seen.value.term - 1 for seen in ledgers if seen is not None)

    # --- turns ----------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._start(self.chance.choice(("write_log", "append_frames", "stream")))
        time.sleep(self.chance.uniform(0, LIFE_SECONDS))
        for one in list(self.awake):
            self.chance.choice((self._kill, self._kill, self._pause, self._leave))(one)
        if self.asleep and (self.chance.random() < 0.3 or len(self.asleep) > SLEEPERS_MAX):
            self._wake(self.chance.choice(self.asleep))
        beside = (self._lose, self._repair, self._collect, self._recover, self._truncate)
        if self.chance.random() < 0.5:
            self.chance.choice(beside)()

    def _start(self, work: str) -> None:
        number = len(self.ended) + len(self.awake) + len(self.asleep) + 1
        first = self._batches_done() if work == "stream" else number
        child = self.forks.start(work, self.rig.uri, first=first)
        self.awake.append(Running(work, number, child))
        if self.chance.random() < 0.7:
            child.wait_for(self.chance.choice(("begun", "acked")))

    def _batches_done(self) -> int:
        """As a checkpoint has it: what a commit has returned for."""
        of_streams = (one for one in self._all() if one.work == "stream")
        return max((last + 1 for one in of_streams for last in one.child.all("acked")), default=0)

    def _all(self) -> list[Running]:
        return [*self.ended, *self.awake, *self.asleep]

    def _kill(self, one: Running) -> None:
        self.awake.remove(one)
        self.ended.append(one)
        one.child.kill()
        errors = one.child.all("error")
        assert set(errors) <= (REFUSED_STREAM if one.work == "stream" else REFUSED), one.child.said
        self.done["refused" if errors else f"{one.work} killed"] += 1
        self.done["killed"] += not errors

    def _pause(self, one: Running) -> None:
        one.child.pause()
        self.awake.remove(one)
        self.asleep.append(one)

    def _leave(self, one: Running) -> None:
        pass

    def _wake(self, one: Running) -> None:
        self.asleep.remove(one)
        self.awake.append(one)
        one.child.wake()
        self.done["woken"] += 1

    # --- beside them ----------------------------------------------------------------------------

    def _lose(self) -> None:
        """One bookie at most is away, and comes back as it was."""
        if not self._bring_back():
            name = self.chance.choice(sorted(self.rig.urls))
            self.away = (name, self.rig.lose(name))
            self.done["bookies away"] += 1

    def _bring_back(self) -> bool:
        if self.away is None:
            return False
        self.rig.bring_back(*self.away)
        self.away = None
        return True

    def _repair(self) -> None:
        verbs.repair(self.rig.uri)
        self.done["repairs"] += 1

    def _collect(self) -> None:
        verbs.collect(self.rig.uri, abandoned_after=3600)
        self.done["collections"] += 1

    def _recover(self) -> None:
        verbs.recover(self.rig.uri, open_grace=0)
        self.done["recoveries"] += 1

    def _truncate(self) -> None:
        """To the middle of what is confirmed, which is looked at before."""
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(WAL)
            try:
                before = (log.first_offset + log.end_offset) // 2
                found = {entry.offset: entry.value for entry in log.read(log.first_offset, before)}
                log.truncate(before)
            except BookKeeperError:  # a bookie is away, or the fragment is in use
                return
            assert all(self.known.get(at, value) == value for at, value in found.items())
            self.known |= found
            self.done["truncations"] += 1

    # --- in the end -----------------------------------------------------------------------------

    def _end(self) -> None:
        self._bring_back()
        for one in list(self.asleep):
            self._wake(one)
        for one in list(self.awake):
            self._kill(one)

    def _of(self, work: str) -> list[Running]:
        return [one for one in self.ended if one.work == work]

    def _compare_entries(self) -> None:
        """Each that was acknowledged is where it was said to be, and none is there twice."""
        with BookKeeper(self.rig.uri) as keeper:
            log = keeper.open_log(WAL)
            log.writer().close()
            found = self.known | {entry.offset: entry.value for entry in log.read()}
        assert sorted(found) == list(range(len(found)))
        assert len(set(found.values())) == len(found)
        for one in self._of("write_log"):
            for number, offset in one.child.all("acked"):
                assert found[offset] == entry_of(one.number, number)
                self.done["entries"] += 1

    def _compare_rows(self) -> None:
        """Those of the stream once and in order, those of each append side by side, or not."""
        rows, done = settled_rows(self.rig), self._batches_done()
        streamed = [row for row in rows if row[0] < APART]
        assert streamed in (expected(*range(done)), expected(*range(done + 1)))
        self.done["batches"] = done
        places = {row: at for at, row in enumerate(rows)}
        assert len(places) == len(rows)
        count = len(streamed)
        for one in self._of("append_frames"):
            acked = one.child.all("acked")
            for number in range(len(acked) + 1):  # the last one may be there
                wanted = rows_of_append(one.number, number)
                is_there = wanted[0] in places
                assert is_there or number not in acked
                count += len(wanted) if is_there else 0
                if is_there:
                    at = places[wanted[0]]
                    assert rows[at : at + len(wanted)] == wanted
            self.done["appends"] += len(acked)
        assert count == len(rows)

    def _look_after(self) -> None:
        """Sealed, both are as whole as any log; and they are few ledgers, however many wrote."""
        with BookKeeper(self.rig.uri) as keeper:
            logs = [keeper.open_log(name) for name in (WAL, LOG)]
            ledgers = [len(log.record.listed_ids) for log in logs]
            for log in logs:
                log.seal()
        moves = 2 * self.done["bookies away"]  # to a smaller ledger, and to a whole one again
        assert max(ledgers) <= 2 + moves + 2 * self.terms // FRAGMENTS_MAX
        self.done["ledgers"] = sum(ledgers)
        verbs.repair(self.rig.uri)
        report = verbs.audit(self.rig.uri)
        assert (report.left, report.details["copies"]) == ([], [])


@pytest.fixture
def turns(forks: Processes, make_rig: Callable[..., Rig]) -> Turns:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    return Turns(forks, make_rig(kind="file"), random.Random(seed))


def _has_kills(count: int, turns: Turns) -> bool:
    wanted = {f"{work} killed" for work in ("write_log", "append_frames", "stream")}
    return turns.done["killed"] >= count and wanted <= set(turns.done)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_whoever_writes_is_killed_and_paused(turns: Turns) -> None:
    turns.run(partial(_has_kills, KILLS))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_over_many_takeovers(turns: Turns) -> None:
    turns.run(lambda turns: turns.terms >= TAKEOVERS)
