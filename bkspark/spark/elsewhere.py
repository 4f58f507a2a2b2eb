"""Options of other sources, each with its counterpart here.

Users bring the options of Kafka, Delta, Iceberg and file sources. The most similar name here seldom
has the same meaning, so the error names the right option.
"""

import difflib
from collections.abc import Collection, Mapping

_LOG = "give the log's name to load(NAME), save(NAME) or start(NAME), one log at a time"
_CLUSTER = "there are no brokers: metadataServiceUri names the cluster"
_RANGE = (
    "startingOffsets and endingOffsets limit the read; view=history shows the offset and the "
    "time at which each write began"
)
_SPLIT = "maxBytesPerPartition limits the bytes that one task reads"
_ENTRIES = "maxEntriesPerTrigger limits a micro-batch"
_BYTES = "maxBytesPerTrigger limits a micro-batch"
_GROWS = "a log only grows: read it as a stream, and leave this out"
_REPLACE = 'mode("overwrite") with truncate=true replaces the whole log; a part cannot be replaced'
_FILES = "a log keeps its columns as they were written: leave this out"
_OTHERS = "this setting of other sources has no meaning here: leave it out"
_VALUES = "a log is not partitioned by value: leave it out"
_METHOD = "use the method of Spark's reader or writer, not an option"

_POINTERS: Mapping[str, tuple[str, ...]] = {
    _LOG: ("subscribe", "subscribePattern", "assign", "topic", "topics", "table", "dbtable", "log"),
    _CLUSTER: ("bootstrap.servers", "brokers", "serviceUrl", "uri", "url"),
    _RANGE: (
        "versionAsOf",
        "timestampAsOf",
        "as-of-timestamp",
        "snapshot-id",
        "start-snapshot-id",
        "end-snapshot-id",
        "stream-from-timestamp",
        "startingVersion",
        "endingVersion",
        "startingTimestamp",
        "endingTimestamp",
        "startingOffsetsByTimestamp",
        "endingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
    ),
    _SPLIT: ("minPartitions", "numPartitions", "maxRecordsPerPartition", "split-size"),
    _ENTRIES: (
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxFilesPerTrigger",
        "maxRowsPerTrigger",
        "maxRecordsPerTrigger",
        "maxRecordsPerBatch",
        "maxRowsPerBatch",
        "streaming-max-rows-per-micro-batch",
        "rowsPerSecond",
    ),
    _BYTES: ("maxBytesPerBatch",),
    _GROWS: (
        "readChangeFeed",
        "readChangeData",
        "ignoreChanges",
        "ignoreDeletes",
        "skipChangeCommits",
    ),
    _REPLACE: ("replaceWhere", "partitionOverwriteMode", "overwriteSchema", "overwrite-mode"),
    _FILES: (
        "header",
        "inferSchema",
        "sep",
        "delimiter",
        "multiLine",
        "recursiveFileLookup",
        "pathGlobFilter",
        "basePath",
    ),
    _VALUES: ("partitionBy", "bucketBy", "sortBy", "clusterBy"),
    f'{_METHOD}: .mode("append")': ("mode", "saveMode"),
    f'{_METHOD}: .outputMode("append")': ("outputMode",),
    f"{_METHOD}: .trigger(…)": (
        "trigger",
        "availableNow",
        "once",
        "processingTime",
        "continuous",
    ),
    f"{_METHOD}: .schema(…)": ("schema",),
    "compression sets the codec": ("codec", "compressionCodec", "compression-codec"),
    "ackQuorumSize sets how many bookies must store a row before it is acknowledged": (
        "acks",
        "kafka.acks",
    ),
    "writeQuorumSize sets how many bookies store a row": ("replicationFactor", "replication"),
}
_NAMED = {name.lower(): said for said, names in _POINTERS.items() for name in names}
_BEGINNINGS = {"kafka.": _CLUSTER, "pulsar.": _CLUSTER, "delta.": _OTHERS, "parquet.": _OTHERS}

_ALIKE = 0.6
"""Similarity from which a name counts as a misspelling of another: a typo or two, an extra word."""


def unknown(key: str, names: Collection[str]) -> str:
    """Return one line about the option ``key`` (in lower case), which is not among ``names``."""
    begun = (said for begin, said in _BEGINNINGS.items() if key.startswith(begin))
    said = _NAMED.get(key) or next(begun, "")
    if said:
        return f"unknown option {key!r}: {said}"
    known = {name.lower(): name for name in names}
    near = difflib.get_close_matches(key, known, n=1, cutoff=_ALIKE)
    if near:
        return f"unknown option {key!r}, did you mean {known[near[0]]!r}?"
    return f"unknown option {key!r}; the options are {', '.join(names)}"
