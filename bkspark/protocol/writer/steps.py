"""What a writer is told, and what it has done: the events and instructions of ``writing``.

Both are values. Who carries out the instructions is none of their business: threads, a simulation
or a loop in a test.
"""

from dataclasses import dataclass

from bkspark.errors import BookKeeperError, LedgerClosedError, LedgerFencedError
from bkspark.protocol.ledger.beginning import Beginning
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd

# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submitted:
    """Entries for one record; only while ``may_submit``.

    Attributes:
        names_entry_logs: they lie in entry logs, copies of which bookies have already.
    """

    entry_count: int
    byte_count: int
    names_entry_logs: bool = False


@dataclass(frozen=True, slots=True)
class Gathered:
    """Entry logs for the next record are on bookies, which members or not; nothing is pending.

    Attributes:
        ceding: indexes of members that have less of them than others.
    """

    ceding: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """A member has every entry log of the add that it should have.

    Attributes:
        bad: bookies that turned out to have no good copy, each with the reason.
    """

    ensemble_index: int
    bookie_id: str
    first_entry_id: int
    bad: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """The record of these entries is durable there and passed the post-check."""

    ensemble_index: int
    bookie_id: str
    first_entry_id: int
    last_entry_id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A member failed, hangs, or is fenced; nothing more comes from it."""

    ensemble_index: int
    bookie_id: str
    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class Enlisted:
    """A bookie that holds the writer's permission, None if there is none.

    Attributes:
        passed_over: bookies that failed meanwhile, each with the reason.
    """

    member: Member | None
    passed_over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Swapped:
    """The compare-and-set came through; what the metadata says now."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class Checked:
    """A metadata check ended: what the metadata says now, None if it is what was seen before."""

    ticket: CheckTicket
    metadata: LedgerMetadata | None = None


@dataclass(frozen=True, slots=True)
class Roll:
    """Somebody wants what is added from now on to lie in a new fragment."""


@dataclass(frozen=True, slots=True)
class Mustered:
    """Bookies for all places of a new fragment, each with the writer's permission and journal.

    Attributes:
        ensemble: members that stay in their places, and others; empty if there are too few.
        passed_over: bookies that failed meanwhile, each with the reason.
        reason: why there are too few, in one line.
    """

    ensemble: tuple[Member, ...]
    passed_over: tuple[tuple[str, str], ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody wants to know whether the ledger is still this writer's; nothing is pending."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """An add was not acknowledged in ``seconds``."""

    first_entry_id: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing was sent for as long as a writer is silent about its LAC."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Nothing more is submitted; with an error the writer ends at once."""

    error: BookKeeperError | None = None


Event = (
    Submitted
    | Gathered
    | Copied
    | Stored
    | Failed
    | Enlisted
    | Swapped
    | Checked
    | Roll
    | Mustered
    | Asked
    | TimedOut
    | Idle
    | Stop
)


# --- instructions --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Append:
    """Append the record of ``add`` on these members, behind what was sent to them before."""

    indexes: tuple[int, ...]
    add: PendingAdd


@dataclass(frozen=True, slots=True)
class Copy:
    """See to it that a member has the entry logs of ``add`` that its place should have."""

    ensemble_index: int
    member: Member
    add: PendingAdd


@dataclass(frozen=True, slots=True)
class Confirm:
    """Append a confirmation of the LAC on these members; nobody waits for it."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckMetadata:
    """See whether the metadata is what was seen last; nothing may come between."""

    ticket: CheckTicket


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Tell whoever waits for these adds, in this order."""

    adds: tuple[PendingAdd, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """These adds, acknowledged before, are fully replicated: nobody will be sent them again."""

    adds: tuple[PendingAdd, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Use a member no more; it stays in the metadata."""

    ensemble_index: int
    member: Member
    reason: str


@dataclass(frozen=True, slots=True)
class Enlist:
    """Find a bookie, neither a member nor one that failed, that takes the writer's permission.

    Attributes:
        staying: the members that remain.
        exclude: ids of bookies that must not be chosen.
    """

    ensemble_index: int
    staying: tuple[Member, ...]
    exclude: frozenset[str]


@dataclass(frozen=True, slots=True)
class Swap:
    """Name another ensemble in the metadata by compare-and-set.

    Attributes:
        first_entry_id: which the ensemble is to have, and all behind it.
        last_add_confirmed: the last entry that is acknowledged.
        length_bytes: payload bytes in front of ``first_entry_id``, where that is known.
        now_ms: when it is stored; given by whoever does it.
    """

    ledger_id: int
    term: int
    token: str
    first_entry_id: int
    ensemble: tuple[Member, ...]
    last_add_confirmed: int = INVALID_ENTRY_ID
    length_bytes: int | None = None
    now_ms: int | None = None

    def applied_to(self, metadata: LedgerMetadata | None) -> LedgerMetadata:
        """The newest metadata with the change.

        Raises:
            LedgerFencedError: the ledger is not the writer's any more.
        """
        if metadata is None:
            raise LedgerFencedError(f"ledger {self.ledger_id} is gone")
        try:
            return metadata.with_ensemble(
                *(self.first_entry_id, self.ensemble),
                last_add_confirmed=self.last_add_confirmed,
                beginning=Beginning.known(self.now_ms, self.length_bytes),
                term=self.term,
                token=self.token,
            )
        except LedgerClosedError as error:
            # Not "closed": whoever closed it may have kept entries that have no ack (RB-35).
            raise metadata.fenced(self.term) from error


@dataclass(frozen=True, slots=True)
class Join:
    """Use a new member from now on, which the metadata names.

    Attributes:
        replaced: the bookie that had its place, with the reason.
    """

    ensemble_index: int
    member: Member
    first_entry_id: int
    replaced: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Muster:
    """Find bookies for all places of a new fragment; whoever comes in takes the permission.

    Attributes:
        ensemble: the members now; one that stays keeps its place.
        failed: indexes of those that cannot stay.
        exclude: ids of bookies that must not be chosen.
    """

    ensemble: tuple[Member, ...]
    failed: frozenset[int]
    exclude: frozenset[str]


@dataclass(frozen=True, slots=True)
class RolledOver:
    """A new fragment is in use: other members are in the places ``changed``.

    Those they were in before are sent nothing more, and finish what they were sent.
    """

    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotRolled:
    """No new fragment was begun, and the one before is in use as it was."""

    reason: str


@dataclass(frozen=True, slots=True)
class WarnOfGaps:
    """A member gave no sign to have the entries from here on: they have one copy fewer.

    Attributes:
        last_entry_id: behind it another member is in its place; None if nobody is.
    """

    bookie_id: str
    reason: str
    first_entry_id: int
    last_entry_id: int | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The writer has ended; None if all that was submitted is acknowledged."""

    error: BookKeeperError | None


Instruction = (
    Append
    | Copy
    | Confirm
    | CheckMetadata
    | Acknowledge
    | Forget
    | Release
    | Enlist
    | Swap
    | Join
    | Muster
    | RolledOver
    | NotRolled
    | WarnOfGaps
    | End
)
