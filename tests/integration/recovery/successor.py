"""A writer that takes a ledger over and goes on in it, in a term of its own."""

from collections.abc import Collection
from unittest.mock import patch

from bkspark.cluster.password import Password
from bkspark.ledger.recovery.recover import take_over
from bkspark.ledger.recovery.recoverer import Opener
from bkspark.protocol.writer.adding import PendingAdds
from tests.integration.hand_writer import HandWriter, one_by_one


class Successor(HandWriter):
    """Takes over from ``before``, and hears nothing of the bookies ``lost``.

    Args:
        prunes: whether the markers of the writer before go.

    Attributes:
        end: the last entry that was recovered.
    """

    def __init__(
        self, before: HandWriter, *, lost: Collection[str] = (), prunes: bool = False
    ) -> None:
        self.cluster, self.ledger_id = before.cluster, before.ledger_id
        self._addresses, self._digester = before._addresses, before._digester
        self._checks = self._looks = True
        prune = Opener.prune if prunes else lambda *_: None
        with patch.object(Opener, "prune", prune):
            taken = take_over(self.cluster, self.ledger_id, Password(), run=one_by_one(lost=lost))
        self.end, self._begun = taken.report.last_entry_id, taken.begun
        self.seen = taken.seen
        self.sent = {n: value for n, value in before.sent.items() if n <= self.end}
        self.acked = list(before.acked)
        self.word = f"term {self.metadata.term}, entry"
        length = sum(map(len, self.sent.values()))
        assert (taken.standing.last_entry_id, taken.standing.length_bytes) == (self.end, length)
        self.pending = PendingAdds(
            self.metadata.quorum, last_add_confirmed=self.end, length_bytes=length
        )
        self._adds, self._records = [], before._records[: self.end + 1]
        self._journals = {}
