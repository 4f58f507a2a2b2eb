"""Founding a log without a ledger in it."""

import pyarrow as pa

from bkspark.client.cluster import Cluster, now_ms
from bkspark.client.records import Seen
from bkspark.format import arrow_schema, layout
from bkspark.protocol.ledger import DigestSpec
from bkspark.protocol.log import LogRecord
from bkspark.protocol.quorum import Quorum


def found_log(
    cluster: Cluster, name: str, quorum: Quorum, digest: DigestSpec, schema: pa.Schema
) -> Seen[LogRecord]:
    """An empty log with these settings.

    Raises:
        LedgerExistsError: there is a log of this name.
        InvalidRequestError: the name or the schema is not allowed.
    """
    arrow_schema.require_storable(schema)
    stored = arrow_schema.encode(schema)

    def founded(record: LogRecord | None) -> LogRecord:
        vacant = record or LogRecord.vacant(name, quorum)
        return vacant.founded(quorum, digest, stored).stamped(now_ms())

    return cluster.logs.update(layout.log_name(name), founded)
