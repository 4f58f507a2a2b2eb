"""What each option of ``format("bookkeeper")`` means, for the page of options."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionHelp:
    """One option's line.

    Attributes:
        default: as a user would write it; empty if there is none.
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
    "ledgerId": OptionHelp("", "Read this ledger instead of a log, up to what is confirmed."),
    "ensembleSize": OptionHelp(
        "3", "Over how many bookies a new log's ledgers are striped. A log keeps its value."
    ),
    "writeQuorumSize": OptionHelp(
        "3", "How many bookies store each row of a new log. A log keeps its value."
    ),
    "ackQuorumSize": OptionHelp(
        "2", "How many bookies must store a row before it counts. A log keeps its value."
    ),
    "digestType": OptionHelp(
        "`CRC32C`", "`MAC` also detects forgery, and needs a password. A log keeps its value."
    ),
    "unbounded": OptionHelp(
        "`false`", "`true` creates the log as unbounded. An existing log keeps its kind."
    ),
    "strict": OptionHelp(
        "`false`",
        "`true` refuses the write while fewer than `ensembleSize` bookies can be used. Otherwise "
        "a smaller ledger is made on at least `ackQuorumSize` bookies. A log that is created "
        "strict stays so.",
    ),
    "password": OptionHelp("", "The ledger password itself. Prefer the next two options."),
    "passwordFile": OptionHelp("", "A file that holds the ledger password."),
    "passwordEnv": OptionHelp("", "An environment variable that holds the ledger password."),
    "compression": OptionHelp("`none`", "How stored rows are compressed: `none`, `lz4`, `zstd`."),
    "rowsPerBlock": OptionHelp(
        "65536", "The most rows of a block: the unit of digests and splits."
    ),
    "targetBlockBytes": OptionHelp("2 MiB", "About how many bytes a block has."),
    "txnAppId": OptionHelp("", "Who writes, for idempotent writes; needs `txnVersion`."),
    "txnVersion": OptionHelp(
        "", "A number that grows with each write. A version that is not above the last is skipped."
    ),
    "includeMetadata": OptionHelp("`false`", "Adds `_offset`, `_ledger_id` and `_entry_id`."),
    "startingOffsets": OptionHelp("`earliest`", "`earliest`, `latest` or a log offset."),
    "endingOffsets": OptionHelp("`latest`", "`latest` or a log offset; the end is exclusive."),
    "maxEntriesPerTrigger": OptionHelp("", "The most rows that a micro-batch reads."),
    "maxBytesPerTrigger": OptionHelp("", "About the most bytes that a micro-batch reads."),
    "maxBytesPerPartition": OptionHelp(
        "by size and cores", "About how many bytes a task reads; 256 MiB at most by default."
    ),
    "failOnDataLoss": OptionHelp(
        "`true`", "`false` leaves out rows that no copy can give, and reports how many."
    ),
    "mergeSchema": OptionHelp("`false`", "An append may add nullable columns."),
    "truncate": OptionHelp(
        "`false`", "Must be `true` for `overwrite`, which replaces the whole log."
    ),
    "onRepeatedBatch": OptionHelp(
        "`compare`",
        "The last committed micro-batch, if it comes again, must have the same rows. `skip` does "
        "not compare them, for queries that give other rows each time they run.",
    ),
    "view": OptionHelp(
        "",
        "Read metadata as a DataFrame: `ledgers`, `fragments`, `bookies`, `history`, "
        "`underreplicated` or `recoveries`.",
    ),
}
"""By name, as users spell it, in the order of the page."""
