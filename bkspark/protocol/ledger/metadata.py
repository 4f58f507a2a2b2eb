"""The metadata of one ledger in the metadata store, and its only legal changes.

Rule 1. Every change of a ledger's metadata is a method here and returns a new value; the caller
stores the value by compare-and-set. ``LEGAL_MOVES`` lists all changes of state.

Rule 2. An entry belongs to the fragment with the greatest first entry id at or before the entry.
First ids strictly increase (BookKeeper's protocol, "Ensembles"; TLA+ ``ValidFragments``). Terms
never decrease, because the fragments map entries to terms. All entries before a fragment are
acknowledged, so no client changes or cuts off entries before the last fragment.

Rule 3. CLOSED has a last entry and never changes it; no other state has a last entry ("Closing a
ledger").

Rule 4. A takeover raises the term and passes through IN_RECOVERY; only the token in the metadata
may write (R2).

Rule 5. A ledger that guarantees its write quorum is closed only when each entry is on its Qw
members, and only its last fragment may hold other entries. The last fragment may therefore begin
before entries that are acknowledged on Qa members. Such a fragment states the last of these
entries. No client closes the ledger below that entry, or reads less.

Rule 6. A ledger that *continues in later terms* says so from the start: its fragments name their
owners (``ownership``; H43, RB-34). Only there may a takeover end in OPEN again, for a writer of the
new term (``reopening_steps``).

Rule 7. Such a ledger may be truncated at its beginning (``truncating``): the ledger then begins
with the first remaining fragment.

Rule 8. A ledger made on fewer bookies than wanted (``sizes``) gets further members only after its
close, and only if each member has each entry.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import attrgetter
from typing import NamedTuple

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchEntryError,
)
from bkspark.protocol.bounds import NUMBER_MAX
from bkspark.protocol.ledger.quorum import Quorum

# --- beginning -----------------------------------------------------------------------------------
# When a fragment began, and how many bytes of its ledger come before.


@dataclass(frozen=True, slots=True)
class Beginning:
    """When and where a later fragment began; only retention uses this.

    Attributes:
        began_ms: milliseconds since 1970, by the clock of the client that began the fragment.
        length_bytes: sum of the payload bytes of all entries before the fragment.
    """

    began_ms: int
    length_bytes: int

    def __post_init__(self) -> None:
        if min(self.began_ms, self.length_bytes) < 0:
            raise ValueError("no fragment begins before 1970, or behind less than nothing")

    @classmethod
    def known(cls, began_ms: int | None, length_bytes: int | None) -> "Beginning | None":
        """Return the beginning if both values are known, else None."""
        if began_ms is None or length_bytes is None:
            return None
        return cls(began_ms, length_bytes)


# --- commit times --------------------------------------------------------------------------------
# When the records of a ledger were made: informational, no decision of the protocol reads it.
#
# Rule 1. A writer takes the time of its clock, but never less than the last time that it knows of
# the ledger and of the log. So times never go back, also when a clock is set back, or when the next
# writer's host is behind. If a clock was ahead, later records repeat its time until the other
# clocks have passed it.
#
# Rule 2. Each record states two times: that of the ledger's first entry, and its own. So the last
# record of a ledger tells both for the whole ledger, and no client reads another record for them.
#
# Rule 3. A record of rows that were committed before, at several times, also states in steps which
# entries were committed by which time. Only a compaction writes such a record.


TIME_MAX = NUMBER_MAX
"""Milliseconds since 1970. A clock beyond the bounds, 0 and this, counts as the nearer bound."""


class CommitTimes(NamedTuple):
    """When the first and the last entry of a range were committed, in milliseconds since 1970.

    A tuple: each record makes several, and a dataclass takes three times as long.
    """

    first_ms: int = 0
    last_ms: int = 0

    @classmethod
    def at(cls, now_ms: int) -> "CommitTimes":
        """Return the times of entries that are committed ``now_ms``."""
        bounded = min(max(now_ms, 0), TIME_MAX)
        return cls(bounded, bounded)

    def then(self, later: "CommitTimes", *, is_first: bool) -> "CommitTimes":
        """Return the times of a ledger after entries with the times ``later`` (rule 1).

        Args:
            is_first: whether these entries are the first of the ledger.
        """
        added = later.not_before(self.last_ms)
        return added if is_first else CommitTimes(self.first_ms, added.last_ms)

    def not_before(self, ms: int) -> "CommitTimes":
        """Return the times with none before ``ms``."""
        if self.first_ms >= ms:
            return self
        return CommitTimes(ms, max(self.last_ms, ms))


class TimeStep(NamedTuple):
    """The entries from ``first_entry_id`` to the next step were committed by ``ms``."""

    first_entry_id: int
    ms: int


STEPS_MAX = 1024
"""Most steps of a record."""

UNKNOWN = CommitTimes()
"""The times of a ledger without entries, or of entries whose times were not read."""


# --- settings ------------------------------------------------------------------------------------
# The settings of a new ledger besides its quorum.


@dataclass(frozen=True, slots=True)
class DigestSpec:
    """How a ledger's bytes are protected.

    Attributes:
        digest_type: "CRC32C" (accidents) or "MAC" (HMAC-SHA256, forgery too).
        salt: hex; the key is made from the password and the salt. Empty for CRC32C.
        check: hex, shows whether a password is the right one; empty for CRC32C.
    """

    digest_type: str = "CRC32C"
    salt: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class MadeSmaller:
    """The sizes of a ledger made on fewer bookies than wanted ("quorum", rule 4).

    Attributes:
        made: the sizes when made; the ledger's records name these for ever.
        wanted: the sizes wanted then.
    """

    made: Quorum
    wanted: Quorum

    def __post_init__(self) -> None:
        wanted, size = self.wanted, self.made.ensemble_size
        if size >= wanted.ensemble_size or self.made != wanted.on_fewer(size):
            raise InvalidRequestError("a smaller ledger keeps what it can of the sizes wanted")

    def may_be(self, now: Quorum, *, is_closed: bool) -> bool:
        """Whether the ledger may have the sizes ``now``.

        A ledger keeps the sizes it was made with, except after its close. A closed ledger may have
        got further members, up to the wanted write quorum. A striped ledger never gets any: its
        write quorum is already the wanted one.
        """
        made, size = self.made, now.ensemble_size
        if now == made:
            return True
        grown = Quorum(size, size, made.ack_quorum_size)
        is_between = made.ensemble_size < size <= self.wanted.write_quorum_size
        return is_closed and is_between and now == grown


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The settings a ledger was made with; they never change.

    Attributes:
        schema: Arrow schema of the entries as an IPC schema message; opaque here.
        custom_metadata: notes of the application that made the ledger.
        created_ms: when the ledger was made, for display only.
        guarantees_write_quorum: whether each entry is to have Qw copies ("metadata", rule 6).
        smaller: the sizes, if the ledger was made on fewer bookies than wanted; else None.
        is_strict: whether the application refused fewer bookies.
        min_distinct: labels whose values differ in each write set ("apart").
    """

    schema: bytes = b""
    digest: DigestSpec = DigestSpec()
    custom_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_ms: int = 0
    guarantees_write_quorum: bool = False
    smaller: MadeSmaller | None = None
    is_strict: bool = False
    min_distinct: Mapping[str, int] = field(default_factory=dict, hash=False)


