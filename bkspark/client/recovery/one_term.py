"""One recovery in one term: what it asks for, what it decides, and the change that ends it.

The order of the steps is that of ``recover``; each is a method here. What one of them finds out,
and the next needs, lies in this object and nowhere else, so a recovery that dies leaves nothing to
believe in behind.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.client.recovery import explaining
from bkspark.client.recovery.displacement import DisplacedError
from bkspark.client.recovery.fencing import FenceAndRead
from bkspark.client.recovery.last_confirmed import RecordSilenceError, confirmed_record
from bkspark.client.recovery.member_tail import MemberTail, lost_data
from bkspark.client.recovery.notes import Notes
from bkspark.client.recovery.replication import Replication
from bkspark.client.recovery.running import Runner, Silence
from bkspark.client.recovery.writer import Writer
from bkspark.errors import BookKeeperError, LedgerClosedError, NotEnoughBookiesError
from bkspark.format.recovery import StuckRecovery
from bkspark.protocol.ledger import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member
from bkspark.protocol.losses import losses
from bkspark.protocol.record import AddRecord
from bkspark.protocol.recovery import (
    Doubt,
    GroupDecision,
    MemberAnswer,
    Verdict,
    decide_group,
    last_add_confirmed,
)

Consent = Callable[[str], bool]
"""Asked with a sentence that says what is lost; whether the operator accepts it."""


class Recovery:
    """One recovery in one term.

    Attributes:
        lost_from: first entry lost on the operator's word, if this recovery closes the ledger;
            None if nothing is.
        losses: what is, or may be, lost of the confirmed entries, with bookies or by damage.
    """

    def __init__(
        self,
        cluster: Cluster,
        metadata: LedgerMetadata,
        password: Password,
        run: Runner,
        note: Notes,
    ) -> None:
        self.note = note
        self.lost_from: int | None = None
        self.losses: list[str] = []
        self._cluster = cluster
        self._metadata = metadata
        self._password = password
        self._run = run
        self._quorum = metadata.quorum
        self._ensemble = metadata.last_fragment.ensemble
        self._floor = metadata.last_fragment.first_entry_id - 1
        self._known: Collection[Member] = ()
        self._lost: Collection[Member] = ()
        self._problems: dict[int, str] = {}
        self._silent: set[int] = set()
        self._undecided: GroupDecision | None = None
        self._given_up: list[str] = []
        self._confirmed: AddRecord | None = None
        self._placed = self._ensemble

    def fence_and_read(self) -> dict[int, MemberTail]:
        """What every member that answers has, after it was fenced, by ensemble index."""
        known = self._known = self._cluster.addresses()
        instructions: list[FenceAndRead] = []
        for index, member in enumerate(self._ensemble):
            address = known.get(member)
            if address is None:
                self._problems[index] = f"{member.bookie_id} was initialised anew, its data is gone"
            else:
                instructions.append(self._fence(index, address))
        self.note(f"asking {', '.join(i.address.bookie_id for i in instructions) or 'no bookie'}")
        tails: dict[int, MemberTail] = {}
        for instruction, result in zip(instructions, self._run(instructions), strict=True):
            if isinstance(result, MemberTail):
                tails[instruction.ensemble_index] = result
                problem = result.problem
            else:
                problem = str(result)
            if isinstance(result, Silence):
                self._silent.add(instruction.ensemble_index)
            if problem:
                self._problems[instruction.ensemble_index] = problem
        for index, tail in lost_data(tails, self._metadata).items():
            tails[index], self._problems[index] = tail, tail.problem
        names = [self._ensemble[index].bookie_id for index in sorted(tails)]
        self.note(f"fenced and read {', '.join(names) or 'no bookie'}")
        for index, problem in sorted(self._problems.items()):
            self.note.warn(f"{'in doubt' if index in tails else 'no answer'}: {problem}")
        return tails

    def decide(
        self, tails: dict[int, MemberTail], *, accepts_loss: Consent
    ) -> tuple[list[AddRecord], int]:
        """The groups to keep, in order, and the last entry after them."""
        answers = self._answers(tails)
        seen = max((tail.last_add_confirmed for tail in tails.values()), default=-1)
        confirmed = last_add_confirmed(answers, max(seen, self._floor))
        self.note(f"last add confirmed is {confirmed}")
        kept: list[AddRecord] = []
        end = confirmed
        while True:
            decision = decide_group(end + 1, answers, self._quorum)
            if decision.verdict is not Verdict.KEEP or decision.record is None:
                break
            kept.append(decision.record)
            end = decision.record.last_entry_id
            self.note(f"kept: {explaining.entries(decision.first_entry_id, end)}")
        if decision.verdict is Verdict.ABSENT:
            self.note(f"entry {end + 1} was never acknowledged")
        else:
            self._give_up(decision, answers, accepts_loss)
        if not kept and confirmed != INVALID_ENTRY_ID:
            self._confirmed = self._confirmed_record(tails, confirmed, accepts_loss)
        self._tell_losses(confirmed, tails)
        return kept, end

    def write_back(self, groups: Sequence[AddRecord], tails: dict[int, MemberTail]) -> None:
        """Give every member of the groups' write sets its copy, durably; Qa at least each."""
        if not groups:
            return
        replication = Replication(
            self._cluster, self._metadata, self._password, self._run, self.note
        )
        replication.give(groups, tails, silent=self._silent)
        self._placed = replication.ensemble

    def close(self, groups: Sequence[AddRecord], end: int) -> LedgerMetadata:
        """The closing CAS; the loser of a race adopts what the winner stored (RB-17, H26)."""
        term, token = self._metadata.term, self._metadata.token
        last = groups[-1] if groups else self._confirmed

        def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
            assert metadata is not None
            if metadata.state is LedgerState.CLOSED:
                return metadata
            self._require_mine(metadata)
            if self._placed != self._ensemble:
                first = groups[0].first_entry_id
                metadata = metadata.with_recovered_ensemble(first, self._placed)
            return metadata.closed(
                last_entry_id=end,
                length_bytes=last.length_bytes if last is not None else 0,
                transactions=last.transactions if last is not None else {},
                term=term,
                token=token,
            )

        closed = self._cluster.ledgers.update(str(self._metadata.ledger_id), transform).value
        if (closed.term, closed.token) != (term, token):  # the winner may have kept it
            self.lost_from, self._given_up = None, []
        return closed

    def tell_given_up(self) -> None:
        """Say what is lost on the operator's word, now that the ledger is closed."""
        for loss in self._given_up:
            self.note.warn(f"DATA LOSS: {loss}")

    def require_current(self) -> None:
        """Return if nobody else has recovered the ledger, or begun to.

        Raises:
            LedgerClosedError: it is CLOSED.
            DisplacedError: it is being recovered by somebody else.
        """
        newest = self._cluster.ledger(self._metadata.ledger_id).value
        if newest.state is LedgerState.CLOSED:
            raise LedgerClosedError(f"ledger {newest.ledger_id} was closed meanwhile")
        self._require_mine(newest)

    def leave_reason(self, error: NotEnoughBookiesError) -> None:
        """Store for people why the ledger stays IN_RECOVERY; nothing depends on it (R17)."""
        decision = self._undecided
        stuck = StuckRecovery(
            ledger_id=self._metadata.ledger_id,
            term=self._metadata.term,
            entry_id=None if decision is None else decision.first_entry_id,
            waiting_for=tuple(member.bookie_id for member in self._waiting_for(error)),
            reason=str(error.args[0]),
            hint=error.hint,
            told_ms=environment.now_ms(),
        )
        try:
            self._cluster.recoveries.update(str(stuck.ledger_id), lambda _before: stuck)
        except BookKeeperError as problem:
            self.note.warn(f"the reason could not be stored for `bkspark status`: {problem}")

    def _waiting_for(self, error: NotEnoughBookiesError) -> Collection[Member]:
        """Members whose answers could decide; one that is lost decides nothing."""
        if isinstance(error, RecordSilenceError):
            return error.silent
        decision = self._undecided
        if decision is not None and decision.verdict is Verdict.LOST:
            return ()
        indexes = decision.waiting_for if decision is not None else tuple(self._problems)
        return [m for m in (self._ensemble[index] for index in indexes) if m not in self._lost]

    def _answers(self, tails: dict[int, MemberTail]) -> dict[int, MemberAnswer]:
        """What was answered, with those that never will because they are lost.

        One that was lost and answers all the same may have come back without what it had.
        """
        answers = {index: tail.answer for index, tail in tails.items()}
        self._lost = self._cluster.lost_members()
        for index, member in enumerate(self._ensemble):
            if member in self._lost and index not in tails:
                answers[index] = MemberAnswer({}, Doubt.LOST)
                self.note(f"{member.bookie_id} was declared lost and is waited for no more")
            elif member in self._lost:
                if answers[index].doubt is not Doubt.DAMAGED:
                    answers[index] = replace(answers[index], doubt=Doubt.LOST)
                self.note(
                    f"{member.bookie_id} was declared lost, and answers all the same: "
                    "what it shows counts, what it lacks proves nothing"
                )
        return answers

    def _tell_losses(self, confirmed: int, tails: dict[int, MemberTail]) -> None:
        """Say which confirmed entries are gone, with their bookies or by damage, or may be."""
        ledger = self._metadata
        members = {member for fragment in ledger.fragments for member in fragment.ensemble}
        gone = {m for m in members if m in self._lost or m not in self._known}
        damaged = {self._ensemble[index]: tail.hidden for index, tail in tails.items()}
        for loss in losses(ledger, gone, confirmed, damaged):
            text = explaining.loss_with_bookies(loss)
            self.losses.append(text)
            told = f"DATA LOSS: {text}"
            self.note.warn(told if loss.is_certain else f"POSSIBLE {told}; reading them tells")

    def _give_up(
        self, decision: GroupDecision, answers: dict[int, MemberAnswer], accepts_loss: Consent
    ) -> None:
        """Close in front of a group that is in doubt, if nobody can tell and the operator says so.

        Raises:
            NotEnoughBookiesError: somebody may still tell, or the operator does not say so.
        """
        loss = explaining.unconfirmed_loss(decision, answers, self._quorum)
        if decision.verdict is not Verdict.LOST or not accepts_loss(loss):
            self._undecided = decision
            raise explaining.stuck(
                self._metadata, decision, answers, self._problems, self._cluster.bookies()
            )
        self.lost_from = decision.first_entry_id
        names = ", ".join(self._ensemble[index].bookie_id for index in decision.waiting_for)
        why = explaining.why_nobody_tells(decision, answers, self._problems)
        self._will_be_lost(f"{loss}: only {names} could tell ({why})")

    def _confirmed_record(
        self, tails: dict[int, MemberTail], confirmed: int, accepts_loss: Consent
    ) -> AddRecord | None:
        """The record that ends at ``confirmed``, or what is left, if the operator says so.

        Raises:
            NotEnoughBookiesError: it is not shown, and the operator does not say so.
        """
        found = confirmed_record(
            self._cluster, self._metadata, self._password, tails, confirmed, self._run
        )
        end = INVALID_ENTRY_ID if found is None else found.last_entry_id
        if end == confirmed:
            return found
        ledger_id = self._metadata.ledger_id
        loss = explaining.confirmed_loss(end + 1, confirmed)
        if not accepts_loss(loss):
            raise NotEnoughBookiesError(
                f"ledger {ledger_id} cannot be closed yet: no bookie that is left has the record "
                f"of the confirmed entry {confirmed}",
                hint=explaining.accept(ledger_id, loss),
            )
        self.lost_from = end + 1
        self._will_be_lost(f"{loss}; the ledger ends behind entry {confirmed} all the same")
        return found

    def _will_be_lost(self, loss: str) -> None:
        """Say what the closing gives up, which it may yet fail to do."""
        self.note.warn(f"will be lost if the ledger can be closed: {loss}")
        self._given_up.append(loss)

    def _require_mine(self, metadata: LedgerMetadata) -> None:
        mine = self._metadata
        if (metadata.term, metadata.token) != (mine.term, mine.token):
            raise DisplacedError(
                f"ledger {metadata.ledger_id} is being recovered by somebody else",
                hint="wait for it, or recover again",
            )

    def _fence(self, index: int, address: BookieAddress) -> FenceAndRead:
        ledger = self._metadata
        return FenceAndRead(
            ledger.ledger_id,
            Writer.of(ledger),
            index,
            address,
            ledger.digest,
            self._password,
            self._floor,
        )
