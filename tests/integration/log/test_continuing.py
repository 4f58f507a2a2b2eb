"""A log's tail that is gone on with in its next term, by whoever writes next."""

from typing import Any

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    InvalidTermError,
    LedgerFencedError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema
from bkspark.ledger import deleting
from bkspark.ledger.creating import STREAM, WRITER
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.ledger.recovery import recover
from bkspark.log.creating import create_log_ledger
from bkspark.log.log_handle import LogHandle
from bkspark.log.recovering import close_tail
from bkspark.log.tail import INLINE, LogTail, OpenTail, RowsToWrite
from bkspark.protocol.ledger import metadata
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.stream_run import StreamRun
from tests.integration.log_scenes import NAME
from tests.log_with import log_with

NOBODY = Password()


def begun(keeper: BookKeeper, *, goes_on: bool = True, operation: str = WRITER) -> OpenTail:
    """A log whose tail has its first writer."""
    cluster = keeper._cluster
    log = keeper.create_log(NAME).record
    made = create_log_ledger(cluster, log, NOBODY, operation=operation, goes_on=goes_on)
    listed = cluster.logs.update(NAME, lambda record: (record or log).with_tail(made.seen.value))
    return OpenTail(made.seen, listed, made.begun)


def continued(cluster: Cluster, run: StreamRun | None = None) -> OpenTail:
    found = LogTail(cluster, NAME, NOBODY, run=run).continue_ledger()
    assert found is not None
    return found


def taking(cluster: Cluster, schema: pa.Schema | None) -> LogTail:
    rows = INLINE if schema is None else RowsToWrite(arrow_schema.encode(schema))
    return LogTail(cluster, NAME, NOBODY, rows)


def writing(cluster: Cluster, tail: OpenTail) -> WriteHandle:
    return WriteHandle(
        cluster,
        tail.ledger,
        make_digester(tail.ledger.value.settings.digest, NOBODY),
        begun=tail.begun,
        standing=tail.standing,
        unjoined=tail.unjoined,
    )


def test_the_next_writer_goes_on_behind_what_was_acknowledged(keeper: BookKeeper) -> None:
    cluster, tail = keeper._cluster, begun(keeper)
    first = writing(cluster, tail)
    first.append_many([b"a", b"b"])
    found = continued(cluster)
    assert (found.log.value.tail, found.standing.last_entry_id) == (tail.log.value.tail, 1)
    with pytest.raises(InvalidTermError):
        first.append(b"late")
    with writing(cluster, found) as second:
        assert second.append(b"c") == 2
    closed = close_tail(cluster, NAME, NOBODY).value
    assert closed.end_offset == 3


def test_a_tail_with_one_writer_is_not_gone_on_with(keeper: BookKeeper) -> None:
    tail = begun(keeper, goes_on=False)
    assert LogTail(keeper._cluster, NAME, NOBODY).continue_ledger() is None
    assert keeper._cluster.ledger(tail.ledger.value.ledger_id).value == tail.ledger.value


def test_a_tail_with_other_columns_is_left_alone(keeper: BookKeeper) -> None:
    """And one whose rows are inline, where they are to be in entry logs."""
    cluster, other = keeper._cluster, pa.schema([("another", pa.int64())])
    for operation, taken in ((STREAM, VALUE_SCHEMA), (WRITER, None)):
        tail = begun(keeper, operation=operation)
        for schema in {other, VALUE_SCHEMA, None} - {taken}:
            assert taking(cluster, schema).continue_ledger() is None
        assert cluster.ledger(tail.ledger.value.ledger_id).value == tail.ledger.value
        assert taking(cluster, taken).continue_ledger() is not None
        close_tail(cluster, NAME, NOBODY)
        keeper.delete_log(NAME)


def test_neither_is_one_that_somebody_has_closed(keeper: BookKeeper) -> None:
    begun(keeper)
    close_tail(keeper._cluster, NAME, NOBODY)
    assert LogTail(keeper._cluster, NAME, NOBODY).continue_ledger() is None
    with pytest.raises(NoSuchLedgerError):
        LogTail(keeper._cluster, "another", NOBODY).continue_ledger()


def test_an_older_run_fences_nobody(keeper: BookKeeper) -> None:
    cluster, (old, new) = keeper._cluster, (StreamRun("q", "r1"), StreamRun("q", "r2"))
    begun(keeper)
    continued(cluster, old)
    found = continued(cluster, new)
    with pytest.raises(LedgerFencedError, match="newer run"):
        LogTail(cluster, NAME, NOBODY, run=old).continue_ledger()
    assert cluster.ledgers.is_current(str(found.ledger.value.ledger_id), found.ledger)


