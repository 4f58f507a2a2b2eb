"""The real environment: threads that serve one task after the other; what a process shares."""

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from itertools import count

import pytest

from bkspark import environment
from bkspark.environment import RealEnvironment


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def ident_of_a_task(threads: RealEnvironment, name: str = "a") -> tuple[int, str]:
    found: list[tuple[int, str]] = []

    def work() -> None:
        found.append((threading.get_ident(), threading.current_thread().name))

    task = threads.start(work, name)
    task.join(60)
    assert not task.is_alive()
    task.join()
    wait_for(lambda: threads._idle)
    return found[0]


def test_a_thread_that_has_come_back_serves_the_next_task_under_its_name() -> None:
    threads = RealEnvironment()
    ident, name = ident_of_a_task(threads, "first")
    assert name == "first"
    assert ident_of_a_task(threads, "second") == (ident, "second")


def test_tasks_at_once_have_a_thread_each() -> None:
    threads, gate, idents = RealEnvironment(), threading.Barrier(3), set[int]()

    def work() -> None:
        idents.add(threading.get_ident())
        gate.wait(60)

    tasks = [threads.start(work, f"task-{number}") for number in range(2)]
    assert all(task.is_alive() for task in tasks)
    tasks[0].join(0.01)
    assert tasks[0].is_alive()
    gate.wait(60)
    for task in tasks:
        task.join(60)
    assert len(idents) == 2


def test_an_error_is_told_and_the_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    threads = RealEnvironment()
    threads.start(lambda: {}["no such key"], "fails").join(60)
    wait_for(lambda: threads._idle)
    assert [args.exc_type for args in told] == [KeyError]
    assert ident_of_a_task(threads)


def test_an_idle_thread_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "IDLE_SECONDS", 0.05)
    threads = RealEnvironment()
    ident_of_a_task(threads)
    [server] = threads._idle or [None]
    wait_for(lambda: not threads._idle)
    assert server is not None
    server.join(60)
    assert not server.is_alive()


def test_work_that_is_on_its_way_is_done_although_the_thread_was_about_to_end() -> None:
    threads = RealEnvironment()
    ident_of_a_task(threads)
    [server] = threads._idle
    assert threads._rest(server, is_over=True)
    assert not threads._rest(server, is_over=True)  # it was taken, or has ended


