"""The front door, ``BookKeeper``: what it refuses in one line of ours, and what it shows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bkspark
from bkspark import BookKeeper, LogHandle
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    LedgerClosedError,
    MetadataVersionError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    UnauthorizedError,
)
from bkspark.ledger.handles.settings import ReaderSettings, WriterSettings
from bkspark.log.batch.preparing import prepare as prepare_batch
from bkspark.log.batch.target import BlockSettings, WriteRequest
from bkspark.log.streams.micro_batch import prepare as prepare_stream
from bkspark.protocol.bookies import choose
from bkspark.protocol.bounds import SECONDS_MAX
from bkspark.protocol.log.contents import Retention


@pytest.fixture
def keeper(small_cluster: Any) -> Iterator[BookKeeper]:
    with BookKeeper(small_cluster.uri) as keeper:
        yield keeper


@pytest.fixture
def log(keeper: BookKeeper) -> LogHandle:
    """Five entries."""
    log = keeper.create_log("wal")
    with log.writer() as writer:
        for number in range(5):
            writer.append(b"%d" % number)
    return log


def refusal(call: Callable[[], object]) -> str:
    """What ``call`` is refused with: one line that has a hint."""
    with pytest.raises(InvalidRequestError) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


# --- which cluster -------------------------------------------------------------------------------


def test_without_a_uri_the_environment_names_the_cluster(
    small_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
    for keeper in (BookKeeper(), BookKeeper(None)):
        with keeper:
            assert len(keeper.list_bookies()) == 6


def test_a_cluster_must_be_named_by_a_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BKSPARK_METADATA_URI", raising=False)
    for given in (None, ""):
        assert "BKSPARK_METADATA_URI" in refusal(lambda given=given: BookKeeper(given))
    for strange in (b"file:///x", tmp_path, 7):
        text = refusal(lambda strange=strange: BookKeeper(strange))
        assert text.startswith("the metadata URI must be a text")


def test_recovery_by_spark_is_told_which_cluster_and_which_ledger(
    small_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BKSPARK_METADATA_URI", raising=False)
    recover: Any = bkspark.recover_ledger
    assert "no cluster is named" in refusal(lambda: recover(None, None, 0))
    assert "a ledger id must be" in refusal(lambda: recover(None, small_cluster.uri, "a"))


def test_a_bookie_id_is_text(keeper: BookKeeper) -> None:
    for strange in (None, 7, b"bookie-1"):
        text = refusal(lambda strange=strange: keeper.declare_bookie_lost(strange))
        assert text.startswith("bookie id ")


def test_a_closed_one_is_not_used(small_cluster: Any) -> None:
    keeper = BookKeeper(small_cluster.uri)
    keeper.create_log("wal")
    keeper.close()
    keeper.close()
    for call in (
        keeper.create_ledger,
        keeper.list_ledgers,
        keeper.list_bookies,
        lambda: keeper.open_log("wal"),
        lambda: keeper.create_log("other"),
        lambda: keeper.delete_log("wal"),
    ):
        assert refusal(call).startswith("this BookKeeper is closed; ")
    assert repr(keeper) == f"BookKeeper('{small_cluster.uri}', closed)"


# --- passwords -----------------------------------------------------------------------------------


def test_a_password_that_would_protect_nothing_is_refused(
    keeper: BookKeeper, small_cluster: Any
) -> None:
    for create in (
        lambda: keeper.create_ledger(password="sesame"),
        lambda: keeper.create_ledger_adv(password="sesame"),
        lambda: keeper.create_log("wal", password="sesame"),
    ):
        assert refusal(create).startswith("a password needs digestType MAC; ")
    assert keeper.list_ledgers() == []
    assert keeper.list_logs() == []


def test_nothing_is_written_with_a_password_that_protects_nothing(
    keeper: BookKeeper, small_cluster: Any, numbers: Callable[[int, int], pa.Table]
) -> None:
    small_cluster.append("rows", [numbers(0, 3)])
    with keeper.create_log("wal").writer() as writer:
        writer.append(b"x")
    before = keeper.list_ledgers()
    assert refusal(keeper.open_log("wal", password="sesame").writer).startswith(
        "log 'wal' has digestType CRC32C, which no password protects; "
    )
    for name in ("rows", "fresh"):
        request = WriteRequest(
            metadata_uri=small_cluster.uri,
            log_name=name,
            schema=numbers(0, 1).schema,
            quorum=None,
            digest_type=None,
            password=Password(literal="sesame"),
            blocks=BlockSettings(rows_per_block=8, target_bytes=2**20, compression="none"),
        )
        for prepare in (prepare_batch, prepare_stream):
            refusal(lambda prepare=prepare, request=request: prepare(request))
    assert keeper.list_ledgers() == before
    assert keeper.list_logs() == ["rows", "wal"]


def test_reading_without_need_of_the_password_is_harmless(
    keeper: BookKeeper, log: LogHandle
) -> None:
    assert [e.value for e in keeper.open_log("wal", password="sesame").read(4)] == [b"4"]
    [ledger_id] = keeper.list_ledgers()
    assert keeper.open_ledger(ledger_id, password="sesame").last_add_confirmed == 4


def test_a_password_is_text(keeper: BookKeeper) -> None:
    for call in (
        lambda: keeper.create_ledger(digest_type="MAC", password=b"sesame"),
        lambda: keeper.create_log("wal", digest_type="MAC", password=7),
        lambda: keeper.open_log("wal", password=b"sesame"),
        lambda: keeper.recover_ledger(0, password=b"sesame"),
    ):
        assert "sesame" not in refusal(call)


def test_the_hint_of_a_wrong_password_fits_wherever_it_is_given(keeper: BookKeeper) -> None:
    with keeper.create_ledger(digest_type="MAC", password="sesame") as handle:
        handle.append(b"x")
    for given in (None, "wrong"):
        with pytest.raises(UnauthorizedError) as caught:
            keeper.open_ledger(handle.ledger_id, password=given)
        for way in ("password=", "passwordFile", "passwordEnv", "--password-file"):
            assert way in caught.value.hint


# --- values that cannot be meant -----------------------------------------------------------------


@pytest.mark.parametrize("strange", ["a", None, 1.5, b"1", [1], True])
def test_a_ledger_id_is_a_whole_number(keeper: BookKeeper, strange: object) -> None:
    for call in (keeper.open_ledger, keeper.recover_ledger, keeper.delete_ledger):
        text = refusal(lambda call=call: call(strange))
        assert text.startswith("a ledger id must be a whole number, not ")


def test_a_number_of_numpy_is_one(keeper: BookKeeper, log: LogHandle) -> None:
    assert keeper.open_ledger(np.int64(0)).last_add_confirmed == 4
    assert [entry.offset for entry in log.read(np.int64(3))] == [3, 4]


@pytest.mark.parametrize("strange", [None, 7, b"wal", ["wal"], ""])
def test_a_log_name_is_text(keeper: BookKeeper, log: LogHandle, strange: object) -> None:
    for call in (keeper.create_log, keeper.open_log, keeper.delete_log, log.cursor):
        text = refusal(lambda call=call: call(strange))
        assert "is not allowed; use 1 to 128 ASCII letters" in text


@pytest.mark.parametrize("name", ["ensemble_size", "write_quorum_size", "ack_quorum_size"])
@pytest.mark.parametrize("strange", ["3", None, 2.5, True])
def test_quorum_sizes_are_whole_numbers(keeper: BookKeeper, name: str, strange: object) -> None:
    for create in (keeper.create_ledger, lambda **sizes: keeper.create_log("x", **sizes)):
        text = refusal(lambda create=create: create(**{name: strange}))
        assert text.startswith(f"{name} must be a whole number, not ")


@pytest.mark.parametrize("strange", ["a", 1.5, b"1", float("inf"), True])
def test_offsets_and_entry_ids_are_whole_numbers(
    keeper: BookKeeper, log: LogHandle, strange: object
) -> None:
    reader = keeper.open_ledger(0)
    for call in (
        lambda: log.read(strange),
        lambda: log.read(0, strange),
        lambda: log.read_arrow(strange),
        lambda: next(log.follow(strange, timeout=0)),
        lambda: log.truncate(strange),
        lambda: log.cursor("mail", start=strange),
        lambda: log.cursor("mail").advance(strange),
        lambda: list(reader.read(strange)),
        lambda: list(reader.read(0, strange)),
        lambda: list(reader.read_unconfirmed(0, strange)),
        lambda: reader.read_arrow(strange),
        lambda: log.keep(max_bytes=strange),
        lambda: log.wait_for(strange, timeout=0),
        lambda: log.writer(roll_bytes=strange),
        lambda: log.writer(roll_entries=strange),
    ):
        assert "must be a whole number, not " in refusal(call)


@pytest.mark.parametrize("strange", ["a", -1, float("nan"), float("inf"), b"1", True])
def test_times_are_numbers_of_seconds(log: LogHandle, strange: object) -> None:
    for name, call in (
        ("max_seconds", lambda: log.keep(max_seconds=strange)),
        ("roll_seconds", lambda: log.writer(roll_seconds=strange)),
        ("timeout", lambda: next(log.follow(timeout=strange))),
        ("timeout", lambda: log.wait_for(0, timeout=strange)),
    ):
        assert refusal(call).startswith(f"{name} must be a number of seconds ")
    assert log.record.retention.milliseconds is None
    assert log.record.tail == ()


@pytest.mark.parametrize("vast", [2**63 - 1, 2**63, 10**30, 10**400, 1e17, 1e308])
def test_a_time_or_a_number_that_is_too_large_is_for_ever(
    keeper: BookKeeper, log: LogHandle, vast: float
) -> None:
    log.keep(max_bytes=1, max_seconds=1)
    log.keep(max_seconds=vast)
    assert log.record.retention == Retention()
    if isinstance(vast, int):
        log.keep(max_bytes=vast)
        assert log.record.retention.byte_count in (None, vast)
        with log.writer(roll_bytes=vast, roll_entries=vast, roll_seconds=vast) as writer:
            writer.append(b"x")
    assert log.wait_for(0, timeout=vast)
    assert len(list(log.read())) >= 5
    keeper.delete_log("wal")


@pytest.mark.parametrize("vast", [2**63, -(2**63) - 1, 10**30, 10**400])
def test_a_number_that_no_record_holds_is_refused(
    keeper: BookKeeper, log: LogHandle, vast: int
) -> None:
    cursor = log.cursor("reader")
    for call in (
        lambda: keeper.open_ledger(vast),
        lambda: log.truncate(vast),
        lambda: log.cursor("other", start=vast),
        lambda: cursor.advance(vast),
        lambda: list(log.read(vast)),
        lambda: keeper.create_ledger(ensemble_size=vast),
    ):
        refusal(call)
    assert [one.name for one in log.cursors] == ["reader"]
    assert len(list(log.read())) == 5


def test_settings_of_a_writer_that_are_vast_are_for_ever(log: LogHandle) -> None:
    names = ("explicit_lac_ms", "add_entry_timeout_seconds", "add_entry_quorum_timeout_seconds")
    settings = WriterSettings(**dict.fromkeys(names, 10**30))
    with log.writer(settings=settings) as writer:
        assert writer.append(b"x") == 5
    assert ReaderSettings(read_timeout_seconds=1e17).read_timeout_seconds == SECONDS_MAX


@pytest.mark.parametrize("settings", [{"a": "x" * 2**19}, {"x" * 2**19: "a"}, {"a": "ü" * 2**17}])
def test_settings_that_leave_a_record_no_room_are_refused(
    keeper: BookKeeper, settings: dict[str, str]
) -> None:
    before = keeper.list_ledgers()
    assert "524,288" in refusal(lambda: keeper.create_ledger(custom_metadata=settings))
    wide = pa.schema([("x" * 2**19, pa.int64())])
    assert "524,288" in refusal(lambda: keeper.create_ledger(schema=wide))
    assert "524,288" in refusal(lambda: keeper.create_log("wide", schema=wide))
    assert keeper.list_ledgers() == before
    assert keeper.list_logs() == []


def test_a_limit_for_rolling_is_above_0(log: LogHandle) -> None:
    for name in ("roll_bytes", "roll_entries", "roll_seconds"):
        assert refusal(lambda name=name: log.writer(**{name: 0})).startswith(f"{name} ")
    with log.writer(roll_bytes=np.int64(9), roll_entries=9, roll_seconds=0.5) as writer:
        assert writer.append(b"x") == 5


def test_only_what_a_writer_says_is_undecided_can_be_resolved(log: LogHandle) -> None:
    for strange in (None, 3, range(2)):
        text = refusal(lambda strange=strange: log.resolve_outcome(strange))
        assert text.startswith("resolve_outcome takes the value of writer.undecided, not ")


def test_what_is_below_0_is_refused(log: LogHandle) -> None:
    assert refusal(lambda: log.truncate(-1)).startswith(
        "before_offset cannot be below 0, and is -1"
    )
    assert refusal(lambda: log.keep(max_bytes=-1)).startswith("max_bytes cannot be below 0")
    for call in (
        lambda: log.read(-1),
        lambda: log.read_arrow(-1),
        lambda: next(log.follow(-1)),
        lambda: log.cursor("mail", start=-1),
    ):
        assert refusal(call).startswith("start cannot be below 0, and is -1")
    assert refusal(lambda: log.read(0, -1)).startswith("end cannot be below 0, and is -1")
    assert log.first_offset == 0


def test_a_refusal_says_what_to_do_next(keeper: BookKeeper, log: LogHandle) -> None:
    with keeper.create_ledger() as handle:
        pass
    with pytest.raises(LedgerClosedError) as closed:
        handle.append(b"x")
    assert "write to a new ledger" in closed.value.hint
    with pytest.raises(NotEnoughBookiesError) as few:
        keeper.create_ledger(ensemble_size=7, strict=True)
    assert str(few.value).startswith("7 bookies are needed but only 6 can be used; add bookies (`b")
    with pytest.raises(NotEnoughBookiesError, match="1 bookie is needed but only 0 can be used"):
        choose([], 1, draw=lambda: 0.0)


# --- logs as a whole, and what handles show ------------------------------------------------------


def test_logs_are_listed_and_deleted(keeper: BookKeeper, log: LogHandle) -> None:
    keeper.create_log("other")
    assert keeper.list_logs() == ["other", "wal"]
    [ledger_id] = keeper.list_ledgers()
    assert keeper.delete_log("wal") == [ledger_id]
    assert keeper.list_logs() == ["other"]
    assert keeper.list_ledgers() == []
    with pytest.raises(NoSuchLedgerError):
        keeper.delete_log("wal")


def test_a_deleted_cursor_says_so(keeper: BookKeeper, log: LogHandle) -> None:
    cursor = log.cursor("mail", start=2)
    log.cursor("mail").delete()
    with pytest.raises(NoSuchLedgerError, match="cursor mail of log wal was deleted") as caught:
        cursor.advance(3)
    assert "open it again" not in str(caught.value)
    assert log.cursors == []
    log.cursor("mail").advance(3)
    with pytest.raises(MetadataVersionError, match="another client moved"):
        cursor.advance(4)


def test_handles_say_what_they_are(keeper: BookKeeper, small_cluster: Any) -> None:
    assert repr(keeper) == f"BookKeeper('{small_cluster.uri}')"
    log = keeper.create_log("wal")
    assert repr(log) == "LogHandle('wal')"
    with log.writer() as writer:
        writer.append(b"x")
        assert repr(writer) == f"LogWriter('wal', ledger {writer.ledger_id})"
    assert repr(log.cursor("mail")) == "Cursor('mail' of log 'wal', offset 0)"
    with keeper.create_ledger() as handle:
        handle.append(b"x")
        assert repr(handle) == f"WriteHandle(ledger {handle.ledger_id}, last_add_confirmed 0)"
        tail = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert repr(tail).startswith(f"ReadHandle(ledger {handle.ledger_id}, OPEN, ")
    reader = keeper.open_ledger(handle.ledger_id)
    assert repr(reader) == f"ReadHandle(ledger {handle.ledger_id}, CLOSED, last_add_confirmed 0)"


def test_nothing_secret_is_shown(keeper: BookKeeper) -> None:
    log = keeper.create_log("wal", digest_type="MAC", password="sesame")
    with log.writer() as writer, pytest.raises(BookKeeperError) as caught:
        keeper.open_log("wal", password="wrong")
    shown = (keeper, log, writer, log.cursor("mail"), caught.value)
    assert not any("sesame" in repr(one) for one in shown)


# --- what a call asks for ------------------------------------------------------------------------


def test_a_deletion_of_a_ledger_looks_at_no_other_log(
    keeper: BookKeeper, log: LogHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = keeper.create_ledger()
    handle.close()
    monkeypatch.setattr(Cluster, "log_names", lambda _cluster: pytest.fail("all logs are listed"))
    keeper.delete_ledger(handle.ledger_id)
    assert handle.ledger_id not in keeper.list_ledgers()
    with pytest.raises(InvalidRequestError, match="is part of log"):
        keeper.delete_ledger(log.ledgers[0].ledger_id)
