"""What clients of logs are shown, acknowledge and copy: the oracle is told in that moment."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bkspark.ledger.handles.how_far import Readable
from bkspark.log.batch.record_writer import RecordWriter
from bkspark.log.batch.target import BatchTarget
from bkspark.log.reading import log_view
from bkspark.log.streams import tail_writer
from bkspark.log.streams.micro_batch import StagingLedger
from bkspark.protocol.log.batch import AttemptReport
from tests.simulation.environment import replaced
from tests.simulation.log_oracle import LogOracle
from tests.simulation.scheduler import Scheduler


@contextmanager
def watched(oracle: LogOracle, scheduler: Scheduler) -> Iterator[None]:
    """Let ``oracle`` know of acks, copies and what is shown, when they are made or shown."""
    # As they are called there: one that a mutant has replaced must not be hidden.
    real_readable = log_view.readable  # type: ignore[attr-defined]
    real_rewrite_into = tail_writer.rewrite_into  # type: ignore[attr-defined]
    real_acknowledged = RecordWriter._acknowledged

    def readable(bookies: Any, cluster: Any, ledger_id: int, *rest: Any, **named: Any) -> Readable:
        before = oracle.shown_by_now(ledger_id)
        found = real_readable(bookies, cluster, ledger_id, *rest, **named)
        name = scheduler.current.process.name if scheduler.current else "-"
        if named.get("enough") is None:
            oracle.shown(name, ledger_id, found.last_entry_id, before)
        return found

    def acknowledged(self: RecordWriter, adds: Any) -> None:
        real_acknowledged(self, adds)
        name = scheduler.current.process.name if scheduler.current else "-"
        mine = self.metadata
        oracle.committed_record(name, mine.ledger_id, self.last_add_confirmed, mine.term)

    def rewrite_into(
        report: AttemptReport, home: StagingLedger, target: BatchTarget
    ) -> AttemptReport:
        copied = real_rewrite_into(report, home, target)
        if report.logs:
            values = oracle.rows_of(report.logs[0].entry_log.attempt_id)
            oracle.made_rows((log.entry_log.attempt_id for log in copied.logs), values)
        return copied

    changes: list[tuple[object, str, object]] = [
        (log_view, "readable", readable),
        (RecordWriter, "_acknowledged", acknowledged),
        (tail_writer, "rewrite_into", rewrite_into),
    ]
    with replaced(changes):
        yield
