"""Create a log without a ledger."""

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.format import arrow_schema, layout
from bkspark.ledger.creating import require_room
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.stream_run import StreamRun


def create_log(
    cluster: Cluster,
    name: str,
    settings: LogSettings,
    schema: pa.Schema,
    *,
    run: StreamRun | None = None,
) -> Versioned[LogRecord]:
    """Create an empty log with these settings.

    Args:
        run: the run of the streaming query that writes first, if a query creates the log.

    Raises:
        LedgerExistsError: a log of this name exists.
        InvalidRequestError: the name or the schema is not allowed.
        LedgerFencedError: a newer run of the query has taken over.
        NoSuchLedgerError: a deleted log of this name had rows of the query.
    """
    arrow_schema.require_storable(schema)
    stored = arrow_schema.encode(schema)
    require_room(stored)

    def created(record: LogRecord | None) -> LogRecord:
        log = LogRecord.of(record, name, settings.quorum)
        log = log if run is None else log.with_stream(run)
        return log.created(settings, stored).stamped(environment.now_ms())

    return cluster.logs.update(layout.log_name(name), created)
