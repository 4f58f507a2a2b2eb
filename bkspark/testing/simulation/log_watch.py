"""What the oracle knows about logs: I8, no row of a log is lost or doubled.

Rule: nothing is truncated or overwritten in a simulation, so a log's list of closed ledgers may
only grow at its end.
"""

from collections.abc import Callable

from bkspark.format import log_record
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.testing.simulation.scheduler import Violation

Listed = tuple[tuple[int, int, int], ...]
"""(ledger id, first offset, entries) of the closed ledgers of a log, in order."""


class LogWatch:
    """Looks at every version of every log's record."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._logs: dict[str, Listed] = {}
        self._dropped: set[int] = set()

    def see(self, key: str, metadata_of: Callable[[int], LedgerMetadata]) -> None:
        """Look at the newest version of the record at ``key``."""
        stored = self._store.get(key)
        if stored is None:
            return
        name = key.removeprefix("logs/")
        before, record = self._logs.get(name, ()), log_record.decode(name, stored.value)
        listed = tuple((one.ledger_id, one.first_offset, one.entry_count) for one in record.ledgers)
        self._logs[name] = listed
        if listed[: len(before)] != before:
            raise Violation(f"log {name} had {before} and has {listed} (I8)")
        expected = 0
        for ledger_id, first_offset, count in listed:
            end = metadata_of(ledger_id).last_entry_id
            if end != count - 1 or first_offset != expected:
                raise Violation(f"log {name} lists {listed}, ledger {ledger_id} ends at {end} (I8)")
            expected += count
        ids = {ledger_id for ledger_id, *_ in listed}
        if len(ids) != len(listed) or ids & self._dropped:
            raise Violation(f"log {name} lists a ledger twice or a dropped one: {listed} (I8)")
        self._dropped |= set(record.dropped)

    def require_listed(self, process: str, ledger_id: int, row_count: int) -> None:
        """``process`` was told that its rows, those of ``ledger_id``, are in the log."""
        counts = [
            count for listed in self._logs.values() for one, _, count in listed if one == ledger_id
        ]
        if counts != ([row_count] if row_count else []):
            raise Violation(f"{process} committed {row_count} rows, the log has {counts} (I8)")
