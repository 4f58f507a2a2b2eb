"""What the oracle makes of entry logs."""

import pyarrow as pa
import pytest

from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.protocol.ledger.record import AttemptLogs, EntryLog
from tests.simulation.entry_logs import EntryLogs
from tests.simulation.scheduler import Violation

ATTEMPT = "ab" * 16


def file_of(*values: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, VALUE_SCHEMA) as writer:
        writer.write_batch(pa.record_batch([pa.array(values, pa.binary())], schema=VALUE_SCHEMA))
    return bytes(sink.getvalue())


def test_rows_lie_in_stripes_from_the_first_of_their_attempt_on() -> None:
    logs = EntryLogs()
    logs.note(ATTEMPT, 0, file_of(b"a", b"d"))
    logs.note(ATTEMPT, 1, file_of(b"b", b"e"))
    logs.note(ATTEMPT, 2, file_of(b"c"))
    named = tuple(EntryLog(ATTEMPT, stripe, 1, 1, 1, "") for stripe in (0, 1, 2))
    found = logs.values_of(AttemptLogs(10, 5, named), stripe_count=3)
    assert found == {10: b"a", 11: b"b", 12: b"c", 13: b"d", 14: b"e"}
    assert logs.all_values() == set(found.values())


def test_a_copy_that_is_another_is_noticed() -> None:
    logs = EntryLogs()
    logs.note(ATTEMPT, 0, file_of(b"a"))
    logs.note(ATTEMPT, 0, file_of(b"a"))
    with pytest.raises(Violation, match="differ"):
        logs.note(ATTEMPT, 0, file_of(b"b"))
