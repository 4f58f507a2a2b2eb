"""The meaning of each option of ``format("bookkeeper")``, for the page of options."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionHelp:
    """The help of one option.

    Attributes:
        default: in the user's spelling; empty if the option has no default.
        meaning: one or two sentences, in Markdown.
    """

    default: str
    meaning: str


HELP: Mapping[str, OptionHelp] = {
    "metadataServiceUri": OptionHelp(
        "`BKSPARK_METADATA_URI`",
        "The cluster: `file:///data/meta`, `s3://bucket/meta` or `zk://host:port,host:port/path`.",
    ),
    "path": OptionHelp("", "The log's name, as `save`, `load` and `start` pass it."),
    "ledgerId": OptionHelp(
        "", "Read this ledger instead of a log, up to its last confirmed entry."
    ),
    "ensembleSize": OptionHelp(
        "3", "How many bookies a ledger of a new log uses. A log keeps its value."
    ),
    "writeQuorumSize": OptionHelp(
        "3", "How many bookies store each row of a new log. A log keeps its value."
    ),
    "ackQuorumSize": OptionHelp(
        "2", "How many bookies must store a row before it is acknowledged. A log keeps its value."
    ),
    "digestType": OptionHelp(
        "`CRC32C`",
        "`CRC32C` detects damage. `MAC` also detects forgery, and needs a password. A log keeps "
        "its value.",
    ),
    "unbounded": OptionHelp(
        "`false`",
        "`true` creates the log as one ledger that each new writer takes over. An existing log "
        "keeps its kind.",
    ),
    "strict": OptionHelp(
        "`false`",
        "`true` refuses the write if fewer than `ensembleSize` bookies can be used. Otherwise the "
        "write makes a smaller ledger, on at least `ackQuorumSize` bookies. A log that is created "
        "strict stays strict.",
    ),
    "password": OptionHelp("", "The ledger password itself. Prefer the next two options."),
    "passwordFile": OptionHelp("", "A file that holds the ledger password."),
    "passwordEnv": OptionHelp("", "An environment variable that holds the ledger password."),
    "compression": OptionHelp("`none`", "How stored rows are compressed: `none`, `lz4`, `zstd`."),
    "rowsPerBlock": OptionHelp(
        "65536",
        "The most rows of a block. Each block has a checksum, and tasks split a read by blocks.",
    ),
    "targetBlockBytes": OptionHelp(
        "2 MiB", "About how many bytes a block has. Units such as `4MB` work."
    ),
    "txnAppId": OptionHelp("", "The job's name, for writes that run once. Needs `txnVersion`."),
    "txnVersion": OptionHelp(
        "",
        "A number that grows with each run of `txnAppId`. A write whose number is not above the "
        "last committed one writes nothing.",
    ),
    "includeMetadata": OptionHelp(
        "`false`", "Adds the columns `_offset`, `_ledger_id` and `_entry_id`."
    ),
    "columns": OptionHelp(
        "all",
        "The columns to read, for example `id, text`. Tasks read and check the bytes of these "
        "columns only. A name that holds a comma stands in backquotes.",
    ),
    "startingOffsets": OptionHelp(
        "`earliest`",
        "`earliest`, `latest` or an offset. A query that has a checkpoint goes on there instead.",
    ),
    "endingOffsets": OptionHelp(
        "`latest`", "Where the read stops: `latest` or an offset, which is not read."
    ),
    "maxEntriesPerTrigger": OptionHelp("", "The most rows that a micro-batch reads."),
    "maxBytesPerTrigger": OptionHelp(
        "", "About the most bytes that a micro-batch reads, for example `64MB`."
    ),
    "maxBytesPerPartition": OptionHelp(
        "by size and cores",
        "About how many bytes a task reads, for example `128MB`. By default at most about 256 MiB.",
    ),
    "failOnDataLoss": OptionHelp(
        "`true`",
        "`false` leaves out rows that no copy can give or that are gone, and reports them. `true` "
        "fails.",
    ),
    "mergeSchema": OptionHelp("`false`", "`true` lets an append add nullable columns."),
    "truncate": OptionHelp(
        "`false`", 'Must be `true` for `mode("overwrite")`, which replaces the whole log.'
    ),
    "onRepeatedBatch": OptionHelp(
        "`compare`",
        "Whether a repeated last micro-batch must have the rows that were committed (`compare`). "
        "`skip` keeps the committed rows and compares nothing. It is for queries that give other "
        "rows each time they run.",
    ),
    "view": OptionHelp(
        "",
        "Read metadata as a DataFrame: `logs`, `ledgers`, `fragments`, `bookies`, `history`, "
        "`underreplicated` or `recoveries`.",
    ),
}
"""By name, as users spell it, in the order of the page."""
