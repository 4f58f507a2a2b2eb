"""What the oracle knows of entry logs: what is in each, as the bytes on the disks say."""

import pyarrow as pa

from bkspark.protocol.ledger.record import AttemptLogs
from tests.simulation.scheduler import Violation


class EntryLogs:
    """All that were ever seen, by attempt and stripe."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], bytes] = {}
        self._values: dict[tuple[str, int], list[bytes]] = {}

    def note(self, attempt_id: str, stripe: int, data: bytes) -> None:
        """One has come up on a disk, which is like all others of that name."""
        if self._seen.setdefault((attempt_id, stripe), data) != data:
            raise Violation(f"copies of stripe {stripe} of attempt {attempt_id} differ (I4)")

    def values_of(self, attempt: AttemptLogs, stripe_count: int) -> dict[int, bytes]:
        """By entry: row ``k`` of stripe ``s`` is the attempt's row ``s + k * stripe_count``."""
        return {
            attempt.first_entry_id + log.stripe + number * stripe_count: value
            for log in attempt.entry_logs
            for number, value in enumerate(self._read((log.attempt_id, log.stripe)))
        }

    def all_values(self) -> set[bytes]:
        """All that was ever written into one, committed or not."""
        return {value for key in self._seen for value in self._read(key)}

    def _read(self, key: tuple[str, int]) -> list[bytes]:
        if key not in self._values:
            table = pa.ipc.open_file(pa.py_buffer(self._seen[key])).read_all()
            self._values[key] = table.column(0).to_pylist()
        return self._values[key]
