"""What is said about options that are called something else elsewhere, or nowhere."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.spark.option_table import OPTIONS, Use
from bkspark.spark.options import parse

LOG = {"metadataServiceUri": "file:///nowhere", "path": "events"}

MEANT = {
    "subscribe": "give the log's name to load(NAME)",
    "subscribePattern": "give the log's name to load(NAME)",
    "kafka.bootstrap.servers": "metadataServiceUri names the cluster",
    "kafka.group.id": "metadataServiceUri names the cluster",
    "kafka.acks": "ackQuorumSize",
    "snapshot-id": "startingOffsets and endingOffsets limit the read; view=history",
    "startingVersion": "startingOffsets and endingOffsets",
    "minOffsetsPerTrigger": "maxEntriesPerTrigger",
    "maxFilesPerTrigger": "maxEntriesPerTrigger",
    "numPartitions": "maxBytesPerPartition",
    "ignoreChanges": "a log only grows",
    "replaceWhere": "truncate=true replaces the whole log",
    "header": "leave this out",
    "delta.appendOnly": "leave it out",
    "partitionBy": "leave it out",
    "outputMode": '.outputMode("append")',
    "availableNow": ".trigger(",
}


def refused(use: Use = Use.BATCH_READ, **options: str) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        parse({**LOG, **options}, None, use)
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize("name", MEANT)
def test_a_name_that_is_known_elsewhere_is_answered_by_what_serves_here(name: str) -> None:
    for use in (Use.BATCH_READ, Use.STREAM_READ, Use.BATCH_WRITE, Use.STREAM_WRITE):
        text = refused(use, **{name: "1"})
        assert text.startswith(f"unknown option {name.lower()!r}: ")
        assert MEANT[name] in text
        assert "did you mean" not in text


@pytest.mark.parametrize(
    ("typo", "name"),
    [
        ("startingOffset", "startingOffsets"),
        ("compresion", "compression"),
        ("checkpointLocatoin", "checkpointLocation"),
        ("query", "queryName"),
        ("maxEntries", "maxEntriesPerTrigger"),
    ],
)
def test_a_typo_is_answered_by_the_name_that_is_alike(typo: str, name: str) -> None:
    assert refused(**{typo: "1"}) == f"unknown option {typo.lower()!r}, did you mean {name!r}?"


def test_a_name_that_is_like_none_is_answered_by_all_names() -> None:
    text = refused(flavour="1")
    assert text.startswith(
        "unknown option 'flavour'; the options are metadataServiceUri, path, ledgerId"
    )
    assert all(name in text for name in OPTIONS)


def test_all_strange_names_are_told_at_once() -> None:
    text = refused(subscribe="a", flavour="1", compresion="lz4")
    for part in (
        "give the log's name to",
        "unknown option 'flavour';",
        "did you mean 'compression'?",
    ):
        assert part in text
