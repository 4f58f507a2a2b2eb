"""A log's open end, as whoever opens the log for writing gets it."""

from dataclasses import dataclass, field

from bkspark.cluster.enlisting import Begun
from bkspark.cluster.records import Versioned
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import FIRST, Standing
from bkspark.protocol.log.record import LogRecord


@dataclass(frozen=True, slots=True)
class OpenTail:
    """The open ledger at a log's end, to be written to by the one who opened it.

    Attributes:
        log: the record that has it on its list, all before it closed: ``end_offset`` is the offset
            of the ledger's entry 0, ``transactions`` are all that were committed before.
        begun: the journals of its members; none of an adopted ledger.
        standing: where it stands, if others have written to it before.
        unjoined: ids of bookies that its writer must not ask to join (R19).
    """

    ledger: Versioned[LedgerMetadata]
    log: Versioned[LogRecord]
    begun: Begun = field(default_factory=Begun, compare=False)
    standing: Standing = FIRST
    unjoined: frozenset[str] = frozenset()

    @property
    def first_offset(self) -> int:
        """The log offset of the ledger's entry 0."""
        return self.log.value.end_offset
