"""The runs of a streaming query that write into a log.

Rule 1. Of the runs of one query only the newest may write; a run becomes the newest the first time
it opens the log. One that finds another behind itself was taken over from, and has to end.

Rule 2. Only so many queries are remembered, and runs of each: those that began a run last. A
forgotten run that wakes is taken for the newest, so the wrong one of two is told to end. Nothing is
written twice or lost by that: a micro-batch is looked up among the transactions of the log, which
say so much more ("transactions", rules 2 to 4), and both have its rows from one checkpoint.

Rule 3. When a log is deleted, rows go that the checkpoints of its queries count as written. So the
name remembers these queries for ever, and none of them writes there again without a new checkpoint,
whoever creates a log anew under it. Only that is sure: micro-batches without rows leave no mark, so
a query that no mark is found of has not lost anything by that alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bkspark.errors import LedgerFencedError, NoSuchLedgerError
from bkspark.protocol.log.transactions import QUERIES_MAX, QUERY, digest_of, known_queries

RUNS_MAX = 16
"""Runs remembered of one query; a run older than these that wakes is taken for a new one."""

Streams = Mapping[str, tuple[str, ...]]
"""Per query id the ids of its runs, the current one last; the query that began one last is last."""


@dataclass(frozen=True, slots=True)
class StreamRun:
    """One run of a streaming query: Spark's ids of the query and of this start of it."""

    query_id: str
    run_id: str


def with_run(streams: Streams, run: StreamRun) -> Streams:
    """Return ``streams`` with ``run`` as the current one of its query.

    Raises:
        LedgerFencedError: a newer run has taken over.
    """
    runs = streams.get(run.query_id, ())
    if runs[-1:] == (run.run_id,):
        return streams
    if run.run_id in runs:
        raise LedgerFencedError(
            f"a newer run of query {run.query_id} has taken over",
            hint="this run has to end; the newer one goes on, and if it has ended too, start the "
            "query again",
        )
    others = [(query_id, kept) for query_id, kept in streams.items() if query_id != run.query_id]
    return dict([*others, (run.query_id, (*runs, run.run_id)[-RUNS_MAX:])][-QUERIES_MAX:])


def app_id(query_id: str) -> str:
    """Under which the last batch of a query stands among the transactions of a log."""
    return f"{QUERY}{query_id}"


def queries_of(streams: Streams, transactions: Mapping[str, int]) -> tuple[str, ...]:
    """All queries that may have rows in a log: those with a mark or its digest, or with a run.

    The marks in a tail that is still open are not among ``transactions``, but whoever holds it has
    registered a run.
    """
    marked = known_queries(transactions)
    return tuple(dict.fromkeys([*marked, *streams]))


def require_not_orphaned(run: StreamRun, orphaned_queries: Collection[str], log_name: str) -> None:
    """Check that no rows of the query went with a deleted log of this name (rule 3).

    Raises:
        NoSuchLedgerError: they did.
    """
    if not {run.query_id, digest_of(app_id(run.query_id))}.isdisjoint(orphaned_queries):
        raise NoSuchLedgerError(
            f"log {log_name!r} was deleted after query {run.query_id} had written to it: rows that "
            "its checkpoint counts as written are gone, and it cannot go on",
            hint="start it with a new checkpoint to begin anew, which creates the log if there is "
            "none",
        )
