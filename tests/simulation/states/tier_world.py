"""A small world of a log with a table: what is stored, and what each client has in its hands."""

from collections.abc import Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import TableVersion, Tier

NAME, URL = "events", "file:///tables/events"
TABLE_ID, OTHER_ID = "an-id", "another-id"
EPOCH = "e" * 32
QUORUM = Quorum(1, 1, 1)
OTHER = -1
"""The value of a row that a user changed; the log's rows have its generation as value."""

FAULTS = (
    *("lost", "deleted", "updated", "doubled", "restored", "replaced", "older"),
    *("lied", "overwritten"),
)
SILENT = ("lied",)
"""Changed rows of which no commit tells: only digests show them, not a read."""

UNTOLD = ("lost", "replaced", "older", "overwritten", *SILENT)
"""After them the verified version is not in the table any more, or the table says what is not."""

KIND_OF = {name: "silent" if name in SILENT else "untold" for name in UNTOLD} | {
    name: "doubled" if name == "doubled" else "told" for name in FAULTS if name not in UNTOLD
}
"""What promises and clients know of a fault."""

Row = tuple[int, int]
"""Offset and value."""


class Version(NamedTuple):
    """What one version of a table has.

    Attributes:
        rows: in order; an offset may be there twice.
        ends: the transactions, epoch and version.
        removes: whether the commit says that it removed or changed rows.
        epoch: that the table names.
    """

    rows: tuple[Row, ...]
    ends: frozenset[tuple[str, int]] = frozenset()
    removes: bool = False
    table_id: str = TABLE_ID
    epoch: str = EPOCH

    def end_of(self, epoch: str) -> int:
        return max((end for one, end in self.ends if one == epoch), default=-1)

    def values_at(self, offset: int) -> list[int]:
        return [value for one, value in self.rows if one == offset]


Table = tuple[Version, ...]
"""All versions; the newest is the last one."""


class Client(NamedTuple):
    """A client in the midst of its work.

    Attributes:
        phase: what it does next.
        log: the record that it has read, by its number.
        rows: that it has read from the log, or nothing.
        seen: the version of the table that it has looked at.
        commit: the digest of that version's commit.
        epoch: that the table named.
        first: the first offset of the log at the second reading of the record.
        tries: how often it began anew.
    """

    phase: str = "begins"
    log: int = -1
    rows: tuple[Row, ...] = ()
    seen: int = -1
    first: int = 0
    epoch: str = ""
    commit: str = ""
    tries: int = 0

    @property
    def again(self) -> "Client":
        """The same client, which begins with the next segment."""
        return Client("begins")


class World(NamedTuple):
    """All there is.

    Attributes:
        log: the record that is stored, by its number.
        fault: what happened to the table; empty before.
        late: clients that had looked at the table when that happened, and not stored yet what
            they found: no store compares two things at once.
        planned: the record of a reader that has not read the table yet; -1 without one.
    """

    log: int
    table: Table
    clients: tuple[Client, ...]
    fault: str = ""
    late: frozenset[int] = frozenset()
    planned: int = -1


@dataclass(frozen=True)
class Rules:
    """What clients do; False for what they leave out, which has to be noticed."""

    has_intent: bool = True
    verifies: bool = True
    verifies_newest: bool = True
    compares_values: bool = True
    looks_before_freeing: bool = True
    looks_before_releasing: bool = True
    compares_id: bool = True
    compares_commit: bool = True
    wants_the_tier: bool = True


@dataclass(frozen=True)
class Scope:
    """What there is.

    Attributes:
        clients: their kinds, in order.
        ledgers: how many entries each has.
        faults: of which one happens, or none.
        truncations: offsets that a truncater may give.
        has_reader: whether a reader may read the table with a record that was replaced since.
        requires_verified: whether promise T3 is looked at.
        is_copied: whether the world begins with all rows in the table, a segment a ledger.
    """

    clients: tuple[str, ...]
    ledgers: tuple[int, ...] = (2, 1)
    faults: tuple[str, ...] = FAULTS
    truncations: tuple[int, ...] = (1,)
    has_reader: bool = False
    is_copied: bool = False
    requires_verified: bool = True
    rules: Rules = Rules()

    def __str__(self) -> str:
        more = (", copied" if self.is_copied else "") + (", reader" if self.has_reader else "")
        return f"{', '.join(self.clients)}; {self.ledgers}, {len(self.faults)} faults{more}"


class Logs:
    """Records of the log, each with a number: equal ones have the same."""

    def __init__(self) -> None:
        self._records: list[LogRecord] = []
        self._numbers: dict[object, int] = {}

    def __getitem__(self, number: int) -> LogRecord:
        return self._records[number]

    def number(self, log: LogRecord) -> int:
        key = (log.generation, log.first_offset, log.stretches, log.tier, log.dropped.to_delete)
        found = self._numbers.setdefault(key, len(self._records))
        if found == len(self._records):
            self._records.append(log)
        return found


def log_of(ledgers: Iterable[int]) -> LogRecord:
    """A log of closed ledgers with so many entries each."""
    log = LogRecord(NAME, LogSettings(QUORUM), b"")
    for number, entry_count in enumerate(ledgers):
        log = log.with_ledger(closed_ledger(number, entry_count), schema=b"", transaction=None)
    return log


def closed_ledger(ledger_id: int, entry_count: int) -> LedgerMetadata:
    return LedgerMetadata(
        ledger_id=ledger_id,
        quorum=QUORUM,
        state=LedgerState.CLOSED,
        term=1,
        token="t",
        fragments=(Fragment(0, 1, (Member("a", "1"),)),),
        last_entry_id=entry_count - 1,
        length_bytes=10 * entry_count,
    )


def rows_of(log: LogRecord, begin: int, end: int) -> tuple[Row, ...]:
    """The rows that were written."""
    return tuple((offset, log.generation) for offset in range(begin, end))


def abstract_view(table: Table) -> Any:
    """The newest version, and the commits before it, as the product's decisions want them."""
    number, commit = version_of(table)
    newest = SimpleNamespace(version=number, table_id=table[-1].table_id, commit=commit)

    def commits(after: int, upto: int) -> list[Any]:
        return [
            SimpleNamespace(version=n, removes_rows=table[n].removes, operation="", user="")
            for n in range(max(0, after + 1), upto + 1)
        ]

    def commit_digest(version: int) -> str:
        return version_of(table[: version + 1]).commit

    seen = SimpleNamespace(commits=commits, commit_digest=commit_digest)
    return SimpleNamespace(snapshot=newest, table=seen)


def version_of(table: Table) -> TableVersion:
    """The newest version, with the digest of its commit."""
    return TableVersion(len(table) - 1, str(hash(table[-1])))


def tier_of(log: LogRecord) -> Tier:
    assert log.tier is not None
    return log.tier
