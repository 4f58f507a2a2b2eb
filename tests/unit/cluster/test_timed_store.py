"""All records of a kind are asked for by one task; each has time of its own, and its own error."""

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bkspark import environment
from bkspark.cluster import hanging
from bkspark.cluster.hanging import HangMemory, PendingAnswer, TimedStore
from bkspark.cluster.records import Records
from bkspark.errors import CorruptDataError, InvalidRequestError, OutcomeUnknownError
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.memory import MemoryMetadataStore
from bkspark.metadata.uri import format_store
from bkspark.storage import devices
from tests.stopwatch import Stopwatch, patience

NAMES = ("a", "b", "c", "d")

Before = Callable[[str], None]


class Store(MemoryMetadataStore):
    """In memory, with something in front of each ``get``; remembers the threads that asked."""

    def __init__(self, before: Before) -> None:
        super().__init__(f"memory://timed-{secrets.token_hex(6)}")
        self.format()
        self._before = before
        self.threads = set[int]()
        for name in NAMES:
            self.put(f"things/{name}", name.encode(), None)

    def get(self, key: str) -> VersionedBytes | None:
        self.threads.add(threading.get_ident())
        self._before(key)
        return super().get(key)


_made: list[TimedStore] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """What is dropped unclosed is told of when garbage is collected, in whatever test that is."""
    yield
    while _made:
        _made.pop().close()


def timed(before: Before = lambda _key: None) -> tuple[Store, TimedStore]:
    inner = Store(before)
    _made.append(TimedStore(inner))
    return inner, _made[-1]


def things(store: TimedStore) -> Records[str]:
    return Records(
        store, "", "things/{}".format, lambda v, _: v.encode(), lambda _, data: data.decode()
    )


def test_all_are_asked_for_by_one_task() -> None:
    inner, store = timed()
    found = things(store).of_all(store.get_all("things"))
    assert found == {name: name for name in NAMES}
    assert len(inner.threads) == 1
    assert threading.get_ident() not in inner.threads


def test_each_has_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "STORE_SECONDS", patience(0.3))
    _, store = timed(lambda _key: time.sleep(patience(0.15)))
    assert list(store.get_all("things")) == list(NAMES)


def test_one_that_hangs_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging, "STORE_SECONDS", patience(0.2))
    gate = threading.Event()
    inner, store = timed(lambda key: None if key < "things/c" else gate.wait(patience(5)) and None)
    watch = Stopwatch()
    with pytest.raises(OutcomeUnknownError, match="gave no answer"):
        store.get_all("things")
    assert watch.seconds < patience(2)
    assert environment.the_one(HangMemory).hangs(inner.uri)
    gate.set()


def test_what_is_wrong_with_one_is_told_of_it_alone() -> None:
    def before(key: str) -> None:
        if key == "things/b":
            raise OutcomeUnknownError("things/b cannot be read")

    _, store = timed(before)
    records, told = things(store), list[str]()
    with pytest.raises(OutcomeUnknownError, match="things/b"):
        records.of_all(store.get_all("things"))
    records.step_over = lambda key, _error: told.append(key)
    assert records.of_all(store.get_all("things")) == {name: name for name in "acd"}
    assert told == ["things/b"]


def test_what_can_be_no_name_is_refused_as_such() -> None:
    def key(name: str) -> str:
        if name == "b":
            raise InvalidRequestError("b is no name")
        return f"things/{name}"

    _, store = timed()
    records = Records(store, "", key, lambda v, _: v.encode(), lambda _, data: data.decode())
    with pytest.raises(InvalidRequestError, match="b is no name"):
        records.of_all(store.get_all("things"))


def test_one_that_is_damaged_or_gone_by_now_is_told_too() -> None:
    def decoded(name: str, data: bytes) -> str:
        if name == "c":
            raise CorruptDataError("things/c is damaged")
        return data.decode()

    inner, store = timed(lambda key: inner.delete("things/d") if key == "things/d" else None)
    records = Records(store, "", "things/{}".format, lambda v, _: v.encode(), decoded)
    told = list[str]()
    records.step_over = lambda key, _error: told.append(key)
    assert records.of_all(store.get_all("things")) == {name: name for name in "ab"}
    assert told == ["things/c"]


def test_the_disk_of_the_store_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the second call on it is known before the call begins."""
    seen: list[int | None] = []

    def answer(question: Callable[[], object], name: str, *, device: int | None) -> object:
        seen.append(device)
        return PendingAnswer(question, name, device=device)

    monkeypatch.setattr(hanging, "PendingAnswer", answer)
    store = TimedStore(format_store((tmp_path / "metadata").as_uri()))
    monkeypatch.setattr(devices, "_devices", {})
    store.get("things/a")
    store.get("things/a")
    assert seen == [None, tmp_path.stat().st_dev]
    store.close()


def test_many_records_are_asked_for_by_few_tasks() -> None:
    inner, store = timed()
    records = things(store)
    found = {name: answer() for name, answer in records.answers([*NAMES, "none"])}
    assert found.pop("none") is None
    assert {name: seen.value for name, seen in found.items() if seen} == {n: n for n in NAMES}
    assert len(inner.threads) == 1
    assert [seen.value for seen in records.present(["b", "none", "a"])] == ["b", "a"]


def test_an_error_of_one_of_many_records_is_its_own() -> None:
    def before(key: str) -> None:
        if key == "things/b":
            raise CorruptDataError("torn")

    records = things(timed(before)[1])
    answers = dict(records.answers(NAMES))
    assert answers["a"]() is not None
    with pytest.raises(CorruptDataError, match="torn"):
        answers["b"]()
    assert answers["c"]() is not None
    with pytest.raises(CorruptDataError):
        list(records.present(NAMES))


def test_many_records_of_a_store_without_tasks() -> None:
    inner, _ = timed()
    records: Records[str] = Records(
        inner, "", "things/{}".format, lambda v, _: v.encode(), lambda _, data: data.decode()
    )
    assert [seen.value for seen in records.present(NAMES)] == [*NAMES]
