"""The simulation's clock and chance are those of its own thread: others go on as they were."""

import threading
import time
from concurrent.futures import Future
from random import Random

from bkspark.client import trouble
from tests.simulation.runtime import determined, each_remembers
from tests.simulation.scheduler import Policy, Process, Scheduler


def test_another_thread_sleeps_for_real() -> None:
    slept: list[float] = []
    sleeps_there: list[float] = []

    def doze() -> None:
        begin = time.perf_counter()
        time.sleep(0.05)
        slept.append(time.perf_counter() - begin)

    with determined(1, sleep=sleeps_there.append):
        other = threading.Thread(target=doze)
        other.start()
        other.join()
        time.sleep(3600)
    assert slept[0] >= 0.05
    assert sleeps_there == [3600]


def test_each_process_remembers_for_itself() -> None:
    """What hung for one of them, and what hung in a schedule is forgotten with it."""
    scheduler, told = Scheduler(Policy(Random(0))), dict[str, bool]()

    def give_up() -> None:
        trouble.THIS_PROCESS.gave_up("a", Future())
        scheduler.spawn(first, "again", lambda: look("first"))
        scheduler.spawn(Process("second"), "main", lambda: look("second"))

    def look(name: str) -> None:
        told[name] = trouble.THIS_PROCESS.hangs("a")

    first = Process("first")
    with determined(1), each_remembers(scheduler):
        scheduler.spawn(first, "main", give_up)
        scheduler.run()
    assert told == {"first": True, "second": False}
    assert not trouble.THIS_PROCESS.hangs("a")