# --- standing ------------------------------------------------------------------------------------
# Where a writer begins that is not the first writer of its ledger.


@dataclass(frozen=True, slots=True)
class ConfirmedEnd:
    """Where the next writer continues a ledger: no entry up to there is undecided.

    Attributes:
        last_entry_id: the last entry, which is acknowledged; -1 if there is none.
        length_bytes: sum of the payload bytes up to there.
        record_count: add records up to there, as far as the source of this value knows.
        transactions: last committed version per application among those records.
        times: when the ledger's entries were committed; the next record is not made before the last
            of these times (``commit_times``).
    """

    last_entry_id: int = -1
    length_bytes: int = 0
    record_count: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    times: CommitTimes = UNKNOWN

    def not_before(self, ms: int) -> "ConfirmedEnd":
        """Return the same end for a log whose earlier ledgers have times up to ``ms``."""
        return replace(self, times=self.times.not_before(ms))


FIRST = ConfirmedEnd()
"""The standing of a ledger's first writer."""


# --- metadata ------------------------------------------------------------------------------------


INVALID_ENTRY_ID = -1
"""LAC or last entry of a ledger without entries."""

FIRST_TERM = 1

_FIRST = attrgetter("first_entry_id")


FRAGMENTS_MAX = 256
"""No takeover continues a longer ledger: each takeover rewrites the whole record."""


class LedgerState(Enum):
    OPEN = "OPEN"
    IN_RECOVERY = "IN_RECOVERY"
    CLOSED = "CLOSED"
    DELETING = "DELETING"


