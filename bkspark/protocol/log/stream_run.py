"""The runs of a streaming query that write into a log.

Rule 1. Of the runs of a query only the newest may write; a run becomes the newest the first time it
opens the log. A run listed before another run has been replaced, and must end.

Rule 2. A log remembers a bounded number of queries, and of runs of each: those with the latest
start of a run. A resumed run that is no longer listed counts as the newest, and the current run is
stopped. No row is lost or written twice: the log's transactions decide each micro-batch and
remember far more ("transactions", rules 2 to 4), and both runs read their rows from one checkpoint.

Rule 3. Deleting a log removes rows that checkpoints count as written. So the name remembers these
queries for ever. None of them writes to a later log of the name without a new checkpoint. Only a
mark is proof: micro-batches without rows leave no mark, so a query without a mark may have lost no
rows.

Rule 4. All micro-batches of a run go into one cluster. Otherwise the rows before a change of the
cluster would be in the one, and the rows after it in the other.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError, LedgerFencedError, NoSuchLedgerError
from bkspark.protocol.log.transactions import QUERIES_MAX, QUERY, digest_of, known_queries

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
