"""The events and instructions of the writer's state machine (``writing``).

Both are values. Any runner may carry out instructions: threads, a simulation or a loop in a test.
"""

from dataclasses import dataclass

from bkspark.errors import BookKeeperError, LedgerClosedError, LedgerFencedError
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    UNKNOWN,
    Beginning,
    CommitTimes,
    LedgerMetadata,
    Member,
)
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd

# --- events --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submitted:
    """Entries for one record; only while ``may_submit``.

    Attributes:
        names_entry_logs: the rows lie in entry logs with copies on bookies already.
        times: when they are committed, by the writer's clock; no decision depends on it.
    """

    entry_count: int
    byte_count: int
    names_entry_logs: bool = False
    times: CommitTimes = UNKNOWN


@dataclass(frozen=True, slots=True)
class Gathered:
    """Entry logs for the next record are on bookies, members or not; no add is pending.

    Attributes:
        ceding: indexes of members that have fewer of the entry logs than other bookies.
    """

    ceding: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Copied:
    """A member has all entry logs of the add for its place.

    Attributes:
        bad: bookies without a good copy, each with the reason.
    """

    ensemble_index: int
    bookie_id: str
    first_entry_id: int
    bad: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Stored:
    """The record of these entries is durable on the member and passed the post-check."""

    ensemble_index: int
    bookie_id: str
    first_entry_id: int
    last_entry_id: int


@dataclass(frozen=True, slots=True)
class Failed:
    """A member failed, hangs, or is fenced; no later event comes from the member."""

    ensemble_index: int
    bookie_id: str
    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class Enlisted:
    """A bookie holds the writer's permission; None without any.

    Attributes:
        passed_over: bookies that failed meanwhile, each with the reason.
    """

    member: Member | None
    passed_over: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Swapped:
    """The compare-and-set succeeded; ``metadata`` is the stored version."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class Checked:
    """A metadata check ended: the metadata now, None if unchanged."""

    ticket: CheckTicket
    metadata: LedgerMetadata | None = None


@dataclass(frozen=True, slots=True)
class Roll:
    """A caller requests a new fragment for later adds."""


@dataclass(frozen=True, slots=True)
class Mustered:
    """Bookies for all places of a new fragment, each with the writer's permission and journal.

    Attributes:
        ensemble: members that stay in their places, and new ones; empty if there are too few.
        passed_over: bookies that failed meanwhile, each with the reason.
        reason: why there are too few, in one line.
    """

    ensemble: tuple[Member, ...]
    passed_over: tuple[tuple[str, str], ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A caller asks whether this writer still owns the ledger; no add is pending."""


@dataclass(frozen=True, slots=True)
class TimedOut:
    """An add was not acknowledged within ``seconds``."""

    first_entry_id: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Idle:
    """No record was sent for the interval after which a writer states its LAC."""


@dataclass(frozen=True, slots=True)
class Stop:
    """No more entries are submitted; with an error the writer ends at once."""

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
    """Append the record of ``add`` on these members, after all records sent before."""

    indexes: tuple[int, ...]
    add: PendingAdd


@dataclass(frozen=True, slots=True)
class Copy:
    """Ensure that a member has the entry logs of ``add`` for its place."""

    ensemble_index: int
    member: Member
    add: PendingAdd


@dataclass(frozen=True, slots=True)
class Confirm:
    """Append a confirmation of the LAC on these members; the writer does not wait for answers."""

    indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckMetadata:
    """Compare the metadata with the version seen last; no other step may come between."""

    ticket: CheckTicket


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Complete these adds for their callers, in this order."""

    adds: tuple[PendingAdd, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Forget these acknowledged adds: they are fully replicated and never sent again."""

    adds: tuple[PendingAdd, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Stop using a member, which the metadata still names."""

    ensemble_index: int
    member: Member
    reason: str


@dataclass(frozen=True, slots=True)
class Enlist:
    """Find a bookie, not a member and not failed, that takes the writer's permission.

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
        first_entry_id: first entry of the new ensemble.
        last_add_confirmed: the last acknowledged entry.
        length_bytes: payload bytes before ``first_entry_id``, if known.
        now_ms: time of storing, given by the runner.
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
        """Return the newest metadata with the change.

        Raises:
            LedgerFencedError: this writer no longer owns the ledger.
        """
        if metadata is None:
            raise LedgerFencedError(f"ledger {self.ledger_id} does not exist any more")
        try:
            return metadata.with_ensemble(
                *(self.first_entry_id, self.ensemble),
                last_add_confirmed=self.last_add_confirmed,
                beginning=Beginning.known(self.now_ms, self.length_bytes),
                term=self.term,
                token=self.token,
            )
        except LedgerClosedError as error:
            # Not "closed": the client that closed it may have kept entries without an ack (RB-35).
            raise metadata.fenced(self.term) from error


@dataclass(frozen=True, slots=True)
class Join:
    """Use a new member, named by the metadata, from now on.

    Attributes:
        replaced: the previous bookie of the place, with the reason.
    """

    ensemble_index: int
    member: Member
    first_entry_id: int
    replaced: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Muster:
    """Find bookies for all places of a new fragment; new members take the writer's permission.

    Attributes:
        ensemble: the present members; a member that stays keeps its place.
        failed: indexes of members that cannot stay.
        exclude: ids of bookies that must not be chosen.
    """

    ensemble: tuple[Member, ...]
    failed: frozenset[int]
    exclude: frozenset[str]


@dataclass(frozen=True, slots=True)
class RolledOver:
    """A new fragment is in use, with other members in the places ``changed``.

    Their predecessors get no more records, and finish the records in flight.
    """

    changed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotRolled:
    """No new fragment was begun; the previous fragment stays in use."""

    reason: str


@dataclass(frozen=True, slots=True)
class WarnOfGaps:
    """A member did not confirm the entries from here on: each has one copy fewer.

    Attributes:
        last_entry_id: last such entry, before a successor's fragment; None without a successor.
    """

    bookie_id: str
    reason: str
    first_entry_id: int
    last_entry_id: int | None = None


@dataclass(frozen=True, slots=True)
class EndWriter:
    """The writer has ended; None if all submitted adds are acknowledged."""

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
    | EndWriter
)
