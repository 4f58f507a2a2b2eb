"""The state of the record that a ``RecordWriter`` is writing."""

from dataclasses import dataclass, field

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.client_metrics import CommittedRecord
from bkspark.format.journal import EncodedRecord
from bkspark.protocol.ledger.commit_times import TimeStep
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.log.batch import CommitPlan, Holders
from bkspark.protocol.writer.adding import PendingAdd


@dataclass(slots=True)
class CommitInProgress:
    """The contents and the state of one record.

    Attributes:
        addresses: addresses of the ledger's members, and of other bookies that have rows or may
            replace a member.
        transactions: the last version of each application, including the record's own.
        steps: when parts of the rows were committed, if they were committed before.
        bad: bookies that proved to have no good copies, each with the reason.
        record: the encoded record, once it is made.
        sent_at: when the record was made, in seconds of the monotonic clock.
    """

    plan: CommitPlan
    holders: Holders
    addresses: dict[str, BookieAddress]
    transactions: dict[str, int]
    steps: tuple[TimeStep, ...] = ()
    bad: dict[str, str] = field(default_factory=dict)
    record: EncodedRecord | None = None
    sent_at: float = 0.0

    @property
    def members(self) -> list[Member]:
        return [address.member for address in self.addresses.values()]

    def committed(self, ledger: LedgerMetadata, add: PendingAdd) -> CommittedRecord:
        """Return the counts of the acknowledged ``add``, in the term of ``ledger``."""
        took = environment.monotonic() - self.sent_at
        count = add.last_entry_id - add.first_entry_id + 1
        return CommittedRecord(ledger.ledger_id, ledger.term, add.last_entry_id, count, took)
