"""Threads that serve one task after the other."""

import os
import threading
import time
from collections.abc import Callable

import pytest

from bkspark.client import runtime
from bkspark.client.runtime import Threads


def wait_for(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def ident_of_a_task(threads: Threads, name: str = "a") -> tuple[int, str]:
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
    threads = Threads()
    ident, name = ident_of_a_task(threads, "first")
    assert name == "first"
    assert ident_of_a_task(threads, "second") == (ident, "second")


def test_tasks_at_once_have_a_thread_each() -> None:
    threads, gate, idents = Threads(), threading.Barrier(3), set[int]()

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
    threads = Threads()
    threads.start(lambda: {}["no such key"], "fails").join(60)
    wait_for(lambda: threads._idle)
    assert [args.exc_type for args in told] == [KeyError]
    assert ident_of_a_task(threads)


def test_an_idle_thread_ends_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "IDLE_SECONDS", 0.05)
    threads = Threads()
    ident_of_a_task(threads)
    [server] = threads._idle or [None]
    wait_for(lambda: not threads._idle)
    assert server is not None
    server.join(60)
    assert not server.is_alive()


def test_work_that_is_on_its_way_is_done_although_the_thread_was_about_to_end() -> None:
    threads = Threads()
    ident_of_a_task(threads)
    [server] = threads._idle
    assert threads._rest(server, is_over=True)
    assert not threads._rest(server, is_over=True)  # it was taken, or has ended


def test_a_forked_process_starts_threads_of_its_own() -> None:
    threads = Threads()
    ident_of_a_task(threads)
    child = os.fork()
    if child == 0:
        done = threading.Event()
        threads.start(done.set, "in the child")
        os._exit(0 if done.wait(60) else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