LEGAL_MOVES: dict[LedgerState, frozenset[LedgerState]] = {
    LedgerState.OPEN: frozenset(LedgerState),
    LedgerState.IN_RECOVERY: frozenset(LedgerState),
    LedgerState.CLOSED: frozenset({LedgerState.CLOSED, LedgerState.DELETING}),
    LedgerState.DELETING: frozenset({LedgerState.DELETING}),
}


@dataclass(frozen=True, slots=True)
class Member:
    """One place in an ensemble: a bookie *as it was initialised*.

    A directory that was wiped and set up again is another member: its absences prove nothing and
    its acks do not count (RB-09, RB-10).
    """

    bookie_id: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class Fragment:
    """Entries ``[first_entry_id, next fragment's first)`` and the ensemble that holds them.

    Attributes:
        first_entry_id: first entry of the fragment, >= 0.
        term: the term in which the metadata got this ensemble.
        ensemble: E distinct members, in stripe order.
        token: token of the writer whose permission each member took before being named; empty if no
            writer ever writes to the fragment, because a recovery made it to close the ledger.
        confirmed: the last acknowledged entry of the fragment when the metadata named the ensemble
            (rule 5); -1 without such entries.
        has_headers: whether each member began the writer's journal with a header before being
            named; False if another process writes.
        owner: the term whose records count, in a ledger that continues in later terms; else 0.
        beginning: when and where a later fragment of such a ledger began; None if unknown.
    """

    first_entry_id: int
    term: int
    ensemble: tuple[Member, ...]
    token: str = ""
    has_headers: bool = False
    confirmed: int = INVALID_ENTRY_ID
    owner: int = 0
    beginning: Beginning | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.owner <= self.term:
            raise InvalidRequestError("no fragment is older than its records")
        if self.has_headers and not self.token:
            raise InvalidRequestError("only a journal of a writer can have been begun")


