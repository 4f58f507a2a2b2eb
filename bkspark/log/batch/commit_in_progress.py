"""What a ``RecordWriter`` knows of the record that it has under way."""

from dataclasses import dataclass, field

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.client_counts import CommittedRecord
from bkspark.format.journal import EncodedRecord
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.log.batch import CommitPlan, Holders
from bkspark.protocol.writer.adding import PendingAdd


@dataclass(slots=True)
class CommitInProgress:
    """What is put into one record.

    Attributes:
        addresses: of the ledger's members, and of others that have rows or may step in.
        transactions: the last version of each application, with the record.
        bad: bookies that turned out to have no good copies, each with the reason.
        record: once it is made.
        sent_at: when it was made, by the clock that only grows.
    """

    plan: CommitPlan
    holders: Holders
    addresses: dict[str, BookieAddress]
    transactions: dict[str, int]
    bad: dict[str, str] = field(default_factory=dict)
    record: EncodedRecord | None = None
    sent_at: float = 0.0

    @property
    def members(self) -> list[Member]:
        return [address.member for address in self.addresses.values()]

    def committed(self, ledger: LedgerMetadata, add: PendingAdd) -> CommittedRecord:
        """What is counted of ``add`` now that it has its ack, in the term of ``ledger``."""
        took = environment.monotonic() - self.sent_at
        count = add.last_entry_id - add.first_entry_id + 1
        return CommittedRecord(ledger.ledger_id, ledger.term, add.last_entry_id, count, took)
