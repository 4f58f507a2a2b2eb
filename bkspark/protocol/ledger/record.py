"""The add record, which commits entries, and the entry logs named by add records.

Rule 1. An add record commits the entries ``[first, last]`` as one atomic group: all or none.

Rule 2. Readers ignore a file unless an add record names the file, whatever the file contains. Task
attempts may therefore write any files; only the attempts named here count (RB-34b, H28, H29).

Rule 3. An attempt cuts its stripes at its own row offset, because entry ids are unknown while a
task runs. Row ``k`` of stripe ``s`` is entry ``first + s + k * stripe_count``, stored on the Qw
members from ensemble index ``s`` on: the *rotation*. Finding a record never involves the rotation;
finding the record's rows does (H7).

Rule 4. A *confirmation* commits nothing. A confirmation states a last-add-confirmed, so that
readers see the last entry of an idle writer (explicit LAC, RB-12). The writer writes a confirmation
after every earlier entry is acknowledged. A confirmation is no group. Only its LAC, length,
times and transactions count.

Rule 5. Every record states how much the writer knew to be stored on each member (R14). If a member
lacks such data, the member has lost data, wherever the record is found (see ``evidence``).

Rule 6. A *header* is a confirmation of nothing: its content is true of every ledger at every time.
Its presence is the information: a journal has a first record before any acknowledgement rests on
the journal (R18).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from bkspark.errors import InvalidRequestError
from bkspark.protocol import bounds
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, UNKNOWN, CommitTimes, TimeStep
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class EntryLog:
    """One immutable file: the rows of one stripe of one task attempt.

    Attributes:
        attempt_id: random id of the task attempt, 32 hex digits.
        stripe: 0 <= stripe < stripe_count.
        row_count: rows in the file, >= 1.
        length_bytes: size of the file.
        index_offset: where the block index begins, in bytes.
        digest: hex digest of the file without its blocks. The index holds a digest of each block,
            so the digests together cover every byte of the file.
    """

    attempt_id: str
    stripe: int
    row_count: int
    length_bytes: int
    index_offset: int
    digest: str


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """The entry logs of one committed task attempt, holding a dense run of entries.

    Attributes:
        first_entry_id: id of the attempt's first row.
        row_count: rows over all stripes, >= 1.
    """

    first_entry_id: int
    row_count: int
    entry_logs: tuple[EntryLog, ...]


@dataclass(frozen=True, slots=True)
class InlinePart:
    """The rows of one stripe of a small add, stored in the journal directly after the record.

    Attributes:
        stripe: the stripe of the rows: entry id mod stripe_count.
        length_bytes: size of the Arrow message with the rows, in entry order.
        digest: hex digest of the message.
    """

    stripe: int
    length_bytes: int
    digest: str


Rows: TypeAlias = tuple[AttemptLogs, ...] | tuple[InlinePart, ...]
"""Where the rows of an add record are: in the entry logs of attempts, or in inline parts that
follow the record.
"""

Piece = tuple[str, int]
"""A unit of a record's rows, which a bookie has whole or not at all: an entry log (attempt id and
stripe), or an inline part (empty text and stripe).
"""


@dataclass(frozen=True, slots=True)
class Transaction:
    """An application's own version number of a write, as in Delta's ``txnAppId``.

    Raises:
        InvalidRequestError: a record cannot store the values.
    """

    app_id: str
    version: int

    def __post_init__(self) -> None:
        most = bounds.TRANSACTION_VERSION_MAX
        if not bounds.is_stored_number(self.version) or self.version < 0:
            raise InvalidRequestError(
                f"txnVersion must be a whole number from 0 to {most}",
                hint="give a number that fits into 64 bits, such as milliseconds since 1970",
            )
        size = bounds.json_bytes(self.app_id)
        if not 0 < size <= bounds.APPLICATION_ID_BYTES_MAX:
            raise InvalidRequestError(
                f"txnAppId must have 1 to {bounds.APPLICATION_ID_BYTES_MAX:,} bytes as JSON, "
                f"and has {size:,}",
                hint="use one name for all runs of the application, and count the runs by "
                "txnVersion",
            )


class Made(NamedTuple):
    """Where and when a record was made; informational.

    Attributes:
        fragment_first_entry_id: first entry of the fragment in which the record was written.
        times: when the ledger's first entry, and the last entry up to this record, were committed
            (``commit_times``).
        steps: when parts of a record's entries were committed; empty if all were committed at the
            last of ``times``.
    """

    fragment_first_entry_id: int = 0
    times: CommitTimes = UNKNOWN
    steps: tuple[TimeStep, ...] = ()


MADE_UNKNOWN = Made()


@dataclass(frozen=True, slots=True)
class AddRecord:
    """Commits entries ``[first_entry_id, last_entry_id]`` of a ledger; the same on every bookie.

    Attributes:
        last_entry_id: in a confirmation first_entry_id - 1, which is the confirmation's LAC.
        last_add_confirmed: LAC of the writer when the record was written, always < first_entry_id.
        length_bytes: payload bytes of the ledger up to ``last_entry_id``.
        stored: by ensemble index, the first entry of the newest record known to be stored on the
            member, or -1.
        made: in which fragment and when the record was made; no decision depends on it.
        transactions: last version of each application, over the ledger's records up to this record.
        rows: where the rows are: ``attempts`` or ``parts``; empty in a confirmation.
    """

    ledger_id: int
    term: int
    token: str
    first_entry_id: int
    last_entry_id: int
    last_add_confirmed: int
    length_bytes: int
    quorum: Quorum
    stored: tuple[int, ...]
    made: Made = MADE_UNKNOWN
    transactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    rows: Rows = ()

    @property
    def attempts(self) -> tuple[AttemptLogs, ...]:
        """Committed task attempts in entry order; together they cover the group."""
        rows = self.rows
        return rows if rows and type(rows[0]) is AttemptLogs else ()

    @property
    def parts(self) -> tuple[InlinePart, ...]:
        """The inline rows by stripe, in place of attempts.

        Every copy of the record names all parts. A bookie stores a part only if the bookie is in
        the part's write set.
        """
        rows = self.rows
        return rows if rows and type(rows[0]) is InlinePart else ()

    @property
    def times(self) -> CommitTimes:
        return self.made.times

    @property
    def steps(self) -> tuple[TimeStep, ...]:
        """When the entries were committed; the first step begins at the record's first entry."""
        return self.made.steps or (TimeStep(self.first_entry_id, self.times.last_ms),)

    def first_entry_since(self, ms: int) -> int:
        """Return the first entry committed at ``ms`` or later; after the record if none was."""
        later = (step.first_entry_id for step in self.steps if step.ms >= ms)
        return next(later, self.last_entry_id + 1)

    @property
    def entry_count(self) -> int:
        return self.last_entry_id - self.first_entry_id + 1

    @property
    def last_add_fully_replicated(self) -> int:
        """An entry up to which each member is known to have all its copies; -1 if unknown.

        A member stores records in order, so all its copies before its newest record are stored. The
        value holds in the last fragment of a ledger that guarantees its write quorum. There each
        member has all entries from the fragment's first entry on, or ``stored`` says -1 of the
        member.
        """
        return max(INVALID_ENTRY_ID, min(self.last_add_confirmed, min(self.stored) - 1))

    @property
    def is_confirmation(self) -> bool:
        """Whether the record only states a LAC and commits no entries."""
        return self.last_entry_id < self.first_entry_id

    @property
    def is_header(self) -> bool:
        """Whether the record states nothing, not even a LAC (rule 6)."""
        return self.last_entry_id == INVALID_ENTRY_ID

    @property
    def entry_logs(self) -> tuple[EntryLog, ...]:
        """All entry logs named by the record."""
        return tuple(log for attempt in self.attempts for log in attempt.entry_logs)

    @property
    def pieces(self) -> frozenset[Piece]:
        """All pieces that contain the record's rows."""
        inline = (("", part.stripe) for part in self.parts)
        return frozenset([*inline, *((log.attempt_id, log.stripe) for log in self.entry_logs)])

    def parts_of(self, ensemble_index: int) -> tuple[InlinePart, ...]:
        """Return the parts stored by the bookie at ``ensemble_index``, in stripe order."""
        if self.quorum.stripe_count == 1:
            return self.parts
        return tuple(
            part for part in self.parts if ensemble_index in self.quorum.write_set(part.stripe)
        )

    def write_sets(self) -> tuple[tuple[int, ...], ...]:
        """Return the write sets that each need Qa counted copies; a confirmation goes to all."""
        if self.attempts or self.is_confirmation:
            return self.quorum.write_sets()
        return tuple(self.quorum.write_set(part.stripe) for part in self.parts)


