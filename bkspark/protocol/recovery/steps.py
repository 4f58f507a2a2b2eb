"""The events and instructions of a ledger's recovery: plain values without effects.

An instruction names a member of the ensemble; the runner knows the member's location, the password
and the ledger's digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bkspark.errors import BookKeeperError, OutcomeUnknownError
from bkspark.protocol.ledger.metadata import (
    UNKNOWN,
    Beginning,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.record import AddRecord, Piece
from bkspark.protocol.recovery.verdicts import MemberTail

# --- reopening steps -----------------------------------------------------------------------------
# The events and instructions of a recovery that reopens the ledger, after its decision.


# --- instructions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Take:
    """Let a bookie take the new writer's permission and begin its journal; sent once (R19).

    Answered by ``Took``.
    """

    index: int
    member: Member


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Look anew, by its path, whether a bookie still has what it took; answered by ``Took``."""

    index: int
    member: Member


@dataclass(frozen=True, slots=True)
class Open:
    """Store the result of ``applied_to`` by CAS; answered by ``Opened``, or ``Displaced``.

    Attributes:
        term, token: of the recovery.
        writer_token: token of the new writer; no journal of the recovery has this token.
        last_entry_id: the recovered end.
        ensemble: the members of the new fragment, each after a successful ``Take``.
        first_kept, kept_by: first entry written back and its members, if these are not the members
            that the previous writer wrote to.
        length_bytes: payload bytes up to ``last_entry_id``, if known.
        now_ms: time of storing, given by the runner.
    """

    term: int
    token: str
    writer_token: str
    last_entry_id: int
    ensemble: tuple[Member, ...]
    first_kept: int = 0
    kept_by: tuple[Member, ...] = ()
    length_bytes: int | None = None
    now_ms: int | None = None

    def applied_to(self, ledger: LedgerMetadata) -> LedgerMetadata:
        """Return the ledger OPEN for the new writer, in this term (``reopening``, rule 4).

        Applied to its own result, the call changes nothing: the first answer may be lost (R8).

        Raises:
            LedgerFencedError: another client has taken the ledger over.
            InvalidRequestError: the end would cut off acknowledged entries, or the ledger does not
                continue in later terms.
        """
        if (ledger.state, ledger.token) == (LedgerState.OPEN, self.writer_token):
            return ledger
        owner = (LedgerState.IN_RECOVERY, self.term, self.token)
        if (ledger.state, ledger.term, ledger.token) != owner:
            raise ledger.fenced(self.term)
        if not ledger.goes_on:
            raise ledger.refused("only the writer that created it can write to it")
        if self.last_entry_id < ledger.last_confirmed:
            raise ledger.refused(
                f"its next writer cannot continue after entry {self.last_entry_id}"
            )
        fragments = self._kept(ledger)
        begin, whose = self.last_entry_id + 1, (self.ensemble, self.writer_token)
        opened = Fragment(begin, self.term, *whose, has_headers=True, owner=self.term)
        if begin > 0:
            before = ledger.last_fragment  # if empty, it began at the same entry
            known = before.beginning if before.first_entry_id == begin else None
            beginning = known or Beginning.known(self.now_ms, self.length_bytes)
            opened = replace(opened, beginning=beginning)
        return replace(
            ledger,
            state=LedgerState.OPEN,
            token=self.writer_token,
            fragments=(*fragments, opened),
        )

    def _kept(self, ledger: LedgerMetadata) -> tuple[Fragment, ...]:
        """Return the fragments before the new one; moved entries keep their owner."""
        writers = ledger.last_fragment
        if self.kept_by:
            ledger = ledger.with_recovered_ensemble(self.first_kept, self.kept_by)
            moved = replace(ledger.last_fragment, token=self.token, owner=writers.owner)
            ledger = replace(ledger, fragments=(*ledger.fragments[:-1], moved))
        return tuple(f for f in ledger.fragments if f.first_entry_id <= self.last_entry_id)


