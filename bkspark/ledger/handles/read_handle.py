"""The read handle: the entries of one ledger, from any bookie with a good copy.

A reader of a closed ledger reads up to its last entry. A reader of an open ledger, opened without
recovery, reads up to the last-add-confirmed it has seen, and never disturbs the writer.

The reader keeps a group of entries after a read. Before it returns one again, it checks the
metadata known now: an unconfirmed entry may have been dropped, and a later term have used its id
(H43).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.guards import BoundToProcess
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchEntryError,
)
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import ENTRY_COLUMN
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import VALUE_SCHEMA, decode_parts
from bkspark.ledger.handles.entry_reader import EntryReader
from bkspark.ledger.handles.how_far import IsEnough, MemberAnswers, look
from bkspark.ledger.handles.settings import USUAL_READS, ReaderSettings
from bkspark.ledger.journals.journal_pages import IndexEntry
from bkspark.protocol.ledger.evidence import counts_in
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord

POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a ledger of bytes."""

    entry_id: int
    value: bytes


@dataclass(frozen=True, slots=True)
class _GroupRows:
    """The entries of ``record``, which form one group."""

    record: AddRecord
    batch: pa.RecordBatch

    def show(self, ledger: LedgerMetadata, entry_id: int) -> bool:
        """Return whether ``entry_id`` is among the entries, and they count in ``ledger``."""
        is_here = self.record.first_entry_id <= entry_id <= self.record.last_entry_id
        return is_here and counts_in(ledger, self.record)


