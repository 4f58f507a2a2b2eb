"""Crashes and errors at every system call of the store in a folder.

fsync does nothing here, to save time; that it is called, and when, is asserted by itself.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bkspark.errors import (
    InvalidRequestError,
    MetadataVersionError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.metadata import directory
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.files import FileMetadataStore
from bkspark.storage import posix_calls
from tests.kit import faulty
from tests.kit.faulty import Crash, FaultyOs, Moment

KEY = "ledgers/1"
ERRORS = [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EMFILE, errno.ESTALE]
# One that creates, one that changes, and one that also prunes.
RECORDS = {"absent": 0, "small": 2, "due for pruning": 47, "full of marks": 271}
Operation = Callable[[FileMetadataStore, int], Any]


class AnswerLosingOs(FaultyOs):
    """Can also fail after it did what it was asked for."""

    def fail_after(self, number: int, error: int) -> None:
        def fault(now: int, effect: Callable[[], object], _arguments: list[Any]) -> None:
            if now == number:
                effect()
                raise OSError(error, os.strerror(error))

        self._fault = fault


@pytest.fixture(autouse=True)
def _fast_and_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(faulty, "CALLS", faulty.CALLS | {"rmdir"})


@pytest.fixture(params=list(RECORDS.values()), ids=list(RECORDS))
def record(request: pytest.FixtureRequest, tmp_path: Path) -> "Record":
    return Record(tmp_path, request.param)


class Record:
    """A store with one record of so many versions, as often as wanted."""

    def __init__(self, path: Path, versions: int) -> None:
        self.versions = versions
        self._path = path
        template = FileMetadataStore((path / "template").as_uri())
        template.format()
        for version in range(1, versions + 1):
            template.put(KEY, value(version), version - 1 or None)

    def copy(self) -> FileMetadataStore:
        path = self._path / "store"
        shutil.rmtree(path, ignore_errors=True)
        # Files never change, so a link is as good as a copy.
        shutil.copytree(self._path / "template", path, copy_function=os.link)
        return FileMetadataStore(path.as_uri())

    @property
    def newest(self) -> VersionedBytes | None:
        return VersionedBytes(value(self.versions), self.versions) if self.versions else None


def value(version: int) -> bytes:
    return b"version %d" % version * 3


def put(store: FileMetadataStore, versions: int) -> int:
    return store.put(KEY, value(versions + 1), versions or None)


def stale_put(store: FileMetadataStore, versions: int) -> None:
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"stale", versions - 1 or None)


def get(store: FileMetadataStore, versions: int) -> VersionedBytes | None:
    return store.get(KEY)


def is_current(store: FileMetadataStore, versions: int) -> bool:
    return store.is_current(KEY, VersionedBytes(value(versions), versions))


def list_all(store: FileMetadataStore, versions: int) -> list[str]:
    return store.list("ledgers")


def delete(store: FileMetadataStore, versions: int) -> None:
    store.delete(KEY)


def with_os(monkeypatch: pytest.MonkeyPatch, call: Callable[[], Any], faults: FaultyOs) -> Any:
    with monkeypatch.context() as patch:
        for module in (directory, posix_calls):
            patch.setattr(module, "os", faults)
        try:
            return call()
        finally:
            faults.close_all()


def calls_of(
    monkeypatch: pytest.MonkeyPatch, record: Record, operation: Operation
) -> list[tuple[str, str]]:
    faults, store = FaultyOs(), record.copy()
    with_os(monkeypatch, lambda: operation(store, record.versions), faults)
    return faults.trace


def crashes(
    monkeypatch: pytest.MonkeyPatch, record: Record, operation: Operation
) -> Iterator[FileMetadataStore]:
    """The store after a crash before each call (so after the last one) and within each write."""
    for number, (call, _) in enumerate(calls_of(monkeypatch, record, operation)):
        for moment in (Moment.BEFORE, Moment.HALF)[: 1 + (call == "write")]:
            faults, store = FaultyOs(), record.copy()
            faults.crash_at(number, moment)
            with pytest.raises(Crash):
                with_os(monkeypatch, lambda: operation(store, record.versions), faults)  # noqa: B023
            yield store


def test_crash_in_put_leaves_the_version_absent_or_whole(
    monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    new = VersionedBytes(value(record.versions + 1), record.versions + 1)
    seen = set()
    for store in crashes(monkeypatch, record, put):
        found = store.get(KEY)
        assert found in (record.newest, new)
        seen.add(found)
        if found is not None:
            assert store.is_current(KEY, found)
        assert store.list("ledgers") == (["1"] if found else [])
        # Others go on, over what was left half done, until it was pruned.
        version = found.version if found else 0
        for later in range(version + 1, version + 18):
            assert store.put(KEY, value(later), later - 1 or None) == later
    assert seen == {record.newest, new}


def test_crash_in_delete_leaves_the_record_whole_or_gone(
    monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    for store in crashes(monkeypatch, record, delete):
        found = store.get(KEY)
        assert found in (record.newest, None)
        store.delete(KEY)
        assert store.get(KEY) is None
        assert store.list("ledgers") == []
        with pytest.raises(MetadataVersionError):
            put(store, record.versions)


def test_crash_in_format_can_be_repeated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The most calls that it makes; more would not crash.
    for number in range(100):
        store, faults = FileMetadataStore((tmp_path / f"{number}").as_uri()), FaultyOs()
        faults.crash_at(number, Moment.BEFORE)
        try:
            with_os(monkeypatch, store.format, faults)
        except Crash:
            if not (tmp_path / f"{number}" / "METADATA_STORE").exists():
                with pytest.raises(InvalidRequestError):
                    store.get(KEY)
                store.format()
            assert store.get(KEY) is None
            continue
        assert number > 5
        return
    raise AssertionError("it never ended")


def answer_or_unknown(
    monkeypatch: pytest.MonkeyPatch,
    operation: Operation,
    store: FileMetadataStore,
    record: Record,
    faults: FaultyOs,
) -> Any:
    try:
        return with_os(monkeypatch, lambda: operation(store, record.versions), faults)
    except OutcomeUnknownError as error:
        if not isinstance(error.__cause__, OSError) or store.uri not in str(error):
            raise
        return OutcomeUnknownError
    except NothingSentError:
        assert store.get(KEY) == record.newest
        return NothingSentError


def check_error(record: Record, operation: Operation, store: FileMetadataStore, call: str) -> None:
    """Wrong answers are worse than none: the right one, or unknown, whatever failed."""
    before, new = record.newest, VersionedBytes(value(record.versions + 1), record.versions + 1)
    found = store.get(KEY)
    if operation is put:
        assert found in (before, new), call
    elif operation is delete:
        assert found in (before, None), call
    else:
        assert found == before, call


@pytest.mark.parametrize("is_done", [False, True], ids=["refused", "answer lost"])
@pytest.mark.parametrize("operation", [put, get, is_current, list_all, delete])
def test_error_is_never_a_wrong_answer(
    monkeypatch: pytest.MonkeyPatch, record: Record, operation: Operation, is_done: bool
) -> None:
    right = operation(record.copy(), record.versions)
    is_read_only = operation not in (put, delete)
    store = record.copy()
    for number, (call, name) in enumerate(calls_of(monkeypatch, record, operation)):
        if is_done and call in ("open", "scandir"):
            continue  # the lost answer is a descriptor: the same as a refusal
        for error in ERRORS[:1] if record.versions > 2 or is_done else ERRORS:
            if not is_read_only:
                store = record.copy()
            faults = AnswerLosingOs()
            (faults.fail_after if is_done else faults.fail_at)(number, error)
            answer = answer_or_unknown(monkeypatch, operation, store, record, faults)
            assert answer in (right, OutcomeUnknownError, NothingSentError), (call, name)
            check_error(record, operation, store, call)


def test_error_in_a_lost_put_is_never_success(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = Record(tmp_path, 3)
    store = record.copy()
    for number in range(len(calls_of(monkeypatch, record, stale_put))):
        faults = FaultyOs()
        faults.fail_at(number, errno.EIO)
        with pytest.raises(OutcomeUnknownError):
            with_os(monkeypatch, lambda: stale_put(store, 3), faults)
        assert store.get(KEY) == record.newest


@pytest.mark.parametrize("error", [errno.EEXIST, errno.EIO, errno.ENOENT])
def test_link_that_was_done_and_reported_as_failed_is_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: int
) -> None:
    record = Record(tmp_path, 3)
    links = [
        number
        for number, (call, _) in enumerate(calls_of(monkeypatch, record, put))
        if call == "link"
    ]
    faults, store = AnswerLosingOs(), record.copy()
    faults.fail_after(links[0], error)
    assert with_os(monkeypatch, lambda: put(store, 3), faults) == 4
    assert store.get(KEY) == VersionedBytes(value(4), 4)


def test_failed_fsync_is_never_success(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    record = Record(tmp_path, 0)
    trace = calls_of(monkeypatch, record, put)
    syncs = [number for number, (call, _) in enumerate(trace) if call == "fsync"]
    assert len(syncs) == 4
    for number in syncs:
        faults, store = FaultyOs(), record.copy()
        faults.fail_at(number, errno.EIO)
        with pytest.raises(OutcomeUnknownError):
            with_os(monkeypatch, lambda: put(store, 0), faults)  # noqa: B023


def changes(trace: list[tuple[str, str]]) -> list[str]:
    """What a power cut could undo or keep, in order."""
    seen = [
        f"{call} {'temporary' if name.startswith('.tmp-') else name}"
        for call, name in trace
        if call in ("mkdir", "write", "fsync", "link", "unlink", "rmdir")
    ]
    return [change for change in seen if change != "unlink temporary"]


def test_creation_is_durable_from_the_root_down(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert changes(calls_of(monkeypatch, Record(tmp_path, 0), put)) == [
        "mkdir ledgers",
        "fsync .",
        "mkdir 1",
        "fsync ledgers",
        "write temporary",
        "fsync temporary",
        "link temporary",
        "fsync ledgers/1",
    ]


def test_mark_is_durable_before_a_version_goes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = changes(calls_of(monkeypatch, Record(tmp_path, 31), put))
    version = ["write temporary", "fsync temporary", "link temporary", "fsync ledgers/1"]
    assert trace == 2 * version + [f"unlink {KEY}/{number:016x}" for number in range(1, 16)]


def test_get_makes_durable_what_it_gives_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert changes(calls_of(monkeypatch, Record(tmp_path, 2), get)) == ["fsync ledgers/1"]


@pytest.mark.parametrize("error", [errno.EACCES, errno.EMFILE, errno.ENFILE])
@pytest.mark.parametrize("operation", [put, get, is_current, list_all, delete])
def test_what_could_not_even_be_asked_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, operation: Operation, error: int
) -> None:
    """Where a name may have been made or removed before, the outcome is unknown as ever."""
    record = Record(tmp_path, 2)
    calls = [call for call, _ in calls_of(monkeypatch, record, operation)]
    effects = [number for number, call in enumerate(calls) if call in ("link", "unlink", "rmdir")]
    first = effects[0] if effects else len(calls)
    for number, call in enumerate(calls):
        if call not in ("open", "stat", "scandir"):
            continue
        store, faults = record.copy(), FaultyOs()
        faults.fail_at(number, error)
        told = ""
        try:
            with_os(monkeypatch, lambda: operation(store, record.versions), faults)  # noqa: B023
        except (OutcomeUnknownError, NothingSentError) as raised:
            assert isinstance(raised, NothingSentError) is (number < first), call  # noqa: PT017
            told = str(raised)
        assert ("; nothing was sent; " in told) is (bool(told) and number < first)
        assert "\n" not in told
