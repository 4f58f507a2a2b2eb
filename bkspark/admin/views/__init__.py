"""Metadata as tables, for the ``view`` option of a read and for the command line.

Every view is a schema and a function making its rows. Views are small: their rows grow with ledgers
and bookies, not with entries. Views are for people: no decision uses the times they show.
"""

import pyarrow as pa

from bkspark.admin.stuck_recoveries import STUCK_SCHEMA
from bkspark.admin.views import bookie_views, ledger_views, log_views
from bkspark.admin.views.bookie_views import bookies
from bkspark.admin.views.ledger_views import (
    fragments,
    fragments_of,
    ledger_rows,
    ledgers,
    recoveries,
    recovery_of,
    recovery_rows,
    underreplicated,
)
from bkspark.admin.views.log_views import LOST, history, logs
from bkspark.admin.views.sharing import (
    DROPPED,
    LISTED,
    Row,
    View,
    columns_of,
    sizes_of,
    timestamp,
)
from bkspark.cluster.cluster import Cluster

__all__ = [
    "DROPPED",
    "LISTED",
    "LOST",
    "VIEWS",
    "Row",
    "View",
    "bookies",
    "columns_of",
    "fragments",
    "fragments_of",
    "history",
    "ledger_rows",
    "ledgers",
    "logs",
    "recoveries",
    "recovery_of",
    "recovery_rows",
    "sizes_of",
    "table",
    "timestamp",
    "underreplicated",
]

VIEWS: dict[str, View] = {
    "logs": View(log_views.LOGS, logs),
    "ledgers": View(ledger_views.LEDGERS, ledgers),
    "fragments": View(ledger_views.FRAGMENTS, fragments),
    "bookies": View(bookie_views.BOOKIES, bookies),
    "history": View(log_views.HISTORY, history),
    "underreplicated": View(ledger_views.UNDERREPLICATED, underreplicated),
    "recoveries": View(STUCK_SCHEMA, recoveries),
}


def table(view: str, cluster: Cluster, log_name: str | None) -> pa.Table:
    """Return the rows of the named view.

    Raises:
        NoSuchLedgerError: there is no log ``log_name``.
    """
    found = VIEWS[view]
    return pa.Table.from_pylist(found.rows(cluster, log_name), schema=found.schema)
