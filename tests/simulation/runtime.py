"""What simulated clients run on in place of threads, and where their chance comes from.

Rule: nothing in a schedule may depend on the machine. ``determined`` replaces, for a while, every
source of chance and time that client code has; it is the only place that does.
"""

import queue
import random
import secrets
import sys
import threading
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import lru_cache
from random import Random
from typing import Any

from bkspark.client import trouble
from bkspark.client.handles.write_handle import WriteHandle
from bkspark.client.reading import plan as reading_plan
from bkspark.client.recovery.fencing import LookUp
from bkspark.client.recovery.running import Instruction
from bkspark.client.runtime import Threads
from bkspark.client.timed_store import TimedStore
from bkspark.client.trouble import Trouble
from bkspark.format import add_record, ledger_metadata, strict_json
from bkspark.format import cluster as cluster_format
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.scheduler import Process, Scheduler, Task


class SimulatedRuntime:
    """A ``bkspark.client.runtime.Runtime`` within one simulated process."""

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler = scheduler
        self._process = process

    def start(self, work: Callable[[], None], name: str) -> "JoinableTask":
        return JoinableTask(self._scheduler, self._scheduler.spawn(self._process, name, work))

    def inbox(self) -> "SimulatedInbox":
        return SimulatedInbox(self._scheduler)

    def lock(self) -> "SimulatedLock":
        return SimulatedLock(self._scheduler)

    def run_all(self, instructions: Sequence[Instruction[Any]]) -> list[Any]:
        """A ``Runner`` for recoveries: a task for each instruction."""
        results: list[Any] = [None] * len(instructions)

        def carry_out(number: int, key: str) -> None:
            results[number] = instructions[number].run()
            self._scheduler.give(key, "end", results[number])

        def begin(number: int) -> JoinableTask:
            name = _name_of(instructions[number], number)
            task = self._scheduler.spawn(self._process, name, lambda: carry_out(number, task.key))
            self._scheduler.give(task.key, "start", instructions[number])
            return JoinableTask(self._scheduler, task)

        tasks = [begin(number) for number in range(len(instructions))]
        for task in tasks:
            task.join()
        return results


def _name_of(instruction: Instruction[Any], number: int) -> str:
    return f"{'look-up' if isinstance(instruction, LookUp) else 'instruction'}-{number}"


class JoinableTask:
    """A scheduler's task, as its starter sees it."""

    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self._scheduler = scheduler
        self._task = task

    def is_alive(self) -> bool:
        self._scheduler.touch(f"end of {self._task.key}", Access.READ)
        return self._task.is_alive()

    def join(self, timeout: float | None = None) -> None:
        if not self._task.is_done:
            self._scheduler.pause(lambda: self._task.is_done, timeout)
        self._scheduler.touch(f"end of {self._task.key}", Access.WAIT)


class SimulatedInbox:
    """A queue whose reader lets others go on while it is empty."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[Any] = deque()
        self._taken = 0
        owner = scheduler.current
        self._name = scheduler.unique(f"inbox of {owner.key if owner else '-'}")

    def put(self, item: Any) -> None:
        self._scheduler.touch(self._name, Access.WRITE)
        self._scheduler.touch(f"{self._name}, item {self._taken + len(self._items)}", Access.WRITE)
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        del block
        if not self._items and not self._scheduler.pause(lambda: bool(self._items), timeout):
            raise queue.Empty
        self._touch_next(Access.WAIT)
        self._taken += 1
        return self._items.popleft()

    def empty(self) -> bool:
        self._touch_next(Access.READ)
        return not self._items

    def _touch_next(self, access: Access) -> None:
        self._scheduler.touch(f"{self._name}, item {self._taken}", access)


class SimulatedLock:
    """Held by one task at a time, more than once if it wants; the others wait for their turn."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._name = scheduler.unique("lock")
        self._holder: Task | None = None
        self._depth = 0

    def __enter__(self) -> "SimulatedLock":
        if self._depth and self._holder is not self._scheduler.current:
            self._scheduler.pause(lambda: not self._depth)
        self._scheduler.touch(self._name, Access.WAIT)
        self._holder, self._depth = self._scheduler.current, self._depth + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._scheduler.touch(self._name, Access.WRITE)
        self._depth -= 1


class _Done:
    """A task whose work was done when it was started."""

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None:
        """There is nothing left to wait for."""


def _at_once(_threads: Threads, work: Callable[[], None], name: str) -> _Done:
    """Where client code was given no other runtime, its starter does the work itself."""
    del name
    work()
    return _Done()