@dataclass(frozen=True, slots=True)
class LedgerMetadata:
    """One version of a ledger's record.

    Attributes:
        token: token of the writer or recovery that runs ``term``.
        last_entry_id: last readable entry, -1 if none; None unless CLOSED.
        length_bytes: sum of the payload bytes up to ``last_entry_id``; None unless CLOSED.
        transactions: last committed version per application among the ledger's records.
        times: when the entries up to ``last_entry_id`` were committed; informational.
        left: members that never get a place in the ledger again ("leaving").
    """

    ledger_id: int
    quorum: Quorum
    state: LedgerState
    term: int
    token: str
    fragments: tuple[Fragment, ...]
    settings: LedgerSettings = field(default_factory=LedgerSettings)
    last_entry_id: int | None = None
    length_bytes: int | None = None
    transactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    left: frozenset[Member] = frozenset()
    times: CommitTimes = UNKNOWN

    def __post_init__(self) -> None:
        if self.ledger_id < 0 or self.term < FIRST_TERM:
            raise InvalidRequestError("ledger id must be >= 0 and term >= 1")
        is_closed = self.state is LedgerState.CLOSED
        ends = {self.last_entry_id is not None, self.length_bytes is not None}
        if self.state is not LedgerState.DELETING and ends != {is_closed}:
            raise self.refused("last entry and length belong to CLOSED and only to it")
        if self.last_entry_id is not None and self.last_entry_id < INVALID_ENTRY_ID:
            raise self.refused("last entry below -1")
        self._check_fragments()
        smaller, is_over = self.settings.smaller, is_closed or self.state is LedgerState.DELETING
        if smaller is not None and not smaller.may_be(self.quorum, is_closed=is_over):
            raise self.refused("it has other sizes than it was made with")

    def _check_fragments(self) -> None:
        firsts = [fragment.first_entry_id for fragment in self.fragments]
        begins = firsts[:1] == [0] or (bool(firsts) and firsts[0] > 0 and self.goes_on)
        if not begins or any(a >= b for a, b in zip(firsts, firsts[1:])):
            raise self.refused(f"fragments must start at 0 and increase: {firsts}")
        terms = [FIRST_TERM, *(fragment.term for fragment in self.fragments), self.term]
        if terms != sorted(terms):
            orderly = f"must not decrease or be above {self.term}"
            raise self.refused(f"terms of fragments {orderly}: {terms[1:-1]}")
        for fragment in self.fragments:
            if not self.left.isdisjoint(fragment.ensemble):
                raise self.refused("it names a member that has left")
            ids = {member.bookie_id for member in fragment.ensemble}
            if not self.quorum.ensemble_size == len(ids) == len(fragment.ensemble):
                size, first = self.quorum.ensemble_size, fragment.first_entry_id
                raise self.refused(f"fragment {first} must name {size} distinct bookies")

    # --- looking ---------------------------------------------------------------------------

    @property
    def last_fragment(self) -> Fragment:
        return self.fragments[-1]

    @property
    def first_available(self) -> int:
        """The first entry that was not truncated (rule 7)."""
        return self.fragments[0].first_entry_id

    @property
    def last_confirmed(self) -> int:
        """The last entry acknowledged according to this metadata alone, -1 without any."""
        return max(self.last_fragment.first_entry_id - 1, self.last_fragment.confirmed)

    def fragment_index(self, entry_id: int) -> int:
        """Return the position of the fragment that holds ``entry_id`` (>= 0).

        Raises:
            NoSuchEntryError: the entry lies before the remaining fragments.
        """
        if entry_id < self.first_available:
            raise NoSuchEntryError(
                f"ledger {self.ledger_id} begins at entry {self.first_available}, and does not "
                f"have entry {entry_id} any more: it was truncated",
                hint=f"read from entry {self.first_available} on",
            )
        return bisect_right(self.fragments, entry_id, key=_FIRST) - 1

    def fragment_of(self, entry_id: int) -> Fragment:
        """Return the fragment that holds ``entry_id``; raises as ``fragment_index`` does."""
        return self.fragments[self.fragment_index(entry_id)]

    def is_writable_by(self, *, term: int, token: str) -> bool:
        """Whether the writer of ``term`` with ``token`` is still the ledger's writer (R2, R4)."""
        return (self.state, self.term, self.token) == (LedgerState.OPEN, term, token)

    @property
    def goes_on(self) -> bool:
        """Whether a new writer may continue this ledger after a takeover (rule 6)."""
        return self.last_fragment.owner > 0

    @property
    def has_room(self) -> bool:
        """Whether the ledger may get one more fragment."""
        return len(self.fragments) < FRAGMENTS_MAX

    # --- changing --------------------------------------------------------------------------

    def with_ensemble(
        self,
        first_entry_id: int,
        ensemble: tuple[Member, ...],
        *,
        last_add_confirmed: int = INVALID_ENTRY_ID,
        beginning: Beginning | None = None,
        term: int,
        token: str,
    ) -> "LedgerMetadata":
        """Return this metadata with a new last fragment from ``first_entry_id`` on.

        A change at the last fragment's own first entry replaces its members; any other change
        appends a fragment (TLA+ ``UpdatedFragments``).

        Raises:
            LedgerClosedError, LedgerFencedError: this writer no longer owns the ledger.
            InvalidRequestError: the entry lies before the last fragment.
        """
        self._require_writer(term=term, token=token)
        if first_entry_id < self.last_fragment.first_entry_id:
            raise self.refused(f"only the last fragment may change, not {first_entry_id}")
        kept = tuple(f for f in self.fragments if f.first_entry_id < first_entry_id)
        # Staying members have only what they took for the previous fragment.
        has_headers = self.last_fragment.has_headers
        confirmed = last_add_confirmed if last_add_confirmed >= first_entry_id else -1
        began = (beginning if self.goes_on else None) or self._beginning_at(first_entry_id)
        told = (token, has_headers, confirmed, self.last_fragment.owner, began)
        fragment = Fragment(first_entry_id, term, ensemble, *told)
        return replace(self, fragments=(*kept, fragment))

    def _beginning_at(self, first_entry_id: int) -> Beginning | None:
        """Return the last fragment's beginning if a new fragment replaces that fragment."""
        last = self.last_fragment
        return last.beginning if last.first_entry_id == first_entry_id else None

    def with_headers(self, *, term: int, token: str) -> "LedgerMetadata":
        """Return this metadata once each member has begun the journal of its writer.

        Raises:
            LedgerClosedError, LedgerFencedError: this writer no longer owns the ledger.
        """
        self._require_writer(term=term, token=token)
        headed = replace(self.last_fragment, has_headers=True)
        return replace(self, fragments=(*self.fragments[:-1], headed))

    def in_recovery(self, token: str) -> "LedgerMetadata":
        """Return this metadata taken over for recovery by ``token``, in the next term.

        From then on no writer and no earlier recovery can change the metadata, including its
        ensemble (H25; BookKeeper's protocol, "Recovery"; TLA+ ``RecoveryMetadata``).

        Raises:
            LedgerClosedError: a closed ledger needs no recovery.
        """
        if self.state is LedgerState.CLOSED:
            raise self._closed()
        state = self._moved_to(LedgerState.IN_RECOVERY)
        return replace(self, state=state, term=self.term + 1, token=token)

    def with_recovered_ensemble(
        self, first_entry_id: int, ensemble: tuple[Member, ...]
    ) -> "LedgerMetadata":
        """Return this metadata with the ensemble to which a recovery copied the tail.

        For the closing CAS only: if a recovery stored the ensemble earlier and died, the next
        recovery would look for entries in the wrong places (RB-04).
        """
        kept = tuple(f for f in self.fragments if f.first_entry_id < first_entry_id)
        if self.state is not LedgerState.IN_RECOVERY or len(kept) < len(self.fragments) - 1:
            raise self.refused("only a recovery may replace its last fragment")
        owner = self.last_fragment.owner  # 0 unless the ledger continues in later terms
        began = self._beginning_at(first_entry_id)
        fragment = Fragment(first_entry_id, self.term, ensemble, owner=owner, beginning=began)
        return replace(self, fragments=(*kept, fragment))

    def closed(
        self,
        *,
        last_entry_id: int,
        length_bytes: int,
        transactions: Mapping[str, int] | None = None,
        times: CommitTimes = UNKNOWN,
        term: int,
        token: str,
    ) -> "LedgerMetadata":
        """Return this metadata CLOSED at ``last_entry_id``; ``self`` is unchanged.

        Args:
            last_entry_id: last readable entry, inclusive; -1 if the ledger is empty.
            length_bytes: sum of payload bytes of entries [0, last_entry_id].
            transactions: last version per application among the records up to the end.
            times: as the last of these records states them.

        Raises:
            LedgerClosedError: already closed, at a different last entry or length (RB-19).
            LedgerFencedError: another client took the ledger over.
            InvalidRequestError: the end would cut off acknowledged entries.

        Invariant: a ledger is closed at most once (TLA+ NoDivergenceBetweenClientAndMetaData).
        """
        if self.state is LedgerState.CLOSED:
            if (self.last_entry_id, self.length_bytes) == (last_entry_id, length_bytes):
                return self
            raise LedgerClosedError(
                f"ledger {self.ledger_id} is closed at entry {self.last_entry_id} with "
                f"{self.length_bytes} bytes, not at {last_entry_id} with {length_bytes}"
            )
        if (self.term, self.token) != (term, token):
            raise self.fenced(term)
        if last_entry_id < self.last_confirmed:
            was = f"entries up to {self.last_confirmed} were acknowledged"
            raise self.refused(f"{was}, it cannot end at {last_entry_id}")
        kept = tuple(f for f in self.fragments if f.first_entry_id <= last_entry_id)
        return replace(
            self,
            state=self._moved_to(LedgerState.CLOSED),
            last_entry_id=last_entry_id,
            length_bytes=length_bytes,
            transactions=dict(transactions or {}),
            times=times,
            fragments=kept or self.fragments[:1],
        )

    def deleting(self) -> "LedgerMetadata":
        """Return this metadata as a tombstone; ids are never reused (R11, R13)."""
        return replace(self, state=self._moved_to(LedgerState.DELETING))

    def _moved_to(self, state: LedgerState) -> LedgerState:
        if state not in LEGAL_MOVES[self.state]:
            raise self.fenced()
        return state

    def _require_writer(self, *, term: int, token: str) -> None:
        if self.state is LedgerState.CLOSED:
            raise self._closed()
        if not self.is_writable_by(term=term, token=token):
            raise self.fenced(term)

    def refused(self, why: str) -> InvalidRequestError:
        return InvalidRequestError(f"ledger {self.ledger_id}: {why}")

    def _closed(self) -> LedgerClosedError:
        return LedgerClosedError(
            f"ledger {self.ledger_id} is closed", hint="read it, or write to a new ledger"
        )

    def fenced(self, term: int = 0, hint: str = "") -> LedgerFencedError:
        """Return the error for a client of ``term`` that may no longer act."""
        line = f"ledger {self.ledger_id} was taken over by another client "
        line += f"({self.state.value}, term {self.term})"
        return LedgerFencedError.by(line, hint=hint, term=term, newer_term=self.term)
