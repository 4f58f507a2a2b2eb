"""A writer that takes a ledger over and goes on in it, in a term of its own, instead of closing it.

Its recovery is that of the package, and so is what follows it; here it is only carried out.
"""

from collections import deque
from collections.abc import Collection
from typing import Any

from bkspark import environment
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import LedgerFencedError
from bkspark.format import layout
from bkspark.ledger.journals.member_loss import Taken
from bkspark.ledger.recovery.notes import Notes
from bkspark.ledger.recovery.recover import never
from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger import recovery_steps as steps
from bkspark.protocol.ledger.adding import PendingAdds
from bkspark.protocol.ledger.recovering import LedgerRecovery, Looking
from bkspark.protocol.ledger.reopening_steps import LookAgain, Open, Opened, Prune, Take, Took
from tests.integration.hand_writer import HandWriter, one_by_one


class Reopener(Recoverer):
    """Sets the ledger OPEN where a recovery would close it.

    Attributes:
        begun: the journals of its members.
    """

    def reopen(self, *, prunes: bool) -> steps.End:
        self.begun, self._writer_token = Begun(), environment.token()
        machine = LedgerRecovery(Looking(writer_token=self._writer_token))
        happened: deque[steps.Event] = deque([steps.LedgerSeen(self._ledger)])
        while True:
            asked: list[Any] = []
            for instruction in machine.receive(happened.popleft()):
                match instruction:
                    case steps.Fail(error):
                        raise error
                    case steps.End():
                        return instruction
                    case Prune():
                        self._prune(instruction) if prunes else None
                    case steps.Note() | steps.LeaveReason():
                        pass
                    case _:
                        asked.append(instruction)
            happened.extend(self._carry_out(asked))

    def _answer(self, instruction: Any) -> Any:
        match instruction:
            case Take(index, member):
                begun = enlist({index: self._known[member]}, self._joining)
                self.begun.add(begun)
                return Took(instruction, "" if begun.bookie_ids else "it gives no answer")
            case LookAgain(_, member):
                whose = (self._ledger_id, self._ledger.term, self._writer_token)
                taken = Taken(layout.permission(*whose), layout.journal(*whose))
                with open_bookie(self._known[member]).open_root() as root:
                    return Took(instruction, taken.missing_in(root))
            case Open():
                update = self._cluster.ledgers.update
                try:
                    return Opened(update(str(self._ledger_id), instruction.applied_to).value)
                except LedgerFencedError as error:
                    return steps.Displaced(str(error))
        return super()._answer(instruction)

    @property
    def _joining(self) -> Joining:
        ledger = self._ledger
        digester = make_digester(ledger.settings.digest, Password())
        how = {"term": ledger.term, "token": self._writer_token, "digester": digester}
        return Joining.of(ledger.ledger_id, ledger.quorum, **how)

    def _prune(self, prune: Prune) -> None:
        with open_bookie(self._known[prune.member]).open_root() as root:
            root.delete(layout.permission(self._ledger_id, *prune.permission))
            root.delete(layout.term_marker(self._ledger_id, prune.fence))


class Successor(HandWriter):
    """Takes over from ``before``, and hears nothing of the bookies ``lost``.

    Attributes:
        end: the last entry that was recovered.
    """

    def __init__(
        self, before: HandWriter, *, lost: Collection[str] = (), prunes: bool = False
    ) -> None:
        self.cluster, self.ledger_id = before.cluster, before.ledger_id
        self._addresses, self._digester = before._addresses, before._digester
        self._checks = self._looks = True
        run, note = one_by_one(lost=lost), Notes(self.ledger_id)
        recoverer = Reopener(self.cluster, self.ledger_id, Password(), run, note, never)
        self.end = recoverer.reopen(prunes=prunes).last_entry_id
        self._begun = recoverer.begun
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
