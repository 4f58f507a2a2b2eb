"""A writer that takes a ledger over and goes on in it, in a term of its own, instead of closing it.

Its recovery is that of the package; only the last change of the metadata is another one.
"""

from collections.abc import Collection
from dataclasses import replace

from bkspark import environment
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.password import Password, make_digester
from bkspark.ledger.recovery.notes import Notes
from bkspark.ledger.recovery.recover import never
from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger import recovery_steps as steps
from bkspark.protocol.ledger.adding import PendingAdds
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one


class Reopener(Recoverer):
    """Sets the ledger OPEN where a recovery would close it.

    Attributes:
        begun: the journals of its members.
        end: the last entry that was recovered.
    """

    begun = Begun()
    end = -1

    def close(self, close: steps.Close) -> steps.Event:
        assert not close.ensemble
        self.end, token = close.last_entry_id, environment.token()
        ledger, digester = self._ledger, make_digester(self._ledger.digest, Password())
        how = {"term": ledger.term, "token": token, "digester": digester}
        joining = Joining.of(ledger.ledger_id, ledger.quorum, **how)
        places = {i: self._known[m] for i, m in enumerate(ledger.last_fragment.ensemble)}
        self.begun = enlist(places, joining)
        assert len(self.begun.bookie_ids) == len(places)
        taken = ledger.last_fragment.ensemble
        opened = Fragment(self.end + 1, ledger.term, taken, token, has_headers=True)

        def reopened(seen: LedgerMetadata | None) -> LedgerMetadata:
            assert seen == ledger
            kept = tuple(f for f in seen.fragments if f.first_entry_id <= self.end)
            fragments = (*kept, opened)
            return replace(seen, state=LedgerState.OPEN, token=token, fragments=fragments)

        self._cluster.ledgers.update(str(ledger.ledger_id), reopened)
        ended = replace(ledger, state=LedgerState.CLOSED, last_entry_id=self.end, length_bytes=0)
        return steps.Closed(ended)


class Successor(HandWriter):
    """Takes over from ``before``, and hears nothing of the bookies ``lost``."""

    def __init__(self, before: HandWriter, *, lost: Collection[str] = ()) -> None:
        self.cluster, self.ledger_id = before.cluster, before.ledger_id
        self._addresses, self._digester = before._addresses, before._digester
        self._checks = self._looks = True
        run, note = one_by_one(lost=lost), Notes(self.ledger_id)
        recoverer = Reopener(self.cluster, self.ledger_id, Password(), run, note, never)
        recoverer.recover()
        self._begun, self.end = recoverer.begun, recoverer.end
        self.seen = self.cluster.ledger(self.ledger_id)
        self.sent = {n: value for n, value in before.sent.items() if n <= self.end}
        self.acked = list(before.acked)
        self.word = f"term {self.metadata.term}, entry"
        self.pending = PendingAdds(
            self.metadata.quorum,
            last_add_confirmed=self.end,
            length_bytes=sum(map(len, self.sent.values())),
        )
        self._adds, self._records = [], before._records[: self.end + 1]
        self._journals = {}
