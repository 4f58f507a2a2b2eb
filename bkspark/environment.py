"""All that a process gets from around it: time, chance, tasks beside each other, and storage.

Rule 1. Nothing else in the product looks at a clock, sleeps, draws or starts a thread. What it
needs of these it asks this module for, and this module asks the environment: the real one, unless
``use`` has put another one in its place.

Rule 2. An environment holds for the thread that uses it and for the tasks that are started there,
and theirs. So a simulation meets no thread that is not its own.
"""

import contextvars
import os
import queue
import random
import secrets
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
"""A thread without work ends after so long."""

COURTESY_SECONDS = 0.001
"""So long a task waits for its turn, once for each that keeps it so long."""

Empty = queue.Empty

Courtesy = Callable[[], AbstractContextManager[object]]
"""A turn that some tasks take out of courtesy: ``with courtesy(): …``."""

METADATA = "metadata"
"""The place of the metadata store, as bookies have their ids."""


class Task(Protocol):
    """Work that goes on beside its starter; a thread is one."""

    def is_alive(self) -> bool: ...

    def join(self, timeout: float | None = None) -> None: ...


class Inbox(Protocol[T]):
    """A queue without a limit, with one reader; ``queue.SimpleQueue`` is one."""

    def put(self, item: T) -> None: ...

    def get(self, block: bool = True, timeout: float | None = None) -> T:
        """The oldest item; ``Empty`` if none comes within ``timeout`` seconds."""
        ...

    def empty(self) -> bool: ...


class Environment(Protocol):
    """What this module asks; the functions of the same names tell what each is."""

    def monotonic(self) -> float: ...

    def now_ms(self) -> int: ...

    def sleep(self, seconds: float) -> None: ...

    def draw(self) -> float: ...

    def token(self, byte_count: int) -> str: ...

    def start(self, work: Callable[[], None], name: str) -> Task: ...

    def inbox(self) -> Inbox[Any]: ...

    def lock(self) -> AbstractContextManager[object]: ...

    def courtesy(self) -> Courtesy: ...

    def opened(self, place: str, storage: Any) -> Any: ...

    def the_one(self, kind: type[Any]) -> Any: ...

    def dropped(self, thing: object, shown: str, end: Callable[[], object]) -> None: ...


def monotonic() -> float:
    """Seconds, from a moment that nobody knows; they only grow."""
    return _here.environment.monotonic()


def now_ms() -> int:
    """Wall clock for people's eyes; of all decisions only retention by age depends on it."""
    return _here.environment.now_ms()


def sleep(seconds: float) -> None:
    """Let others go on for so long."""
    _here.environment.sleep(seconds)


def draw() -> float:
    """A number in [0, 1), by chance."""
    return _here.environment.draw()


def token(byte_count: int = 16) -> str:
    """A name that nobody else has drawn and nobody guesses: so many bytes, in hexadecimal."""
    return _here.environment.token(byte_count)


def start(work: Callable[[], None], name: str) -> Task:
    """Begin ``work`` beside the caller; it does not keep the process alive."""
    return _here.environment.start(work, name)


def inbox() -> Inbox[Any]:
    """A queue through which tasks tell each other things."""
    return _here.environment.inbox()


def lock() -> AbstractContextManager[object]:
    """What one task at a time may hold, more than once, while it does slow things."""
    return _here.environment.lock()


def courtesy() -> Courtesy:
    """Lets tasks that mostly compute go one behind the other, which is quicker than beside each
    other: an interpreter runs one thread at a time, and each change from one to the next costs more
    than most calls. Nobody waits long for a turn, so nothing may depend on having one.
    """
    return _here.environment.courtesy()


def opened(place: str, storage: T) -> T:
    """What clients get for ``storage``: itself, or what an environment has put before it.

    Args:
        place: a bookie's id, or ``METADATA``.
    """
    found: T = _here.environment.opened(place, storage)
    return found


def the_one(kind: type[T]) -> T:
    """The object of ``kind`` that all of this process share, and no other: a fork begins anew."""
    found: T = _here.environment.the_one(kind)
    return found


def dropped(thing: object, shown: str, end: Callable[[], object]) -> None:
    """Called by a ``__del__``: ``end`` what its user did not close, and warn of it.

    Args:
        shown: what a person is told that ``thing`` is.
    """
    _here.environment.dropped(thing, shown, end)