def test_a_forked_process_starts_threads_of_its_own() -> None:
    threads = RealEnvironment()
    ident_of_a_task(threads)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        threads.start(done.set, "in the child")
        os._exit(0 if done.wait(60) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


# --- what all environments have in common ---------------------------------------------------------


class Counting(RealEnvironment):
    """Draws 1, 2, 3 and so on."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count(1)

    def token(self, byte_count: int) -> str:
        del byte_count
        return str(next(self._numbers))


def test_an_environment_holds_for_its_thread_and_the_tasks_that_begin_there() -> None:
    drawn: dict[str, str] = {}

    def draw(name: str) -> None:
        drawn[name] = environment.token()

    def start_another() -> None:
        draw("task")
        environment.start(lambda: draw("task of a task"), "b").join(60)

    counting = Counting()
    with environment.use(counting):
        draw("user")
        environment.start(start_another, "a").join(60)
        stranger = threading.Thread(target=draw, args=["stranger"])
        stranger.start()
        stranger.join(60)
    draw("user, behind it")
    named = {name: token for name, token in drawn.items() if len(token) == 1}
    assert named == {"user": "1", "task": "2", "task of a task": "3"}
    assert len(drawn) == 5


def test_a_thread_that_served_one_environment_serves_no_other_with_it() -> None:
    counting, real = Counting(), RealEnvironment()
    counting._idle = real._idle  # the same threads
    tokens: list[str] = []
    for each in (counting, real, counting):
        each.start(lambda: tokens.append(environment.token()), "a").join(60)
        wait_for(lambda: real._idle)
    assert tokens[0] == "1"
    assert len(tokens[1]) == 32
    assert tokens[2] == "2"


def test_work_is_shared_and_what_comes_of_it_is_in_order() -> None:
    gate = threading.Barrier(3)

    def work(number: int) -> int:
        if number < 3:
            gate.wait(60)  # three at once
        return number * number

    found = environment.for_each(work, range(9), at_once=3, name="work")
    assert found == [number * number for number in range(9)]
    assert environment.for_each(work, [], at_once=3, name="work") == []


def test_what_goes_wrong_in_shared_work_is_raised_and_the_rest_left_out() -> None:
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        if number == 2:
            raise KeyError("no such key")

    with pytest.raises(KeyError, match="no such key"):
        environment.for_each(work, range(9), at_once=1, name="work")
    assert begun == [0, 1, 2]


def test_what_is_to_be_done_after_a_while_can_be_called_off() -> None:
    done = threading.Event()
    environment.after(0.01, done.set, "soon")
    assert done.wait(60)
    never = threading.Event()
    call_off = environment.after(3600, never.set, "never")
    call_off()
    wait_for(lambda: all(thread.name != "never" for thread in threading.enumerate()))
    assert not never.is_set()


def test_a_process_has_one_of_a_kind_until_it_is_forked() -> None:
    real = RealEnvironment()
    found = real.the_one(list)
    found.append("met")
    assert real.the_one(list) is found
    child = os.fork()
    if child == 0:
        os._exit(len(real.the_one(list)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert real.the_one(list) == ["met"]


def test_turns_are_taken_one_behind_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "TURN_SECONDS", 60)
    turn = environment.advisory_lock()
    amid, met = [0], [0]

    def work() -> None:
        for _ in range(200):
            with turn():
                amid[0] += 1
                met[0] = max(met[0], amid[0])
                time.sleep(0)
                amid[0] -= 1

    for task in [environment.start(work, "in-turn") for _ in range(3)]:
        task.join(60)
    assert met == [1]


def test_who_never_comes_back_from_his_turn_is_waited_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turn, has_it, may_end = environment.advisory_lock(), threading.Event(), threading.Event()
    ended: list[bool] = []

    def hang() -> None:
        with turn():
            has_it.set()
            may_end.wait(20)
            ended.append(True)

    hanging = environment.start(hang, "hangs")
    assert has_it.wait(60)
    with turn():
        assert not ended
    monkeypatch.setattr(environment, "TURN_SECONDS", 60)
    with turn():
        assert not ended
    may_end.set()
    hanging.join(60)
    with turn():
        assert ended


class Collected(list[object]):
    """Idle threads of an environment; before each change of them a finalizer starts a task."""

    def __init__(self, real: RealEnvironment) -> None:
        super().__init__()
        self.real = real
        self.is_in_finalizer = False

    def _collect(self) -> None:
        if not self.is_in_finalizer:
            self.is_in_finalizer = True
            self.real.start(lambda: None, "finalizer").join()
            self.is_in_finalizer = False

    def pop(self, *given: int) -> object:  # type: ignore[override]
        self._collect()
        return super().pop(*given)

    def append(self, thing: object) -> None:
        self._collect()
        super().append(thing)

    def remove(self, thing: object) -> None:
        self._collect()
        super().remove(thing)


def test_a_finalizer_may_start_a_task_while_a_task_is_started() -> None:
    """The collector runs finalizers between any two steps of any thread."""
    real = RealEnvironment()
    real._idle = Collected(real)  # type: ignore[assignment]
    done = list[int]()

    def start_tasks() -> None:
        for number in range(3):
            real.start(lambda number=number: done.append(number), "work").join()  # type: ignore[misc]

    thread = threading.Thread(target=start_tasks, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert done == [0, 1, 2]


def test_tasks_of_a_row_have_one_thread_and_come_one_after_the_other() -> None:
    row, found = RealEnvironment().row(), list[tuple[int, str, int]]()

    def work(number: int) -> None:
        thread = threading.current_thread()
        found.append((number, thread.name, threading.get_ident()))

    tasks = [row.add(partial(work, number), f"task-{number}") for number in range(3)]
    assert not found
    row.begin()
    for task in tasks:
        task.join(60)
        assert not task.is_alive()
    assert [one[:2] for one in found] == [(0, "task-0"), (1, "task-1"), (2, "task-2")]
    assert len({ident for _, _, ident in found}) == 1
    row.begin()
    row.spread()  # nothing is left


def test_a_task_that_hangs_holds_up_no_task_of_a_row_that_is_spread() -> None:
    row, gate = RealEnvironment().row(), threading.Event()
    hanging = row.add(lambda: gate.wait(120), "hangs")
    others = [row.add(lambda: None, "waits") for _ in range(2)]
    row.begin()
    row.spread()
    for task in others:
        task.join(60)
        assert not task.is_alive()
    assert hanging.is_alive()
    gate.set()
    hanging.join(60)
    assert not hanging.is_alive()


def test_an_error_ends_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    row = RealEnvironment().row()
    tasks = [row.add(work, "a") for work in (lambda: [][0], lambda: None)]
    row.begin()
    for task in tasks:
        task.join(60)
        assert not task.is_alive()
    assert len(told) == 1


def test_a_task_that_gets_no_thread_of_its_own_stays_in_its_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, gate = RealEnvironment(), threading.Event()
    row = threads.row()
    tasks = [row.add(lambda: gate.wait(120), "first"), row.add(lambda: None, "second")]
    row.begin()
    wait_for(lambda: any(thread.name == "first" for thread in threading.enumerate()))

    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "serve", no_thread)
    with pytest.raises(RuntimeError, match="new thread"):
        row.spread()
    gate.set()
    for task in tasks:
        task.join(60)
        assert not task.is_alive()
