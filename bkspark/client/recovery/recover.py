"""Fence and recover: close a ledger that somebody else was writing, without losing an ack.

The steps are those of the protocol document, "Recovery", in the order of reliability R16:

1. CAS to IN_RECOVERY in the next term. The ensemble of this very version is the one to ask.
2. On every bookie of the last fragment: first the term markers, durably, then look what is there.
3. Decide group by group, from the highest LAC on (``bkspark.protocol.recovery``).
4. Write what is kept back, byte-identical, to every member of its write sets; Qa at least, with
   spares in the place of members that fail (``replication``).
5. CAS to CLOSED, once, with everything this recovery found out.

It can be killed at any point and run again; any number may run at once, the closing CAS decides.
Steps 2 and 4 are lists of picklable instructions: a thread pool carries them out, or Spark.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex

from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster, now_ms
from bkspark.client.password import Password, make_digester
from bkspark.client.recovery.displacement import TAKEOVERS_MAX, DisplacedError, wait_for_others
from bkspark.client.recovery.fencing import FenceAndRead, MemberTail
from bkspark.client.recovery.last_confirmed import confirmed_record
from bkspark.client.recovery.replication import Replication
from bkspark.client.recovery.running import Runner, in_threads
from bkspark.errors import BookKeeperError, LedgerClosedError, NotEnoughBookiesError
from bkspark.format.recovery import StuckRecovery
from bkspark.protocol.ledger import INVALID_ENTRY_ID, LedgerMetadata, LedgerState
from bkspark.protocol.record import AddRecord
from bkspark.protocol.recovery import (
    Doubt,
    GroupDecision,
    MemberAnswer,
    Verdict,
    decide_group,
    last_add_confirmed,
)


@dataclass(slots=True)
class RecoveryReport:
    """What a recovery did.

    Attributes:
        last_entry_id: where the ledger is closed, -1 if it is empty.
        kept: groups beyond the LAC that were found and written back.
        notes: one line for each step and each bookie that could not help.
        lost_from: first entry that was given up on the operator's word, though it may have been
            acknowledged; None if nothing was.
    """

    ledger_id: int
    last_entry_id: int = INVALID_ENTRY_ID
    kept: int = 0
    notes: list[str] = field(default_factory=list)
    lost_from: int | None = None


def recover(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: bool = False,
) -> RecoveryReport:
    """Close ledger ``ledger_id`` at the last entry that may have been acknowledged.

    Args:
        run: how to carry out instructions on bookies; None for threads in this process.
        tell: called with each note as it is made.
        accepts_loss: the operator's word that entries may be given up if only bookies that were
            declared lost could tell whether they were acknowledged.

    Raises:
        NotEnoughBookiesError: it cannot be decided yet; says which bookies are waited for, which
            entry is in doubt and what would help. The ledger stays IN_RECOVERY, and
            ``bkspark status`` shows the reason.
        OutcomeUnknownError: others took over again and again, and none has finished.
        NoSuchLedgerError: there is no such ledger.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    report = RecoveryReport(ledger_id)

    def note(text: str) -> None:
        report.notes.append(text)
        if tell is not None:
            tell(text)

    metadata = cluster.ledger(ledger_id).value
    runner = run or partial(in_threads, tell=note)
    for takeover in range(TAKEOVERS_MAX):
        if metadata.state is LedgerState.CLOSED:
            break
        make_digester(metadata.digest, password)  # a wrong password must not fence anybody
        try:
            work = _take_over(cluster, ledger_id, password, runner, note)
            _close(work, report, accepts_loss=accepts_loss)
            return report
        except LedgerClosedError:
            metadata = cluster.ledger(ledger_id).value
        except DisplacedError as error:
            note(f"displaced: {error.args[0]}")
            metadata = wait_for_others(cluster, ledger_id, takeover)
    if metadata.state is not LedgerState.CLOSED:
        raise DisplacedError(
            f"ledger {ledger_id} is being recovered by somebody else",
            hint="wait for it, or recover again",
        )
    report.last_entry_id = _end_of(metadata)
    note(f"ledger {ledger_id} is CLOSED at entry {report.last_entry_id} already")
    return report


def _take_over(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    run: Runner,
    note: Callable[[str], None],
) -> "_Recovery":
    taken = cluster.ledgers.update(str(ledger_id), _taken_over(token_hex(16))).value
    note(f"ledger {ledger_id} is IN_RECOVERY in term {taken.term}")
    return _Recovery(cluster, taken, password, run, note)


def _close(work: "_Recovery", report: RecoveryReport, *, accepts_loss: bool) -> None:
    """Steps 2 to 5; a recovery that cannot finish leaves its reason behind."""
    try:
        tails = work.fence_and_read()
        groups, end = work.decide(tails, accepts_loss=accepts_loss)
        work.write_back(groups, tails)
        closed = work.close(groups, end)
    except NotEnoughBookiesError as error:
        work.require_current()
        work.leave_reason(error)
        raise
    report.last_entry_id = _end_of(closed)
    report.kept = len(groups)
    report.lost_from = work.lost_from
    work.note(f"ledger {report.ledger_id} is CLOSED at entry {report.last_entry_id}")


def _taken_over(token: str) -> Callable[[LedgerMetadata | None], LedgerMetadata]:
    def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
        assert metadata is not None
        is_mine = metadata.state is LedgerState.IN_RECOVERY and metadata.token == token
        return metadata if is_mine else metadata.in_recovery(token)

    return transform


def _end_of(metadata: LedgerMetadata) -> int:
    return INVALID_ENTRY_ID if metadata.last_entry_id is None else metadata.last_entry_id


