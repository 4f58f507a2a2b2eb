"""What the tasks of a read get: slices of ledgers, and what they share; values only.

The plan is made in ``read_slices``. Spark starts a process for each step of a read, and a task
loads no plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from bkspark.bookie.contract import BookieAddress
from bkspark.log.reading.tier_rows import TierSlice
from bkspark.protocol.ledger.metadata import DigestSpec, Member, TimeStep
from bkspark.protocol.ledger.record import EntryLog

if TYPE_CHECKING:
    from bkspark.ledger.journals.journal_pages import IndexEntry


@dataclass(frozen=True, slots=True)
class InlineSlice:
    """Entries ``[begin_entry, end_entry)`` of a ledger with its rows in journals.

    Attributes:
        turn: differs between neighbours, which therefore read different bookies.
        index: where to begin in the journals; a task then reads only its part.
    """

    ledger_id: int
    begin_entry: int
    end_entry: int
    length_bytes: int
    metadata_uri: str
    cluster_id: str = ""
    turn: int = 0
    index: tuple[tuple[Member, "IndexEntry"], ...] = ()

    def part(self, begin: int, end: int) -> "InlineSlice":
        """Return the entries ``[begin, end)`` of these."""
        length = self.length_bytes * (end - begin) // (self.end_entry - self.begin_entry)
        return replace(self, begin_entry=begin, end_entry=end, length_bytes=length)

    @property
    def range(self) -> tuple[int, int]:
        return self.begin_entry, self.end_entry

    def turned(self, turn: int) -> "InlineSlice":
        """Return the same slice, to be read from the bookies of ``turn``."""
        return replace(self, turn=turn)


@dataclass(frozen=True, slots=True)
class LedgerToRead:
    """Properties shared by the slices of one ledger.

    Attributes:
        first_offset: log offset of the ledger's entry 0.
        stripe_count: distance between the entry ids of neighbouring rows of an entry log; 1 if the
            rows are stored in the journals.
        least_ms: the time before which no entry counts as committed: entries of the log before this
            ledger have it (``commit_times``).
    """

    ledger_id: int
    schema: bytes
    digest: DigestSpec
    first_offset: int
    stripe_count: int
    least_ms: int = 0


@dataclass(frozen=True, slots=True)
class Slice:
    """Rows ``[begin_row, end_row)`` of one entry log.

    Attributes:
        first_entry_id: entry id of row 0 of the file.
        replicas: bookies that should have the file, in the order to try.
        metadata_uri: metadata store to ask for moved replicas, if none of ``replicas`` gives the
            file.
        times: when the entries of the file's record were committed; empty if not wanted.
    """

    ledger_id: int
    entry_log: EntryLog
    first_entry_id: int
    begin_row: int
    end_row: int
    replicas: tuple[BookieAddress, ...]
    metadata_uri: str = ""
    cluster_id: str = ""
    times: tuple[TimeStep, ...] = ()

    @property
    def length_bytes(self) -> int:
        """Approximate bytes to read."""
        rows = self.end_row - self.begin_row
        return self.entry_log.length_bytes * rows // self.entry_log.row_count

    def part(self, begin: int, end: int) -> "Slice":
        """Return the rows ``[begin, end)`` of these."""
        return replace(self, begin_row=begin, end_row=end)

    @property
    def range(self) -> tuple[int, int]:
        return self.begin_row, self.end_row

    def turned(self, turn: int) -> "Slice":
        """Return the same slice, to be read from the replicas of ``turn``."""
        start = turn % max(1, len(self.replicas))
        return replace(self, replicas=self.replicas[start:] + self.replicas[:start])


AnySlice: TypeAlias = Slice | InlineSlice | TierSlice


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The slices that one task reads, one after another; picklable.

    A task needs the metadata store only for inline rows, and for files that have moved since the
    plan.
    """

    slices: tuple[AnySlice, ...]
    ledgers: Mapping[int, LedgerToRead]


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Log offsets ``[begin, end)``."""

    begin: int
    end: int
