"""Writers of one ledger, one behind the other, that are killed and paused at random moments.

Each takes the ledger over from the one before, whatever became of that one: it is killed in the
midst of taking over or of writing, or it sleeps while others go on, and wakes up behind them. In
the end every entry that was acknowledged is compared, and what is left on the bookies is counted.
"""

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.format import journal, layout
from bkspark.ledger.recovery.recover import take_over
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerMetadata
from tests.integration.recovery.test_taking_over import Scene
from tests.integration.rig import Rig

from .child import value_in
from .processes import Child, Processes

TAKEOVERS = 20
SOAK_TAKEOVERS = 1000
LIFE_SECONDS = 0.1
SLEEPERS_MAX = 3
OVERTAKEN = {"InvalidTermError", "LedgerFencedError"}


@dataclass
class Turns:
    """A ledger and its writers.

    Attributes:
        awake, asleep: those that live.
        ended: what was heard of the others.
    """

    forks: Processes
    rig: Rig
    chance: random.Random
    ledger_id: int = 0
    awake: list[Child] = field(default_factory=list)
    asleep: list[Child] = field(default_factory=list)
    ended: list[Child] = field(default_factory=list)
    kills: int = 0
    woken: int = 0

    def run(self, takeovers: int) -> None:
        Scene(self.rig).first().release()
        self.ledger_id = self.ledger.ledger_id
        while self.ledger.term <= takeovers:
            self._turn()
        self._end()
        self._compare()
        self._count_what_is_left()

    @property
    def ledger(self) -> LedgerMetadata:
        return self.rig.ledger(self.ledger_id)

    def _turn(self) -> None:
        """Somebody takes over, and something befalls one or the other."""
        one = self.forks.start("go_on_behind", self.rig.uri, first=self.ledger_id)
        self.awake.append(one)
        if self.chance.random() < 0.7:
            one.wait_for("term")
        time.sleep(self.chance.uniform(0, LIFE_SECONDS))
        for child in list(self.awake):
            self.chance.choice((self._kill, self._kill, self._pause, self._leave))(child)
        if self.asleep and (self.chance.random() < 0.3 or len(self.asleep) > SLEEPERS_MAX):
            self._wake(self.chance.choice(self.asleep))

    def _kill(self, child: Child) -> None:
        self.kills += 1
        self.awake.remove(child)
        self.ended.append(child.kill())

    def _pause(self, child: Child) -> None:
        child.pause()
        self.awake.remove(child)
        self.asleep.append(child)

    def _leave(self, child: Child) -> None:
        pass

    def _wake(self, child: Child) -> None:
        """It may go on only to learn that it was overtaken, unless it is amid a takeover."""
        self.woken += 1
        self.asleep.remove(child)
        self.awake.append(child)
        child.wake()

    def _end(self) -> None:
        """All wake up; behind them the ledger is taken over by somebody who is let be."""
        for child in list(self.asleep):
            self._wake(child)
        for child in list(self.awake):
            self._kill(child)
        with Cluster(self.rig.uri) as cluster:
            for _ in range(2):
                take_over(cluster, self.ledger_id, Password()).begun.close()

    def _compare(self) -> None:
        errors = {error for child in self.ended for error in child.all("error")}
        assert errors <= OVERTAKEN, [child.said[-1] for child in self.ended if child.all("error")]
        with BookKeeper(self.rig.uri) as keeper:
            found = [e.value for e in keeper.open_ledger(self.ledger_id, recovery=False).read()]
        ranges = [acked for child in self.ended for acked in child.all("acked")]
        for term, first, last in ranges:
            expected = [value_in(term, number) for number in range(first, last + 1)]
            assert found[first : last + 1] == expected
        assert ranges
        ends = f"{len(ranges)} acknowledgements, {len(found)} entries"
        print(f"{self.ledger.term} terms, {self.kills} killed, {self.woken} woken, {ends}")

    def _count_what_is_left(self) -> None:
        """On the bookies of the last fragment; others have heard of no takeover since they left."""
        ledger, left = self.ledger, list[int]()
        own = (ledger.term, ledger.token)
        for member in ledger.last_fragment.ensemble:
            names = self.rig.names(member.bookie_id)
            markers = [name.rpartition("/")[2] for name in names if "/terms/" in name]
            assert [found for name in markers if (found := layout.writer_of(name))] == [own]
            blank = {layout.writer_of(n) for n in names if self._is_blank(member.bookie_id, n)}
            assert own in blank
            left.append(len(markers) + len(blank) - 2)
        # Of takeovers that were killed between two calls, or slept and fenced who was pruned.
        print(f"{left} markers and journals are left on bookies that nobody needs")
        assert max(left) <= max(5, (self.kills + self.woken) // 8)

    def _is_blank(self, bookie_id: str, name: str) -> bool:
        """Whether it is a journal of a writer who never wrote."""
        if "/journal/" not in name:
            return False
        data, digester = (
            self.rig.file_bytes(bookie_id, name),
            make_digester(DigestSpec(), Password()),
        )
        found = journal.decode_journal(data, digester, ledger_id=self.ledger_id)
        return all(frame.record.is_header for frame in found.frames)


@pytest.fixture
def turns(forks: Processes, make_rig: Callable[..., Rig]) -> Turns:
    seed = secrets.randbelow(2**32)
    print(f"seed {seed}")
    return Turns(forks, make_rig(kind="file"), random.Random(seed))


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_writers_killed_and_paused_while_others_take_over(turns: Turns) -> None:
    turns.run(TAKEOVERS)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_writers_killed_and_paused_while_others_take_over(turns: Turns) -> None:
    turns.run(SOAK_TAKEOVERS)
