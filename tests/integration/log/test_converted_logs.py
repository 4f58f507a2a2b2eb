"""A log that is made unbounded, or chained again, while others write to it and read it."""

import threading

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password
from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataVersionError,
    UnauthorizedError,
)
from bkspark.log import log_handle
from bkspark.log.log_handle import LogHandle
from tests.integration.log_scenes import NAME, SILENT
from tests.integration.rig import Rig
from tests.integration.stream_driver import Driver, expected, settled_rows, the_log


def add(log: LogHandle, *values: bytes) -> list[int]:
    with log.writer() as writer:
        return [writer.append(value) for value in values]


def values(log: LogHandle) -> list[bytes]:
    return [entry.value for entry in log.read()]


def test_what_is_there_stays_and_offsets_go_on(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    add(log, b"a", b"b")
    before = log.record.listed_ids
    for unbounded in (True, False):
        assert log.convert(unbounded=unbounded)
        assert log.record.is_unbounded == unbounded
        assert log.record.listed_ids[: len(before)] == before
        assert add(log, b"c") == [2 + (not unbounded)]
    assert values(log) == [b"a", b"b", b"c", b"c"]


def test_its_writer_is_fenced_and_opens_it_again(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    writer = log.writer(settings=SILENT)
    writer.append(b"a")
    assert log.convert(unbounded=True)
    with pytest.raises(LedgerFencedError):
        writer.append(b"late")
    writer.release()
    assert add(log, b"b") == [1]


def test_one_that_is_so_already_is_left_alone(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME)
    with log.writer() as writer:
        assert not log.convert(unbounded=False)
        writer.append(b"a")
    assert values(log) == [b"a"]


def test_who_follows_it_goes_on(keeper: BookKeeper) -> None:
    log, found, is_over = keeper.create_log(NAME), list[bytes](), threading.Event()

    def follow() -> None:
        for entry in log.follow():
            found.append(entry.value)
            if entry.value == b"last":
                is_over.set()
                return

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    add(log, b"a")
    log.convert(unbounded=True)
    add(log, b"b")
    log.convert(unbounded=False)
    add(log, b"last")
    assert is_over.wait(60)
    assert found == [b"a", b"b", b"last"]


def test_a_query_goes_on_in_the_same_run_and_in_the_next(memory_rig: Rig) -> None:
    driver = Driver(memory_rig)
    driver.run(0)
    with BookKeeper(memory_rig.uri) as keeper:
        log = keeper.open_log(memory_rig.log_name)
        planned = driver.planned(1)
        assert log.convert(unbounded=True)
        assert driver.commit(planned)
        assert driver.run(1, 2) == [False, True]
        assert log.convert(unbounded=False)
        assert Driver(memory_rig).run(2, 3) == [False, True]
    assert settled_rows(memory_rig) == expected(0, 1, 2, 3)
    assert not the_log(memory_rig).is_unbounded


def test_what_is_sealed_overwritten_meanwhile_or_no_kind_is_refused(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = keeper.create_log(NAME)
    with pytest.raises(InvalidRequestError, match="give True or False"):
        log.convert(unbounded="no")  # type: ignore[arg-type]
    real = log_handle.update_with_closed_tail

    def after_a_deletion(*args: object) -> object:
        keeper.delete_log(NAME)
        keeper.create_log(NAME)
        return real(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(log_handle, "update_with_closed_tail", after_a_deletion)
        with pytest.raises(MetadataVersionError):
            log.convert(unbounded=True)
    assert not log.record.is_unbounded
    log.seal()
    for unbounded in (True, False):
        with pytest.raises(LedgerClosedError, match="sealed"):
            log.convert(unbounded=unbounded)


def test_a_wrong_password_fences_nobody(keeper: BookKeeper) -> None:
    log = keeper.create_log(NAME, digest_type="MAC", password="right")
    wrong = LogHandle(keeper._cluster, NAME, Password(literal="wrong"))
    with log.writer() as writer:
        with pytest.raises(UnauthorizedError):
            wrong.convert(unbounded=True)
        writer.append(b"a")
    with pytest.raises(UnauthorizedError):  # also where there is nobody to fence
        wrong.convert(unbounded=True)
    assert not log.record.is_unbounded
