"""How far a log reaches whose record lies in ZooKeeper."""

from bkspark.format import log_record
from bkspark.metadata.zookeeper import VALUE_BYTES_MAX
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LoggedLedger
from bkspark.protocol.log.record import LogRecord


def test_a_log_of_18_000_large_ledgers_is_a_record_that_zookeeper_takes() -> None:
    """The figure in the README."""
    ledgers = tuple(
        LoggedLedger(100_000 + n, n * 10_000_000, 10_000_000, 2**31, 1_795_405_058_537)
        for n in range(18_000)
    )
    schema = b"s" * 4096
    stored = LogRecord("events", Quorum(3, 3, 2), DigestSpec(), schema, ledgers=ledgers)
    encoded = log_record.encode(stored, "n" * 32)
    assert 0.9 * VALUE_BYTES_MAX < len(encoded) < VALUE_BYTES_MAX
    assert log_record.decode("events", encoded) == stored
