"""The content of a DataFrame write's commit, and the order of micro-batches."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AttemptLogs, EntryLog, stripe_row_count

# --- batch ---------------------------------------------------------------------------------------
# The content of a DataFrame write's commit: attempts, ids and ensemble.
#
# Rule 1. Exactly one attempt of every partition counts: the attempt reported by Spark. Ids are
# dense and follow partition order.
#
# Rule 2. A copy outside the committed ensemble counts zero. Tasks may have used different spares
# for one position; the ensemble settles on a single spare, which then gets its missing copies (R10,
# H13).
#
# Rule 3. Before a record is written, every entry log named by the record has a copy on each live
# member of the log's own window (R1). ``writing`` ensures the copies, and chooses the members.
#
# Rule 4. An attempt is refused unless its logs are exactly the stripes of its rows: ids without
# rows would be a gap.


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """An entry log and the ids of the bookies with a complete, durable copy."""

    entry_log: EntryLog
    bookie_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """The result of one task attempt.

    Attributes:
        length_bytes: payload bytes of its rows, counted once.
        failures: bookies that failed during the attempt, each with the reason in one line.
    """

    partition_id: int
    row_count: int
    length_bytes: int
    logs: tuple[WrittenLog, ...]
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The attempts with their ids, and the places of their entry logs."""

    attempts: tuple[AttemptLogs, ...]
    written: tuple[WrittenLog, ...]
    row_count: int
    length_bytes: int


def plan_commit(
    reports: Sequence[AttemptReport | None], *, quorum: Quorum, first_entry_id: int = 0
) -> CommitPlan:
    """Decide what to commit.

    Args:
        reports: one per partition; None for a partition without a result.
        first_entry_id: the id of the first row.

    Raises:
        InvalidRequestError: a report is missing, doubled, or its logs do not hold its rows.
    """
    ordered = _in_partition_order(reports)
    attempts: list[AttemptLogs] = []
    first = first_entry_id
    for report in ordered:
        _check_stripes(report, quorum)
        logs = tuple(written.entry_log for written in report.logs)
        attempts.append(AttemptLogs(first, report.row_count, logs))
        first += report.row_count
    return CommitPlan(
        attempts=tuple(attempts),
        written=tuple(log for report in ordered for log in report.logs),
        row_count=first - first_entry_id,
        length_bytes=sum(report.length_bytes for report in ordered),
    )


class Holders:
    """The bookies of each entry log of one commit; the caller adds copies."""

    def __init__(self, written: Sequence[WrittenLog], quorum: Quorum) -> None:
        self._on = {log.entry_log: list(log.bookie_ids) for log in written}
        self._at: dict[int, list[tuple[EntryLog, list[str]]]] = defaultdict(list)
        self._bytes: Counter[tuple[int, str]] = Counter()
        for log, on in self._on.items():
            for index in quorum.write_set(log.stripe):
                self._at[index].append((log, on))
                for bookie_id in on:
                    self._bytes[index, bookie_id] += log.length_bytes

    def ceding(self, ensemble: Sequence[Member], others: Iterable[Member]) -> tuple[int, ...]:
        """Return the indexes of members with fewer bytes of their place's data than some spare.

        Args:
            others: the bookies that may take a place.
        """
        used, ceding = {member.bookie_id for member in ensemble}, list[int]()
        free = [other.bookie_id for other in others if other.bookie_id not in used]
        for index, member in enumerate(ensemble):
            most = max(free, key=lambda holder: self._bytes[index, holder], default=None)
            if most and self._bytes[index, most] > self._bytes[index, member.bookie_id]:
                ceding.append(index)
                free.remove(most)
        return tuple(ceding)

    def preferred(
        self, index: int, others: Iterable[Member], *, than: Member | None = None
    ) -> list[Member]:
        """Return ``others`` for the place at ``index``, with most of the place's bytes first.

        Args:
            than: a present member, kept unless another bookie has more bytes.
        """
        least = -1 if than is None else self._bytes[index, than.bookie_id]
        more = [other for other in others if self._bytes[index, other.bookie_id] > least]
        return sorted(more, key=lambda other: -self._bytes[index, other.bookie_id])

    def missing(self, index: int, bookie_id: str) -> list[EntryLog]:
        """Return the entry logs of the place at ``index`` that are not on the bookie."""
        return [log for log, on in self._at[index] if bookie_id not in on]

    def sources(self, log: EntryLog, failed: Collection[str]) -> list[str]:
        """Return the bookies to copy from.

        Raises:
            NotEnoughBookiesError: no bookie has a good copy.
        """
        sources = [bookie_id for bookie_id in self._on[log] if bookie_id not in failed]
        if not sources:
            raise NotEnoughBookiesError(
                f"no bookie has a good copy of entry log {log.attempt_id}-{log.stripe} "
                f"(failed: {', '.join(sorted(failed)) or 'none'})"
            )
        return sources

    def copied(self, log: EntryLog, bookie_id: str) -> None:
        """Note that the bookie has a copy now."""
        self._on[log].append(bookie_id)


