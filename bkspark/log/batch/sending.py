"""A record of a batch writer on its way to the journals."""

from bkspark.format.journal import EncodedRecord
from bkspark.protocol.ledger.adding import PendingAdd


class Sending:
    """A record on its way.

    Attributes:
        appended_to: bookies whose journal has it.
    """

    def __init__(self, pending: PendingAdd, encoded: EncodedRecord) -> None:
        self.pending = pending
        self.encoded = encoded
        self.appended_to: set[str] = set()
