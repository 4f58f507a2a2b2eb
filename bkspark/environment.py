"""All surroundings of a process: time, randomness, concurrent tasks, and storage.

Rule 1. No other module of the product reads a clock, sleeps, draws a random number or starts a
thread. Other modules call this module, and this module asks the environment: the real one, unless
``use`` has replaced it.

Rule 2. An environment holds for the thread that uses it, for tasks started there, and for their
tasks. So a simulation sees no thread but its own.
"""

import contextvars
import os
import queue
import random
import select
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol, TypeVar

S = TypeVar("S")
T = TypeVar("T")

IDLE_SECONDS = 10.0
"""A thread without work ends after so many seconds."""

SPREAD_SECONDS = 0.002
"""How long the tasks of a row may take before each gets a thread of its own."""

TURN_SECONDS = 0.001
"""Maximum wait of a task for its turn, once for each slow holder."""

Empty = queue.Empty

AdvisoryLock = Callable[[], AbstractContextManager[object]]
"""An advisory lock for tasks that compute: ``with advisory_lock(): …``."""

METADATA = "metadata"
"""The place of the metadata store, as bookies have their ids."""


class Task(Protocol):
    """Work that runs beside its starter, such as a thread."""

    def is_alive(self) -> bool: ...

    def join(self, timeout: float | None = None) -> None: ...


Start = Callable[[Callable[[], None], str], Task]
"""Begins work as a task of a name: ``start``, or a row's ``add``."""


class Row(Protocol):
    """Tasks that are expected to be quick: one thread runs them one after the other.

    A thread takes longer to wake than a look at a file. A task may hang all the same, so a starter
    that has waited for ``SPREAD_SECONDS`` spreads the others.
    """

    def add(self, work: Callable[[], None], name: str) -> Task:
        """Return a task that begins after those added before."""
        ...

    def begin(self) -> None:
        """Begin the tasks that were added."""
        ...

    def spread(self) -> None:
        """Begin each task that still waits for its turn, beside the others."""
        ...


class Inbox(Protocol[T]):
    """A queue without a limit, with one reader; ``queue.SimpleQueue`` is an example."""

    def put(self, item: T) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """The oldest item; ``Empty`` if none comes within ``timeout`` seconds."""
        ...

    def empty(self) -> bool: ...


class Environment(Protocol):
    """The requests of this module; the functions of the same names describe them."""

    def monotonic(self) -> float: ...

    def now_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...

    def sleep_until_readable(self, descriptors: Iterable[int], seconds: float) -> bool: ...

    def draw(self) -> float: ...

    def token(self, byte_count: int) -> str: ...

    def start(self, work: Callable[[], None], name: str) -> Task: ...

    def row(self) -> Row: ...

    def inbox(self) -> Inbox[Any]: ...

    def lock(self) -> AbstractContextManager[object]: ...

    def advisory_lock(self) -> AdvisoryLock: ...

    def opened(self, place: str, storage: Any) -> Any: ...

    def the_one(self, kind: type[Any]) -> Any: ...

    def dropped(self, thing: object, shown: str, end: Callable[[], object]) -> None: ...


def monotonic() -> float:
    """Monotonic clock, in seconds."""
    return _here.environment.monotonic()


def now_ms() -> int:
    """Wall clock, for display and for ages (retention, grace periods, rolls by time)."""
    return _here.environment.now_ms()


def sleep(seconds: float) -> None:
    """Sleep while other tasks run."""
    _here.environment.sleep(seconds)


def sleep_until_readable(descriptors: Iterable[int], seconds: float) -> bool:
    """Sleep until a descriptor has something to read, or for ``seconds``; whether one has."""
    return _here.environment.sleep_until_readable(descriptors, seconds)


def draw() -> float:
    """A random number in [0, 1)."""
    return _here.environment.draw()


def token(byte_count: int = 16) -> str:
    """A unique, unpredictable name: ``byte_count`` random bytes, in hexadecimal."""
    return _here.environment.token(byte_count)


def start(work: Callable[[], None], name: str) -> Task:
    """Begin ``work`` beside the caller; the task does not keep the process alive."""
    return _here.environment.start(work, name)


def row() -> Row:
    """A row of tasks, empty yet; its starter must spread it if it has waited."""
    return _here.environment.row()


