"""Reads that begin and end at times."""

from datetime import UTC, datetime

import pytest
from places import Place, refusal
from pyspark.sql import SparkSession

import bkspark
from bkspark.errors import InvalidRequestError


@pytest.fixture(scope="module")
def logged(spark: SparkSession, shared_place: Place) -> Place:
    """Three appends, each of one row."""
    for number in range(3):
        shared_place.write(spark.range(number, number + 1))
    return shared_place


@pytest.fixture(scope="module")
def times(logged: Place) -> list[int]:
    """When each append was committed, in milliseconds."""
    with bkspark.BookKeeper(logged.uri) as keeper:
        found = [ledger.first_ms for ledger in keeper.open_log("events").ledgers]
    assert found[0] < found[1] < found[2]
    return found


def iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()


def test_a_read_begins_and_ends_at_times(logged: Place, times: list[int]):
    assert logged.ids(startingTimestamp=times[1]) == [1, 2]
    assert logged.ids(startingTimestamp=times[1] + 1) == [2]
    assert logged.ids(endingTimestamp=times[1]) == [0]
    assert logged.ids(startingTimestamp=iso(times[1]), endingTimestamp=iso(times[2])) == [1]
    assert logged.ids(startingTimestamp=times[2] + 1) == []
    assert logged.ids(startingTimestamp=0, endingTimestamp=times[0]) == []
    assert logged.ids(startingTimestamp=times[1], endingOffsets=2) == [1]


def test_one_call_reads_from_a_time(spark: SparkSession, logged: Place, times: list[int]):
    time = datetime.fromtimestamp(times[2] / 1000, UTC)
    found = bkspark.read(spark, "events", starting_timestamp=time, metadataServiceUri=logged.uri)
    assert [row.id for row in found.collect()] == [2]
    found = bkspark.read(spark, "events", ending_timestamp=times[1], metadataServiceUri=logged.uri)
    assert [row.id for row in found.collect()] == [0]


def test_a_stream_begins_at_a_time(spark: SparkSession, logged: Place, times: list[int]):
    for name, time, ids in (("some", times[1], [1, 2]), ("none", times[2] + 1, [])):
        rows = logged.follow(startingTimestamp=time)
        query = rows.writeStream.format("memory").queryName(name).trigger(availableNow=True)
        query.start().awaitTermination()
        assert sorted(row.id for row in spark.table(name).collect()) == ids


PROBLEMS = {
    "no zone": ({"startingTimestamp": "2026-11-28 10:00:00"}, "startingTimestamp has no time zone"),
    "no time": (
        {"endingTimestamp": "yesterday"},
        "endingTimestamp must be a time, not 'yesterday'",
    ),
    "too large": ({"startingTimestamp": "9" * 30}, "startingTimestamp"),
    "before 1970": ({"startingTimestamp": "1969-12-31T23:59:59Z"}, "startingTimestamp cannot be"),
    "two beginnings": (
        {"startingTimestamp": 5, "startingOffsets": 5},
        "give startingTimestamp or startingOffsets, not both",
    ),
    "a ledger": (
        {"startingTimestamp": 5, "ledgerId": 1},
        "give startingTimestamp or ledgerId, which is no log, not both",
    ),
    "the wrong order": (
        {"startingTimestamp": 6, "endingTimestamp": 5},
        "startingTimestamp is after endingTimestamp",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_time_that_is_wrong_is_refused(logged: Place, case: str):
    options, message = PROBLEMS[case]
    name = None if "ledgerId" in options else "events"
    text = refusal(InvalidRequestError, lambda: logged.plan_read(name, **options))
    assert text.startswith(message)
