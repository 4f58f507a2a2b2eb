"""Options as users of Spark's Kafka source write them."""

import json
import pickle
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from bkspark import environment
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.spark.option_table import Use
from bkspark.spark.options import ReadOptions, parse
from bkspark.spark.source import BookKeeperDataSource
from tests.unit.spark.positions import at

T = 1_700_000_000_000


def read_options(use: Use = Use.BATCH_READ, **given: object) -> ReadOptions:
    place = {} if "ledgerId" in given else {"path": "a"}
    texts = {name: str(value) for name, value in given.items()}
    return parse({"metadataServiceUri": "file:///nowhere", **place, **texts}, None, use).read


def problem(use: Use = Use.BATCH_READ, **given: object) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        read_options(use, **given)
    [line] = str(caught.value).splitlines()
    return line


def of_log(number: object, log: str = "a", part: str = "0") -> str:
    return json.dumps({log: {part: number}})


@pytest.mark.parametrize(
    ("number", "first", "end"),
    [(0, 0, 0), (42, 42, 42), (-1, -1, None), (2**63 - 1, 2**63 - 1, 2**63 - 1)],
)
def test_offsets_in_json(number: int, first: int, end: int | None) -> None:
    assert read_options(startingOffsets=of_log(number)).starting_offset == first
    assert read_options(startingOffsets=f" {of_log(-2)} ").starting_offset is None
    assert read_options(endingOffsets=of_log(number)).ending_offset == end


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (of_log(1, log="b"), "names log 'b', and the read is of log 'a'"),
        (of_log(1, log="A"), "names log 'A', and the read is of log 'a'"),
        (of_log(1, part="1"), "names partition '1', and a log has only partition '0'"),
        (of_log(1, part="00"), "names partition '00', and a log has only partition '0'"),
        ('{"a":{"0":1,"1":2}}', "must be JSON like"),
        ('{"a":{"0":1},"b":{"0":1}}', "must be JSON like"),
        ('{"a":{"0":1},"a":{"0":2}}', "must be JSON like"),
        *((text, "must be JSON like") for text in ("{", "{}", '{"a":1}', '{"a":{}}', '{"a":[1]}')),
        *((of_log(n), "must be JSON like") for n in (1.0, True, None, "1", -3, 2**63, [1])),
        ('{"a":' * 9999, "must be JSON like"),
    ],
)
def test_json_that_is_not_of_the_log_is_refused(text: str, told: str) -> None:
    for name in ("startingOffsets", "endingOffsets", "startingOffsetsByTimestamp"):
        assert problem(**{name: text}).startswith(f"{name} {told}")


def test_an_end_is_not_the_earliest_and_a_ledger_is_no_log() -> None:
    assert "the number is -1 or more" in problem(endingOffsets=of_log(-2))
    assert "the number is 0 or more" in problem(startingOffsetsByTimestamp=of_log(-1))
    told = problem(ledgerId=3, startingOffsets=of_log(1))
    assert told == "startingOffsets names log 'a', and the read is of a ledger"


def test_times_in_json() -> None:
    read = read_options(
        startingOffsetsByTimestamp=of_log(T), endingOffsetsByTimestamp=of_log(T + 1)
    ).commits
    assert (read.starting_ms, read.ending_ms, read.requires_start) == (T, T + 1, True)
    assert not read_options(startingTimestamp=T).commits.requires_start
    both = read_options(startingTimestamp=T, startingOffsetsByTimestamp=of_log(T))
    assert both.commits.starting_ms == T
    for strategy, requires in (("latest", False), ("error", True), ("ERROR", True)):
        given = {"startingOffsetsByTimestampStrategy": strategy}
        assert read_options(startingTimestamp=T, **given).commits.requires_start == requires
        by_json = {"startingOffsetsByTimestamp": of_log(T)}
        assert read_options(**by_json, **given).commits.requires_start == requires


