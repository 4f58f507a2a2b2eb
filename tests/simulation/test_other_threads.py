"""The simulation's environment is that of its own thread: others go on as they were."""

import threading
from random import Random

from bkspark import environment
from tests.simulation.environment import SimulatedEnvironment
from tests.simulation.scheduler import Policy, Process, Scheduler


def simulated(scheduler: Scheduler) -> SimulatedEnvironment:
    return SimulatedEnvironment(scheduler, lambda: Random(0))


def test_another_thread_keeps_the_real_one() -> None:
    found: list[str] = []
    other = threading.Thread(target=lambda: found.append(environment.token()))
    with environment.use(simulated(Scheduler(Policy(Random(0))))):
        other.start()
        other.join()
        drawn = [environment.token() for _ in range(2)]
    assert found[0] not in drawn
    assert drawn[0] == drawn[1] != environment.token()


def test_each_process_remembers_for_itself() -> None:
    """And what was met in a schedule is forgotten with it."""
    scheduler, told = Scheduler(Policy(Random(0))), dict[str, list[str]]()

    def look() -> None:
        assert scheduler.current is not None
        name = scheduler.current.process.name
        environment.the_one(list).append(name)
        told[name] = [*environment.the_one(list)]

    first = Process("first")
    with environment.use(simulated(scheduler)):
        scheduler.spawn(first, "main", look)
        scheduler.spawn(first, "again", look)
        scheduler.spawn(Process("second"), "main", look)
        scheduler.run()
    assert told == {"first": ["first", "first"], "second": ["second"]}
    assert environment.the_one(list) == []
