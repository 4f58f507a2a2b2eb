"""What a DataFrame write commits: which attempts, with which ids, on which ensemble.

Rule 1. Exactly one attempt of every partition counts: the one Spark reports. Ids are dense and
follow partition order.

Rule 2. A copy outside the committed ensemble counts zero. Tasks may have used different spares for
one position; the commit settles on one and has the missing copies made (R10, H13).

Rule 3. Every entry log needs Qa copies on its own window before the record that names it is
written (R1); it should have Qw. The record itself needs Qa live members in every window (H7).

Rule 4. An attempt whose logs are not exactly the stripes of its rows is refused: ids without rows
would be a gap.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AttemptLogs, EntryLog, stripe_row_count


@dataclass(frozen=True, slots=True)
class WrittenLog:
    """An entry log and the ids of the bookies on which it is complete and durable."""

    entry_log: EntryLog
    bookie_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AttemptReport:
    """What one task attempt wrote.

    Attributes:
        length_bytes: payload bytes of its rows, one copy.
        failures: bookies that failed it, each with the reason in one line.
    """

    partition_id: int
    row_count: int
    length_bytes: int
    logs: tuple[WrittenLog, ...]
    failures: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy an entry log to ``target_id`` from any of ``source_ids``."""

    entry_log: EntryLog
    source_ids: tuple[str, ...]
    target_id: str


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """The ensemble to commit on, the copies it lacks, and the attempts with their ids."""

    ensemble: tuple[Member, ...]
    copies: tuple[Copy, ...]
    attempts: tuple[AttemptLogs, ...]
    row_count: int
    length_bytes: int


def plan_commit(
    reports: Sequence[AttemptReport | None],
    *,
    quorum: Quorum,
    ensemble: Sequence[Member],
    spares: Sequence[Member],
    failed: Collection[str] = (),
    first_entry_id: int = 0,
) -> CommitPlan:
    """Decide what to commit.

    Args:
        reports: one per partition; None for a partition whose result never came.
        ensemble: members as the metadata has them.
        spares: members that may step in, in order of preference; those that are in the ensemble
            already are passed over.
        failed: bookie ids known not to answer now.
        first_entry_id: the id that the first row gets.

    Raises:
        InvalidRequestError: a report is missing, doubled, or its logs do not hold its rows.
        NotEnoughBookiesError: some entry log, or the record, cannot reach Qa copies.
    """
    ordered = _in_partition_order(reports)
    attempts: list[AttemptLogs] = []
    first = first_entry_id
    for report in ordered:
        _check_stripes(report, quorum)
        logs = tuple(written.entry_log for written in report.logs)
        attempts.append(AttemptLogs(first, report.row_count, logs))
        first += report.row_count
    written = [log for report in ordered for log in report.logs]
    settled = _settle_ensemble(written, quorum, ensemble, spares, failed)
    live = [index for index, member in enumerate(settled) if member.bookie_id not in failed]
    if written and not quorum.is_ack_quorum_of_all(live):
        raise _too_few("the add record", len(live), quorum, failed)
    return CommitPlan(
        ensemble=settled,
        copies=tuple(
            copy for log in written for copy in _missing_copies(log, quorum, settled, failed)
        ),
        attempts=tuple(attempts),
        row_count=first - first_entry_id,
        length_bytes=sum(report.length_bytes for report in ordered),
    )


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


def _settle_ensemble(
    written: Sequence[WrittenLog],
    quorum: Quorum,
    ensemble: Sequence[Member],
    spares: Sequence[Member],
    failed: Collection[str],
) -> tuple[Member, ...]:
    """For every position the member, or the spare, that already holds most of its bytes.

    Positions whose member failed choose first: another member can stay where it is.
    """
    held: Counter[tuple[int, str]] = Counter()
    for log in written:
        for index in quorum.write_set(log.entry_log.stripe):
            for bookie_id in log.bookie_ids:
                held[index, bookie_id] += log.entry_log.length_bytes
    taken = {member.bookie_id for member in ensemble} | set(failed)
    free = {spare.bookie_id: spare for spare in spares if spare.bookie_id not in taken}
    settled = list(ensemble)
    for index in sorted(range(len(settled)), key=lambda i: ensemble[i].bookie_id not in failed):
        member = ensemble[index]
        choices = [*([] if member.bookie_id in failed else [member]), *free.values()]
        most = max((held[index, choice.bookie_id] for choice in choices), default=0)
        best = next((c for c in choices if held[index, c.bookie_id] == most), member)
        settled[index] = best
        free.pop(best.bookie_id, None)
    return tuple(settled)


def _missing_copies(
    written: WrittenLog, quorum: Quorum, ensemble: Sequence[Member], failed: Collection[str]
) -> list[Copy]:
    window = [ensemble[index].bookie_id for index in quorum.write_set(written.entry_log.stripe)]
    sources = tuple(bookie_id for bookie_id in written.bookie_ids if bookie_id not in failed)
    targets = [
        bookie_id for bookie_id in window if bookie_id not in sources and bookie_id not in failed
    ]
    if not sources:  # of its write set, Qa members live: the add record needs as much
        name = f"entry log {written.entry_log.attempt_id}-{written.entry_log.stripe}"
        raise _too_few(name, 0, quorum, failed)
    return [Copy(written.entry_log, sources, target) for target in targets]


def _too_few(
    what: str, copy_count: int, quorum: Quorum, failed: Collection[str]
) -> NotEnoughBookiesError:
    return NotEnoughBookiesError(
        f"{what} can have {copy_count} copies, which are not {quorum.ack_quorum_size} "
        "(ackQuorumSize) on every write set it needs",
        hint="nothing was committed; add bookies or bring back the failed ones "
        f"({', '.join(sorted(failed)) or 'none'}), then run the write again",
    )