@dataclass(frozen=True, slots=True)
class Prune:
    """Remove the previous writer's files from a bookie, each durably before the next.

    Not answered. The journal goes first, if at all, then the permission, and then the fence.

    Attributes:
        writer: term and token of the previous writer.
        is_empty: whether no record of the previous writer counts, so that its journal goes too.
    """

    member: Member
    writer: tuple[int, str]
    is_empty: bool = False


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Took:
    """The result of ``Take`` or of ``LookAgain``.

    Attributes:
        problem: why the bookie may lack permission or journal, in one line; empty if it has both.
    """

    to: Take | LookAgain
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Opened:
    """The ledger is OPEN for the new writer, according to the metadata read back."""

    metadata: LedgerMetadata


# --- steps ---------------------------------------------------------------------------------------


class DisplacedError(OutcomeUnknownError):
    """Another recovery took the ledger over from this one."""

    @classmethod
    def of(cls, ledger_id: int) -> "DisplacedError":
        return cls(
            f"another recovery of ledger {ledger_id} is running",
            hint="wait until that recovery has ended, or recover again",
        )


# --- what bookies answer --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a bookie gave no sure answer, in one line."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Silence(Failure):
    """The bookie gave no answer within the time limit."""


@dataclass(frozen=True, slots=True)
class RecordShown:
    """The newest record shown by a bookie up to some entry, or None.

    Attributes:
        problem: why there may be another record, in one line; empty if there surely is none.
    """

    record: AddRecord | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WrittenBack:
    """Every group given is durable on this bookie, except for damaged entry logs.

    Attributes:
        damaged: entry logs with a damaged copy on the bookie, each with the reason in one line.
    """

    group_count: int
    damaged: tuple[tuple[Piece, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No holder of an entry log can read it any more, in one line; the target is not to blame."""

    reason: str


@dataclass(frozen=True, slots=True)
class Displaced:
    """A newer recovery took over, so the decision is void; the reason in one line."""

    reason: str


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LedgerSeen:
    """The newest metadata, perhaps changed by another client."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The ledger is IN_RECOVERY in this recovery's own term.

    Attributes:
        metadata: the version stored by the takeover: its last ensemble is the one to ask (R16).
        known: the registered bookies among its members; any other member was initialised anew.
    """

    metadata: LedgerMetadata
    known: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """A member's answer to an instruction, or the reason for a missing answer."""

    to: "Fence | LookUp | WriteBack"
    result: MemberTail | RecordShown | WrittenBack | Unreadable | Displaced | Failure


@dataclass(frozen=True, slots=True)
class DeclaredLost:
    """All members that an operator declared lost for ever."""

    members: frozenset[Member]


@dataclass(frozen=True, slots=True)
class Consent:
    """The operator's answer: whether the loss is accepted."""

    is_given: bool


@dataclass(frozen=True, slots=True)
class Spares:
    """Bookies that may replace members; fewer than requested if there are no more."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """The ledger is CLOSED, by this or another recovery."""

    metadata: LedgerMetadata


Event = (
    LedgerSeen
    | TakenOver
    | Answer
    | DeclaredLost
    | Consent
    | Spares
    | Closed
    | Displaced
    | Took
    | Opened
)


# --- instructions ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeptGroup:
    """A group kept by the recovery.

    Attributes:
        parts: all its inline rows, by stripe.
        holders: members with the record; the runner copies the group's entry logs from there.
    """

    record: AddRecord
    parts: Mapping[int, bytes] = field(hash=False)
    holders: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class ReadLedger:
    """Read the metadata anew; answered by ``LedgerSeen``."""


@dataclass(frozen=True, slots=True)
class WaitForOthers:
    """Give another recovery time to finish, then read the metadata; answered by ``LedgerSeen``."""

    displaced_before: int


@dataclass(frozen=True, slots=True)
class TakeOver:
    """Store the ledger IN_RECOVERY in the next term by CAS, with a unique token.

    Answered by ``TakenOver``, or ``LedgerSeen`` if the ledger is CLOSED.
    """


@dataclass(frozen=True, slots=True)
class Fence:
    """Fence the writer on a member, durably, and then read the entries after entry ``after``.

    Answered by ``MemberTail`` or ``Failure``.
    """

    index: int
    member: Member
    after: int


@dataclass(frozen=True, slots=True)
class ListLost:
    """Read which members were declared lost; answered by ``DeclaredLost``."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the operator's consent; answered by ``Consent``.

    Attributes:
        loss: the entries given up, in words.
    """

    loss: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find the newest record on a member that ends at or before ``entry_id``.

    Answered by ``RecordShown`` or ``Failure``.
    """

    member: Member
    entry_id: int


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Give a member its copies of ``groups``.

    Answered by ``WrittenBack``, ``Failure``, ``Unreadable`` or ``Displaced``.

    Attributes:
        must_fence: whether the member still needs the fence, before any other write (rule 3 of
            ``replication``).
    """

    index: int
    member: Member
    groups: tuple[KeptGroup, ...]
    must_fence: bool


@dataclass(frozen=True, slots=True)
class ChooseSpares:
    """Choose up to ``count`` writable bookies; answered by ``Spares``.

    Attributes:
        exclude: bookies that must not be chosen, in addition to those declared lost.
        near: members that have their copies; spares should lie apart from them.
        ensemble: the members now.
        places: indexes of those that the spares replace, in the order of the spares.
    """

    count: int
    exclude: frozenset[str]
    near: frozenset[Member]
    ensemble: tuple[Member, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Close:
    """Store the result of ``applied_to`` by CAS; answered by ``Closed``, or ``Displaced``.

    Attributes:
        term, token: of the recovery.
        last: the record that ends at ``last_entry_id``, or the newest record left.
        first_entry_id, ensemble: first entry written back and its members, if these are not the
            members that the writer wrote to.
    """

    term: int
    token: str
    last_entry_id: int
    last: AddRecord | None = None
    first_entry_id: int = 0
    ensemble: tuple[Member, ...] = ()

    def applied_to(self, metadata: LedgerMetadata) -> LedgerMetadata:
        """Return the closed metadata, with all findings of the recovery in a single change.

        The loser of a race adopts the winner's version (RB-17, H26).

        Raises:
            DisplacedError: another client is recovering the ledger.
        """
        if metadata.state is LedgerState.CLOSED:
            return metadata
        if (metadata.term, metadata.token) != (self.term, self.token):
            raise DisplacedError.of(metadata.ledger_id)
        if self.ensemble:
            metadata = metadata.with_recovered_ensemble(self.first_entry_id, self.ensemble)
        return metadata.closed(
            last_entry_id=self.last_entry_id,
            length_bytes=self.last.length_bytes if self.last is not None else 0,
            transactions=self.last.transactions if self.last is not None else {},
            times=self.last.times if self.last is not None else UNKNOWN,
            term=self.term,
            token=self.token,
        )


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why the ledger cannot be closed yet.

    Attributes:
        reason: in one line.
        hint: the next step for the operator.
        entry_id: the first undecided entry; None if no entry is undecided.
        waiting_for: members whose answers could decide.
    """

    reason: str
    hint: str
    entry_id: int | None = None
    waiting_for: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveReason:
    """Store for operators why the ledger stays IN_RECOVERY; no decision depends on it (R17)."""

    term: int
    stuck: Stuck


@dataclass(frozen=True, slots=True)
class Note:
    """Print a line."""

    line: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class EndRecovery:
    """The ledger is CLOSED, or OPEN for a new writer.

    Attributes:
        opened: the ledger, now OPEN; None if CLOSED.
        last: the record that ends at ``last_entry_id``, for the next writer.
        kept: number of groups after the LAC that were written back.
        lost_from: first entry lost with the operator's consent; None if none is.
        losses: confirmed entries that are, or may be, lost, in words.
        unjoined: ids of bookies that the writer must not ask, as the recovery may have asked.
    """

    last_entry_id: int
    kept: int = 0
    lost_from: int | None = None
    losses: tuple[str, ...] = ()
    opened: LedgerMetadata | None = None
    last: AddRecord | None = None
    unjoined: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Fail:
    """The ledger is not closed; raise ``error``."""

    error: BookKeeperError


Instruction = (
    ReadLedger
    | WaitForOthers
    | TakeOver
    | Fence
    | ListLost
    | Ask
    | LookUp
    | WriteBack
    | ChooseSpares
    | Close
    | Take
    | LookAgain
    | Open
    | Prune
    | LeaveReason
    | Note
    | EndRecovery
    | Fail
)