def confirmation(
    *,
    ledger_id: int,
    term: int,
    token: str,
    last_add_confirmed: int,
    length_bytes: int,
    quorum: Quorum,
    made: Made = MADE_UNKNOWN,
    transactions: Mapping[str, int] = MappingProxyType({}),
    stored: tuple[int, ...] = (),
) -> AddRecord:
    """Make the record that states ``last_add_confirmed`` (>= -1) and commits nothing (rule 4).

    Args:
        length_bytes: as in the add record that ends at ``last_add_confirmed``; likewise the times
            and transactions.
        stored: as in an add record; if empty, -1 of each member.
    """
    return AddRecord(
        ledger_id=ledger_id,
        term=term,
        token=token,
        first_entry_id=last_add_confirmed + 1,
        last_entry_id=last_add_confirmed,
        last_add_confirmed=last_add_confirmed,
        length_bytes=length_bytes,
        quorum=quorum,
        made=made,
        transactions=transactions,
        stored=stored or (INVALID_ENTRY_ID,) * quorum.ensemble_size,
    )


def header(*, ledger_id: int, term: int, token: str, quorum: Quorum) -> AddRecord:
    """Make the first record of a writer's journal (rule 6)."""
    return confirmation(
        ledger_id=ledger_id,
        term=term,
        token=token,
        last_add_confirmed=INVALID_ENTRY_ID,
        length_bytes=0,
        quorum=quorum,
    )


def later(one: AddRecord | None, other: AddRecord | None) -> AddRecord | None:
    """Return the record with the later end, or None without any record."""
    if one is None or other is None:
        return one or other
    return other if other.last_entry_id > one.last_entry_id else one


def stripes_of_range(first_entry_id: int, last_entry_id: int, stripe_count: int) -> list[int]:
    """Return the stripes of the entries ``[first, last]``, ascending."""
    if stripe_count == 1:
        return [0]
    count = min(last_entry_id - first_entry_id + 1, stripe_count)
    return sorted((first_entry_id + number) % stripe_count for number in range(count))


def first_entry_of(attempt: AttemptLogs, entry_log: EntryLog) -> int:
    """Return the entry id of the first row of ``entry_log``."""
    return attempt.first_entry_id + entry_log.stripe


def stripe_row_count(row_count: int, stripe: int, stripe_count: int) -> int:
    """Return how many of an attempt's ``row_count`` rows fall on ``stripe``."""
    return (row_count - stripe + stripe_count - 1) // stripe_count
