"""A cluster in memory, clients that take turns in one thread, and what one does inside another.

Rule 1. Nothing depends on the machine: every task of a client is a greenlet of one scheduler, and
time and chance are the scheduler's. While a client acts inside another one, the other one rests
with all its tasks.

Rule 2. A client acts inside another one only between two calls to the metadata store, before the
call that could tell: one that reads what the client changes, or changes what the client reads.
In front of any other call it does the same as in front of the next one that can tell.
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import FrameType
from typing import Any

from bkspark import environment
from bkspark.bookie import memory as disks
from bkspark.cluster.log_records import PageMemory
from bkspark.format import layout
from bkspark.metadata import memory as stores
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from tests.kit.faulty import Crash
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.scheduler import NEVER, Process, Scheduler, Task

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
PAGE_LENGTH = 2
STEPS_MAX = 200_000
PACKAGE = "/bkspark/"

Contents = tuple[dict[str, VersionedBytes | None], dict[str, tuple[int, dict[str, bytes]]], Any]


@dataclass
class Call:
    """One call to the metadata store.

    Attributes:
        key: that it reads or changes; of a listing, the prefix.
        sites: lines of the package that have asked for a change, the innermost first.
    """

    name: str
    key: str
    is_change: bool
    sites: tuple[tuple[str, int], ...] = ()


@dataclass
class Footprint:
    """What a client read and changed."""

    read: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)

    def note(self, call: Call) -> None:
        if call.key == layout.LEDGER_COUNTER_KEY:
            return  # whoever is first has the lower number: no difference that matters
        if call.name == "list":
            self.listed.add(call.key)
        elif call.is_change:
            self.changed.add(call.key)
        else:
            self.read.add(call.key)

    def meets(self, call: Call) -> bool:
        """Whether it makes a difference on which side of ``call`` it all was."""
        if call.key == layout.LEDGER_COUNTER_KEY:
            return False
        if call.name == "list":
            return any(key.startswith(f"{call.key}/") for key in self.changed)
        if not call.is_change:
            return call.key in self.changed
        folder = call.key.rpartition("/")[0]
        return call.key in self.changed | self.read or folder in self.listed


class TurnTaking:
    """Chooses who has waited longest."""

    def __init__(self) -> None:
        self.random = Random(0)
        self._last: dict[Task, int] = {}
        self._turn = 0

    def choose(self, tasks: list[Task], _step: int) -> Task:
        chosen = min(tasks, key=lambda task: self._last.get(task, 0))
        self._turn += 1
        self._last[chosen] = self._turn
        return chosen


class Clients(SimulatedEnvironment):
    """The environment of all clients of a world; each process has what a process has one of."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler, self._chance_of_current)
        self._outside = Random("outside")
        self._now_ms = NOW_MS
        self.skew_ms = 0
        self.made[PageMemory] = lambda: PageMemory(PAGE_LENGTH)

    def _chance_of_current(self) -> Random:
        task = self._scheduler.current
        return self._outside if task is None else task.process.chance

    def now_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms + self.skew_ms

    def monotonic(self) -> float:
        return super().monotonic() if self._scheduler.current else 0.0


class WatchedStore:
    """A metadata store that tells of each call before it is made."""

    def __init__(self, inner: MetadataStore, tell: Callable[[Call], None]) -> None:
        self._inner = inner
        self._tell = tell

    @property
    def uri(self) -> str:
        return self._inner.uri

    def get(self, key: str) -> VersionedBytes | None:
        self._tell(Call("get", key, is_change=False))
        return self._inner.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        self._tell(Call("put", key, is_change=True, sites=_sites()))
        return self._inner.put(key, value, expected)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        self._tell(Call("is_current", key, is_change=False))
        return self._inner.is_current(key, seen)

    def list(self, prefix: str) -> list[str]:
        self._tell(Call("list", prefix, is_change=False))
        return self._inner.list(prefix)

    def delete(self, key: str) -> None:
        self._tell(Call("delete", key, is_change=True))
        self._inner.delete(key)

    def close(self) -> None:
        self._inner.close()


