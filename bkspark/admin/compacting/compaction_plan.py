"""The plan of a compaction."""

from dataclasses import dataclass

from bkspark.admin.maintenance import Facts
from bkspark.protocol.log.compaction import MergeRange
from bkspark.protocol.log.record import LogRecord


@dataclass(frozen=True, slots=True)
class CompactPlan:
    """Runs of neighbouring ledgers, each to become a single ledger.

    Attributes:
        log: the log's record when the runs were found.
        target_bytes: payload of a large enough ledger.
    """

    log: LogRecord
    target_bytes: int
    runs: tuple[MergeRange, ...]

    @property
    def facts(self) -> Facts:
        length = sum(run.length_bytes for run in self.runs)
        return {
            "log": self.log.name,
            "target_bytes": self.target_bytes,
            "runs": len(self.runs),
            "ledgers": sum(run.ledger_count for run in self.runs),
            "ledgers_of_log": self.log.ledger_count,
            "entries": sum(run.end - run.begin for run in self.runs),
            "bytes": length,
            "bytes_to_write": length * self.log.quorum.write_quorum_size,
        }

    @property
    def rows(self) -> list[Facts]:
        return [
            {
                "first_offset": run.begin,
                "entries": run.end - run.begin,
                "ledgers": run.ledger_count,
                "bytes": run.length_bytes,
            }
            for run in self.runs
        ]