class ReadHandle(BoundToProcess):
    """Reads one ledger of a Python writer; made by ``BookKeeper.open_ledger``.

    The handle holds a bounded part of the ledger in memory, and no resources between calls. Only
    one thread may use a handle at a time.

    Args:
        confirmed: a known last-add-confirmed; the reader then looks for none.
        settings: time limits and the choice of bookies.
        index, turn: see ``EntryReader``.

    Raises:
        BookieUnavailableError: the ledger is open, and too few bookies show how far it may be read.
    """

    def __init__(
        self,
        cluster: Cluster,
        ledger_id: int,
        digester: Digester,
        *,
        confirmed: int | None = None,
        settings: ReaderSettings = USUAL_READS,
        index: Sequence[tuple[Member, IndexEntry]] = (),
        turn: int = 0,
    ) -> None:
        self.ledger_id = ledger_id
        self._cluster = cluster
        self._metadata = cluster.ledger(ledger_id).value
        self._schema = arrow_schema.decode(self._metadata.settings.schema)
        self._confirmed = INVALID_ENTRY_ID if confirmed is None else confirmed
        self._entry_reader = EntryReader(
            cluster,
            ledger_id,
            digester,
            settings=settings,
            index=index,
            turn=turn,
        )
        self._rows: _GroupRows | None = None
        if confirmed is None:
            self._look(None)

    def __repr__(self) -> str:
        state = self._metadata.state.value
        known = f"last_add_confirmed {self._confirmed}"
        return f"ReadHandle(ledger {self.ledger_id}, {state}, {known})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Does nothing: there are no resources to release."""

    @property
    def faults(self) -> dict[str, str]:
        """Bookies whose copies could not be used so far, each with the reason in one line."""
        return self._entry_reader.faults

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata known to this reader."""
        return self._metadata

    @property
    def is_closed(self) -> bool:
        """Whether the ledger is closed in the metadata known to this reader."""
        return self._metadata.state is LedgerState.CLOSED

    @property
    def last_add_confirmed(self) -> int:
        """The last readable entry known to this reader. The value only grows."""
        return self._confirmed

    def read_last_add_confirmed(self, timeout: float | None = None) -> int:
        """Find how far the ledger may be read now, and return its last readable entry.

        Only the ends of journals are read, so the cost does not depend on the ledger's length.

        Args:
            timeout: the most seconds to wait for bookies, if less than ``read_timeout_seconds``.

        Raises:
            BookieUnavailableError: too few bookies answer. Earlier results stay true.
        """
        self._look(timeout)
        return self._confirmed

    def go_on(self, metadata: LedgerMetadata) -> None:
        """Read with ``metadata`` from now on, which are as new as the entries to be read."""
        self._metadata = metadata

    def wait_for(self, entry_id: int, timeout: float) -> bool:
        """Wait until ``entry_id`` may be read. False after ``timeout`` seconds.

        Raises:
            BookieUnavailableError: after the timeout, too few bookies show whether the entry may be
                read.
        """
        deadline, unknown = environment.monotonic() + timeout, None
        while self._confirmed < entry_id and not self.is_closed:
            left = deadline - environment.monotonic()
            if left <= 0 and unknown is not None:
                raise unknown
            if left <= 0:
                return False
            environment.sleep(min(POLL_SECONDS, left))
            unknown = self._news(max(left, POLL_SECONDS))
        return self._confirmed >= entry_id

    def _news(self, timeout: float) -> BookieUnavailableError | None:
        """Look for new entries; return the error if the look failed."""
        try:
            self.read_last_add_confirmed(timeout)
        except BookieUnavailableError as error:
            return error
        return None

    def read(self, first: int | None = None, last: int | None = None) -> Iterator[Entry]:
        """The entries ``[first, last]``; by default the first to the last-add-confirmed.

        Raises:
            NoSuchEntryError: an entry is after the last-add-confirmed, or was truncated.
            CorruptDataError: no bookie gives a good copy of an entry.
            InvalidRequestError: the ledger holds rows, not bytes.
        """
        first, end = self._confirmed_range(first, last)
        yield from self._entries(first, end)

    def read_unconfirmed(self, first: int, last: int) -> Iterator[Entry]:
        """The entries ``[first, last]`` found on any bookie, acknowledged or not. They may yet
        vanish.

        Raises:
            NoSuchEntryError: there is no such entry, or not yet.
            CorruptDataError: no bookie gives a good copy of an entry that may exist.
            InvalidRequestError: the ledger holds rows, not bytes, or ``first`` is below 0.
        """
        first, last = _range(first, last)
        at = arguments.whole_number("the first entry id", first, least=0)
        try:
            for entry in self._entries(first, last):
                yield entry
                at = entry.entry_id + 1
        except CorruptDataError as error:
            if not self._is_absent(at):
                raise
            raise self._no_such_entry(
                f"ledger {self.ledger_id} does not have entry {at}"
            ) from error

    def _entries(self, first: int, last: int) -> Iterator[Entry]:
        if self._schema != VALUE_SCHEMA:
            raise InvalidRequestError(
                f"ledger {self.ledger_id} holds rows, not bytes", hint="read it with read_arrow"
            )
        for begin, batch in self.batches(first, last):
            for number, value in enumerate(batch.column(0).to_pylist()):
                yield Entry(begin + number, value)

    def _is_absent(self, entry_id: int) -> bool:
        """Return whether an entry that was not found surely does not exist; errors prove
        nothing.
        """
        end = self._metadata.last_entry_id
        return entry_id > (self._confirmed if end is None else end) and (
            end is not None or not self.faults
        )

    def read_arrow(self, first: int | None = None, last: int | None = None) -> pa.Table:
        """The entries ``[first, last]`` as a table; its last column is ``_entry_id`` (int64)."""
        first, end = self._confirmed_range(first, last)
        schema = self._schema.append(pa.field(ENTRY_COLUMN, pa.int64()))
        batches = [
            pa.RecordBatch.from_arrays(
                [*batch.columns, pa.arange(begin, begin + batch.num_rows)], schema=schema
            )
            for begin, batch in self.batches(first, end)
        ]
        return pa.Table.from_batches(batches, schema=schema)

    def _confirmed_range(self, first: int | None, last: int | None) -> tuple[int, int]:
        self.require_own_process()
        begin = self._metadata.first_available if first is None else first
        first, last = _range(begin, self._confirmed if last is None else last)
        if first < 0 or last > self._confirmed:
            raise self._no_such_entry(
                f"entries {first} to {last} of ledger {self.ledger_id} cannot be read: the "
                f"last confirmed entry is {self._confirmed}",
                " waits for them; read_unconfirmed() reads entries that may still be lost",
            )
        if first <= last:
            self._metadata.fragment_of(first)
        return first, last

    def _no_such_entry(self, message: str, then: str = " waits for the entry") -> NoSuchEntryError:
        closed = "the ledger is closed, so it gets no more entries"
        return NoSuchEntryError(message, hint=closed if self.is_closed else f"wait_for(){then}")

    def record_of(self, entry_id: int) -> AddRecord:
        """Return the record of a confirmed entry with inline rows; its group is kept.

        Raises:
            CorruptDataError: no bookie gives the entry.
        """
        self.require_own_process()
        return self._rows_of(entry_id).record

    def batches(
        self,
        first: int,
        last: int,
        on_loss: Callable[[int, int, CorruptDataError], None] | None = None,
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """(first entry id, rows) of each group in ``[first, last]``, cut to the range.

        Args:
            on_loss: called with the first and the last entry of a range that no bookie gives. The
                range is then left out. Without ``on_loss`` such a range is an error.
        """
        self.require_own_process()
        entry_id = first
        while entry_id <= last:
            try:
                rows = self._rows_of(entry_id)
            except CorruptDataError as error:
                if on_loss is None:
                    raise
                end = self._end_of_gap(entry_id, last)
                on_loss(entry_id, end, error)
                entry_id = end + 1
                continue
            end = min(last, rows.record.last_entry_id)
            at = entry_id - rows.record.first_entry_id
            yield entry_id, rows.batch.slice(at, end - entry_id + 1)
            entry_id = end + 1

    def _look(self, timeout: float | None) -> None:
        def ask(ledger: LedgerMetadata, is_enough: IsEnough) -> MemberAnswers:
            return self._entry_reader.ends(ledger, is_enough, timeout)

        found = look(self._cluster, self.ledger_id, ask, self._entry_reader.note)
        self._metadata = found.ledger
        self._confirmed = max(self._confirmed, found.last_entry_id)

    def _rows_of(self, entry_id: int) -> _GroupRows:
        """Return the rows of an entry's group; look again if its bookies have changed (RB-22).

        Raises:
            CorruptDataError: no bookie gives the entry.
            NoSuchLedgerError: the ledger was deleted meanwhile (H33, RB-42).
        """
        rows = self._rows
        if rows is None or not rows.show(self._metadata, entry_id):
            rows = self._rows = self._found(entry_id) or self._found_elsewhere(entry_id)
        if rows is not None:
            return rows
        raise CorruptDataError(
            f"no bookie gives entry {entry_id} of ledger {self.ledger_id} "
            f"({'; '.join(self.faults.values()) or 'none has it'})",
            hint="bring back one of its bookies",
        )

    def _found_elsewhere(self, entry_id: int) -> _GroupRows | None:
        before, self._metadata = self._metadata, self._cluster.ledger(self.ledger_id).value
        if before.fragments == self._metadata.fragments:
            return None
        self._entry_reader.refresh_addresses()
        return self._found(entry_id)

    def _found(self, entry_id: int) -> _GroupRows | None:
        while True:  # ends, because each refused record leaves one fewer
            replies = self._entry_reader.find(self._metadata, entry_id)
            record = replies.record
            if record is None or not replies.is_whole:
                return None
            self._require_inline(record)
            try:
                batch = decode_parts(
                    replies.messages,
                    self._schema,
                    first_entry_id=record.first_entry_id,
                    last_entry_id=record.last_entry_id,
                    quorum=record.quorum,
                )
            except CorruptDataError as error:
                self._entry_reader.refuse(record, str(error))
                continue
            return _GroupRows(record, batch)

    def _require_inline(self, record: AddRecord) -> None:
        if not record.parts:
            raise InvalidRequestError(
                f"ledger {self.ledger_id} was written as a DataFrame",
                hint="read it as one, or with `bkspark ledger read`",
            )

    def _end_of_gap(self, entry_id: int, last: int) -> int:
        """Return the end, at most ``last``, of the missing entries from ``entry_id`` on."""
        following = self._entry_reader.first_after(self._metadata, entry_id)
        while following is not None and following <= last:
            if self._entry_reader.find(self._metadata, following).is_whole:
                return following - 1
            following = self._entry_reader.first_after(self._metadata, following)
        return last


def _range(first: object, last: object) -> tuple[int, int]:
    begin = arguments.whole_number("the first entry id", first)
    return begin, arguments.whole_number("the last entry id", last)
