"""Create a log without a ledger, and ledgers for a log that are on no list yet."""

from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.format import arrow_schema, layout
from bkspark.ledger.creating import WRITER, CreatedLedger, create_ledger, of_log, require_room
from bkspark.ledger.deleting import make_tombstone
from bkspark.protocol.ledger.metadata import LedgerMetadata
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


def create_log_ledger(
    cluster: Cluster,
    log: LogRecord,
    password: Password,
    schema: bytes | None = None,
    operation: str = WRITER,
    *,
    goes_on: bool = False,
    is_strict: bool = False,
    new_id: int | None = None,
) -> CreatedLedger:
    """Create an OPEN ledger with the log's settings, on no list yet; the caller is its writer.

    Args:
        goes_on: whether later writers may continue the ledger in later terms.
        is_strict: whether a smaller ledger is forbidden, even if the log is not strict.
        new_id: as for ``create_ledger``.
    """
    return create_ledger(
        cluster,
        quorum=log.quorum,
        digest=log.digest,
        schema=schema or log.schema,
        custom_metadata=of_log(log.name, operation),
        digester=make_digester(log.digest, password),
        guarantees_write_quorum=log.settings.guarantees_write_quorum,
        goes_on=goes_on,
        is_strict=is_strict or log.settings.is_strict,
        min_distinct=log.settings.min_distinct,
        new_id=new_id,
    )


def drop_unlisted(cluster: Cluster, log_name: str, created: CreatedLedger) -> None:
    """Bar a ledger from the log and delete it, unless the ledger is on the list.

    For a ledger whose compare-and-set was lost, or had no known outcome. The log's record notes the
    ledger as to be deleted, until it is deleted. Errors are ignored, because the caller already has
    an error to raise: the next truncation or garbage collection does the rest.
    """
    ledger, ledger_id = created.seen, created.seen.value.ledger_id
    created.begun.close()
    with suppress(BookKeeperError):
        log = cluster.logs.update(log_name, lambda record: _without(record, log_name, ledger)).value
        if ledger_id in log.dropped.to_delete:
            make_tombstone(cluster, ledger_id)
            cluster.logs.update(log_name, lambda record: (record or log).forgetting([ledger_id]))


def _without(
    record: LogRecord | None, log_name: str, ledger: Versioned[LedgerMetadata]
) -> LogRecord:
    """Return the log without the ledger, and note the ledger for deletion.

    A ledger that was dropped before is not noted again: the client that dropped it deletes it.
    """
    log = LogRecord.of(record, log_name, ledger.value.quorum)
    ledger_id = ledger.value.ledger_id
    if log.without(ledger_id) is log:
        return log
    return replace(log, dropped=log.dropped.with_more_to_delete([ledger_id]))


# --- schema --------------------------------------------------------------------------------------
# The schema of a log, and of rows to be written to a log.


def schema_after(
    schema: pa.Schema, log: LogRecord, merges_schema: bool, is_overwrite: bool
) -> bytes:
    """Return the log's schema after rows of ``schema`` are added.

    Raises:
        InvalidRequestError: the schemas do not fit; the message shows the difference.
    """
    if is_overwrite or log.is_tombstone or is_undecided(log):
        return arrow_schema.encode(schema)
    base = arrow_schema.decode(log.schema)
    if arrow_schema.fits(base, schema):
        return log.schema
    both = arrow_schema.filled(base, schema)
    if both is not None:
        return arrow_schema.encode(both)
    if merges_schema:
        return arrow_schema.encode(arrow_schema.merged(base, schema))
    raise InvalidRequestError(
        f"the schema does not match log {log.name!r}: {arrow_schema.difference(base, schema)}",
        hint=arrow_schema.with_table(_way_to_fit(base, schema), base, schema, may_merge=True),
    )


def is_undecided(log: LogRecord) -> bool:
    """Whether the log was created without a schema, and will take the schema of the first append.

    Until then the log is a log of bytes. A writer of bytes that opens the log makes the choice
    final.
    """
    is_empty = not (log.end_offset or log.tail)
    return is_empty and arrow_schema.decode(log.schema).equals(arrow_schema.BYTES_SCHEMA)


def _way_to_fit(base: pa.Schema, schema: pa.Schema) -> str:
    """Return a hint for rows of ``schema``; suggest mergeSchema only where it would help."""
    try:
        arrow_schema.merged(base, schema)
    except InvalidRequestError:
        return "select and cast the columns that the log has"
    return "select the columns that the log has, or set mergeSchema=true"