def inbox() -> Inbox[Any]:
    """A queue for messages between tasks."""
    return _here.environment.inbox()


def lock() -> AbstractContextManager[object]:
    """A reentrant lock between tasks, which may be held during slow work."""
    return _here.environment.lock()


def advisory_lock() -> AdvisoryLock:
    """Return an advisory lock that makes computing tasks run in sequence.

    Sequential tasks finish sooner: an interpreter runs one thread at a time, and each switch
    between threads costs more than most calls. A task waits only ``TURN_SECONDS`` for a turn,
    so correctness must not depend on having a turn.
    """
    return _here.environment.advisory_lock()


def opened(place: str, storage: T) -> T:
    """Return ``storage``, or the environment's wrapper of ``storage``.

    Args:
        place: a bookie's id, or ``METADATA``.
    """
    found: T = _here.environment.opened(place, storage)
    return found


def the_one(kind: type[T]) -> T:
    """The one object of ``kind`` in this process; a forked process begins with a new object."""
    found: T = _here.environment.the_one(kind)
    return found


def dropped(thing: object, shown: str, end: Callable[[], object]) -> None:
    """Called by a ``__del__``: call ``end`` for an unclosed object, and warn.

    Args:
        shown: the words for ``thing`` in the warning.
    """
    _here.environment.dropped(thing, shown, end)


def for_each(work: Callable[[S], T], items: Iterable[S], *, at_once: int, name: str) -> list[T]:
    """The results of ``work`` for ``items``, in order, computed by up to ``at_once`` tasks.

    Raises:
        BaseException: the first error of ``work``; items not yet begun are skipped.
    """
    left = deque(enumerate(items))
    found: dict[int, T] = {}
    errors: list[BaseException] = []

    def share() -> None:
        while True:
            try:
                number, item = left.popleft()
            except IndexError:
                return
            try:
                found[number] = work(item)
            except BaseException as error:
                errors.append(error)
                left.clear()

    def start_share() -> Task:
        # A task's reports count as the caller's.
        context = contextvars.copy_context()
        return start(lambda: context.run(share), name)

    for task in [start_share() for _ in range(min(at_once, len(left)))]:
        task.join()
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(found))]


def after(seconds: float, work: Callable[[], None], name: str) -> Callable[[], None]:
    """Begin ``work`` beside the caller after ``seconds``; the returned function cancels it."""
    calls = inbox()

    def wait() -> None:
        try:
            calls.get(timeout=seconds)
        except Empty:
            work()

    start(wait, name)
    return lambda: calls.put(None)


@contextmanager
def use(environment: Environment) -> Iterator[None]:
    """Set ``environment`` for this thread and the tasks that it starts."""
    before, _here.environment = _here.environment, environment
    try:
        yield
    finally:
        _here.environment = before


