"""The searches for schedules, on programs small enough to count by hand or by brute force."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from random import Random

import pytest

from tests.simulation.exhaustive.dependence import Access, commute
from tests.simulation.exhaustive.explorer import Explorer

Program = Mapping[str, Sequence[Mapping[str, Access]]]
"""Task -> what each of its steps touches."""

READ, ADD, WRITE = Access.READ, Access.ADD, Access.WRITE


def order_of(schedule: Sequence[str], program: Program) -> frozenset[object]:
    """What a schedule decides: the order of steps that do not commute."""
    events = [(task, schedule[:at].count(task)) for at, task in enumerate(schedule)]
    return frozenset(
        (one, other)
        for one, other in combinations(events, 2)
        if one[0] != other[0]
        and not commute(dict(program[one[0]][one[1]]), dict(program[other[0]][other[1]]))
    )


def all_schedules(program: Program) -> Iterator[tuple[str, ...]]:
    def following(done: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        able = [task for task in program if done.count(task) < len(program[task])]
        if not able:
            yield done
        for task in able:
            yield from following((*done, task))

    return following(())


def runner(program: Program, schedules: list[tuple[str, ...]]) -> Callable[[Explorer], None]:
    def execute(explorer: Explorer) -> None:
        done: list[str] = []
        while able := [task for task in program if done.count(task) < len(program[task])]:
            task = explorer.choose(able)
            for thing, access in program[task][done.count(task)].items():
                explorer.touch(thing, access)
            done.append(task)
        schedules.append(tuple(done))

    return execute


def some_program(random: Random) -> Program:
    def step() -> Mapping[str, Access]:
        return {
            random.choice("xyz"): random.choice((READ, ADD, WRITE))
            for _ in range(random.randint(0, 2))
        }

    return {
        f"task-{number}": [step() for _ in range(random.randint(1, 3))]
        for number in range(random.randint(2, 3))
    }


@pytest.mark.parametrize("seed", range(60))
def test_every_order_that_can_matter_is_run_once(seed: int) -> None:
    program = some_program(Random(seed))
    schedules: list[tuple[str, ...]] = []
    assert Explorer(runner(program, schedules)).run()
    orders = [order_of(schedule, program) for schedule in schedules]
    assert set(orders) == {order_of(schedule, program) for schedule in all_schedules(program)}
    assert len(set(orders)) == len(orders)


def test_steps_that_commute_make_one_schedule() -> None:
    program = {"a": [{"x": READ, "y": ADD}] * 3, "b": [{"x": READ, "y": ADD}] * 3}
    schedules: list[tuple[str, ...]] = []
    assert Explorer(runner(program, schedules)).run()
    assert len(schedules) == 1


def test_a_limit_ends_the_search_and_says_so() -> None:
    program = {"a": [{"x": WRITE}] * 4, "b": [{"x": WRITE}] * 4}
    explorer = Explorer(runner(program, []))
    assert not explorer.run(limit=5)
    assert explorer.schedules + explorer.redundant == 5


def test_a_program_that_does_other_things_the_second_time_is_found() -> None:
    program = {"a": [{"x": WRITE}], "b": [{"x": WRITE}]}
    schedules: list[tuple[str, ...]] = []
    execute = runner(program, schedules)

    def fickle(explorer: Explorer) -> None:
        if schedules:
            explorer.choose(["c"])
        execute(explorer)

    with pytest.raises(AssertionError, match="instead of"):
        Explorer(fickle).run()