def _sites() -> tuple[tuple[str, int], ...]:
    """Lines of the package on the stack, the innermost first, each as (file, line)."""
    found = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if PACKAGE in name:
            found.append((name[name.rindex(PACKAGE) + 1 :], frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


@dataclass
class Outcome:
    """What became of an operation.

    Attributes:
        done: how many of its steps returned.
        error: what the next one raised; None if all returned.
        told: what users have seen meanwhile that stays for ever.
    """

    done: int = 0
    error: BaseException | None = None
    told: list[tuple[str, int]] = field(default_factory=list)

    @property
    def shown(self) -> str:
        return f"{self.done} done" + (f", then {self.error!r}" if self.error else "")


@dataclass(frozen=True)
class Told:
    """What a step yields that shows its user where a sealed log ends."""

    value: tuple[str, int]


Steps = Iterator[object]
"""Does one step with each ``next``."""


class World:
    """A cluster in memory.

    Attributes:
        uri: of its metadata store.
        urls: of its bookies, by id.
        closed, left: ids of ledgers of no log; the writer of the second one has died.
        planned: a write that is begun, and is part of what is stored.
        sites: lines of the package from which records were changed.
    """

    def __init__(self, name: str, bookie_count: int) -> None:
        self._store = f"{name}-metadata"
        self.uri = f"memory://{self._store}"
        self.urls = {f"bookie-{n}": f"memory://{name}-{n}" for n in range(1, bookie_count + 1)}
        self._scheduler = Scheduler(TurnTaking(), steps_max=STEPS_MAX)
        self.clients = Clients(self._scheduler)
        self._tells: dict[str, Callable[[Call], None]] = {}
        self.clients.before = self._watched
        self.planned: Any = None
        self.closed = self.left = -1
        self.sites: set[tuple[str, int]] = set()

    # --- all of it at once -----------------------------------------------------------------------

    def contents(self) -> Contents:
        """All that is stored."""
        found = {
            url: (disk.free_bytes, {name: bytes(file.data) for name, file in disk.files.items()})
            for url, disk in disks._disks.items()
            if url.startswith(self.uri.removesuffix("metadata"))
        }
        return dict(stores._stores[self._store]), found, self.planned

    def restore(self, contents: Contents) -> None:
        """Let everything be as it was."""
        self.clear()
        records, files, self.planned = contents
        stores._stores[self._store] = dict(records)
        for url, (free_bytes, own) in files.items():
            disk = disks.MemoryDisk()
            disk.free_bytes = free_bytes
            disk.files = {name: disks.MemoryFile(data) for name, data in own.items()}
            disks.place_disk(url, disk)
        scheduler = Scheduler(TurnTaking(), steps_max=STEPS_MAX)
        self._scheduler = scheduler
        self.clients = Clients(scheduler)
        self.clients.before = self._watched

    def clear(self) -> None:
        """Leave nothing behind in the process."""
        for url in [url for url in disks._disks if url.startswith(self.uri[: -len("metadata")])]:
            disks.place_disk(url, None)
        stores._stores.pop(self._store, None)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Look at it, or change it, while no client is at work: what is begun is done at once."""
        with environment.use(self.clients):
            yield

    # --- clients ---------------------------------------------------------------------------------

    def run(
        self, name: str, steps: Steps, tell: Callable[[Call], None] = lambda _call: None
    ) -> Outcome:
        """Let a client carry out ``steps`` to their end; nobody else is at work."""
        outcome = Outcome()
        self._tells[name] = tell
        self._scheduler.spawn(Process(name), "main", lambda: _carry_out(steps, outcome))
        with environment.use(self.clients):
            self._scheduler.run()
        return outcome

    def inside(self, name: str, steps: Steps) -> Outcome:
        """The same while another client, which runs now, rests with all its tasks."""
        outcome, task = Outcome(), self._scheduler.current
        assert task is not None
        other = task.process

        def work() -> None:
            _carry_out(steps, outcome)
            other.paused_until = 0

        self._tells[name] = lambda _call: None
        self._scheduler.spawn(Process(name), "main", work)
        other.paused_until = NEVER
        self._scheduler.pause()
        return outcome

    def wait_for(self, future: "Future[Any]") -> Any:
        """What comes of ``future``; the client that waits lets its other tasks go on."""
        if not future.done():
            self._scheduler.pause(future.done)
        return future.result(0)

    def _watched(self, place: str, storage: Any) -> Any:
        if place != environment.METADATA:
            return storage
        return WatchedStore(storage, self._tell)

    def _tell(self, call: Call) -> None:
        task = self._scheduler.current
        self.sites.update(call.sites)
        if task is not None and task.process.name in self._tells:
            self._tells[task.process.name](call)


def _carry_out(steps: Steps, outcome: Outcome) -> None:
    try:
        for result in steps:
            outcome.done += 1
            if isinstance(result, Told):
                outcome.told.append(result.value)
    except Crash:
        raise
    except Exception as error:
        outcome.error = error
