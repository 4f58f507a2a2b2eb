"""Creating a log without a ledger in it."""

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.format import arrow_schema, layout
from bkspark.ledger.creating import require_room
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.settings import LogSettings
from bkspark.protocol.log.stream_run import StreamRun


def create_log(
    cluster: Cluster,
    name: str,
    settings: LogSettings,
    schema: pa.Schema,
    *,
    run: StreamRun | None = None,
) -> Versioned[LogRecord]:
    """An empty log with these settings.

    Args:
        run: of the query that writes to it first, if it is one.

    Raises:
        LedgerExistsError: there is a log of this name.
        InvalidRequestError: the name or the schema is not allowed.
        LedgerFencedError: a newer run of the query has taken over.
        NoSuchLedgerError: rows of the query went with a deleted log of this name.
    """
    arrow_schema.require_storable(schema)
    stored = arrow_schema.encode(schema)
    require_room(stored)

    def created(record: LogRecord | None) -> LogRecord:
        log = LogRecord.of(record, name, settings.quorum)
        log = log if run is None else log.with_stream(run)
        return log.created(settings, stored).stamped(environment.now_ms())

    return cluster.logs.update(layout.log_name(name), created)
