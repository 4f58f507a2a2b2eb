"""The events and instructions of a recovery that reopens the ledger, after its decision."""

from dataclasses import dataclass, replace

from bkspark.protocol.ledger.beginning import Beginning
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member

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
