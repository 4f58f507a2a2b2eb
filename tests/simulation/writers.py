"""The writers of a schedule: who fills a ledger, and who goes on in it behind another.

Rule: as that of ``clients``.
"""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from random import Random

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookKeeperError
from bkspark.format.digest import Digester
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery.recover import take_over
from bkspark.protocol.ledger.metadata import DigestSpec
from tests.simulation.environment import run_all
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.known import payload
from tests.simulation.oracle import Oracle
from tests.simulation.scheduler import Process, Scheduler, Task, Violation

_REST_SECONDS = 0.15
"""Longer than a writer is idle before it tells of its last entries."""
_CLOSING_SHARE, _PATIENCE, _ROLL_SHARE = 0.3, 0.5, 0.6
_LOSS = re.compile(r"bookie (\S+) has lost data of ledger|no member: bookie (\S+) lacks")
DELAYS = (0, 15, 30, 45, 60, 90, 120, 200)


class Writers:
    """Starts writers; ``random`` decides what each of them does.

    Attributes:
        rolls: whether they begin fragments between their bursts.
        may_have_lost: whether a bookie may have lost anything by now.
    """

    def __init__(self, scheduler: Scheduler, oracle: Oracle, random: Random, uri: str) -> None:
        self._scheduler = scheduler
        self._oracle = oracle
        self._random = random
        self._uri = uri
        self.rolls = False
        self.may_have_lost: Callable[[str], bool] = lambda _bookie_id: True

    def hear(self, line: str) -> None:
        """What a client says to its user: a loss only where there is one."""
        for found in _LOSS.finditer(line):
            if not self.may_have_lost(found[1] or found[2]):
                raise Violation(f"nothing is lost, and a client says: {line}")

    def start(
        self,
        name: str,
        work: Callable[[], None],
        delays: Sequence[int] = (0,),
        *,
        works_alone: bool = False,
    ) -> Task:
        """A process of its own that does ``work``, at once or some steps later.

        Args:
            works_alone: see ``Process``; of one that waits for all it starts, in any case.
        """
        process = Process(name, works_alone=works_alone)
        process.paused_until = self._scheduler.step + self._random.choice(delays)

        def contained() -> None:
            try:
                work()
            except BookKeeperError as error:
                self._scheduler.note(f"ends: {type(error).__name__}: {error.args[0]}")
            except Exception as error:
                raise Violation(f"{name} fails with {error!r}") from error

        return self._scheduler.spawn(process, "main", contained)

    def write(
        self, name: str, created: CreatedLedger, count: int, *, one_by_one: bool = False
    ) -> Task:
        """Append ``count`` entries, in bursts, then close the ledger or leave it open."""
        bursts = _cut(count, self._random)
        patience = self._random.choice((0.0, 0.2, 0.6))
        if one_by_one:
            bursts, patience = [range(number, number + 1) for number in range(count)], 1.0
        waits = [self._random.random() < patience for _ in bursts]
        rest = self._random.choice((0.0, 0.0, _REST_SECONDS))
        closes = self._random.random() < 0.7
        return self.start(name, lambda: self._write(name, created, bursts, waits, closes, rest))

    def _write(
        self,
        name: str,
        created: CreatedLedger,
        bursts: Sequence[range],
        waits: Sequence[bool],
        closes: bool,
        rest: float = 0.0,
    ) -> None:
        with Cluster(self._uri) as cluster:
            handle = WriteHandle(cluster, created.seen, digester(), begun=created.begun)
            self._fill(name, handle, bursts, waits, closes, rest)

    def _fill(
        self,
        name: str,
        handle: WriteHandle,
        bursts: Sequence[range],
        waits: Sequence[bool],
        closes: bool,
        rest: float,
    ) -> None:
        ledger_id, term = handle.ledger_id, handle.metadata.term
        own = Random(f"rolls of {name} in {term}, {len(bursts)}")
        try:
            for burst, must_wait in zip(bursts, waits):
                if self.rolls and own.random() < _ROLL_SHARE:
                    self._roll(name, handle, is_awaited=own.random() < _PATIENCE)
                futures = [handle.append_async(payload(number, term)) for number in burst]
                for number, future in zip(burst, futures):
                    future.add_done_callback(self._on_ack(name, ledger_id, number, term))
                last = futures[-1]
                self._scheduler.pause(last.done if must_wait else None)
                if must_wait:
                    self._scheduler.touch(f"news for {name}", Access.WAIT)
                    last.result()
                    self._scheduler.sleep(rest)
            if closes:
                handle.close()
                self._scheduler.note(f"has closed ledger {ledger_id}")
        finally:
            handle.release()

    def _roll(self, name: str, handle: WriteHandle, *, is_awaited: bool) -> None:
        """A new fragment, perhaps amid what was sent."""
        asked = handle.begin_fragment()
        if is_awaited:
            self._scheduler.pause(asked.done)
            self._scheduler.touch(f"news for {name}", Access.WAIT)
            why = asked.exception()
            told = f"begins at {asked.result()}" if why is None else f"is not begun: {why}"
            self._scheduler.note(f"a fragment {told}")

    def take_over(
        self, name: str, ledger_id: int, count: int, delays: Sequence[int] = DELAYS
    ) -> Task:
        """Go on in a ledger behind whoever wrote to it, with ``count`` entries in bursts."""
        bursts, closes = _cut(count, self._random), self._random.random() < _CLOSING_SHARE
        waits = [self._random.random() < _PATIENCE for _ in bursts]

        def work() -> None:
            with Cluster(self._uri) as cluster:
                runs = partial(run_all, self._scheduler)
                taken = take_over(cluster, ledger_id, Password(), run=runs, tell=self.hear)
                begin, term = taken.standing.last_entry_id + 1, taken.seen.value.term
                self._scheduler.note(f"goes on in term {term} from entry {begin} on")
                handle = WriteHandle(
                    cluster,
                    taken.seen,
                    digester(),
                    begun=taken.begun,
                    standing=taken.standing,
                    unjoined=taken.unjoined,
                )
                mine = [range(begin + burst.start, begin + burst.stop) for burst in bursts]
                self._fill(name, handle, mine, waits, closes, 0.0)

        return self.start(name, work, delays)

    def _on_ack(
        self, name: str, ledger_id: int, number: int, term: int
    ) -> "Callable[[Future[int]], None]":
        def told(future: "Future[int]") -> None:
            self._scheduler.touch(f"news for {name}", Access.WRITE)
            if future.exception() is None:
                self._scheduler.note(f"entry {future.result()} is acknowledged")
                if future.result() != number:
                    raise Violation(f"entry {number} is acked as {future.result()} (I4)")
                self._scheduler.touch(f"life of {name}", Access.READ)
                self._oracle.acknowledged(name, ledger_id, number, term)

        return told

    def write_one(self, name: str, created: CreatedLedger, *, closes: bool, count: int = 1) -> Task:
        """Append ``count`` entries one by one, wait, then close the ledger or leave it open."""
        bursts = [range(number, number + 1) for number in range(count)]
        waits = [number == count - 1 for number in range(count)]
        return self.start(
            name,
            lambda: self._write(name, created, bursts, waits, closes),
        )


def _cut(count: int, random: Random) -> list[range]:
    """Neighbouring entries in bursts of one to three."""
    bursts: list[range] = []
    begin = 0
    while begin < count:
        end = min(count, begin + random.choice((1, 1, 2, 3)))
        bursts.append(range(begin, end))
        begin = end
    return bursts


def digester() -> Digester:
    return Digester(DigestSpec(), None)