class _InlinePool:
    """An executor that does everything at once, in the caller's task."""

    def __init__(self, _workers: int) -> None:
        """Takes what ``ThreadPoolExecutor`` takes."""

    def __enter__(self) -> "_InlinePool":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left to wait for."""

    def submit(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        return [work(item) for item in items]


@contextmanager
def determined(
    seed: int,
    *,
    chance: Callable[[], Random] | None = None,
    sleep: Callable[[float], None] = lambda _seconds: None,
    clock: Callable[[], float] | None = None,
) -> Iterator[None]:
    """Let the client's chance and time follow from ``seed``.

    Args:
        chance: where the chance of whoever runs now comes from, if not from one common source.
        sleep: in place of ``time.sleep``.
        clock: in place of ``time.monotonic``; without it a microsecond passes between two looks.
    """
    common = Random(f"client {seed}")
    source = chance or (lambda: common)
    ticks = iter(range(10**15))

    def token_hex(byte_count: int = 32) -> str:
        return f"{source().getrandbits(8 * byte_count):0{2 * byte_count}x}"

    replacements: list[tuple[object, str, object]] = [
        (random, "random", _for_us(random.random, lambda: source().random())),
        (time, "sleep", _for_us(time.sleep, sleep)),
        (time, "monotonic", _for_us(time.monotonic, clock or (lambda: next(ticks) / 1e6))),
        (time, "time_ns", _for_us(time.time_ns, lambda: 1_700_000_000_000_000_000 + next(ticks))),
        (reading_plan, "ThreadPoolExecutor", _InlinePool),
        (Threads, "start", _for_us(Threads.start, _at_once)),
        (secrets, "token_hex", _for_us(secrets.token_hex, token_hex)),
        (trouble, "THIS_PROCESS", Trouble()),
        (TimedStore, "__del__", _nothing),  # When it comes is not determined.
        (WriteHandle, "__del__", _nothing),
        (TimedStore, "_ask", _for_us(TimedStore._ask, lambda _store, question: question())),
        *_REMEMBERED,
    ]
    tokens, uuids = _users_of_chance(len(sys.modules))
    replacements += [(owner, key, token_hex) for owner, key in tokens]
    replacements += [(owner, key, lambda: uuid.UUID(token_hex(16))) for owner, key in uuids]
    with replaced(replacements):
        yield


@contextmanager
def each_remembers(scheduler: Scheduler) -> Iterator[None]:
    """Let each simulated process remember for itself what hung."""
    with replaced([(trouble, "THIS_PROCESS", _EachRemembers(scheduler))]):
        yield


class _EachRemembers:
    """The ``Trouble`` of whoever asks."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._by_process: defaultdict[Process | None, Trouble] = defaultdict(Trouble)

    def __getattr__(self, name: str) -> Any:
        task = self._scheduler.current
        process = None if task is None else task.process
        return getattr(self._by_process[process], name)


def _nothing(_dropped: object) -> None:
    """What a simulated process leaves behind is let go of by nobody."""


def _for_us(real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """``ours`` in this thread, in which all simulated clients run; other threads are not meant."""
    home = threading.get_ident()

    def chosen(*arguments: Any) -> Any:
        return (ours if threading.get_ident() == home else real)(*arguments)

    return chosen


@contextmanager
def replaced(replacements: Sequence[tuple[object, str, object]]) -> Iterator[None]:
    """Let attributes have other values for a while: (owner, name, value)."""
    before = [(owner, key, getattr(owner, key)) for owner, key, _ in replacements]
    for owner, key, value in replacements:
        setattr(owner, key, value)
    try:
        yield
    finally:
        for owner, key, value in before:
            setattr(owner, key, value)


_REMEMBERED: list[tuple[object, str, object]] = [
    (owner, name, lru_cache(4096)(getattr(owner, name)))
    for owner, name in (
        (strict_json, "loads"),
        (add_record, "from_json"),
        (ledger_metadata, "decode"),
        (cluster_format, "decode_bookie"),
        (cluster_format, "decode_cluster"),
    )
]
"""The same small records are decoded again and again; decoding is pure, what comes out frozen."""


@lru_cache(1)
def _users_of_chance(_module_count: int) -> tuple[list[tuple[object, str]], ...]:
    """Where modules have ``token_hex`` and ``uuid4`` by name."""
    users: tuple[list[tuple[object, str]], ...] = ([], [])
    for name, module in list(sys.modules.items()):
        if name.startswith("bkspark."):
            for key, value in vars(module).items():
                for real, found in zip((secrets.token_hex, uuid.uuid4), users):
                    if value is real:
                        found.append((module, key))
    return users