def _in_partition_order(reports: Sequence[AttemptReport | None]) -> list[AttemptReport]:
    present = [report for report in reports if report is not None]
    partitions = {report.partition_id for report in present}
    if len(partitions) != len(reports):
        raise InvalidRequestError(
            f"{len(reports)} partitions were written but {len(partitions)} reported",
            hint="nothing was committed; run the write again",
        )
    with_rows = (report for report in present if report.row_count)
    return sorted(with_rows, key=lambda report: report.partition_id)


def _check_stripes(report: AttemptReport, quorum: Quorum) -> None:
    count = quorum.stripe_count
    expected = {
        stripe: stripe_row_count(report.row_count, stripe, count)
        for stripe in range(min(count, report.row_count))
    }
    logs = [written.entry_log for written in report.logs]
    if len(logs) != len(expected) or expected != {log.stripe: log.row_count for log in logs}:
        raise InvalidRequestError(
            f"partition {report.partition_id} reported {report.row_count} rows, but its entry "
            f"logs hold {[(log.stripe, log.row_count) for log in logs]} (stripe, rows)",
            hint="nothing was committed; run the write again",
        )


# --- batch order ---------------------------------------------------------------------------------
# Compares a micro-batch with its query's committed micro-batches.
#
# Spark numbers the micro-batches of a query from 0 on and keeps the numbers in the checkpoint.
#
# Rule 1. Spark itself runs only the last batch of a checkpoint again. A batch number below the last
# committed number proves an old checkpoint: restored from a backup, or copied. The batch may have
# other rows than the committed batch of its number, so the batch is refused.
#
# Rule 2. After a crash between the commit and Spark's note of the commit, Spark runs the last
# committed batch again. A batch with the same rows, in any order and partitions, is Spark's own
# retry, and nothing is written. A batch with other rows is refused, because neither set of rows may
# be lost silently.
#
# Rule 3. A batch without rows can lose none, and is not compared.


ON_REPEATED_BATCH = "onRepeatedBatch"
COMPARE, SKIP = "compare", "skip"
"""Values of the option for a repeated last batch."""

_NEW_CHECKPOINT = (
    "start the query with a new checkpoint, which makes it a new query, and with the "
    "startingOffsets of the first rows that the log does not have"
)


def is_repeated(query_id: str, batch_id: int, last_batch_id: int, log_name: str) -> bool:
    """Whether the batch is the last committed batch again; False for a new batch.

    Raises:
        InvalidRequestError: the batch comes before the last committed batch (rule 1).
    """
    if batch_id < last_batch_id:
        raise InvalidRequestError(
            f"micro-batch {batch_id} of query {query_id} is not written to log {log_name!r}: the "
            f"log has its micro-batch {last_batch_id} already, so the query's checkpoint was "
            "restored from a backup or copied",
            hint=_NEW_CHECKPOINT,
        )
    return batch_id == last_batch_id


def other_rows(query_id: str, batch_id: int, log_name: str, what: str) -> InvalidRequestError:
    """Return the error for the last committed batch repeated with other rows (rule 2).

    Args:
        what: the difference.
    """
    return InvalidRequestError(
        f"micro-batch {batch_id} of query {query_id} is in log {log_name!r} already, with other "
        f"rows ({what}): the query's checkpoint was restored from a backup or copied, or the "
        "query gives other rows each time it runs",
        hint=f"in the first case {_NEW_CHECKPOINT}; in the second case set "
        f"{ON_REPEATED_BATCH}={SKIP}, which keeps the committed rows of a repeated batch",
    )
