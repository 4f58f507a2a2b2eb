"""What simulated clients run on in place of threads, and where their chance comes from.

Rule: nothing in a schedule may depend on the machine. ``determined`` replaces, for a while, every
source of chance and time that client code has; it is the only place that does.
"""

import queue
import random
import secrets
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bkspark.client.batch import attempt_writer
from bkspark.client.recovery.recover import Instruction
from bkspark.testing.simulation.scheduler import Process, Scheduler, Task


class SimulatedRuntime:
    """A ``bkspark.client.runtime.Runtime`` within one simulated process."""

    def __init__(self, scheduler: Scheduler, process: Process) -> None:
        self._scheduler = scheduler
        self._process = process

    def start(self, work: Callable[[], None], name: str) -> "JoinableTask":
        return JoinableTask(self._scheduler, self._scheduler.spawn(self._process, name, work))

    def inbox(self) -> "SimulatedInbox":
        return SimulatedInbox(self._scheduler)

    def run_all(self, instructions: Sequence[Instruction[Any]]) -> list[Any]:
        """A ``Runner`` for recoveries: a task for each instruction."""
        results: list[Any] = [None] * len(instructions)

        def carry_out(number: int) -> Callable[[], None]:
            def work() -> None:
                results[number] = instructions[number].run()

            return work

        tasks = [
            self.start(carry_out(number), f"instruction-{number}")
            for number in range(len(instructions))
        ]
        for task in tasks:
            task.join()
        return results


class JoinableTask:
    """A scheduler's task, as its starter sees it."""

    def __init__(self, scheduler: Scheduler, task: Task) -> None:
        self._scheduler = scheduler
        self._task = task

    def is_alive(self) -> bool:
        return self._task.is_alive()

    def join(self, timeout: float | None = None) -> None:
        if self.is_alive():
            self._scheduler.pause(lambda: self._task.is_done, can_time_out=timeout is not None)


class SimulatedInbox:
    """A queue whose reader lets others go on while it is empty."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        del block
        if not self._items and not self._scheduler.pause(
            lambda: bool(self._items), can_time_out=timeout is not None
        ):
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        return not self._items


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


@contextmanager
def determined(seed: int) -> Iterator[None]:
    """Let the client's chance and time follow from ``seed``."""
    source = random.Random(f"client {seed}")
    ticks = iter(range(10**15))

    def token_hex(byte_count: int = 32) -> str:
        return f"{source.getrandbits(8 * byte_count):0{2 * byte_count}x}"

    replacements: list[tuple[object, str, object]] = [
        (random, "random", source.random),
        (time, "sleep", lambda _seconds: None),
        (time, "monotonic", lambda: next(ticks) / 1e6),
        (time, "time_ns", lambda: 1_700_000_000_000_000_000 + next(ticks)),
        (attempt_writer, "ThreadPoolExecutor", _InlinePool),
        (secrets, "token_hex", token_hex),
    ]
    real_token, real_uuid = secrets.token_hex, uuid.uuid4
    for name, module in list(sys.modules.items()):
        if name.startswith("bkspark."):
            for key, value in list(vars(module).items()):
                if value is real_token:
                    replacements.append((module, key, token_hex))
                elif value is real_uuid:
                    replacements.append((module, key, lambda: uuid.UUID(token_hex(16))))
    before = [(owner, key, getattr(owner, key)) for owner, key, _ in replacements]
    for owner, key, value in replacements:
        setattr(owner, key, value)
    try:
        yield
    finally:
        for owner, key, value in before:
            setattr(owner, key, value)
