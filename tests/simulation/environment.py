"""The environment of simulated clients: time, chance and tasks all follow from the schedule's seed.

Rule: nothing in a schedule may depend on the machine. Clients get all that could from their
``bkspark.environment``, and this is another one.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from itertools import count
from random import Random
from typing import Any

from bkspark.environment import AdvisoryLock, Empty
from bkspark.ledger.recovery.running import Instruction
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.scheduler import Process, Scheduler, Task

NOW_MS = 1_700_000_000_000
_ASKED_BY_ITSELF = ("ask-metadata-store", "look-up-ledgers")
"""Nobody else can tell whether a process asks the metadata store on a task of its own."""


class SimulatedEnvironment:
    """Tasks of ``scheduler``, in the process of whoever starts them.

    What is started before the schedule, or by a process that works alone, is done at once.

    Args:
        chance: where the chance of whoever runs now comes from.
        has_time: whether seconds are steps. If not, sleep takes none, and a microsecond passes
            between two looks at the clock.

    Attributes:
        before: what is put before the storage of a place, when it is opened.
        made: what a process has one of, by its class, where it is not made as everywhere.
    """

    def __init__(
        self, scheduler: Scheduler, chance: Callable[[], Random], *, has_time: bool = True
    ) -> None:
        self._scheduler = scheduler
        self._chance = chance
        self._has_time = has_time
        self._ticks = count()
        self.before: Callable[[str, Any], Any] = lambda _place, storage: storage
        self.made: dict[type[Any], Callable[[], Any]] = {}
        self._shared: dict[tuple[Process | None, type[Any]], Any] = {}

    def monotonic(self) -> float:
        return self._scheduler.seconds if self._has_time else next(self._ticks) / 1e6

    def now_ms(self) -> int:
        return NOW_MS

    def sleep(self, seconds: float) -> None:
        if self._has_time:
            self._scheduler.sleep(seconds)

    def sleep_until_readable(self, descriptors: Iterable[int], seconds: float) -> bool:
        """Nothing is told of here: what waits looks again."""
        self.sleep(seconds)
        return False

    def draw(self) -> float:
        return self._chance().random()

    def token(self, byte_count: int) -> str:
        return f"{self._chance().getrandbits(8 * byte_count):0{2 * byte_count}x}"

    def start(self, work: Callable[[], None], name: str) -> "JoinableTask | _Done":
        task = self._scheduler.current
        if task is None or task.process.works_alone or name in _ASKED_BY_ITSELF:
            work()
            return _Done()
        return JoinableTask(self._scheduler, self._scheduler.spawn(task.process, name, work))

    def row(self) -> "_SimulatedRow":
        return _SimulatedRow(self)

    def inbox(self) -> "SimulatedInbox":
        return SimulatedInbox(self._scheduler)

    def lock(self) -> "SimulatedLock":
        return SimulatedLock(self._scheduler)

    def advisory_lock(self) -> AdvisoryLock:
        """A schedule says who is next."""
        return nullcontext

    def opened(self, place: str, storage: Any) -> Any:
        return self.before(place, storage)

    def the_one(self, kind: type[Any]) -> Any:
        """Of each simulated process."""
        task = self._scheduler.current
        key = (None if task is None else task.process, kind)
        if key not in self._shared:
            self._shared[key] = self.made.get(kind, kind)()
        return self._shared[key]

    def dropped(self, thing: object, shown: str, end: Callable[[], object]) -> None:
        """When that comes is not determined, so nobody ends what a dead process has left."""


def run_all(scheduler: Scheduler, instructions: Sequence[Instruction[Any]]) -> list[Any]:
    """A ``Runner`` for recoveries: a task for each instruction, in the process that runs now."""
    assert scheduler.current is not None
    process = scheduler.current.process
    results: list[Any] = [None] * len(instructions)

    def carry_out(number: int) -> None:
        results[number] = instructions[number].run()

    def begin(number: int) -> JoinableTask:
        name = f"{type(instructions[number]).__name__}-{number}"
        return JoinableTask(scheduler, scheduler.spawn(process, name, lambda: carry_out(number)))

    for task in [begin(number) for number in range(len(instructions))]:
        task.join()
    return results


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


class _SimulatedRow:
    """Tasks beside each other: each order in which a row has them is among their schedules."""

    def __init__(self, environment: "SimulatedEnvironment") -> None:
        self.add = environment.start

    def begin(self) -> None:
        """They have begun."""

    def spread(self) -> None:
        """They are beside each other."""


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
            raise Empty
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
