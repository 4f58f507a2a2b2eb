"""A log's record fits into ZooKeeper, however many ledgers the log has."""

from itertools import count

from bkspark.format import log_record
from bkspark.metadata.zookeeper import VALUE_BYTES_MAX
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord, paged
from tests.log_with import log_with

NOW = 1_795_405_058_537
COUNT = 11_500


def test_the_longest_record_from_before_there_were_pages_becomes_short() -> None:
    ledgers = tuple(
        LoggedLedger(100_000 + n, n * 10_000_000, 10_000_000, 2**31, NOW, first_ms=NOW, last_ms=NOW)
        for n in range(COUNT)
    )
    schema = b"s" * 4096
    log = LogRecord("events", LogSettings(Quorum(3, 3, 2)), schema)
    stored = log_with(log, ledgers=ledgers)
    encoded = log_record.encode(stored, "n" * 32)
    assert 0.9 * VALUE_BYTES_MAX < len(encoded) < VALUE_BYTES_MAX
    assert log_record.decode("events", encoded) == stored
    numbers = count()
    short = paged(stored, lambda: f"{1:08x}-{next(numbers):032x}")
    assert len(log_record.encode(short.record, "n" * 32)) < 0.04 * VALUE_BYTES_MAX
    assert len(short.pages) == COUNT // 64
