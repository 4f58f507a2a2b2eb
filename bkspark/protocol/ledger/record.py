"""What commits entries: the add record, and the entry logs it names.

Rule 1. An add record commits the entries ``[first, last]`` as one atomic group: all or none.

Rule 2. A file that no add record names does not exist for any reader, whatever is in it. Task
attempts therefore may write what they like; only the attempts named here count (RB-34b, H28,
H29).

Rule 3. The stripe of an attempt is cut at the attempt's own row offset, because ids are not known
yet while a task runs. Row ``k`` of stripe ``s`` is entry ``first + s + k * stripe_count``, and lies
on the Qw members from ensemble index ``s`` on: the *rotation*. Looking a record up never involves
the rotation; finding its rows does (H7).

Rule 4. A *confirmation* commits nothing: it only says a last-add-confirmed, so that readers see the
last entry of a writer that is idle (explicit LAC, RB-12). It is written when every
entry sent before it is acknowledged, is no group, and counts for nothing but its LAC and what its
writer knew up to there: length and transactions.

Rule 5. Every record says what its writer knew each member to have (R14): so a member that lacks it
is known to have lost it, whoever finds the record, wherever (see ``evidence``).

Rule 6. A *header* is a confirmation that nothing is confirmed: it is true of every ledger at every
time, so it says nothing. What tells is that it is there: a journal that was begun has a first
record before anything is acknowledged that rests on it (R18).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from bkspark.errors import InvalidRequestError
from bkspark.protocol import bounds
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class EntryLog:
    """One immutable file: the rows of one stripe of one task attempt.

    Attributes:
        attempt_id: random id of the task attempt that wrote it, 32 hex digits.
        stripe: 0 <= stripe < stripe_count.
        row_count: rows in the file, >= 1.
        length_bytes: size of the file.
        index_offset: where the block index begins, in bytes.
        digest: hex digest of everything but the blocks; the index holds a digest of each block,
            so together they cover every byte of the file.
    """

    attempt_id: str
    stripe: int
    row_count: int
    length_bytes: int
    index_offset: int
    digest: str


@dataclass(frozen=True, slots=True)
class AttemptLogs:
    """The entry logs of one committed task attempt, which hold a dense run of entries.

    Attributes:
        first_entry_id: id of the attempt's first row.
        row_count: rows over all stripes, >= 1.
    """

    first_entry_id: int
    row_count: int
    entry_logs: tuple[EntryLog, ...]


@dataclass(frozen=True, slots=True)
class InlinePart:
    """The rows of one stripe of a small add, stored in the journal right behind the record.

    Attributes:
        stripe: of its rows: entry id mod stripe_count.
        length_bytes: of the Arrow message that holds them, in entry order.
        digest: hex digest of the message.
    """

    stripe: int
    length_bytes: int
    digest: str


Rows: TypeAlias = tuple[AttemptLogs, ...] | tuple[InlinePart, ...]
"""What an add record says of its rows: which attempts hold them, or what lies behind it."""

Piece = tuple[str, int]
"""What a bookie has as a whole or not at all of a record's rows: an entry log, by the id of its
attempt and its stripe, or an inline part, by an empty text and its stripe."""


@dataclass(frozen=True, slots=True)
class Transaction:
    """An application's own version number of a write, as in Delta's ``txnAppId``.

    Raises:
        InvalidRequestError: no record could say it.
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
                f"txnAppId must be a text of 1 to {bounds.APPLICATION_ID_BYTES_MAX:,} bytes as "
                f"JSON writes it, and has {size:,}",
                hint="name the application, and let txnVersion count its runs",
            )


