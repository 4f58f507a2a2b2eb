"""The runs of a streaming query that writes into a log, and the position of one that reads."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from bkspark.errors import (
    InvalidRequestError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.protocol.log.transactions import QUERIES_MAX, QUERY, digest_of, known_queries

# --- stream run ----------------------------------------------------------------------------------
# The runs of a streaming query that write into a log.
#
# Rule 1. Of the runs of a query only the newest may write; a run becomes the newest the first time
# it opens the log. A run listed before another run has been replaced, and must end.
#
# Rule 2. A log remembers a bounded number of queries, and of runs of each: those with the latest
# start of a run. A resumed run that is no longer listed counts as the newest, and the current run
# is stopped. No row is lost or written twice: the log's transactions decide each micro-batch and
# remember far more ("transactions", rules 2 to 4), and both runs read their rows from one
# checkpoint.
#
# Rule 3. Deleting a log removes rows that checkpoints count as written. So the name remembers these
# queries for ever. None of them writes to a later log of the name without a new checkpoint. Only a
# mark is proof: micro-batches without rows leave no mark, so a query without a mark may have lost
# no rows.
#
# Rule 4. All micro-batches of a run go into one cluster. Otherwise the rows before a change of the
# cluster would be in the one, and the rows after it in the other.


RUNS_MAX = 16
"""Runs remembered of a query; an older run that resumes counts as a new run."""

Streams = Mapping[str, tuple[str, ...]]
"""Per query id the ids of its runs, the current run last; queries in the order of their last new
run.
"""


@dataclass(frozen=True, slots=True)
class StreamRun:
    """One run of a streaming query: Spark's ids of the query and of this start."""

    query_id: str
    run_id: str


def with_run(streams: Streams, run: StreamRun) -> Streams:
    """Return ``streams`` with ``run`` as the current run of its query.

    Raises:
        LedgerFencedError: a newer run has taken over.
    """
    runs = streams.get(run.query_id, ())
    if runs[-1:] == (run.run_id,):
        return streams
    if run.run_id in runs:
        raise LedgerFencedError(
            f"a newer run of query {run.query_id} has taken over",
            hint="let this run end; if the newer run has ended too, start the query again",
        )
    others = [(query_id, kept) for query_id, kept in streams.items() if query_id != run.query_id]
    return dict([*others, (run.query_id, (*runs, run.run_id)[-RUNS_MAX:])][-QUERIES_MAX:])


def require_same_cluster(run: StreamRun, before: str, now: str) -> None:
    """Check that a micro-batch goes into the cluster of the run's earlier ones (rule 4).

    Args:
        before: the id of the cluster of the earlier micro-batches; empty if it is not known.
        now: the id of the cluster in which the tasks wrote the micro-batch.

    Raises:
        InvalidRequestError: the cluster is another one.
    """
    if before not in ("", now):
        raise InvalidRequestError(
            f"query {run.query_id} wrote its earlier micro-batches to cluster {before}, and "
            f"the metadata URI now leads to cluster {now}; nothing was committed",
            hint="bring the earlier cluster back and restart the query, or begin with a new "
            "checkpoint in this one",
        )


def app_id(query_id: str) -> str:
    """Return the query's name among the log's transactions."""
    return f"{QUERY}{query_id}"


def queries_of(streams: Streams, transactions: Mapping[str, int]) -> tuple[str, ...]:
    """Return all queries that may have rows in a log: by name, by digest, or by a run.

    The marks in an open tail are not among ``transactions``, but the tail's writer has registered a
    run.
    """
    marked = known_queries(transactions)
    return tuple(dict.fromkeys([*marked, *streams]))


def require_not_orphaned(run: StreamRun, orphaned_queries: Collection[str], log_name: str) -> None:
    """Check that no deletion of a log of this name removed rows of the query (rule 3).

    Raises:
        NoSuchLedgerError: a deletion removed such rows.
    """
    if not {run.query_id, digest_of(app_id(run.query_id))}.isdisjoint(orphaned_queries):
        raise NoSuchLedgerError(
            f"log {log_name!r} was deleted after query {run.query_id} had written to it: rows "
            "that its checkpoint counts as written are gone, so the query cannot continue",
            hint="start the query with a new checkpoint, which creates the log if there is none",
        )


