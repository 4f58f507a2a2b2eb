"""Which options may be given for which read or write."""

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.spark.option_table import OPTIONS, Use
from bkspark.spark.options import parse
from bkspark.spark.source import BookKeeperDataSource

LOG = {"metadataServiceUri": "file:///nowhere", "path": "events"}
OTHERS = {
    "startingOffsetsByTimestampStrategy": {"startingTimestamp": "3"},
    "txnAppId": {"txnVersion": "1"},
    "txnVersion": {"txnAppId": "a"},
    "password": {},
}
VALUES = {
    "metadataServiceUri": "file:///nowhere",
    "digestType": "MAC",
    "compression": "lz4",
    "view": "ledgers",
    "includeMetadata": "true",
    "failOnDataLoss": "false",
    "mergeSchema": "true",
    "unbounded": "true",
    "strict": "true",
    "minDistinct": "rack:2",
    "truncate": "true",
    "startingOffsets": "earliest",
    "startingTimestamp": "2026-11-28T10:00:00Z",
    "startingOffsetsByTimestamp": '{"events":{"0":1700000000000}}',
    "endingOffsetsByTimestamp": '{"events":{"0":1700000000000}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "endingOffsets": "latest",
    "onRepeatedBatch": "skip",
}

SPARKS_NAMES = ("checkpointLocation", "queryName")

EVERYWHERE = {
    "metadataServiceUri",
    "path",
    "ensembleSize",
    "writeQuorumSize",
    "ackQuorumSize",
    "digestType",
    "unbounded",
    "strict",
    "minDistinct",
    "password",
    "passwordFile",
    "passwordEnv",
    "compression",
    "rowsPerBlock",
    "targetBlockBytes",
    "mergeSchema",
}
READING = {
    "includeMetadata",
    "columns",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "minPartitions",
    "failOnDataLoss",
    "maxBytesPerPartition",
}
ENDING = {
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "versionAsOf",
    "timestampAsOf",
}
WRITING = {"txnAppId", "txnVersion", "truncate"}
ALLOWED = {
    Use.BATCH_READ: READING | WRITING | ENDING | {"ledgerId", "view"},
    Use.VIEW: {"view"},
    Use.STREAM_READ: READING
    | {"maxEntriesPerTrigger", "maxOffsetsPerTrigger", "maxBytesPerTrigger"},
    Use.BATCH_WRITE: READING | WRITING | ENDING,
    Use.STREAM_WRITE: {*SPARKS_NAMES, "onRepeatedBatch"},
}


def _given(name: str, use: Use) -> dict[str, str]:
    """Options with ``name`` among them, and nothing wrong but perhaps that."""
    given = {**LOG, name: VALUES.get(name, "3"), **OTHERS.get(name, {})}
    if name == "ledgerId":
        del given["path"]
    return {**given, "view": "ledgers"} if use is Use.VIEW else given


@pytest.mark.parametrize("name", [*OPTIONS, *SPARKS_NAMES])
@pytest.mark.parametrize("use", Use, ids=lambda use: use.name)
def test_an_option_is_taken_where_it_belongs_and_refused_elsewhere(name: str, use: Use) -> None:
    asked = Use.BATCH_READ if use is Use.VIEW else use
    if name in EVERYWHERE | ALLOWED[use]:
        parse(_given(name, use), None, asked)
        return
    with pytest.raises(InvalidRequestError) as caught:
        parse(_given(name, use), None, asked)
    text = str(caught.value)
    assert name in text
    assert text.endswith((f"leave it out of {use.value}", f"leave them out of {use.value}"))
    assert "\n" not in text


def test_what_is_misplaced_is_told_with_all_other_problems() -> None:
    given = {**LOG, "MaxBytesPerTrigger": "5", "compression": "gzip", "compresion": "lz4"}
    with pytest.raises(InvalidRequestError) as caught:
        parse(given, None, Use.BATCH_READ)
    for part in ("maxBytesPerTrigger belongs to a stream read", "compression must", "unknown"):
        assert part in str(caught.value)


def test_defaults_of_a_session_hold_where_they_belong() -> None:
    defaults = {"maxEntriesPerTrigger": "7", "startingOffsets": "3", "compression": "lz4"}
    followed = parse(LOG, defaults, Use.STREAM_READ)
    assert (followed.read.trigger_entries, followed.read.starting_offset) == (7, 3)
    written = parse(LOG, defaults, Use.STREAM_WRITE)
    assert (written.read.trigger_entries, written.read.starting_offset) == (None, None)
    assert written.write.blocks.compression == "lz4"


def test_a_default_with_a_wrong_name_is_told_by_every_use() -> None:
    for use in Use:
        with pytest.raises(InvalidRequestError, match="unknown option 'startingoffset'"):
            parse(LOG, {"startingOffset": "3"}, use)


def test_spark_asks_with_the_use_in_mind() -> None:
    """Each factory refuses what another one takes, before it looks at the cluster."""

    def source(**options: str) -> BookKeeperDataSource:
        return BookKeeperDataSource({**LOG, **options})

    nothing = None
    for action in (
        lambda: source(maxEntriesPerTrigger="1").reader(nothing),
        lambda: source(maxEntriesPerTrigger="1").writer(nothing, False),
        lambda: source(startingOffsets="1").streamWriter(nothing, False),
        lambda: source(endingOffsets="1").streamReader(nothing).initialOffset(),
    ):
        with pytest.raises(InvalidRequestError, match="leave it out of"):
            action()


def test_sizes_take_units() -> None:
    read = parse({**LOG, "maxBytesPerPartition": "64MB"}, None, Use.BATCH_READ).read
    assert read.task_bytes == 64 * 2**20
    followed = parse({**LOG, "maxBytesPerTrigger": "1g"}, None, Use.STREAM_READ).read
    assert followed.trigger_bytes == 2**30
    written = parse({**LOG, "targetBlockBytes": "512k"}, None, Use.BATCH_WRITE).write
    assert written.blocks.target_bytes == 512 * 1024
    for bad in ("0", "-1", "1h", "64 MBit", "4GB"):
        with pytest.raises(InvalidRequestError, match="targetBlockBytes must be"):
            parse({**LOG, "targetBlockBytes": bad}, None, Use.BATCH_WRITE)
