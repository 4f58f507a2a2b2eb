"""A reader that waits for files of its own host is told of changes, and looks rarely meanwhile."""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark import BookKeeper, environment
from bkspark.cluster.cluster import init_cluster
from bkspark.log.log_handle import LogHandle
from bkspark.log.log_writer import LogWriter
from bkspark.log.reading import waiting
from bkspark.log.reading.waiting import (
    POLL_SECONDS,
    SETTLE_SECONDS,
    SETTLE_SECONDS_MAX,
    WATCHED_POLL_SECONDS,
    Waiting,
)
from bkspark.storage import changes
from bkspark.storage.file_systems import Mount

LONG_SECONDS = 60.0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LogHandle]:
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [(tmp_path / f"bookie{n}").as_uri() for n in range(3)])
    with BookKeeper(uri) as keeper:
        yield keeper.create_log("a")


@pytest.fixture
def writer(log: LogHandle) -> Iterator[LogWriter]:
    """A writer with one entry, which readers may read."""
    writer = log.writer()
    writer.append(b"0")
    assert log.wait_for(0, LONG_SECONDS)
    yield writer
    writer.release()


class Pauses:
    """Pauses end only if a change is told; before the first one ``act`` is done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.act: Callable[[], object] | None = None
        self._real = environment.sleep_until_readable
        for name in ("POLL_SECONDS", "WATCHED_POLL_SECONDS"):
            monkeypatch.setattr(waiting, name, LONG_SECONDS)
        monkeypatch.setattr(environment, "sleep_until_readable", self._sleep)

    def _sleep(self, descriptor: int, seconds: float) -> bool:
        if seconds and self.act is not None:
            act, self.act = self.act, None
            act()
        is_told = self._real(descriptor, seconds)
        assert is_told or not seconds, "no change was told"
        return is_told


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    return Pauses(monkeypatch)


def test_an_append_is_told(log: LogHandle, writer: LogWriter, pauses: Pauses) -> None:
    reading = log.follow(0)
    assert next(reading).value == b"0"
    pauses.act = lambda: writer.append(b"1")
    assert next(reading).value == b"1"
    pauses.act = lambda: writer.append(b"2")
    assert next(reading).value == b"2"


def test_a_roll_is_told_and_the_next_ledger_is_watched(
    log: LogHandle, writer: LogWriter, pauses: Pauses
) -> None:
    def roll() -> None:
        writer.roll()
        writer.append(b"1")

    reading = log.follow(1)
    pauses.act = roll
    assert next(reading).value == b"1"
    pauses.act = lambda: writer.append(b"2")
    assert next(reading).value == b"2"


def test_a_takeover_is_told(log: LogHandle, writer: LogWriter, pauses: Pauses) -> None:
    def take_over() -> None:
        with log.writer() as later:
            later.append(b"1")

    reading = log.follow(1)
    pauses.act = take_over
    assert next(reading).value == b"1"


def test_the_end_of_the_log_is_told(log: LogHandle, writer: LogWriter, pauses: Pauses) -> None:
    pauses.act = log.seal
    assert list(log.follow(1)) == []
    assert not log.wait_for(1, None)


def test_an_entry_of_a_log_without_a_writer_is_told(log: LogHandle, pauses: Pauses) -> None:
    """Its record alone tells."""

    def write() -> None:
        with log.writer() as writer:
            writer.append(b"0")

    pauses.act = write
    assert log.wait_for(0, None)


class Idle:
    """Nothing changes: the pauses of a reader that waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told: list[float] = []
        self.slept: list[float] = []
        monkeypatch.setattr(environment, "sleep_until_readable", self._wait)
        monkeypatch.setattr(environment, "sleep", self.slept.append)

    def _wait(self, _descriptor: int, seconds: float) -> bool:
        self.told += [seconds] if seconds else []
        return False

    def of(self, log: LogHandle, count: int = 10, *, has_news: bool = False) -> None:
        view = log._watch.look()
        with Waiting(log._cluster) as pauses:
            for _ in range(count):
                if has_news:
                    pauses.begin_anew()
                pauses.sleep(view, float("inf"))


