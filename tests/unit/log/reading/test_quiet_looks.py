"""A reader that waits for bookies that tell of growth asks for little, and misses no news."""

import secrets
from collections.abc import Iterator
from contextlib import suppress

import pytest

from bkspark import BookKeeper
from bkspark.bookie import uri
from bkspark.bookie.memory import MemoryBookie
from bkspark.cluster.cluster import init_cluster
from bkspark.errors import BookieUnavailableError, LedgerFencedError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.reading import log_view
from bkspark.log.reading.log_view import QUIET_LOOKS_MAX, LogWatch


class Scene:
    """A log with one readable entry, and a reader that has seen it.

    Attributes:
        looks: whole looks since.
    """

    def __init__(self, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keeper = keeper
        self.log: LogHandle = keeper.create_log("a")
        self.writer: LogWriter = self.log.writer(settings=WriterSettings(explicit_lac_ms=0))
        self.add(2)
        self.watch = LogWatch(self.log._cluster, "a", None)
        assert self.watch.look().end_offset == 1
        self.looks = 0
        real = log_view.view_of

        def counted(*given: object, **named: object) -> object:
            self.looks += 1
            return real(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(log_view, "view_of", counted)

    def add(self, count: int) -> None:
        for _ in range(count):
            self.writer.append(b"x")

    def wait(self, times: int = 1) -> int:
        """Return the end after so many looks."""
        ends = [self.watch.look_again().end_offset for _ in range(times)]
        return ends[-1]


class Telling(MemoryBookie):
    """A bookie that tells of growth, unless it is ``away``."""

    away = False

    def may_have_grown(self, name: str, end: int) -> bool:
        if self.away:
            raise BookieUnavailableError("it is away")
        with self.open_root() as root:
            return root.size(name) != end


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    monkeypatch.setitem(uri._BOOKIES, "memory", Telling)
    name = secrets.token_hex(6)
    place = f"memory://{name}-metadata"
    init_cluster(place, [f"memory://{name}-{n}" for n in (1, 2, 3)], accepts_risk=True)
    with BookKeeper(place) as keeper:
        scene = Scene(keeper, monkeypatch)
        yield scene
        with suppress(LedgerFencedError):
            scene.writer.close()


def test_whole_looks_are_rare_while_nothing_comes(scene: Scene) -> None:
    assert scene.wait(QUIET_LOOKS_MAX) == 1
    assert scene.looks == 0
    scene.wait()
    assert scene.looks == 1
    scene.wait(QUIET_LOOKS_MAX)
    assert scene.looks == 1


def test_an_entry_is_seen_at_once(scene: Scene) -> None:
    scene.wait()
    scene.add(1)
    assert scene.wait() == 2


def test_the_end_of_the_ledger_is_seen_at_once(scene: Scene) -> None:
    """Its record alone tells: neither the writer's journals nor the log's record has changed."""
    scene.wait()
    [ledger_id] = scene.watch.look_again().metadata
    scene.keeper.recover_ledger(ledger_id)
    assert scene.wait() == 2


def test_a_truncation_is_seen_at_once(scene: Scene) -> None:
    """The log's record alone tells: the open ledger is unchanged."""
    scene.writer.roll()
    scene.add(2)
    assert scene.wait(2) == 3
    scene.log.truncate(1)
    assert scene.watch.look_again().first_offset == 1


def test_a_look_for_something_else_hides_no_news(scene: Scene) -> None:
    """It reads the journals farther than what is shown."""
    scene.wait()
    scene.add(1)
    scene.watch.look(enough=2)
    assert scene.wait() == 2


def test_each_look_is_whole_at_bookies_that_do_not_tell(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(uri._BOOKIES, "memory", MemoryBookie)
    scene.wait(3)
    assert scene.looks == 3


def test_a_bookie_that_cannot_answer_is_not_quiet(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Telling, "away", True)
    scene.wait()
    assert scene.looks == 1


def test_nothing_is_quiet_once_the_log_is_closed(scene: Scene) -> None:
    scene.writer.close()
    scene.wait(2)
    assert scene.looks == 2
