"""Views of logs: what there is, and the ledgers on each list in order."""

import pyarrow as pa

from bkspark.client.cluster import Cluster
from bkspark.client.upkeep.views.sharing import (
    QUORUM_FIELDS,
    TIME,
    Row,
    all_logs,
    columns_of,
    quorum_of,
    timestamp,
)
from bkspark.protocol.ledger import LedgerMetadata

LOGS = pa.schema(
    [
        ("log", pa.string()),
        ("entries", pa.int64()),
        ("first_offset", pa.int64()),
        ("end_offset", pa.int64()),
        ("bytes", pa.int64()),
        ("ledgers", pa.int32()),
        ("tail", pa.list_(pa.int64())),
        ("is_sealed", pa.bool_()),
        ("generation", pa.int32()),
        *QUORUM_FIELDS,
        ("digest_type", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("created", TIME),
        ("changed", TIME),
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
        (
            "transactions",
            pa.list_(pa.struct([("app_id", pa.string()), ("version", pa.int64())])),
        ),
    ]
)


def logs(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per log; entries and bytes are those of its closed ledgers."""
    return [
        {
            "log": log.name,
            "entries": log.end_offset - log.first_offset,
            "first_offset": log.first_offset,
            "end_offset": log.end_offset,
            "bytes": log.length_bytes,
            "ledgers": len(log.listed_ids),
            "tail": list(log.tail),
            "is_sealed": log.is_sealed,
            "generation": log.generation,
            **quorum_of(log),
            "digest_type": log.digest.digest_type,
            "columns": columns_of(log.schema),
            "created": timestamp(log.created_ms),
            "changed": timestamp(log.changed_ms),
        }
        for log in all_logs(cluster, log_name)
    ]


def history(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per ledger on a log's list, in order; an open one has no entries and bytes yet."""
    rows = []
    for log in all_logs(cluster, log_name):
        places = {ledger.ledger_id: ledger for ledger in log.ledgers}
        for number, ledger_id in enumerate(log.listed_ids):
            place = places.get(ledger_id)
            seen = cluster.ledgers.get(str(ledger_id))
            rows.append(
                {
                    "log": log.name,
                    "generation": log.generation,
                    "version": number,
                    "timestamp": None if seen is None else timestamp(seen.value.created_ms),
                    "operation": "append",
                    "ledger_id": ledger_id,
                    "first_offset": place and place.first_offset,
                    "entries": place and place.entry_count,
                    "bytes": place and place.length_bytes,
                    "transactions": _transactions(None if seen is None else seen.value),
                }
            )
    return rows


def _transactions(ledger: LedgerMetadata | None) -> list[Row]:
    done = {} if ledger is None else ledger.transactions
    return [{"app_id": app_id, "version": version} for app_id, version in sorted(done.items())]
