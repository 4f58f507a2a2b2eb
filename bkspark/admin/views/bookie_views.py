"""The view of bookies, each probed now."""

import pyarrow as pa

from bkspark.admin.views.sharing import Row, all_ledgers
from bkspark.cluster.cluster import Cluster
from bkspark.storage.shown import shown_url

BOOKIES = pa.schema(
    [
        ("bookie_id", pa.string()),
        ("url", pa.string()),
        ("domain", pa.string()),
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


def bookies(cluster: Cluster, log_name: str | None) -> list[Row]:
    """One row per registered bookie, probed now; with a log only bookies of its ledgers.

    ``free_bytes`` is null if unknown, as for object stores and silent bookies.
    """
    lost = cluster.lost_members()
    serving = None if log_name is None else _serving(cluster, log_name)
    return [
        {
            "bookie_id": status.record.bookie_id,
            "url": shown_url(status.record.url),
            "domain": status.record.domain,
            "is_usable": not status.problem,
            "is_writable": not (status.problem or status.write_problem),
            "is_lost": status.member in lost,
            "is_read_only": status.record.is_read_only,
            "is_full": status.is_full,
            "is_leaving": status.record.is_leaving,
            "free_bytes": status.free_bytes if status.tells_space else None,
            "incarnation": status.record.incarnation,
            "problem": status.problem or status.write_problem or status.full_note or None,
        }
        for status in cluster.probe()
        if serving is None or status.record.bookie_id in serving
    ]


def _serving(cluster: Cluster, log_name: str) -> set[str]:
    return {
        member.bookie_id
        for ledger in all_ledgers(cluster, log_name)
        for fragment in ledger.fragments
        for member in fragment.ensemble
    }
