"""The read handle: entries of one ledger, from whichever bookie gives them good.

A reader of a closed ledger reads up to its last entry. A reader of an open one, opened without
recovery, reads up to the last-add-confirmed it has seen, which only ever grows, and never disturbs
the writer (protocol document, "Reading"; features 2.3).
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark.bookie.contract import BookieRoot
from bkspark.client.cluster import Cluster
from bkspark.client.handles.entries import decode_parts
from bkspark.client.reading.ledger_files import OpenBookies
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchEntryError,
)
from bkspark.format import arrow_schema, journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.ledger import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member
from bkspark.protocol.record import AddRecord

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a ledger of bytes."""

    entry_id: int
    value: bytes


@dataclass(slots=True)
class _Group:
    """A record that some bookie has, and the messages of its parts found so far."""

    record: AddRecord
    messages: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.messages) == len(self.record.parts)


class ReadHandle:
    """Reads one ledger whose rows are stored inline; made by ``BookKeeper.open_ledger``.

    Args:
        confirmed: a last-add-confirmed that is known already.

    Attributes:
        faults: bookies that had to be stepped over, each with the reason in one line.
    """

    def __init__(
        self,
        cluster: Cluster,
        ledger_id: int,
        digester: Digester,
        *,
        confirmed: int = INVALID_ENTRY_ID,
    ) -> None:
        self.ledger_id = ledger_id
        self.faults: dict[str, str] = {}
        self._cluster = cluster
        self._digester = digester
        self._metadata = cluster.ledger(ledger_id).value
        self._schema = arrow_schema.decode(self._metadata.schema)
        self._confirmed = confirmed
        self._groups: dict[int, _Group] = {}
        self._firsts: list[int] = []
        self.read_last_add_confirmed()

    @property
    def metadata(self) -> LedgerMetadata:
        return self._metadata

    @property
    def is_closed(self) -> bool:
        return self._metadata.state is LedgerState.CLOSED

    @property
    def last_add_confirmed(self) -> int:
        """The last entry that may be read, as known here; never goes back."""
        return self._confirmed

    def read_last_add_confirmed(self) -> int:
        """Look for news: the closed ledger's last entry, or the highest LAC on any bookie."""
        self._metadata = self._cluster.ledger(self.ledger_id).value
        self._load()
        if self._metadata.last_entry_id is not None:
            self._confirmed = self._metadata.last_entry_id
        else:
            seen = (group.record.last_add_confirmed for group in self._groups.values())
            self._confirmed = max(self._confirmed, max(seen, default=INVALID_ENTRY_ID))
        return self._confirmed

    def wait_for(self, entry_id: int, timeout: float) -> bool:
        """Wait until ``entry_id`` may be read; False after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while self._confirmed < entry_id and not self.is_closed:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_SECONDS)
            self.read_last_add_confirmed()
        return self._confirmed >= entry_id

    def read(self, first: int = 0, last: int | None = None) -> Iterator[Entry]:
        """Entries ``[first, last]``; to the last-add-confirmed if ``last`` is None.

        Raises:
            NoSuchEntryError: beyond the last-add-confirmed.
            CorruptDataError: no bookie gives an entry.
        """
        end = self._confirmed if last is None else last
        self._require_confirmed(first, end)
        for begin, batch in self.batches(first, end):
            for number, value in enumerate(batch.column(0).to_pylist()):
                yield Entry(begin + number, value)

    def read_unconfirmed(self, first: int, last: int) -> Iterator[Entry]:
        """Entries that some bookie has, acknowledged or not: they may yet vanish."""
        for begin, batch in self.batches(first, last):
            for number, value in enumerate(batch.column(0).to_pylist()):
                yield Entry(begin + number, value)

    def read_arrow(self, first: int = 0, last: int | None = None) -> pa.Table:
        """Entries ``[first, last]`` as a table, with ``_entry_id`` (int64) as its last column."""
        end = self._confirmed if last is None else last
        self._require_confirmed(first, end)
        schema = self._schema.append(pa.field("_entry_id", pa.int64()))
        batches = [
            pa.RecordBatch.from_arrays(
                [*batch.columns, pa.arange(begin, begin + batch.num_rows)], schema=schema
            )
            for begin, batch in self.batches(first, end)
        ]
        return pa.Table.from_batches(batches, schema=schema)

    def _require_confirmed(self, first: int, last: int) -> None:
        if first < 0 or last > self._confirmed:
            raise NoSuchEntryError(
                f"entries {first} to {last} of ledger {self.ledger_id} cannot be read: "
                f"the last confirmed one is {self._confirmed}",
                hint="wait_for() waits, read_unconfirmed() reads without a promise",
            )

    def batches(
        self,
        first: int,
        last: int,
        on_loss: Callable[[int, int, CorruptDataError], None] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(first entry id, rows) of each group that has some of ``[first, last]``, cut to it.

        Args:
            on_loss: told the first and last of entries that no bookie gives, which are then left
                out; without it they are an error.
        """
        entry_id = first
        while entry_id <= last:
            try:
                group = self._group_of(entry_id)
            except CorruptDataError as error:
                if on_loss is None:
                    raise
                end = self._end_of_gap(entry_id, last)
                on_loss(entry_id, end, error)
                entry_id = end + 1
                continue
            record = group.record
            rows = decode_parts(
                group.messages,
                self._schema,
                first_entry_id=record.first_entry_id,
                last_entry_id=record.last_entry_id,
                quorum=record.quorum,
            )
            end = min(last, record.last_entry_id)
            yield entry_id, rows.slice(entry_id - record.first_entry_id, end - entry_id + 1)
            entry_id = end + 1

    def _end_of_gap(self, entry_id: int, last: int) -> int:
        following = self._firsts[bisect_right(self._firsts, entry_id) :]
        whole = (first for first in following if self._groups[first].is_whole)
        return min(last, next(whole, last + 1) - 1)

    def _group_of(self, entry_id: int) -> _Group:
        """The whole group of an entry; looked for anew if its bookies changed since (RB-22)."""
        group = self._loaded(entry_id)
        if group is None and self._has_moved():
            self.read_last_add_confirmed()
            group = self._loaded(entry_id)
        if group is not None:
            return group
        raise CorruptDataError(
            f"no bookie gives entry {entry_id} of ledger {self.ledger_id} "
            f"({'; '.join(self.faults.values()) or 'none has it'})",
            hint="bring back one of its bookies",
        )

    def _has_moved(self) -> bool:
        return self._cluster.ledger(self.ledger_id).value.fragments != self._metadata.fragments

    def _loaded(self, entry_id: int) -> _Group | None:
        at = bisect_right(self._firsts, entry_id) - 1
        group = self._groups[self._firsts[at]] if at >= 0 else None
        if group is not None and entry_id <= group.record.last_entry_id and group.is_whole:
            if not group.record.parts:
                raise InvalidRequestError(
                    f"ledger {self.ledger_id} was written as a DataFrame",
                    hint="read it as one, or with `bkspark ledger read`",
                )
            return group
        return None

    def _load(self) -> None:
        """Read the journals of every member of every fragment, as far as they are good."""
        with OpenBookies(self._cluster) as bookies:
            for member in dict.fromkeys(m for f in self._metadata.fragments for m in f.ensemble):
                try:
                    self._load_member(bookies.root(member), member)
                except BookieUnavailableError as error:
                    self.faults[member.bookie_id] = str(error)
        self._firsts = sorted(self._groups)

    def _load_member(self, root: BookieRoot, member: Member) -> None:
        folder = layout.journal_folder(self.ledger_id)
        names = root.list(folder)
        if not names and self._should_have(member):
            self.faults[member.bookie_id] = f"bookie {member.bookie_id} has no journal of it"
        for name in names:
            data = root.read(f"{folder}/{name}") or b""
            content = journal.decode_journal(data, self._digester, ledger_id=self.ledger_id)
            # An open ledger's journal may well be seen in the middle of an append.
            if content.tail is Tail.CORRUPT or (content.tail is not Tail.CLEAN and self.is_closed):
                self.faults[member.bookie_id] = (
                    f"journal {name} on bookie {member.bookie_id} ends {content.tail.value}"
                )
            for frame in content.frames:
                group = self._groups.setdefault(frame.record.first_entry_id, _Group(frame.record))
                for stripe, (at, length) in frame.parts.items():
                    group.messages[stripe] = data[at : at + length]

    def _should_have(self, member: Member) -> bool:
        """Whether some entry of the closed ledger belongs on ``member``."""
        ledger = self._metadata
        end = -1 if ledger.last_entry_id is None else ledger.last_entry_id
        return any(
            member in ledger.members_of(entry_id)
            for fragment in ledger.fragments
            for entry_id in range(
                fragment.first_entry_id,
                min(fragment.first_entry_id + ledger.quorum.ensemble_size, end + 1),
            )
        )