def for_each(work: Callable[[S], T], items: Iterable[S], *, at_once: int, name: str) -> list[T]:
    """What ``work`` returns for each of ``items``, in order; so many tasks share them.

    Raises:
        BaseException: the first that ``work`` raised; what was not begun by then is left out.
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
        # So what the tasks report is reported for the caller.
        context = contextvars.copy_context()
        return start(lambda: context.run(share), name)

    for task in [start_share() for _ in range(min(at_once, len(left)))]:
        task.join()
    if errors:
        raise errors[0]
    return [found[number] for number in range(len(found))]


def after(seconds: float, work: Callable[[], None], name: str) -> Callable[[], None]:
    """Begin ``work`` beside the caller in so long, unless what is returned is called before."""
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
    """Let this thread, and the tasks that it starts, have ``environment``."""
    before, _here.environment = _here.environment, environment
    try:
        yield
    finally:
        _here.environment = before


class RealEnvironment:
    """The machine's clocks and chance, and a thread for each task.

    A thread that has come back serves the next task: to start one takes as long as some reads, and
    one that hangs in a system call never comes back. So there are as many as work at once, and
    those that were given up.
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

    def draw(self) -> float:
        return random.random()

    def token(self, byte_count: int) -> str:
        return secrets.token_hex(byte_count)

    def start(self, work: Callable[[], None], name: str) -> Task:
        task = _Work(work, self)
        with self._guard:
            server = self._idle.pop() if self._idle else None
        if server is None:
            server = _Server(self._rest)
        server.name = name
        server.tasks.put(task)
        return task

    def inbox(self) -> Inbox[Any]:
        return queue.SimpleQueue()

    def lock(self) -> AbstractContextManager[object]:
        return threading.RLock()

    def courtesy(self) -> Courtesy:
        return _Courtesy().turn

    def opened(self, place: str, storage: Any) -> Any:
        del place
        return storage

    def the_one(self, kind: type[Any]) -> Any:
        found = self._shared.get(kind)
        return found if found is not None else self._shared.setdefault(kind, kind())

    def forget(self) -> None:
        """Begin anew with what ``the_one`` is."""
        self._shared: dict[type[Any], Any] = {}

    def dropped(self, thing: object, shown: str, end: Callable[[], object]) -> None:
        if not sys.is_finalizing():
            end()  # first: the warning may be an error
            warnings.warn(f"unclosed {shown}", ResourceWarning, source=thing, stacklevel=4)

    def _rest(self, server: "_Server", *, is_over: bool) -> bool:
        """Take a server that has nothing to do, or let go of it; whether that was done."""
        with self._guard:
            if is_over and server not in self._idle:
                return False  # work is on its way to it
            if is_over:
                self._idle.remove(server)
            else:
                self._idle.append(server)
            return True

    def _begin_anew(self) -> None:
        """Threads do not come along into a forked process, and it has met nothing."""
        self._guard = threading.Lock()
        self._idle: list[_Server] = []
        self.forget()


class _Courtesy:
    """Who has waited for his turn in vain begins a new row: whoever has it may never come back."""

    def __init__(self) -> None:
        self._row = threading.Lock()

    @contextmanager
    def turn(self) -> Iterator[None]:
        row = self._row
        if row.acquire(timeout=COURTESY_SECONDS):
            try:
                yield
            finally:
                row.release()
        else:
            self._row = threading.Lock()
            yield


class _Work:
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
            del self._work  # it may hold much
            self._is_done = True
            self._end.release()

    def is_alive(self) -> bool:
        return not self._is_done

    def join(self, timeout: float | None = None) -> None:
        if not self._is_done and self._end.acquire(timeout=-1 if timeout is None else timeout):
            self._end.release()


class _Server(threading.Thread):
    """Does one task after the other, and ends when none came for a while."""

    def __init__(self, rest: Callable[..., bool]) -> None:
        super().__init__(daemon=True)
        self.tasks: queue.SimpleQueue[_Work] = queue.SimpleQueue()
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
            del task  # it may hold much
            self.name = "idle"
            self._rest(self, is_over=False)


THE_REAL_ONE = RealEnvironment()


class _Here(threading.local):
    """The environment of each thread."""

    environment: Environment = THE_REAL_ONE


_here = _Here()