def test_who_opens_the_log_in_between_has_it(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was rolled on, or opened anew, between the takeover and the second look at the list."""
    cluster, real = keeper._cluster, recover.take_over
    tail = begun(keeper)

    def overtaken(*args: object) -> object:
        taken = real(*args)  # type: ignore[arg-type]
        LogTail(cluster, NAME, NOBODY).open()
        return taken

    monkeypatch.setattr(recover, "take_over", overtaken)
    assert LogTail(cluster, NAME, NOBODY).continue_ledger() is None
    ledger = cluster.ledger(tail.ledger.value.ledger_id).value
    assert ledger.state is LedgerState.CLOSED


def test_a_run_that_was_overtaken_before_it_fenced_does_not_write(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is registered, sleeps, and a newer run has the tail when it wakes (RB-45)."""
    cluster, (old, new) = keeper._cluster, (StreamRun("q", "r1"), StreamRun("q", "r2"))
    begun(keeper)
    real, newer = recover.take_over, list[OpenTail]()

    def slept(*args: object) -> object:
        monkeypatch.setattr(recover, "take_over", real)
        newer.append(continued(cluster, new))
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(recover, "take_over", slept)
    with pytest.raises(LedgerFencedError, match="newer run"):
        LogTail(cluster, NAME, NOBODY, run=old).continue_ledger()
    with writing(cluster, continued(cluster, new)) as writer:
        assert writer.append(b"a") == 0
    newer[0].begun.close()


# --- records stay short --------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """A ledger has room for so few fragments."""
    monkeypatch.setattr(metadata, "FRAGMENTS_MAX", 4)
    return 4


def numbered(log: LogHandle) -> list[int]:
    return [int(entry.value) for entry in log.read()]


def test_a_ledger_of_many_fragments_has_another_one_behind_it(keeper: BookKeeper, few: int) -> None:
    log = keeper.create_log(NAME, unbounded=True)
    for number in range(3 * few):
        with log.writer() as writer:
            assert writer.append(b"%d" % number) == number
    records = [keeper._cluster.ledger(one).value for one in log.record.listed_ids]
    assert [len(one.fragments) for one in records] == [few] * 3
    assert [one.goes_on for one in records] == [True] * 3
    assert [one.state for one in records[:-1]] == [LedgerState.CLOSED] * 2
    assert numbered(log) == list(range(3 * few))


def test_a_writer_who_rolls_goes_on_in_another_ledger_then(keeper: BookKeeper, few: int) -> None:
    log = keeper.create_log(NAME, unbounded=True)
    with log.writer() as writer:
        for number in range(3 * few):
            writer.append(b"%d" % number)
            writer.roll()
    records = [keeper._cluster.ledger(one).value for one in log.record.listed_ids]
    assert max(len(one.fragments) for one in records) == few
    assert all(one.goes_on for one in records)
    assert len(log.record.tail) == 1
    assert numbered(log) == list(range(3 * few))


def test_a_log_that_is_being_deleted_takes_nothing_any_more(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion has fenced its writer, somebody goes on in between, and then the log is gone.

    Who deletes it dies there, so the ledger stays as it is.
    """
    cluster, real = keeper._cluster, deleting._fence
    begun(keeper).begun.close()
    writers: list[WriteHandle] = []

    def overtaken(*args: Any) -> None:
        real(*args)
        if not writers:
            writers.append(writing(cluster, continued(cluster)))

    def dies(*_: object) -> bool:
        raise OutcomeUnknownError("killed")

    monkeypatch.setattr(deleting, "_fence", overtaken)
    monkeypatch.setattr(deleting, "make_tombstone", dies)
    with pytest.raises(OutcomeUnknownError, match="killed"):
        keeper.delete_log(NAME)
    with pytest.raises(NoSuchLedgerError):
        cluster.log(NAME)
    with pytest.raises(LedgerFencedError):
        writers[0].append(b"into no log")


def test_what_changes_of_the_log_meanwhile_and_not_at_its_end_is_kept(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, rivals = keeper._cluster, list[str]()
    begun(keeper).begun.close()
    real = cluster.logs.replace

    def raced(*args: Any) -> Any:
        if not rivals:
            rivals.append("one")
            cluster.logs.update(NAME, lambda log: log_with(log, retention_bytes=10**9))  # type: ignore[type-var]
        return real(*args)

    monkeypatch.setattr(cluster.logs, "replace", raced)
    with writing(cluster, continued(cluster)) as writer:
        assert writer.append(b"a") == 0
    assert (cluster.log(NAME).value.retention.byte_count, rivals) == (10**9, ["one"])
