"""DataFrame appends into a log that is one ledger, several at once too."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch.commit import CommitResult
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.recovering import close_tail
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams import appending
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.record import Transaction
from bkspark.storage import host_turns
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, settled_rows, tail_of, the_log
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at, no_fault
from tests.thorough import always


@pytest.fixture
def rig(memory_rig: Rig) -> Rig:
    return memory_rig


def planned(rig: Rig, first: int, **options: Any) -> tuple[Any, Any, list[Any]]:
    """An append of ten rows, behind its tasks."""
    target, staging = appending.prepare(rig.request(is_unbounded=True, **options))
    return target, staging, rig.tasks(target, partitions_of(3, 7, first=first))


def append(rig: Rig, first: int, **options: Any) -> CommitResult:
    return appending.commit(*planned(rig, first, **options))


def rows(*firsts: int) -> list[Any]:
    return [row for first in firsts for row in flat(partitions_of(3, 7, first=first))]


def ledger_count(rig: Rig) -> int:
    with Cluster(rig.uri) as cluster:
        return len(cluster.ledger_ids())


def test_appends_share_the_logs_ledger(rig: Rig) -> None:
    for first in range(0, 50, 10):
        assert append(rig, first).row_count == 10
    assert (ledger_count(rig), tail_of(rig).term, tail_of(rig).state) == (1, 5, LedgerState.OPEN)
    assert settled_rows(rig) == rows(*range(0, 50, 10))


def test_a_transaction_is_there_once(rig: Rig) -> None:
    done = Transaction("app", 4)
    assert append(rig, 0, transaction=done).row_count == 10
    late = planned(rig, 0, transaction=done)
    append(rig, 10)
    assert appending.commit(*late).row_count == 0
    assert append(rig, 20, transaction=Transaction("app", 5)).row_count == 10
    assert settled_rows(rig) == rows(0, 10, 20)
    assert append(rig, 0, transaction=done).row_count == 0


@pytest.mark.parametrize(("metadata", "takes_turns"), [("file", True), ("memory", False)])
def test_appends_to_metadata_on_files_take_turns(
    make_rig: Callable[..., Rig],
    monkeypatch: pytest.MonkeyPatch,
    metadata: str,
    takes_turns: bool,
) -> None:
    rig = make_rig(kind="memory", metadata=metadata, bookie_count=3)
    inner, taken = appending._committed, []
    monkeypatch.setattr(host_turns, "WAIT_SECONDS_MAX", 0.0)

    def noting(request: Any, *rest: Any) -> CommitResult:
        with host_turns.host_turn(f"{request.metadata_uri} {request.log_name}") as is_free:
            taken.append(not is_free)
        return inner(request, *rest)

    monkeypatch.setattr(appending, "_committed", noting)
    append(rig, 0)
    assert taken == [takes_turns]


def test_appends_at_once_are_all_there_once(rig: Rig) -> None:
    append(rig, 0)
    ready = [planned(rig, first) for first in range(10, 50, 10)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda one: appending.commit(*one).row_count, ready))
    assert done == [10] * 4
    assert ledger_count(rig) == 1
    found = settled_rows(rig)
    assert sorted(found) == sorted(rows(0, 10, 20, 30, 40))
    for first in range(0, 50, 10):
        begin = found.index(rows(first)[0])
        assert found[begin : begin + 10] == rows(first)


def test_first_appends_at_once_make_no_more_ledgers_than_they_are(rig: Rig) -> None:
    ready = [planned(rig, first) for first in (0, 10, 20)]
    assert [appending.commit(*one).row_count for one in ready] == [10] * 3
    assert sorted(settled_rows(rig)) == sorted(rows(0, 10, 20))


def test_an_append_without_rows_makes_the_log(rig: Rig) -> None:
    for _ in range(2):
        target, staging = appending.prepare(rig.request(is_unbounded=True))
        assert appending.commit(target, staging, rig.tasks(target, [[], []])).row_count == 0
    assert (ledger_count(rig), settled_rows(rig)) == (1, [])


def test_an_overwrite_begins_anew_and_a_sealed_log_takes_nothing(rig: Rig) -> None:
    append(rig, 0)
    assert append(rig, 10, is_overwrite=True).row_count == 10
    append(rig, 20)
    assert settled_rows(rig) == rows(10, 20)
    with BookKeeper(rig.uri) as keeper:
        keeper.open_log(rig.log_name).seal()
    with pytest.raises(LedgerClosedError, match="sealed"):
        append(rig, 30)


def test_new_columns_begin_a_ledger(rig: Rig) -> None:
    append(rig, 0)
    wider = SCHEMA.append(pa.field("more", pa.int64()))
    batch = pa.record_batch(
        [
            pa.array([1], kind.type)
            if pa.types.is_integer(kind.type)
            else pa.array(["x"], kind.type)
            for kind in wider
        ],
        schema=wider,
    )
    request = rig.request(is_unbounded=True, schema=wider, merges_schema=True)
    target, staging = appending.prepare(request)
    reports = rig.tasks(target, [[batch]])
    append(rig, 10)
    assert appending.commit(target, staging, reports).row_count == 1
    assert (ledger_count(rig), len(the_log(rig).tail)) == (2, 1)
    settled_rows(rig)
    assert the_log(rig).end_offset == 21


def test_inline_rows_and_those_of_dataframes_are_in_no_one_ledger(rig: Rig) -> None:
    """Appends and queries share theirs; readers take a ledger as all of one kind."""

    def values(*texts: bytes) -> list[Any]:
        return [pa.record_batch([pa.array(texts, pa.binary())], schema=VALUE_SCHEMA)]

    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(rig.log_name, unbounded=True)
        with log.writer() as writer:
            writer.append(b"a")
        target, staging = appending.prepare(rig.request(schema=VALUE_SCHEMA))
        reports = rig.tasks(target, [values(b"b", b"c")])
        assert appending.commit(target, staging, reports).row_count == 2
        driver = Driver(rig, options={"schema": VALUE_SCHEMA})
        assert driver.commit(driver.planned(0, [values(b"d")]))
        with log.writer() as writer:
            writer.append(b"e")
            writer.append(b"f")
        assert [place.entry_count for place in the_log(rig).ledgers] == [1, 3]
        close_tail(keeper._cluster, rig.log_name, Password())
        assert [place.entry_count for place in the_log(rig).ledgers] == [1, 3, 2]
        assert [entry.value for entry in log.read(0, 6)] == [bytes([n]) for n in b"abcdef"]


@pytest.mark.parametrize("limit", [{"max_records": 2}, {"max_bytes": 300}, {"max_seconds": 1e-6}])
def test_a_stream_begins_fragments_and_closes_no_ledger(rig: Rig, limit: dict[str, Any]) -> None:
    append(rig, 0)
    driver = Driver(rig, limits=RollPolicy(**limit))
    driver.run(*range(1, 8))
    each = 1 if "max_seconds" in limit else 2
    assert ledger_count(rig) == 1
    assert tail_of(rig).term == 1 + -(-7 // each)
    assert settled_rows(rig) == rows(*range(0, 80, 10))


# --- overtaken -----------------------------------------------------------------------------------


@contextmanager
def overtaken(work: Callable[[], object]) -> Iterator[None]:
    """Do ``work`` right in front of the first record that is sent."""
    real, left = RecordWriter._append, [work]

    def appended(writer: RecordWriter, step: Any) -> Any:
        if left:
            left.pop()()
        return real(writer, step)

    with patch.object(RecordWriter, "_append", appended):
        yield


def test_who_is_overtaken_in_front_of_its_record_writes_it_again(rig: Rig) -> None:
    append(rig, 0)
    late = planned(rig, 10)
    with overtaken(lambda: append(rig, 20)):
        assert appending.commit(*late).row_count == 10
    assert ledger_count(rig) == 1
    assert settled_rows(rig) == rows(0, 20, 10)


def test_who_is_overtaken_behind_its_record_is_there_once(rig: Rig) -> None:
    """In front of the last look at the metadata."""
    append(rig, 0)
    late = planned(rig, 10)

    def decide(_number: int, operation: Operation) -> None:
        if operation.call == "is_current" and "ledgers/" in operation.name:
            rig.faults.decide = no_fault
            append(rig, 20)

    rig.faults.decide = decide
    with rig.faults.installed():
        assert appending.commit(*late).row_count == 10
    assert ledger_count(rig) == 1
    assert settled_rows(rig) == rows(0, 10, 20)


def test_what_fails_behind_the_ack_makes_nothing_again(rig: Rig) -> None:
    append(rig, 0)
    late, acknowledged = planned(rig, 10), RecordWriter._acknowledged

    def and_then_fail(writer: RecordWriter, adds: Any) -> None:
        acknowledged(writer, adds)
        raise LedgerFencedError("somebody took over right behind the ack")

    with patch.object(RecordWriter, "_acknowledged", and_then_fail):
        assert appending.commit(*late).row_count == 10
    assert settled_rows(rig) == rows(0, 10)


def test_who_is_overtaken_by_a_recovery_that_closes_has_a_new_ledger(rig: Rig) -> None:
    append(rig, 0)
    late = planned(rig, 10)

    def close() -> None:
        with Cluster(rig.uri) as cluster:
            recover(cluster, tail_of(rig).ledger_id, rig.request().password)

    with overtaken(close):
        assert appending.commit(*late).row_count == 10
    assert ledger_count(rig) == 2
    assert settled_rows(rig) == rows(0, 10)


def test_what_cannot_be_told_is_said_and_not_done_again(rig: Rig) -> None:
    append(rig, 0)
    late = planned(rig, 10)

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.call != "append":
            return None
        rig.faults.down = set(rig.urls)
        return Fault(Moment.AFTER)

    rig.faults.decide = decide
    with rig.faults.installed(), pytest.raises(OutcomeUnknownError, match="is not known"):
        appending.commit(*late)
    rig.faults.forget()
    found = settled_rows(rig)
    assert found in (rows(0), rows(0, 10))


def faulty_at(
    number: int, moment: Moment, hit: list[int], now: int, _operation: Operation
) -> Fault | None:
    if now != number:
        return None
    hit.append(now)
    return Fault(moment)


@pytest.mark.parametrize("moment", always([Moment.AFTER], [Moment.BEFORE, Moment.AFTER]))
def test_one_lost_operation_or_answer_does_no_harm(
    make_rig: Callable[..., Rig], moment: Moment
) -> None:
    rig, number, is_done = make_rig(kind="memory", metadata="memory"), 0, False
    while not is_done:
        rig.log_name = f"log-{number}"
        append(rig, 0)
        late = planned(rig, 10)
        rig.faults.forget()
        hit: list[int] = []
        rig.faults.decide = partial(faulty_at, number, moment, hit)
        with rig.faults.installed():
            try:
                count = appending.commit(*late).row_count
            except OutcomeUnknownError:
                count = -1
            except BookKeeperError:
                count = 0
        is_done = not hit
        rig.faults.forget()
        append(rig, 20)
        allowed = {10: [rows(0, 10, 20)], 0: [rows(0, 20)], -1: [rows(0, 20), rows(0, 10, 20)]}
        assert settled_rows(rig) in allowed[count], (number, count)
        number += 5
    assert number > 20


def test_a_commit_that_dies_at_any_moment_is_whole_or_not_there(
    make_rig: Callable[..., Rig],
) -> None:
    rig, number, is_done = make_rig(kind="memory", metadata="memory"), 0, False
    while not is_done:
        rig.log_name = f"log-{number}"
        append(rig, 0)
        late = planned(rig, 10)
        rig.faults.forget()
        rig.faults.decide = crash_at(number, Moment.AFTER)
        with rig.faults.installed():
            try:
                appending.commit(*late)
                is_done = True
            except Crash:
                number += 4
        rig.faults.forget()
        appending.abort(*late[:2])
        append(rig, 20)
        assert settled_rows(rig) in (rows(0, 20), rows(0, 10, 20))
    assert number > 20
