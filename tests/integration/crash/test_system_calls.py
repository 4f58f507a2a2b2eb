"""Real processes that are killed at, or get an error from, each system call that touches a disk.

Files of the POSIX bookie and of the metadata in files; strace kills or fails. A process dies before
the call, which is the state behind the call before it, too. Whatever happens: nothing acknowledged
is lost, an error is never taken for an absence, and what is left over harms nobody.

Some points, spread evenly, run always, and some hundred with the thorough tests; all of them by

    pytest -m soak tests/integration/crash
"""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.hand_writer import HandWriter, violations
from tests.integration.rig import Rig
from tests.thorough import always

from .child import APPENDS, value_of
from .processes import LOOKS, WRITES, Child, Point, Processes, processes

Rigs = Callable[[], Rig]

# A lane to one bookie stands for the other two, which do the same.
ROLES = [
    ("append", "caller"),
    ("append", "writer"),
    ("append", "bookie-2"),
    ("take_over", "caller"),
    ("read", "caller"),
]
KILL = "signal=KILL"
WRITE_ERRORS = ("error=EIO", "error=ENOSPC", "error=EROFS")
LOOK_ERRORS = ("error=EIO",)
# What a client is told if it is sure that there is nothing; an error must never become that.
ABSENCES = {"NoSuchLedgerError", "NoSuchEntryError", "InvalidRequestError"}
KILLS = always([10], [10, 120])
ERRORS = always([10], [10, 200])


@pytest.fixture
def make_rig(tmp_path: Path) -> Rigs:
    numbers = itertools.count()
    return lambda: Rig(tmp_path / f"cluster{next(numbers)}", kind="file", bookie_count=3)


class Scene:
    """A cluster of its own for each point.

    Attributes:
        sent: of ledger 0, whatever became of it.
        acked: of ledger 0, before the process in question began.
    """

    def __init__(self, rig: Rig, forks: Processes, work: str) -> None:
        self.rig = rig
        self.acked: list[int] = []
        self.sent = {number: value_of(number) for number in range(APPENDS)}
        self._away: dict[str, Any] = {}
        if work == "read":
            # One copy is left, so that nobody covers for an error with it.
            assert forks.run("append", rig.uri).last("closed") == APPENDS - 1
            self._lose("bookie-1", "bookie-3")
        elif work == "take_over":
            # Of the acknowledged entry one copy is left; were that bookie believed to have none,
            # there would be two absences. Nobody is left who has the third entry.
            writer = HandWriter(rig)
            writer.add(0, 1, acknowledges=True)
            writer.add(0)
            writer.add(1)
            self.sent, self.acked = writer.sent, writer.acked
            self._lose(writer.names[1])

    def mend(self) -> None:
        """Bring back what is away."""
        for name, disk in self._away.items():
            self.rig.bring_back(name, disk)

    def _lose(self, *names: str) -> None:
        self._away = {name: self.rig.lose(name) for name in names}


def points(forks: Processes, make_rig: Rigs, effects: dict[str, tuple[str, ...]]) -> list[Point]:
    """Every call of every role, with what can happen to it."""
    found = []
    for work, role in ROLES:
        scene = Scene(make_rig(), forks, work)
        calls = forks.calls(work, role, scene.rig.uri)
        found += [
            Point(work, role, call, number, effect)
            for call in WRITES + LOOKS
            for number in range(1, calls[call] + 1)
            for effect in effects.get(call, ())
        ]
    return found


def spread(found: list[Point], count: int) -> list[Point]:
    return [found[number * len(found) // count] for number in range(count)]


def check(point: Point, scene: Scene, child: Child, forks: Processes) -> None:
    """What must hold after ``child``, and after a fresh process has gone on where it stopped."""
    assert not ABSENCES & set(child.all("error")), child.said
    if point.effect != KILL:
        assert child.all("error") or child.all("closed") or child.all("values"), child.said
    if point.role.startswith("bookie"):
        # One bad bookie of three stops nobody.
        assert point.effect == KILL or child.last("closed") == APPENDS - 1, child.said
    scene.mend()
    following = forks.run("go_on", scene.rig.uri)
    assert not following.all("error"), following.said
    assert following.last("closed") == 0
    acked = scene.acked + child.all("acked")
    if not child.all("ledger") and point.work == "append":
        # It never came to be, or its maker was not told; then it is empty.
        assert [event["values"] for event in following.said if "values" in event] in ([], [[]])
        return
    assert not violations(scene.rig, 0, scene.sent, acked)
    found = next(event["values"] for event in following.said if event.get("ledger") == 0)
    for end in child.all("closed"):
        assert len(found) == end + 1
    for values in child.all("values"):
        assert values == found
        assert len(values) == APPENDS


def go_through(chosen: list[Point], forks: Processes, make_rig: Rigs) -> None:
    for point in chosen:
        scene = Scene(make_rig(), forks, point.work)
        try:
            check(point, scene, forks.run_at(point, scene.rig.uri), forks)
        except AssertionError as error:
            raise AssertionError(f"{point}: {error}") from error
        shutil.rmtree(scene.rig.folder)


def kills(forks: Processes, make_rig: Rigs) -> list[Point]:
    return points(forks, make_rig, dict.fromkeys(WRITES, (KILL,)))


def errors(forks: Processes, make_rig: Rigs) -> list[Point]:
    effects = dict.fromkeys(LOOKS, LOOK_ERRORS) | dict.fromkeys(WRITES, WRITE_ERRORS)
    return points(forks, make_rig, effects)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", KILLS)
def test_killed_at_a_system_call(count: int, forks: Processes, make_rig: Rigs) -> None:
    found = kills(forks, make_rig)
    print(f"{count} of {len(found)} points")
    go_through(spread(found, count), forks, make_rig)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", ERRORS)
def test_an_error_from_a_system_call(count: int, forks: Processes, make_rig: Rigs) -> None:
    found = errors(forks, make_rig)
    print(f"{count} of {len(found)} points")
    go_through(spread(found, count), forks, make_rig)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("all_of", [kills, errors], ids=["kills", "errors"])
def test_at_every_system_call(
    all_of: Callable[[Processes, Rigs], list[Point]], forks: Processes, make_rig: Rigs
) -> None:
    found = all_of(forks, make_rig)
    print(f"{len(found)} points")
    go_through(found, forks, make_rig)


def test_without_strace_it_is_an_error_that_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="apt-get install strace"), processes(tmp_path):
        pass
