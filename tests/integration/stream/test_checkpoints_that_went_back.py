"""A query's checkpoint was restored from a backup, or copied: its batch ids come again."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.log.recovering import close_tail
from bkspark.log.rolling import RollPolicy
from bkspark.log.streams import appending, repeated_batch
from bkspark.protocol.ledger.record import Transaction
from bkspark.protocol.log import transactions
from tests.integration.rig import Rig, Row, flat, partitions_of, rows_from
from tests.integration.stream_driver import (
    QUERY,
    Driver,
    expected,
    rows_of,
    settled_rows,
    the_log,
)
from tests.thorough import always

Partitions = Sequence[Sequence[pa.RecordBatch]]

WENT_BACK = f"micro-batch 1 of query {QUERY} .* has its micro-batch 2 already.*new checkpoint"
OTHER_ROWS = f"micro-batch 2 of query {QUERY} is in log 'events' already, with other rows"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", "memory")


def others(*counts: int) -> list[list[pa.RecordBatch]]:
    """Rows that no batch has."""
    return partitions_of(*counts, first=5_000)


def commit(driver: Driver, batch_id: int, rows: Partitions) -> bool:
    return driver.commit(driver.planned(batch_id, rows))


def committed(rig: Rig, **options: object) -> Driver:
    driver = Driver(rig, **options)  # type: ignore[arg-type]
    assert driver.run(0, 1, 2) == [True] * 3
    return driver


def held(driver: Driver) -> Driver:
    return driver


def resumed(driver: Driver) -> Driver:
    return driver.with_new_process()


def restarted(driver: Driver) -> Driver:
    return Driver(driver.rig, options=driver.options)


def closed_behind(driver: Driver) -> Driver:
    """Another job has appended to the log meanwhile."""
    with Cluster(driver.rig.uri) as cluster:
        close_tail(cluster, driver.rig.log_name, driver.request.password)
    driver.rig.write(others(3), **driver.options)
    return restarted(driver)


def rows_before(again: Callable[[Driver], Driver]) -> list[Row]:
    return expected(0, 1, 2) + (flat(others(3)) if again is closed_behind else [])


ways = pytest.mark.parametrize(
    "again", [held, resumed, restarted, closed_behind], ids=lambda way: way.__name__
)
kinds = pytest.mark.parametrize(
    "is_unbounded", always([False], [False, True]), ids=["chained", "unbounded"]
)
Way = Callable[[Driver], Driver]


# A batch below the last one.


@ways
@kinds
def test_a_batch_below_the_last_one_is_refused(rig: Rig, again: Way, is_unbounded: bool) -> None:
    driver = again(committed(rig, options={"is_unbounded": is_unbounded}))
    with pytest.raises(InvalidRequestError, match=WENT_BACK):
        commit(driver, 1, rows_of(1))
    with pytest.raises(InvalidRequestError, match=r"micro-batch 0 .* micro-batch 2 already"):
        commit(driver, 0, others(4))
    assert settled_rows(rig) == rows_before(again)


def test_a_batch_below_the_last_one_is_refused_whatever_is_set(rig: Rig) -> None:
    driver = committed(rig, options={"compares_repeats": False})
    with pytest.raises(InvalidRequestError, match=WENT_BACK):
        commit(driver, 1, others(10))
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_query_whose_batch_was_refused_has_not_moved(rig: Rig) -> None:
    driver = committed(rig)
    with pytest.raises(InvalidRequestError):
        commit(driver, 1, others(10))
    assert driver.run(3) == [True]
    assert settled_rows(rig) == expected(0, 1, 2, 3)


def test_a_new_checkpoint_writes_all_it_has(rig: Rig) -> None:
    committed(rig)
    assert commit(Driver(rig, "query-2"), 0, others(4))
    assert settled_rows(rig) == [*expected(0, 1, 2), *flat(others(4))]


@kinds
def test_a_transaction_of_a_batch_write_that_went_back_is_done(
    rig: Rig, is_unbounded: bool
) -> None:
    """As in Delta; all are planned before the first is committed."""
    planned = []
    for version, rows in ((5, others(3)), (4, others(7)), (5, others(8))):
        options = {"transaction": Transaction("job", version), "is_unbounded": is_unbounded}
        target, staging = appending.prepare(rig.request(**options))
        planned.append((target, staging, rig.tasks(target, rows)))
    assert [appending.commit(*one).row_count for one in planned] == [3, 0, 0]
    assert settled_rows(rig) == flat(others(3))


# The last batch again.


OTHERS = {
    "others": (others(10), "10 each time"),
    "fewer": (partitions_of(3, 6, first=20), "10 then, 9 now"),
    "more": (partitions_of(3, 8, first=20), "10 then, 11 now"),
    "one other": (partitions_of(3, 7, first=19), "10 each time"),
}


@ways
@kinds
def test_the_last_batch_with_other_rows_is_refused(
    rig: Rig, again: Way, is_unbounded: bool
) -> None:
    driver = again(committed(rig, options={"is_unbounded": is_unbounded}))
    with pytest.raises(InvalidRequestError, match=OTHER_ROWS) as refused:
        commit(driver, 2, others(10))
    assert "onRepeatedBatch=skip" in str(refused.value)
    assert settled_rows(rig) == rows_before(again)


@pytest.mark.parametrize(("rows", "what"), OTHERS.values(), ids=OTHERS)
def test_the_difference_is_said(rig: Rig, rows: Partitions, what: str) -> None:
    driver = committed(rig)
    with pytest.raises(InvalidRequestError, match=rf"{OTHER_ROWS} \({what}\)"):
        commit(driver, 2, rows)


@ways
@kinds
def test_spark_s_own_retry_of_the_last_batch_changes_nothing(
    rig: Rig, again: Way, is_unbounded: bool
) -> None:
    driver = again(committed(rig, options={"is_unbounded": is_unbounded}))
    assert not commit(driver, 2, rows_of(2))
    assert driver.run(3) == [True]
    assert settled_rows(rig) == rows_before(again) + expected(3)


@kinds
@pytest.mark.parametrize("again", [restarted, closed_behind], ids=lambda way: way.__name__)
def test_a_query_that_is_known_by_its_digest_is_compared(
    rig: Rig, again: Way, is_unbounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_batch, "_SPAN", 1)
    monkeypatch.setattr(transactions, "QUERIES_MAX", 1)
    driver = committed(rig, options={"is_unbounded": is_unbounded})
    assert commit(Driver(rig, "query-2", options={"is_unbounded": is_unbounded}), 0, others(4))
    with pytest.raises(InvalidRequestError, match=OTHER_ROWS):
        commit(again(driver), 2, others(10))
    assert not commit(restarted(driver), 2, rows_of(2))


RETRIES = {
    "one partition": partitions_of(10, first=20),
    "more partitions": partitions_of(1, 2, 3, 4, first=20),
    "shuffled": [[rows_from(20, 10).take(pa.array([3, 1, 4, 0, 5, 9, 2, 6, 8, 7]))]],
}


@pytest.mark.parametrize("rows", RETRIES.values(), ids=RETRIES)
def test_a_retry_may_have_another_order_and_other_partitions(rig: Rig, rows: Partitions) -> None:
    driver = committed(rig)
    assert not commit(driver, 2, rows)
    assert settled_rows(rig) == expected(0, 1, 2)


def test_each_row_counts_as_often_as_it_is_there(rig: Rig) -> None:
    driver = Driver(rig)
    assert commit(driver, 0, [[rows_from(0, 2)], [rows_from(0, 1)]])
    with pytest.raises(InvalidRequestError, match="with other rows"):
        commit(driver, 0, [[rows_from(0, 2)], [rows_from(1, 1)]])
    assert not commit(driver, 0, [[rows_from(0, 1), rows_from(1, 1), rows_from(0, 1)]])


def test_a_repeated_batch_is_kept_where_that_is_set(rig: Rig) -> None:
    driver = committed(rig, options={"compares_repeats": False})
    assert not commit(driver, 2, others(4))
    assert settled_rows(rig) == expected(0, 1, 2)


def test_a_batch_without_rows_loses_none(rig: Rig) -> None:
    for driver in (committed(rig), closed_behind(Driver(rig))):
        assert not commit(driver, 2, [[], []])
        assert not commit(driver, 1, [[], []])
    assert settled_rows(rig) == rows_before(closed_behind)


def test_the_batch_is_found_behind_ledgers_and_batches_of_others(rig: Rig) -> None:
    driver, other = Driver(rig, limits=RollPolicy(max_records=2)), Driver(rig, "query-2")
    driver.run(0, 1, 2)
    other.run(0, 1, 2, 3)
    rig.write(others(3))
    for _ in range(2):
        with pytest.raises(InvalidRequestError, match=OTHER_ROWS):
            commit(driver, 2, others(10))
    assert not commit(restarted(driver), 2, partitions_of(10, first=20))


def test_the_batch_is_found_far_from_its_ledger_s_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bkspark.log.streams.repeated_batch._SPAN", 1)
    driver, other = committed(rig), Driver(rig, "query-2")
    other.run(*range(4))
    with pytest.raises(InvalidRequestError, match=OTHER_ROWS):
        commit(driver, 2, others(10))
    assert not commit(driver, 2, partitions_of(10, first=20))
    assert len(the_log(rig).tail) == 1


def test_rows_that_the_log_has_no_more_are_not_compared(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    driver = committed(rig)
    rig.write(others(4), is_overwrite=True)
    with caplog.at_level(logging.WARNING):
        assert not commit(restarted(driver), 2, others(10))
    assert "micro-batch 2" in caplog.text
    assert "were not compared" in caplog.text


def test_a_password_is_used_for_the_comparison(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "cluster", "memory")
    options = {"digest_type": "MAC", "password": Password(literal="swordfish")}
    driver = committed(rig, options=options)
    assert not commit(driver, 2, partitions_of(10, first=20))
    with pytest.raises(InvalidRequestError, match=OTHER_ROWS):
        commit(driver, 2, others(10))