class _Recovery:
    """One recovery in one term.

    Attributes:
        lost_from: first entry given up on the operator's word; None if nothing was.
    """

    def __init__(
        self,
        cluster: Cluster,
        metadata: LedgerMetadata,
        password: Password,
        run: Runner,
        note: Callable[[str], None],
    ) -> None:
        self.note = note
        self.lost_from: int | None = None
        self._cluster = cluster
        self._metadata = metadata
        self._password = password
        self._run = run
        self._quorum = metadata.quorum
        self._ensemble = metadata.last_fragment.ensemble
        self._floor = metadata.last_fragment.first_entry_id - 1
        self._problems: dict[int, str] = {}
        self._undecided: GroupDecision | None = None
        self._confirmed: AddRecord | None = None
        self._placed = self._ensemble

    def fence_and_read(self) -> dict[int, MemberTail]:
        """What every member that answers has, after it was fenced, by ensemble index."""
        known = self._cluster.addresses()
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
            if problem:
                self._problems[instruction.ensemble_index] = problem
        names = [self._ensemble[index].bookie_id for index in sorted(tails)]
        self.note(f"fenced and read {', '.join(names) or 'no bookie'}")
        for index, problem in sorted(self._problems.items()):
            self.note(f"{'in doubt' if index in tails else 'no answer'}: {problem}")
        return tails

    def decide(
        self, tails: dict[int, MemberTail], *, accepts_loss: bool
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
            self.note(f"entries {decision.first_entry_id} to {end} are kept")
        if decision.verdict is Verdict.ABSENT:
            self.note(f"entry {end + 1} was never acknowledged")
        elif decision.verdict is Verdict.LOST and accepts_loss:
            self._give_up(decision, answers)
        else:
            raise self._stuck(decision)
        if not kept and confirmed != INVALID_ENTRY_ID:
            self._confirmed = confirmed_record(
                self._cluster, self._metadata, self._password, tails, confirmed
            )
        return kept, end

    def write_back(self, groups: Sequence[AddRecord], tails: dict[int, MemberTail]) -> None:
        """Give every member of the groups' write sets its copy, durably; Qa at least each."""
        if not groups:
            return
        replication = Replication(
            self._cluster, self._metadata, self._password, self._run, self.note
        )
        replication.give(groups, tails)
        self._placed = replication.ensemble

    def close(self, groups: Sequence[AddRecord], end: int) -> LedgerMetadata:
        """The closing CAS; the loser of a race adopts what the winner stored (RB-17)."""
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

        return self._cluster.ledgers.update(str(self._metadata.ledger_id), transform).value

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
        waiting = decision.waiting_for if decision is not None else tuple(self._problems)
        stuck = StuckRecovery(
            ledger_id=self._metadata.ledger_id,
            term=self._metadata.term,
            entry_id=None if decision is None else decision.first_entry_id,
            waiting_for=tuple(self._ensemble[index].bookie_id for index in waiting),
            reason=str(error.args[0]),
            hint=error.hint,
            told_ms=now_ms(),
        )
        try:
            self._cluster.recoveries.update(str(stuck.ledger_id), lambda _before: stuck)
        except BookKeeperError as problem:
            self.note(f"the reason could not be stored for `bkspark status`: {problem}")

    def _answers(self, tails: dict[int, MemberTail]) -> dict[int, MemberAnswer]:
        """What was answered, with those that never will because they are lost."""
        answers = {index: tail.answer for index, tail in tails.items()}
        lost = self._cluster.lost_members()
        for index, member in enumerate(self._ensemble):
            if member in lost and index not in tails:
                answers[index] = MemberAnswer({}, Doubt.LOST)
                self.note(f"{member.bookie_id} was declared lost and is waited for no more")
            elif member in lost:
                self.note(f"{member.bookie_id} was declared lost, and answers all the same")
        return answers

    def _give_up(self, decision: GroupDecision, answers: dict[int, MemberAnswer]) -> None:
        first = self.lost_from = decision.first_entry_id
        names = ", ".join(self._ensemble[index].bookie_id for index in decision.waiting_for)
        shown = [
            record.last_entry_id
            for answer in answers.values()
            for record, _ in answer.records.values()
            if record.last_entry_id >= first
        ]
        extent = f"{first} to {max(shown)}, and what followed," if shown else f"from {first} on"
        self.note(
            f"DATA LOSS: entries {extent} may have been acknowledged and are given up: "
            f"{names} were declared lost, and no other bookie has them whole"
        )

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
            ledger.term,
            index,
            address,
            ledger.digest,
            self._password,
            self._floor,
            ledger.last_fragment.term,
        )

    def _stuck(self, decision: GroupDecision) -> NotEnoughBookiesError:
        self._undecided = decision
        first, waiting = decision.first_entry_id, decision.waiting_for
        names = ", ".join(self._ensemble[index].bookie_id for index in waiting)
        reasons = "; ".join(self._problems.get(index, "it is silent") for index in waiting)
        what = "its rows are damaged" if decision.record else "it may have been acknowledged"
        ledger_id = self._metadata.ledger_id
        if decision.verdict is Verdict.LOST:
            return NotEnoughBookiesError(
                f"ledger {ledger_id} cannot be closed yet: entry {first} is in doubt ({what}), and "
                f"only {names} could tell, declared lost",
                hint="`bkspark ledger recover --accept-loss` gives up the entries from "
                f"{first} on and closes the ledger in front of them",
            )
        return NotEnoughBookiesError(
            f"ledger {ledger_id} cannot be closed yet: entry {first} is in doubt ({what}), "
            f"no sure answer from {names or 'any bookie that has it'} ({reasons})",
            hint="bring back one of these bookies, then recover again",
        )