# --- stream position -----------------------------------------------------------------------------
# The position of a streaming query in a log, and where the query continues.
#
# Rule 1. An offset has a meaning only within its generation: an overwritten log, or a log deleted
# and made anew, counts from 0 again. So a position has both.
#
# Rule 2. Ends are exclusive: a batch ``[start, end)`` has the same rows in every run, and the next
# batch begins at ``end``.
#
# Rule 3. A query never skips lost rows silently: the query gets an error or, on request, a reported
# skip.
#
# Rule 4. A position has a meaning only within its cluster: another cluster's log of the same name
# has other rows at the same offsets.


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The first unread offset, in its generation."""

    generation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of a log that can be read now.

    Attributes:
        has_open_end: more entries may be confirmed, because not every bookie of the tail answers.
    """

    log_name: str
    generation: int
    first_offset: int
    end_offset: int
    has_open_end: bool = False


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where to continue.

    Attributes:
        loss: the lost rows between the old position and this position, in one line; mostly empty.
        skipped: number of lost entries; None if unknown, because their generation is gone.
    """

    begin: Position
    loss: str = ""
    skipped: int | None = 0


def begin_at(offset: int, extent: Extent) -> Position:
    """Return the position of ``offset``, requested by a new query.

    Raises:
        NoSuchEntryError: the offset is after the log's end.
    """
    if offset > extent.end_offset:
        raise NoSuchEntryError(
            f"log {extent.log_name!r} ends at offset {extent.end_offset}, and a query cannot "
            f"start after that, at {offset}",
            hint="set startingOffsets to latest",
        )
    return Position(extent.generation, offset)


def resume(start: Position, extent: Extent, *, fails_on_loss: bool) -> Resumption:
    """Return where to continue from ``start`` in the log as of now.

    Raises:
        NoSuchEntryError: rows after ``start`` are lost, and this query treats loss as an error.
        InvalidRequestError: ``start`` is not a position of this log.
    """
    _require_reached(start, extent)
    first = Position(extent.generation, extent.first_offset)
    if start >= first:
        return Resumption(start)
    if start.generation < extent.generation:
        loss = (
            f"log {extent.log_name!r} was overwritten, or deleted and created again: the "
            f"query is at offset {start.offset} of generation {start.generation}, and the log "
            f"has only generation {extent.generation}"
        )
        hint = "the first of its new rows"
        skipped = None
    else:
        loss = (
            f"log {extent.log_name!r} is truncated below offset {extent.first_offset}, and the "
            f"query is at {start.offset}"
        )
        hint = f"offset {extent.first_offset}"
        skipped = extent.first_offset - start.offset
    if fails_on_loss:
        raise NoSuchEntryError(
            loss,
            hint=f"begin with a new checkpoint, or set failOnDataLoss=false to continue at {hint}",
        )
    return Resumption(first, loss, skipped)


def batch_end(begin: int, end: int, lost: Iterable[tuple[int, int]]) -> int:
    """Return the end of a batch ``[begin, end)`` that has no lost offsets, or nothing else.

    So a query reads all entries before a lost place, and passes the whole place in one batch.

    Args:
        lost: ranges of lost offsets within the batch, in order.
    """
    for first, past in lost:
        return first if begin < first else past
    return end


def require_order(start: Position, end: Position) -> None:
    """Check that a batch does not end before its start.

    Raises:
        InvalidRequestError: the batch ends before its start.
    """
    if end < start:
        raise InvalidRequestError(
            f"a batch begins at offset {start.offset} of generation {start.generation} and ends "
            f"before it, at {end.offset} of generation {end.generation}",
            hint="the checkpoint is damaged; begin with a new one",
        )


def require_cluster(found: str, cluster_id: str, log_name: str) -> None:
    """Check that a checkpoint's position is of the cluster that is read.

    Args:
        found: the cluster's id in the checkpoint; empty if the checkpoint does not have it.

    Raises:
        InvalidRequestError: the position is of another cluster.
    """
    if found not in ("", cluster_id):
        raise InvalidRequestError(
            f"the checkpoint is of log {log_name!r} in cluster {found}, and the query reads from "
            f"cluster {cluster_id}",
            hint="begin with a new checkpoint to read this cluster, or give the query the metadata "
            "URI of the other one",
        )


def _require_reached(position: Position, extent: Extent) -> None:
    end = Position(extent.generation, extent.end_offset)
    is_perhaps_unseen = extent.has_open_end and position.generation == extent.generation
    if position > end and not is_perhaps_unseen:
        raise InvalidRequestError(
            f"log {extent.log_name!r} ends at offset {end.offset} of generation "
            f"{end.generation}, and the query is past that, at {position.offset} of "
            f"generation {position.generation}",
            hint="the checkpoint belongs to another log, or an old copy of the cluster's "
            "metadata was restored; begin with a new checkpoint",
        )
