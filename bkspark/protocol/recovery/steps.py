"""What the recovery of a ledger is told, and what it asks for: plain values without any effect.

An instruction about a bookie names a member of the ensemble; whoever carries it out knows where
that is, the password and the ledger's digest.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bkspark.errors import BookKeeperError, OutcomeUnknownError
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord, Piece
from bkspark.protocol.recovery.member_tail import MemberTail
from bkspark.protocol.recovery.reopening_steps import LookAgain, Open, Opened, Prune, Take, Took


class DisplacedError(OutcomeUnknownError):
    """Another recovery took the ledger over from this one."""

    @classmethod
    def of(cls, ledger_id: int) -> "DisplacedError":
        return cls(
            f"ledger {ledger_id} is being recovered by somebody else",
            hint="wait for it, or recover again",
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
    """It gave none at all in all the time that it was waited for."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The newest record that a bookie shows up to some entry; None if it shows none.

    Attributes:
        problem: why there may be another one, in one line; empty if there surely is none.
    """

    record: AddRecord | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WrittenBack:
    """Every group given is durable on this bookie, but for what is damaged there.

    Attributes:
        damaged: entry logs of which it has a damaged copy, each with the reason in one line.
    """

    group_count: int
    damaged: tuple[tuple[Piece, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No holder of an entry log gives it any more, in one line; the target is not to blame."""

    reason: str


@dataclass(frozen=True, slots=True)
class Displaced:
    """What this recovery has decided does not hold any more, in one line: another took over."""

    reason: str


# --- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LedgerSeen:
    """The newest metadata, as somebody else may have left it."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The ledger is IN_RECOVERY in this recovery's own term.

    Attributes:
        metadata: of that very version: its last ensemble is the one to ask (R16).
        known: registered bookies; a member that is none of them was initialised anew.
    """

    metadata: LedgerMetadata
    known: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a member answered to an instruction, or why it did not."""

    to: "Fence | LookUp | WriteBack"
    result: MemberTail | Shown | WrittenBack | Unreadable | Displaced | Failure


@dataclass(frozen=True, slots=True)
class DeclaredLost:
    """All members that an operator declared lost for ever."""

    members: frozenset[Member]


@dataclass(frozen=True, slots=True)
class Consent:
    """The operator's word: whether the loss is accepted."""

    is_given: bool


@dataclass(frozen=True, slots=True)
class Spares:
    """Bookies that may stand in; fewer than were asked for if there are no more."""

    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Closed:
    """The ledger is CLOSED, by this recovery or by another one."""

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
    """A group that the recovery keeps.

    Attributes:
        parts: all its inline rows, by stripe.
        holders: who shows its record; whoever copies its entry logs looks for them there.
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
    """Store the ledger IN_RECOVERY in the next term by CAS, with a token that nobody else has.

    Answered by ``TakenOver``, or ``LedgerSeen`` if it is CLOSED.
    """


@dataclass(frozen=True, slots=True)
class Fence:
    """Fence the writer on a member, durably, and then read what is there behind entry ``after``.

    Answered by ``MemberTail`` or ``Failure``.
    """

    index: int
    member: Member
    after: int


@dataclass(frozen=True, slots=True)
class ListLost:
    """Read who was declared lost; answered by ``DeclaredLost``."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask for the operator's word; answered by ``Consent``.

    Attributes:
        loss: what is given up, in words.
    """

    loss: str


@dataclass(frozen=True, slots=True)
class LookUp:
    """Find the newest record on a member that ends at ``entry_id`` or in front of it.

    Answered by ``Shown`` or ``Failure``.
    """

    member: Member
    entry_id: int


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Give a member its copies of ``groups``.

    Answered by ``WrittenBack``, ``Failure``, ``Unreadable`` or ``Displaced``.

    Attributes:
        must_fence: whether it has no fence yet, which comes before anything else (rule 3 of
            ``replication``).
    """

    index: int
    member: Member
    groups: tuple[KeptGroup, ...]
    must_fence: bool


@dataclass(frozen=True, slots=True)
class ChooseSpares:
    """Choose up to ``count`` bookies that can be written to; answered by ``Spares``.

    Attributes:
        exclude: bookies that must not be chosen; nor must any that was declared lost.
        near: members that have their copies; spares are to lie apart from them.
    """

    count: int
    exclude: frozenset[str]
    near: frozenset[Member]


@dataclass(frozen=True, slots=True)
class Close:
    """Store what ``applied_to`` says by CAS; answered by ``Closed``, or ``Displaced``.

    Attributes:
        term, token: of the recovery.
        last: the record that ends at ``last_entry_id``, or the newest one that is left.
        first_entry_id, ensemble: where what was written back begins, and who has it, if these are
            not the members that the writer wrote to.
    """

    term: int
    token: str
    last_entry_id: int
    last: AddRecord | None = None
    first_entry_id: int = 0
    ensemble: tuple[Member, ...] = ()

    def applied_to(self, metadata: LedgerMetadata) -> LedgerMetadata:
        """The closing change, made once, with everything that the recovery found out.

        The loser of a race adopts what the winner stored (RB-17, H26).

        Raises:
            DisplacedError: the ledger is being recovered by somebody else.
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
            term=self.term,
            token=self.token,
        )


@dataclass(frozen=True, slots=True)
class Stuck:
    """Why the ledger cannot be closed yet.

    Attributes:
        reason: in one line.
        hint: what to do next.
        entry_id: the first entry that is not decided; None if it is not about an entry.
        waiting_for: members whose answers could decide.
    """

    reason: str
    hint: str
    entry_id: int | None = None
    waiting_for: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True)
class LeaveReason:
    """Store for people why the ledger stays IN_RECOVERY; nothing depends on it (R17)."""

    term: int
    stuck: Stuck


@dataclass(frozen=True, slots=True)
class Note:
    """Tell a line."""

    line: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """The ledger is CLOSED, or OPEN for a new writer.

    Attributes:
        opened: the ledger as it is OPEN; None if it is CLOSED.
        last: the record that ends at ``last_entry_id``, for who goes on behind it.
        kept: how many groups beyond the LAC were written back.
        lost_from: first entry lost on the operator's word; None if nothing is.
        losses: what is, or may be, lost of the confirmed entries.
        unjoined: ids of bookies that the writer must not ask, as the recovery may have.
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
    | End
    | Fail
)
