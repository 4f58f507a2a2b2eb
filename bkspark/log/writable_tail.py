"""A log's open end, as a client gets it by opening the log for writing."""

from dataclasses import dataclass, field

from bkspark.cluster.enlisting import Begun
from bkspark.cluster.records import Versioned
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import FIRST, ConfirmedEnd
from bkspark.protocol.log.record import LogRecord


@dataclass(frozen=True, slots=True)
class OpenTail:
    """The open ledger at a log's end, for the writer that opened it.

    Attributes:
        log: the record that lists the ledger, with all earlier ledgers closed. ``end_offset`` is
            the offset of the ledger's entry 0; ``transactions`` are all that were committed before.
        begun: the members' journals; empty for an adopted ledger.
        standing: the ledger's state, if earlier writers have written to it.
        unjoined: ids of bookies that the writer must not ask to join (R19).
    """

    ledger: Versioned[LedgerMetadata]
    log: Versioned[LogRecord]
    begun: Begun = field(default_factory=Begun, compare=False)
    standing: ConfirmedEnd = FIRST
    unjoined: frozenset[str] = frozenset()

    @property
    def began(self) -> ConfirmedEnd:
        """Where the writer begins: no record of the ledger is made before the log's last time."""
        return self.standing.not_before(self.log.value.last_ms)

    @property
    def first_offset(self) -> int:
        """The log offset of the ledger's entry 0."""
        return self.log.value.end_offset
