"""The columns of the views, as tables of Arrow."""

import pyarrow as pa

TIME = pa.timestamp("us", tz="UTC")

QUORUM_FIELDS = (
    ("ensemble_size", pa.int32()),
    ("write_quorum_size", pa.int32()),
    ("ack_quorum_size", pa.int32()),
    ("guarantees_write_quorum", pa.bool_()),
    ("min_distinct", pa.map_(pa.string(), pa.int32())),
)

LOGS = pa.schema(
    [
        ("log", pa.string()),
        ("entries", pa.int64()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("bytes", pa.int64()),
        ("is_end_known", pa.bool_()),
        ("ledgers", pa.int32()),
        ("tail", pa.list_(pa.int64())),
        ("tail_confirmed", pa.list_(pa.int64())),
        ("is_sealed", pa.bool_()),
        ("generation", pa.int32()),
        *QUORUM_FIELDS,
        ("is_unbounded", pa.bool_()),
        ("retention_bytes", pa.int64()),
        ("retention_seconds", pa.float64()),
        ("digest_type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("created", TIME),
        ("changed", TIME),
    ]
)

LEDGERS = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("place", pa.string()),
        ("state", pa.string()),
        ("entries", pa.int64()),
        ("bytes", pa.int64()),
        ("term", pa.int64()),
        ("fragments", pa.int32()),
        *QUORUM_FIELDS,
        ("digest_type", pa.string()),
        ("created", TIME),
    ]
)

FRAGMENTS = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("first_entry_id", pa.int64()),
        ("last_entry_id", pa.int64()),
        ("term", pa.int64()),
        ("ensemble", pa.list_(pa.string())),
    ]
)

BOOKIES = pa.schema(
    [
        ("bookie_id", pa.string()),
        ("url", pa.string()),
        ("store", pa.string()),
        ("domain", pa.string()),
        ("labels", pa.map_(pa.string(), pa.string())),
        ("is_usable", pa.bool_()),
        ("is_writable", pa.bool_()),
        ("is_lost", pa.bool_()),
        ("is_read_only", pa.bool_()),
        ("is_full", pa.bool_()),
        ("is_leaving", pa.bool_()),
        ("free_bytes", pa.int64()),
        ("incarnation", pa.string()),
        ("problem", pa.string()),
    ]
)

HISTORY = pa.schema(
    [
        ("log", pa.string()),
        ("generation", pa.int32()),
        ("version", pa.int64()),
        ("timestamp", TIME),
        ("operation", pa.string()),
        ("ledger_id", pa.int64()),
        ("first_offset", pa.int64()),
        ("entries", pa.int64()),
        ("bytes", pa.int64()),
        ("first_committed", TIME),
        ("last_committed", TIME),
        (
            "transactions",
            pa.list_(pa.struct([("app_id", pa.string()), ("version", pa.int64())])),
        ),
    ]
)

UNDERREPLICATED = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("fragment", pa.int64()),
        ("first_entry_id", pa.int64()),
        ("last_entry_id", pa.int64()),
        ("bookie_id", pa.string()),
        ("copies", pa.string()),
        ("is_unknown", pa.bool_()),
        ("missing", pa.string()),
        ("reason", pa.string()),
    ]
)

RECOVERIES = pa.schema(
    [
        ("ledger_id", pa.int64()),
        ("log", pa.string()),
        ("term", pa.int64()),
        ("entry_id", pa.int64()),
        ("waiting_for", pa.list_(pa.string())),
        ("reason", pa.string()),
        ("hint", pa.string()),
        ("told", TIME),
    ]
)
"""Without a note, all columns after ``term`` are empty."""

TIER = pa.schema(
    [
        ("log", pa.string()),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("begin", pa.int64()),
        ("freed", pa.int64()),
        ("copied", pa.int64()),
        ("freed_bytes", pa.int64()),
        ("copied_bytes", pa.int64()),
        ("last_copied", TIME),
        ("verified_version", pa.int64()),
        ("segments", pa.int32()),
        ("copying", pa.list_(pa.int64())),
        ("missing", pa.list_(pa.list_(pa.int64()))),
    ]
)

SCHEMAS = {
    "logs": LOGS,
    "ledgers": LEDGERS,
    "fragments": FRAGMENTS,
    "bookies": BOOKIES,
    "history": HISTORY,
    "underreplicated": UNDERREPLICATED,
    "recoveries": RECOVERIES,
    "tier": TIER,
}
