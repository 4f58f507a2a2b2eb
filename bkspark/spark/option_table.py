"""The options of ``format("bookkeeper")``: their defaults, their meaning, and where each belongs.

An option without effect hides a mistake: a limit that is not applied, or a batch read that was
meant as a stream. So a misplaced option is an error, with two exceptions:

* Storage options of a log (quorum sizes, digest, unbounded, strict, compression, blocks) and
  ``mergeSchema`` may be given anywhere: one set of options serves to write a log and to read it.
* A temporary view in SQL has one set of options for ``SELECT`` and ``INSERT``. So an option of a
  batch read is allowed in a batch write, and the reverse, except options that select the data
  (``ledgerId`` and ``view``).

The defaults of a session apply to all its reads and writes; misplaced defaults are ignored.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from bkspark.protocol.log.batch import ON_REPEATED_BATCH


class Use(Enum):
    """The use of a log by a DataFrame; the value names the use in messages."""

    BATCH_READ = "a batch read"
    VIEW = "a batch read of a view"
    STREAM_READ = "a stream read"
    BATCH_WRITE = "a batch write"
    STREAM_WRITE = "a stream write"


_READS = (Use.BATCH_READ, Use.STREAM_READ)
_SHARE_OPTIONS = frozenset({Use.BATCH_READ, Use.BATCH_WRITE})
_ADDRESSES = ("ledgerId", "view")


@dataclass(frozen=True, slots=True)
class SourceOption:
    """One option.

    Attributes:
        default: in the user's spelling, for the page of options; empty if there is none.
        meaning: one or two sentences, in Markdown, for the page of options.
        uses: where the option has an effect; empty if it may be given anywhere.
    """

    default: str
    meaning: str
    uses: tuple[Use, ...] = ()

    @property
    def shown_uses(self) -> str:
        return ", ".join(use.value.removeprefix("a ") for use in self.uses) or "reads and writes"


OPTIONS: Mapping[str, SourceOption] = {
    "metadataServiceUri": SourceOption(
        "`BKSPARK_METADATA_URI`",
        "The cluster: `file:///data/meta`, `s3://bucket/meta` or `zk://host:port,host:port/path`.",
    ),
    "path": SourceOption("", "The log's name, as `save`, `load` and `start` pass it."),
    "ledgerId": SourceOption(
        "",
        "Read this ledger instead of a log, up to its last confirmed entry.",
        (Use.BATCH_READ,),
    ),
    "ensembleSize": SourceOption(
        "3", "How many bookies a ledger of a new log uses. A log keeps its value."
    ),
    "writeQuorumSize": SourceOption(
        "3", "How many bookies store each row of a new log. A log keeps its value."
    ),
    "ackQuorumSize": SourceOption(
        "2", "How many bookies must store a row before it is acknowledged. A log keeps its value."
    ),
    "digestType": SourceOption(
        "`CRC32C`",
        "`CRC32C` detects damage. `MAC` also detects forgery, and needs a password. A log keeps "
        "its value.",
    ),
    "unbounded": SourceOption(
        "`false`",
        "`true` creates the log as one ledger that each new writer takes over. An existing log "
        "keeps its kind.",
    ),
    "strict": SourceOption(
        "`false`",
        "`true` refuses the write if fewer than `ensembleSize` bookies can be used. Otherwise the "
        "write makes a smaller ledger, on at least `ackQuorumSize` bookies. A log that is created "
        "strict stays strict.",
    ),
    "minDistinct": SourceOption(
        "",
        "Labels of bookies that must differ, such as `rack:2,zone:2`: the bookies that store a row "
        "have at least so many values of each label, or the write is refused. A log keeps its "
        "value.",
    ),
    "password": SourceOption("", "The ledger password itself. Prefer the next two options."),
    "passwordFile": SourceOption("", "A file that holds the ledger password."),
    "passwordEnv": SourceOption("", "An environment variable that holds the ledger password."),
    "compression": SourceOption("`none`", "How stored rows are compressed: `none`, `lz4`, `zstd`."),
    "rowsPerBlock": SourceOption(
        "65536",
        "The most rows of a block. Each block has a checksum, and tasks split a read by blocks.",
    ),
    "targetBlockBytes": SourceOption(
        "2 MiB", "About how many bytes a block has. Units such as `4MB` work."
    ),
    "txnAppId": SourceOption(
        "", "The job's name, for writes that run once. Needs `txnVersion`.", (Use.BATCH_WRITE,)
    ),
    "txnVersion": SourceOption(
        "",
        "A number that grows with each run of `txnAppId`. A write whose number is not above the "
        "last committed one writes nothing.",
        (Use.BATCH_WRITE,),
    ),
    "includeMetadata": SourceOption(
        "`false`",
        "Adds the columns `_offset`, `_ledger_id`, `_entry_id` and `_timestamp`.",
        _READS,
    ),
    "columns": SourceOption(
        "all",
        "The columns to read, for example `id, text`. Tasks read and check the bytes of these "
        "columns only. A name that holds a comma stands in backquotes.",
        _READS,
    ),
    "startingOffsets": SourceOption(
        "`earliest`",
        "`earliest`, `latest` or an offset. A query that has a checkpoint goes on there instead. "
        'Kafka\'s JSON works too: `{"events":{"0":42}}`, with -2 for earliest and -1 for latest.',
        _READS,
    ),
    "endingOffsets": SourceOption(
        "`latest`",
        "Where the read stops: `latest` or an offset, which is not read; or Kafka's JSON.",
        (Use.BATCH_READ,),
    ),
    "startingTimestamp": SourceOption(
        "",
        "Read what was committed at this time or later: `2026-11-28T10:00:00Z`, with a time zone, "
        "or milliseconds since 1970. Instead of `startingOffsets`.",
        _READS,
    ),
    "endingTimestamp": SourceOption(
        "",
        "Read what was committed before this time. Instead of `endingOffsets`.",
        (Use.BATCH_READ,),
    ),
    "startingOffsetsByTimestamp": SourceOption(
        "",
        "Kafka's form of `startingTimestamp`, in milliseconds since 1970: "
        '`{"events":{"0":1700000000000}}`.',
        _READS,
    ),
    "endingOffsetsByTimestamp": SourceOption(
        "",
        "Kafka's form of `endingTimestamp`.",
        (Use.BATCH_READ,),
    ),
    "startingOffsetsByTimestampStrategy": SourceOption(
        "`error`, or `latest` with `startingTimestamp`",
        "What happens if nothing was committed at the starting time or later. `error` fails. "
        "`latest` begins at the log's end.",
        _READS,
    ),
    "versionAsOf": SourceOption(
        "",
        "Read the log as it was once it had this version of `view=history`. Instead of "
        "`endingOffsets`.",
        (Use.BATCH_READ,),
    ),
    "timestampAsOf": SourceOption(
        "",
        "Read the log as it was at this time, given as for `startingTimestamp`. Instead of "
        "`endingOffsets`.",
        (Use.BATCH_READ,),
    ),
    "maxEntriesPerTrigger": SourceOption(
        "", "The most rows that a micro-batch reads.", (Use.STREAM_READ,)
    ),
    "maxOffsetsPerTrigger": SourceOption(
        "", "Kafka's name of `maxEntriesPerTrigger`.", (Use.STREAM_READ,)
    ),
    "maxBytesPerTrigger": SourceOption(
        "",
        "About the most bytes that a micro-batch reads, for example `64MB`.",
        (Use.STREAM_READ,),
    ),
    "maxBytesPerPartition": SourceOption(
        "by size and cores",
        "About how many bytes a task reads, for example `128MB`. By default at most about 256 MiB.",
        _READS,
    ),
    "minPartitions": SourceOption(
        "by size and cores",
        "About the fewest tasks of a read, or of a micro-batch. A task reads one row at least.",
        _READS,
    ),
    "failOnDataLoss": SourceOption(
        "`true`",
        "`false` leaves out rows that no copy can give or that are gone, and reports them. `true` "
        "fails.",
        _READS,
    ),
    "mergeSchema": SourceOption(
        "`false`",
        "`true` lets an append add nullable columns and fields of structs, and widen types without "
        "loss, such as `int` to `bigint`.",
    ),
    "truncate": SourceOption(
        "`false`",
        'Must be `true` for `mode("overwrite")`, which replaces the whole log.',
        (Use.BATCH_WRITE,),
    ),
    ON_REPEATED_BATCH: SourceOption(
        "`compare`",
        "Whether a repeated last micro-batch must have the rows that were committed (`compare`). "
        "`skip` keeps the committed rows and compares nothing. It is for queries that give other "
        "rows each time they run.",
        (Use.STREAM_WRITE,),
    ),
    "view": SourceOption(
        "",
        "Read metadata as a DataFrame: `logs`, `ledgers`, `fragments`, `bookies`, `history`, "
        "`underreplicated`, `recoveries` or `tier`.",
        (Use.VIEW,),
    ),
}
"""By name, as users spell it, in the order of the page."""

SPARKS_NAMES = ("checkpointLocation", "queryName")
"""Options of a stream write for Spark itself, which Spark passes on to the source."""

_USES = {
    **{name: option.uses for name, option in OPTIONS.items() if option.uses},
    **dict.fromkeys(SPARKS_NAMES, (Use.STREAM_WRITE,)),
}


def belonging(options: Mapping[str, str], use: Use) -> dict[str, str]:
    """Return the ``options`` (by name in lower case) that belong to ``use``."""
    strange = {name.lower() for name in _strange(options, use)}
    return {name: value for name, value in options.items() if name not in strange}


def misplaced(names: Collection[str], use: Use) -> Iterator[str]:
    """Yield one line for each group of ``names`` (in lower case) that is misplaced in ``use``."""
    groups: dict[tuple[Use, ...], list[str]] = {}
    for name in _strange(names, use):
        groups.setdefault(_USES[name], []).append(name)
    for uses, found in groups.items():
        belong, it = ("belongs", "it") if len(found) == 1 else ("belong", "them")
        there = " or ".join(one.value for one in uses)
        yield f"{' and '.join(found)} {belong} to {there}: leave {it} out of {use.value}"


def _strange(names: Collection[str], use: Use) -> list[str]:
    """Return the ``names`` that do not belong to ``use``, as users spell them."""
    return [name for name in _USES if name.lower() in names and not _may_be_given(name, use)]


def _may_be_given(name: str, use: Use) -> bool:
    uses = _USES[name]
    is_shared = use in _SHARE_OPTIONS and not _SHARE_OPTIONS.isdisjoint(uses)
    return use in uses or (is_shared and name not in _ADDRESSES)
