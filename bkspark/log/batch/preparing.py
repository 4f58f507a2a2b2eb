"""Prepare a DataFrame write: the checks, the private ledger, its first ensemble.

All requests that can be refused are refused here, before a task runs. The values are in
``target``: a process that Spark starts to look at options does not load a cluster's client.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import make_digester, require_of_use
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema, digest, layout
from bkspark.ledger.creating import APPEND, OVERWRITE, create_ledger, of_log
from bkspark.log.batch.target import BatchTarget, WriteRequest
from bkspark.log.creating import schema_after
from bkspark.metadata import freshness
from bkspark.protocol.apart import NOTHING, Distinct, require_distinct
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import FIRST_TERM, DigestSpec, LedgerMetadata
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.transactions import require_of_application

DEFAULT_DIGEST_TYPE = digest.CRC32C


def prepare(request: WriteRequest) -> BatchTarget:
    """Check the request and create the private ledger that its tasks will fill.

    Raises:
        InvalidRequestError: the request contradicts itself, the log or its schema.
        NotEnoughBookiesError: too few usable bookies.
        UnauthorizedError: the password is missing or wrong.
    """
    with freshness.from_here(), Cluster(request.metadata_uri) as cluster:
        settings = resolve_settings(cluster, request)
        return done_target(request, settings) or own_target(cluster, request, settings)


def own_target(
    cluster: Cluster, request: WriteRequest, settings: "ResolvedSettings"
) -> BatchTarget:
    """Create a ledger for this write alone."""
    operation = OVERWRITE if request.is_overwrite else APPEND
    return private_target(cluster, request, settings, operation)


def private_target(
    cluster: Cluster,
    request: WriteRequest,
    settings: "ResolvedSettings",
    operation: str,
    *,
    goes_on: bool = False,
) -> BatchTarget:
    """Create a ledger that is on no log's list, with its ensemble and spares.

    Args:
        goes_on: whether later writers may continue the ledger in later terms.
    """
    log = settings.log
    created = create_ledger(
        cluster,
        quorum=settings.quorum,
        digest=settings.digest,
        schema=settings.schema,
        custom_metadata=of_log(request.log_name, operation),
        guarantees_write_quorum=bool(log and log.settings.guarantees_write_quorum),
        goes_on=goes_on,
        is_strict=settings.is_strict,
        min_distinct=settings.min_distinct,
    )
    target = target_of(request, created.seen.value, created.ensemble, created.spares)
    return target if log is None else replace(target, log_last_ms=log.last_ms)


def target_of(
    request: WriteRequest,
    ledger: LedgerMetadata,
    ensemble: Sequence[BookieAddress],
    spares: Sequence[BookieAddress],
) -> BatchTarget:
    """Return ``ledger`` as the target of ``request``; rows are stored with the ledger's schema."""
    return BatchTarget(
        request,
        ledger_id=ledger.ledger_id,
        term=ledger.term,
        token=ledger.token,
        quorum=ledger.quorum,
        wanted=sizes.wanted(ledger),
        schema=ledger.settings.schema,
        digest=ledger.settings.digest,
        ensemble=tuple(ensemble),
        spares=tuple(spares),
    )


@dataclass(frozen=True, slots=True)
class ResolvedSettings:
    """The settings of a write, by its request and the existing log.

    Attributes:
        log: None if the log does not exist yet.
        schema: schema of a ledger for the rows: the log's schema after the write.
    """

    log: LogRecord | None
    quorum: Quorum
    digest: DigestSpec
    schema: bytes
    is_strict: bool
    min_distinct: Distinct


def resolve_settings(cluster: Cluster, request: WriteRequest) -> ResolvedSettings:
    """Check the request against the log; change nothing.

    Raises:
        InvalidRequestError: the request contradicts itself, the log or its schema.
        UnauthorizedError: the password is missing or wrong.
    """
    arrow_schema.require_storable(request.schema)
    require_of_application(request.transaction)
    seen = cluster.logs.get(layout.log_name(request.log_name))
    if seen is not None:
        cluster.logs.require_room(seen, arrow_schema.encode(request.schema))
    log = None if seen is None or seen.value.is_tombstone else seen.value
    is_strict = bool(request.is_strict)
    quorum = _quorum_of(request, log)
    min_distinct = require_distinct(request.min_distinct or NOTHING, quorum)
    spec = _digest_of(request, log)
    make_digester(spec, request.password)
    schema = arrow_schema.encode(request.schema)
    if log is not None:
        log.settings.require_unbounded(log.name, request.is_unbounded)
        is_strict = log.settings.strictness(log.name, request.is_strict)
        min_distinct = log.settings.distinctness(log.name, request.min_distinct)
        schema = schema_after(request.schema, log, request.merges_schema, request.is_overwrite)
    return ResolvedSettings(log, quorum, spec, schema, is_strict, min_distinct)


def _quorum_of(request: WriteRequest, log: LogRecord | None) -> Quorum:
    if log is None:
        return request.quorum or DEFAULT_QUORUM
    if request.quorum not in (None, log.quorum):
        raise InvalidRequestError(
            f"log {log.name!r} was created with quorum sizes {_sizes(log.quorum)}, "
            f"not {_sizes(request.quorum or DEFAULT_QUORUM)}",
            hint="leave ensembleSize, writeQuorumSize and ackQuorumSize out",
        )
    return log.quorum


def _digest_of(request: WriteRequest, log: LogRecord | None) -> DigestSpec:
    if log is None:
        wanted = request.digest_type or DEFAULT_DIGEST_TYPE
        return digest.new_spec(wanted, request.password.resolve())
    if request.digest_type not in (None, log.digest.digest_type):
        raise InvalidRequestError(
            f"log {log.name!r} was created with digestType {log.digest.digest_type}, "
            f"not {request.digest_type}",
            hint="leave digestType out",
        )
    require_of_use(log, request.password)
    return log.digest


def _sizes(quorum: Quorum) -> str:
    return f"{quorum.ensemble_size}/{quorum.write_quorum_size}/{quorum.ack_quorum_size}"


def done_target(request: WriteRequest, settings: ResolvedSettings) -> BatchTarget | None:
    """Return a target without a ledger for a write that the log already has; else None."""
    if settings.log is None or not settings.log.has_committed(request.transaction):
        return None
    return BatchTarget(
        request,
        ledger_id=-1,
        term=FIRST_TERM,
        token="0" * 32,
        quorum=settings.quorum,
        wanted=settings.quorum,
        schema=arrow_schema.encode(request.schema),
        digest=settings.digest,
        ensemble=(),
        spares=(),
        is_done=True,
    )