def test_two_names_of_one_option_have_one_value() -> None:
    assert read_options(Use.STREAM_READ, maxOffsetsPerTrigger=5).trigger_entries == 5
    same = {"maxOffsetsPerTrigger": 5, "maxEntriesPerTrigger": 5}
    assert read_options(Use.STREAM_READ, **same).trigger_entries == 5
    told = problem(Use.STREAM_READ, maxOffsetsPerTrigger=5, maxEntriesPerTrigger=6)
    assert told == "maxEntriesPerTrigger and maxOffsetsPerTrigger mean the same: give one of them"
    told = problem(startingTimestamp=T, startingOffsetsByTimestamp=of_log(T + 1))
    assert "mean the same: give one of them" in told
    told = problem(startingOffsets=3, startingOffsetsByTimestamp=of_log(T))
    assert told == "give startingOffsetsByTimestamp or startingOffsets, not both"
    told = problem(startingOffsetsByTimestampStrategy="latest")
    assert told.endswith("needs startingTimestamp or startingOffsetsByTimestamp")
    assert "must be a number" in problem(minPartitions=0)


# --- reads ---------------------------------------------------------------------------------------


@pytest.fixture
def uri(small_cluster, numbers, monkeypatch):
    """Offsets 0 to 20 at the time T, and to 30 ten milliseconds later."""
    for ms, (first, end) in ((T, (0, 20)), (T + 10, (20, 30))):
        monkeypatch.setattr(environment, "now_ms", lambda ms=ms: ms)
        small_cluster.append("a", [numbers(first, end)])
    return small_cluster.uri


def source(uri: str, **given: object) -> BookKeeperDataSource:
    texts = {name: str(value) for name, value in given.items()}
    return BookKeeperDataSource({"metadataServiceUri": uri, "path": "a", **texts})


def rows(uri: str, **given: object) -> tuple[list[int], int]:
    """The numbers that a batch read gives, and the number of its tasks."""
    made = source(uri, **given)
    reader = made.reader(made.schema())
    parts = pickle.loads(pickle.dumps(reader.partitions()))
    found = [n for part in parts for batch in reader.read(part) for n in batch["n"].to_pylist()]
    return sorted(found), len(parts)


def test_a_batch_read_of_kafkas_options(uri: str) -> None:
    given: dict[str, Any] = {"startingOffsets": of_log(5), "endingOffsets": of_log(22)}
    assert rows(uri, **given)[0] == [*range(5, 22)]
    assert rows(uri, startingOffsetsByTimestamp=of_log(T + 1))[0] == [*range(20, 30)]
    assert rows(uri, endingOffsetsByTimestamp=of_log(T + 1))[0] == [*range(20)]
    assert rows(uri, endingOffsetsByTimestamp=of_log(T + 11))[0] == [*range(30)]
    late = {"startingOffsetsByTimestamp": of_log(T + 11)}
    with pytest.raises(NoSuchEntryError, match="nothing was committed to log 'a' at 17000"):
        rows(uri, **late)
    assert rows(uri, **late, startingOffsetsByTimestampStrategy="latest")[0] == []
    assert rows(uri, startingTimestamp=T + 11)[0] == []
    with pytest.raises(NoSuchEntryError, match="nothing was committed"):
        rows(uri, startingTimestamp=T + 11, startingOffsetsByTimestampStrategy="error")


def test_a_read_has_about_as_many_tasks_as_are_wanted(uri: str) -> None:
    assert rows(uri)[1] == 1
    for wanted in (2, 7, 20):
        found, count = rows(uri, minPartitions=wanted)
        assert found == [*range(30)]
        assert wanted * 0.7 <= count <= wanted * 1.5
    assert rows(uri, minPartitions=99_999)[0] == [*range(30)]
    assert rows(uri, minPartitions=2, maxBytesPerPartition=1)[1] > 10


def test_a_stream_read_of_kafkas_options(uri: str) -> None:
    def begins(**given: object) -> dict[str, Any]:
        made = source(uri, **given)
        return dict(made.streamReader(made.schema()).initialOffset())

    assert begins(startingOffsets=of_log(7)) == at(7)
    assert begins(startingOffsets=of_log(-1)) == at(30)
    assert begins(startingOffsetsByTimestamp=of_log(T + 5)) == at(20)
    with pytest.raises(NoSuchEntryError, match="startingOffsetsByTimestampStrategy=latest"):
        begins(startingOffsetsByTimestamp=of_log(T + 11))
    late = {"startingOffsetsByTimestamp": of_log(T + 11)}
    assert begins(**late, startingOffsetsByTimestampStrategy="latest") == at(30)
    made = source(uri, maxOffsetsPerTrigger=4)
    reader = made.streamReader(made.schema())
    limit = reader.getDefaultReadLimit()
    assert isinstance(limit, ReadMaxRows)
    assert reader.latestOffset(at(3), limit) == at(7)