@dataclass(frozen=True, slots=True)
class AddRecord:
    """Commits entries ``[first_entry_id, last_entry_id]`` of a ledger; the same on every bookie.

    Attributes:
        last_entry_id: first_entry_id - 1 in a confirmation, which is its LAC.
        last_add_confirmed: LAC of the writer when it wrote this, always < first_entry_id.
        length_bytes: payload bytes of the ledger up to ``last_entry_id``.
        fragment_first_entry_id: the fragment it was written in.
        transactions: last version of each application among the ledger's records up to this one.
        rows: where they are: ``attempts`` or ``parts``; neither in a confirmation.
        stored: by ensemble index, where the newest record begins that the member was known to have
            stored; -1 where none was. Empty in a record of an older version.
    """

    ledger_id: int
    term: int
    token: str
    first_entry_id: int
    last_entry_id: int
    last_add_confirmed: int
    length_bytes: int
    quorum: Quorum
    fragment_first_entry_id: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict, hash=False)
    rows: Rows = ()
    stored: tuple[int, ...] = ()

    @property
    def attempts(self) -> tuple[AttemptLogs, ...]:
        """Committed task attempts in entry order; together they cover the group."""
        rows = self.rows
        return rows if rows and type(rows[0]) is AttemptLogs else ()

    @property
    def parts(self) -> tuple[InlinePart, ...]:
        """In place of attempts: the rows themselves, by stripe. All parts are named everywhere,
        but a bookie has only those whose write set it is in.
        """
        rows = self.rows
        return rows if rows and type(rows[0]) is InlinePart else ()

    @property
    def entry_count(self) -> int:
        return self.last_entry_id - self.first_entry_id + 1

    @property
    def last_add_fully_replicated(self) -> int:
        """An entry up to which each member is known to have all that it is to have, -1 without one.

        A member stores in order, so what it has of it begins before its newest record. True of the
        last fragment, where the ledger guarantees its write quorum: its members have all behind
        its first entry, or are not said to have anything.
        """
        if not self.stored:
            return INVALID_ENTRY_ID
        return max(INVALID_ENTRY_ID, min(self.last_add_confirmed, min(self.stored) - 1))

    @property
    def is_confirmation(self) -> bool:
        """Whether it commits no entries and only says a LAC."""
        return self.last_entry_id < self.first_entry_id

    @property
    def is_header(self) -> bool:
        """Whether it says nothing, not even a LAC (rule 6)."""
        return self.last_entry_id == INVALID_ENTRY_ID

    @property
    def entry_logs(self) -> tuple[EntryLog, ...]:
        """All that it names."""
        return tuple(log for attempt in self.attempts for log in attempt.entry_logs)

    @property
    def pieces(self) -> frozenset[Piece]:
        """All that its rows lie in."""
        inline = (("", part.stripe) for part in self.parts)
        return frozenset([*inline, *((log.attempt_id, log.stripe) for log in self.entry_logs)])

    def parts_of(self, ensemble_index: int) -> tuple[InlinePart, ...]:
        """The parts that the bookie at ``ensemble_index`` stores, in stripe order."""
        if self.quorum.stripe_count == 1:
            return self.parts
        return tuple(
            part for part in self.parts if ensemble_index in self.quorum.write_set(part.stripe)
        )

    def write_sets(self) -> tuple[tuple[int, ...], ...]:
        """The write sets each of which needs Qa counted copies; a confirmation goes to all."""
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
    fragment_first_entry_id: int = 0,
    transactions: Mapping[str, int] = MappingProxyType({}),
    stored: tuple[int, ...] = (),
) -> AddRecord:
    """The record that says ``last_add_confirmed`` (>= -1) and commits nothing (rule 4).

    Args:
        length_bytes: as in the add record that ends at ``last_add_confirmed``; so transactions.
        stored: as in an add record.
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
        fragment_first_entry_id=fragment_first_entry_id,
        transactions=transactions,
        stored=stored,
    )


def header(*, ledger_id: int, term: int, token: str, quorum: Quorum) -> AddRecord:
    """The record that a writer's journal begins with (rule 6)."""
    return confirmation(
        ledger_id=ledger_id,
        term=term,
        token=token,
        last_add_confirmed=INVALID_ENTRY_ID,
        length_bytes=0,
        quorum=quorum,
    )


def later(one: AddRecord | None, other: AddRecord | None) -> AddRecord | None:
    """The record that ends later, if there is any."""
    if one is None or other is None:
        return one or other
    return other if other.last_entry_id > one.last_entry_id else one


def stripes_of_range(first_entry_id: int, last_entry_id: int, stripe_count: int) -> list[int]:
    """Stripes that the entries ``[first, last]`` fall on, ascending."""
    if stripe_count == 1:
        return [0]
    count = min(last_entry_id - first_entry_id + 1, stripe_count)
    return sorted((first_entry_id + number) % stripe_count for number in range(count))


def first_entry_of(attempt: AttemptLogs, entry_log: EntryLog) -> int:
    """Entry id of the first row of ``entry_log``."""
    return attempt.first_entry_id + entry_log.stripe


def stripe_row_count(row_count: int, stripe: int, stripe_count: int) -> int:
    """Rows of an attempt's ``row_count`` that fall on ``stripe``."""
    return (row_count - stripe + stripe_count - 1) // stripe_count