class RealEnvironment:
    """The machine's clocks and random numbers, and a thread for each task or row of tasks.

    An idle thread serves the next task: starting a thread takes as long as some reads. A thread
    that hangs in a system call never comes back. So the number of threads is that of concurrent
    tasks plus abandoned tasks.
    """

    def __init__(self) -> None:
        self._begin_anew()
        os.register_at_fork(after_in_child=self._begin_anew)

    def monotonic(self) -> float:
        return time.monotonic()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def sleep_until_readable(self, descriptors: Iterable[int], seconds: float) -> bool:
        waiting = select.poll()  # takes any number of descriptors, unlike `select`
        for descriptor in descriptors:
            waiting.register(descriptor, select.POLLIN)
        return bool(waiting.poll(seconds * 1000))

    def draw(self) -> float:
        return random.random()

    def token(self, byte_count: int) -> str:
        return os.urandom(byte_count).hex()  # as `secrets` does, which takes long to import

    def start(self, work: Callable[[], None], name: str) -> Task:
        task = _ThreadTask(work, self)
        self.serve(task, name)
        return task

    def serve(self, task: "_ThreadTask", name: str) -> None:
        """Run ``task`` on a thread that has no other."""
        try:
            server = self._idle.pop()
        except IndexError:
            server = _Server(self._rest)
        server.name = name
        server.tasks.put(task)

    def row(self) -> Row:
        return _ThreadRow(self)

    def inbox(self) -> Inbox[Any]:
        return queue.SimpleQueue()

    def lock(self) -> AbstractContextManager[object]:
        return threading.RLock()

    def advisory_lock(self) -> AdvisoryLock:
        return _AdvisoryLock().turn

    def opened(self, place: str, storage: Any) -> Any:
        del place
        return storage

    def the_one(self, kind: type[Any]) -> Any:
        found = self._shared.get(kind)
        return found if found is not None else self._shared.setdefault(kind, kind())

    def forget(self) -> None:
        """Drop all objects of ``the_one``."""
        self._shared: dict[type[Any], Any] = {}

    def dropped(self, thing: object, shown: str, end: Callable[[], object]) -> None:
        if not sys.is_finalizing():
            end()  # first: the warning may be an error
            warnings.warn(f"unclosed {shown}", ResourceWarning, source=thing, stacklevel=4)

    def _rest(self, server: "_Server", *, is_over: bool) -> bool:
        """Keep an idle server, or release a server whose idle time is over; whether done."""
        if not is_over:
            self._idle.append(server)
            return True
        try:
            self._idle.remove(server)
        except ValueError:
            return False  # work is on its way to it
        return True

    def _begin_anew(self) -> None:
        """Begin without threads and objects, as a fork copies no threads."""
        # Changed by single calls without a lock: a finalizer may start a task at any moment, also
        # in a thread that would hold the lock.
        self._idle: list[_Server] = []
        self.forget()


class _AdvisoryLock:
    """An advisory lock that is replaced after a timeout: its holder may never come back."""

    def __init__(self) -> None:
        self._row = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        row = self._row
        if row.acquire(timeout=TURN_SECONDS):
            try:
                yield
            finally:
                row.release()
        else:
            self._row = threading.Lock()
            yield


class _ThreadTask:
    """A task on a thread that may have served others before."""

    def __init__(self, work: Callable[[], None], environment: Environment) -> None:
        self._work = work
        self._environment = environment
        self._is_done = False
        self._end = threading.Lock()
        self._end.acquire()

    def run(self) -> None:
        _here.environment = self._environment
        try:
            self._work()
        except BaseException:
            thread = threading.current_thread()
            threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), thread)))
        finally:
            del self._work  # may hold much memory
            self._is_done = True
            self._end.release()

    def is_alive(self) -> bool:
        return not self._is_done

    def join(self, timeout: float | None = None) -> None:
        if not self._is_done and self._end.acquire(timeout=-1 if timeout is None else timeout):
            self._end.release()


class _ThreadRow:
    """A row of tasks on one thread, until it is spread."""

    def __init__(self, environment: RealEnvironment) -> None:
        self._environment = environment
        self._waiting: deque[tuple[_ThreadTask, str]] = deque()

    def add(self, work: Callable[[], None], name: str) -> _ThreadTask:
        task = _ThreadTask(work, self._environment)
        self._waiting.append((task, name))
        return task

    def begin(self) -> None:
        if self._waiting:
            self._environment.start(self._run, "row")

    def spread(self) -> None:
        while (found := self._next()) is not None:
            try:
                self._environment.serve(*found)
            except BaseException:
                self._waiting.appendleft(found)  # the row's own thread may come to it
                raise

    def _run(self) -> None:
        while (found := self._next()) is not None:
            task, threading.current_thread().name = found
            task.run()

    def _next(self) -> tuple[_ThreadTask, str] | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None


class _Server(threading.Thread):
    """Runs tasks in sequence, and ends when none came for a while."""

    def __init__(self, rest: Callable[..., bool]) -> None:
        super().__init__(daemon=True)
        self.tasks: queue.SimpleQueue[_ThreadTask] = queue.SimpleQueue()
        self._rest = rest
        self.start()

    def run(self) -> None:
        while True:
            try:
                task = self.tasks.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._rest(self, is_over=True):
                    return
                continue
            task.run()
            del task  # may hold much memory
            self.name = "idle"
            self._rest(self, is_over=False)


THE_REAL_ONE = RealEnvironment()


class _Here(threading.local):
    """The environment of each thread."""

    environment: Environment = THE_REAL_ONE


_here = _Here()
