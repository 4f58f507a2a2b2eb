"""What happens inside a command: no ledger goes whose rows the newest table lacks, no read lies.

The real commands run, and at each of their accesses another command runs or the table is damaged;
``tests/simulation/test_tier_states.py`` visits every state of the same protocol.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

from bkspark.admin.offloading import freeing, moving
from bkspark.admin.offloading import offload as offloads
from bkspark.format.tier_record import DigestsPage

from .interrupted import (
    COMMANDS,
    Act,
    Interrupted,
    MemoryScene,
    Plan,
    collect,
    move,
    offload,
    stop,
    truncate,
)
from .scene import Scene
from .test_freeing import deleted, doubled, gone, lied, lost_commit, replaced, updated

SEED = 20261128
NESTED = 100


def with_rows(fault: Act) -> Act:
    """The fault, where there are rows that it can hit."""

    def hit(scene: Scene) -> None:
        assert isinstance(scene, MemoryScene)
        table = scene.copier.tables.get(scene.copied_url or scene.url)
        if table is None or not table.live or not table.path.exists():
            return
        [*_, last] = table.live
        if fault is not lost_commit or last in table.commit_file(table.version).read_text():
            fault(scene)

    hit.__name__ = fault.__name__
    return hit


FAULTS = tuple(map(with_rows, (lost_commit, deleted, updated, lied, doubled, gone, replaced)))
OUTERS = (
    (offload, False, 18),
    (collect, True, 24),
    (truncate, True, 5),
    (stop, True, 5),
    (move, True, 8),
)
"""Commands, whether all rows are copied before, and how many accesses each makes at least."""


@pytest.fixture(params=OUTERS, ids=lambda row: row[0].__name__)
def outer(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Act, Interrupted, int]:
    act, is_copied, count = request.param
    scene = MemoryScene(tmp_path)
    if is_copied:
        scene.offload(segment_bytes=1)
    return act, Interrupted(scene), count


def carried_out(seen: Interrupted, plan: Plan) -> int:
    """Carry out a plan; return how many accesses the outer command made."""
    seen.restore()
    with seen.installed():
        frame = seen.run(plan)
        assert not seen.violations, f"{plan}: {seen.violations}"
        seen.require_log(is_told="lied" not in str(plan))
    return len(frame.accesses)


@pytest.mark.thorough
def test_one_thing_inside_a_command(outer: tuple[Act, Interrupted, int]) -> None:
    act, seen, least = outer
    count = carried_out(seen, Plan(act))
    assert count >= least
    for point in range(count):
        for inner in (*COMMANDS, *FAULTS):
            carried_out(seen, Plan(act, {point: Plan(inner)}))


@pytest.mark.thorough
def test_two_things_inside_a_command(outer: tuple[Act, Interrupted, int]) -> None:
    act, seen, least = outer
    count = carried_out(seen, Plan(act))
    assert count >= least
    for plan in nested(act, count):
        carried_out(seen, plan)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("act", "module", "rule"),
    [
        (collect, freeing, "_require_rows"),
        (offload, offloads, "verified"),
        (move, moving, "require_segments"),
    ],
    ids=["collect", "offload", "move"],
)
def test_a_command_without_a_look_is_noticed(
    act: Act, module: ModuleType, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = MemoryScene(tmp_path)
    if act is not offload:
        scene.offload(segment_bytes=1)
    seen = Interrupted(scene)
    count = carried_out(seen, Plan(act))
    monkeypatch.setattr(module, rule, lambda *_: DigestsPage(0, b"", (30,), (1,)))
    plans = [Plan(act, {point: Plan(with_rows(deleted))}) for point in range(count)]
    with pytest.raises(AssertionError, match="offset 0 is"):
        assert [carried_out(seen, plan) for plan in plans]


def nested(act: Act, count: int) -> Iterator[Plan]:
    """A command inside, and a fault or another command inside of that one or after it."""
    chance = Random(SEED)
    for _ in range(NESTED):
        point, other = sorted((chance.randrange(count), chance.randrange(count)))
        inner, third = chance.choice(COMMANDS), Plan(chance.choice((*COMMANDS, *FAULTS)))
        if chance.random() < 0.5 or point == other:
            inside = Plan(inner, {chance.randrange(1, 12): third})
            yield Plan(act, {point: inside})
        else:
            yield Plan(act, {point: Plan(inner), other: third})