def test_an_idle_reader_looks_rarely(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at once when it begins to watch, since something may have changed before."""
    idle = Idle(monkeypatch)
    idle.of(log)
    assert idle.told == [0.05, 0.1, 0.2, 0.4, 0.8, *[WATCHED_POLL_SECONDS] * 4]
    assert not idle.slept


def test_it_looks_often_if_another_host_may_change_a_file(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    mount = Mount("nfs4", frozenset({"lookupcache=none"}))
    real = changes.mount_of
    monkeypatch.setattr(
        changes, "mount_of", lambda path: mount if "bookie1" in path else real(path)
    )
    idle = Idle(monkeypatch)
    idle.of(log)
    assert idle.told == [POLL_SECONDS] * 9


@pytest.mark.parametrize("what", ["store", "bookies"])
def test_it_looks_often_if_a_place_has_no_files(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == "store":
        monkeypatch.setattr(waiting, "watchable", lambda _store: None)
    else:
        monkeypatch.setattr(waiting, "open_bookie", lambda _address: object())
    idle = Idle(monkeypatch)
    idle.of(log)
    assert idle.told == [POLL_SECONDS] * 9


def test_it_looks_often_if_storage_hangs(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is watched late is closed."""
    late: list[changes.Changes | None] = []

    class Hanging:
        def __init__(
            self, work: Callable[[], tuple[changes.Changes | None, bool]], _name: str
        ) -> None:
            self._found = work()
            late.append(self._found[0])

        def is_there_within(self, _seconds: float) -> bool:
            return False

        def result(self) -> tuple[changes.Changes | None, bool]:
            return self._found

        def add_done_callback(self, call: Callable[["Hanging"], None]) -> None:
            call(self)

    monkeypatch.setattr(waiting, "PendingAnswer", Hanging)
    idle = Idle(monkeypatch)
    idle.of(log)
    assert (idle.told, idle.slept) == ([], [POLL_SECONDS] * 10)
    assert [one and one._descriptor for one in late] == [-1]


def test_looks_are_fewer_while_news_come_all_the_time(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looks without news came before the writer told of its entry, and go by the journals."""
    idle, by_journals = Idle(monkeypatch), list[float]()
    monkeypatch.setattr(environment, "sleep_until_readable", lambda _descriptor, _seconds: True)
    monkeypatch.setattr(Waiting, "_settle_down", lambda _one, until: by_journals.append(until))
    idle.of(log, 6, has_news=True)
    assert (idle.slept, by_journals) == ([0.002, 0.004, 0.008, 0.008, 0.008], [])
    idle.of(log, 6)
    assert (len(idle.slept), len(by_journals)) == (5, 5)


class Told:
    """Stands in for ``Changes``: what each wait tells of, a hundredth of the longest wait later."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *told: str) -> None:
        self.now = 0.0
        self._told = deque(told)
        monkeypatch.setattr(environment, "monotonic", lambda: self.now)

    def wait(self, seconds: float) -> bool:
        self.now += min(seconds, SETTLE_SECONDS_MAX / 100) if self._told else seconds
        return bool(self._told)

    def forget(self) -> Counter[str]:
        return Counter(self._told.popleft() if self._told else "")

    @property
    def left(self) -> str:
        return "".join(self._told)


@pytest.mark.parametrize(
    ("awaited", "told", "left", "seconds"),
    [
        (2, ["a", "b", "c", "ab", "c", "a"], "a", None),  # the second record is everywhere
        (2, ["aa", "bb", "cc", "x"], "x", None),
        (1, ["c", "ba", "x"], "x", None),
        (2, ["abc", "r", "abc"], "abc", None),  # of the log's record
        (2, ["a", "b", "c"], "", SETTLE_SECONDS_MAX),  # no second record comes
        (2, ["abc", "ab"], "", SETTLE_SECONDS),  # one bookie gets none
        (1, ["b"], "", SETTLE_SECONDS),
    ],
)
def test_a_look_waits_for_the_record_that_lets_an_entry_be_read(
    log: LogHandle,
    monkeypatch: pytest.MonkeyPatch,
    awaited: int,
    told: list[str],
    left: str,
    seconds: float | None,
) -> None:
    changes = Told(monkeypatch, *told)
    with Waiting(log._cluster) as waiting:
        waiting._journals, waiting._awaited = frozenset("abc"), awaited
        waiting._changes = changes  # type: ignore[assignment]
        waiting._settle_down(SETTLE_SECONDS_MAX)
        waiting._changes = None
    assert changes.left == left
    steps = len(told) * SETTLE_SECONDS_MAX / 100
    assert changes.now <= steps if seconds is None else seconds <= changes.now <= seconds + steps


def test_a_reader_waits_for_two_records_after_news_and_for_one_after_none(
    log: LogHandle, writer: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    awaited: list[int] = []
    monkeypatch.setattr(environment, "sleep_until_readable", lambda _descriptor, seconds: seconds)
    monkeypatch.setattr(Waiting, "_settle_down", lambda one, _until: awaited.append(one._awaited))
    view = log._watch.look()
    with Waiting(log._cluster) as pauses:
        for has_news in (False, True, False, True):
            if has_news:
                pauses.begin_anew()
            pauses.sleep(view, float("inf"))
    assert awaited == [2, 1, 2]
