"""What must hold of the contents of one log after every step, whatever its clients think.

Rule: as in ``oracle``, nothing is asked of a client. Every value is submitted once, by one client,
with a number that grows, so a log that loses, doubles or re-orders anything shows it.

I8     an acknowledged or read offset holds the same value for ever, truncated or not
RB-20  nothing is acknowledged in a ledger while one before it is not CLOSED, or is not listed
RB-20b who opened the log begins behind everything that was acknowledged
RB-35  no value is in the log twice, nor those of one client out of order
RB-39  a reader sees neighbouring offsets, and at each what is there
RB-44  who opened the log reads everything that was acknowledged before
I10    a log that was deleted takes nothing any more; who holds on to a generation of it, to write
       or to read, is in no other
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from bkspark.format import journal, layout, upkeep_records
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.log.contents import DroppedLedgers
from bkspark.protocol.log.record import LogRecord
from tests.simulation.known import Copy, stripe_count
from tests.simulation.log_told import Contents, Reading
from tests.simulation.log_watch import History
from tests.simulation.oracle import Oracle
from tests.simulation.scheduler import Violation


class LogOracle(Oracle):
    """Looks at one log and all its ledgers after every effect.

    Attributes:
        private: ledgers of batches, which are written to before they are listed.
        may_begin: the highest offset that somebody has asked to truncate the log to.
        generation: of the log.
        readers: processes that only read.
    """

    def __init__(self, uri: str, log_name: str, *, checks_reasons: bool = True) -> None:
        super().__init__(uri, checks_reasons=checks_reasons)
        self.log_name = log_name
        self.private: set[int] = set()
        self.may_begin = 0
        self.generation = 1
        self.readers: set[str] = set()
        self.contents = Contents()
        self._past: dict[int, Contents] = {}
        self._meant: dict[str, int] = {}
        self._record: LogRecord | None = None
        self._values: dict[tuple[int, int, int], bytes] = {}  # by ledger, owner, entry

    @property
    def history(self) -> History:
        return self.logs.histories[self.log_name]

    # --- told by the simulation ------------------------------------------------------------

    def committed_record(self, process: str, ledger_id: int, entry_id: int, term: int) -> None:
        """A record that names entry logs is acknowledged; its last entry is ``entry_id``."""
        first = self.ledgers[ledger_id].acked + 1
        self.acknowledged(process, ledger_id, entry_id, term)
        if ledger_id not in self.private:
            self._tell_all(process, ledger_id, range(first, entry_id + 1))

    def _tell_all(self, process: str, ledger_id: int, ids: Iterable[int]) -> None:
        for one in ids:
            self._tell(process, self._offset_of(ledger_id, one), self._value_at(ledger_id, one))

    def added(
        self, process: str, generation: int, offset: int, value: bytes, term: int = 1
    ) -> None:
        """A log writer's user learns that ``value`` is at ``offset`` for ever."""
        self._require_there(process, generation)
        ledger_id, entry_id = self._find(self.history, offset)
        self.acknowledged(process, ledger_id, entry_id, term)
        self._tell(process, offset, value)

    def opened(self, process: str, ledger_id: int, first_offset: int, term: int) -> int:
        """``process`` may write now, in ``term`` and from ``first_offset`` on; returns the log's
        generation.
        """
        generation = self.logs.generation_of(ledger_id)
        if generation is None:
            raise Violation(f"{process} is to write to ledger {ledger_id}, never listed (RB-20)")
        is_tail = self.history.record.tail[-1:] == (ledger_id,)
        is_last = is_tail and self.ledgers[ledger_id].metadata.term == term  # or taken over already
        if is_last and max(self.contents.told, default=-1) >= first_offset:
            raise Violation(
                f"{process} begins at {first_offset}, acked is {max(self.contents.told)} (RB-20b)"
            )
        return generation

    def has_read_log(
        self, reader: str, begin: int, rows: Iterable[tuple[int, bytes]], reading: Reading
    ) -> int:
        """A reader was given these rows, from ``begin`` on; returns the offset behind them.

        What was overwritten or deleted meanwhile may be read a last time.
        """
        may_be = reading.generations or set(range(reading.first, self.generation + 1))
        for offset, value in rows:
            if offset != begin:
                raise Violation(f"{reader} reads offset {offset}, next was {begin} (RB-39)")
            if may_be == {reading.first} and offset < reading.least:
                raise Violation(f"{reader} reads {offset}, the log began at {reading.least} (I8)")
            if may_be == {self.generation}:
                self._tell(reader, offset, value, "RB-39")
                self._show(reader, offset)
            else:
                may_be = {one for one in may_be if self._has_held(one, offset, value)}
            if not may_be:
                raise Violation(f"{reader} reads {value!r} at {offset}, of {reading} (I10)")
            reading.generations = may_be
            begin += 1
        return begin

    def _show(self, reader: str, offset: int) -> None:
        """A reader was given ``offset``, so it is said to be confirmed."""
        ledger_id, entry_id = self._find(self.history, offset)
        self.shown(reader, ledger_id, max(entry_id, self.shown_by_now(ledger_id)), -1)
        self.contents.shown = max(self.contents.shown, offset + 1)

    def _has_held(self, generation: int, offset: int, value: bytes) -> bool:
        """Whether ``value`` was at ``offset`` in an earlier generation, or is there now."""
        is_now = generation == self.generation
        history = self.history if is_now else self.logs.past[self.log_name, generation]
        contents = self.contents if is_now else self._past[generation]
        if not contents.told.get(offset, value) == contents.placed.get(offset, value) == value:
            return False
        try:
            return self._value_at(*self._find(history, offset)) == value
        except Violation:
            return False

    def require_present(self, process: str, values: Iterable[bytes]) -> None:
        """``process`` was told that all of ``values`` are in the log."""
        missing = [one for one in values if one not in self.contents.ever | self.contents.had]
        if missing:
            raise Violation(f"{process} was told that {missing} are in the log (I8)")

    # --- what appears ----------------------------------------------------------------------

    def _after_metadata(
        self, step: int, process: str, call: str, name: str, result: object
    ) -> None:
        super()._after_metadata(step, process, call, name, result)
        if name != f"logs/{self.log_name}":
            return
        if call == "put":
            is_forgetting = self._is_forgetting(self.history.record)
            self._fill()
            meant = self._meant.get(process) or self.generation
            if meant != self.generation and not is_forgetting:
                raise Violation(
                    f"{process} changes generation {self.generation} of the log, having looked at "
                    f"{meant} (I10)"
                )
        elif process in self._meant:
            self._meant[process] = self._meant[process] or self.generation

    def _is_forgetting(self, record: LogRecord) -> bool:
        """Whether nothing changes but that ledgers which were let go of are not named any more."""
        versions = (self._record or record, record)
        before, after = (replace(one, dropped=DroppedLedgers()) for one in versions)
        return before == after

    @contextmanager
    def meaning_one(self, process: str) -> Iterator[None]:
        """What ``process`` does now is meant for the generation that it looks at first."""
        self._meant[process] = 0
        try:
            yield
        finally:
            del self._meant[process]

    def see(self, process: str, ledger_id: int) -> None:
        known = self.ledgers.get(ledger_id)
        first = 0 if known is None else known.acked + 1
        super().see(process, ledger_id)
        made = self.ledgers[ledger_id].metadata if ledger_id in self.ledgers else None
        if made is not None and made.settings.custom_metadata.get("operation") == "compact":
            self.private.add(ledger_id)
        if process in self.readers:
            raise Violation(f"{process} only reads, and changes ledger {ledger_id} (RB-44)")
        if known is not None and ledger_id in self.history.record.tail:
            # What a recovery has found is in the log as if it had been acknowledged.
            last = known.metadata.last_entry_id
            end = known.acked if last is None else last
            self._tell_all(process, ledger_id, range(first, end + 1))

    def _fill(self) -> None:
        """Take over what was placed by the newest version of the record."""
        history, record = self.history, self.history.record
        if record.generation != self.generation:
            self._past[self.generation] = self.contents
            self.contents = self._following()
            self.generation = record.generation
        contents, self._record = self.contents, record
        if record.is_tombstone:
            return
        self._require_asked(record)
        self._require_same_values(history)
        for ledger_id, first_offset, count in history.placed:
            for entry_id in range(count if first_offset >= contents.seen else 0):
                value = self._value_at(ledger_id, entry_id)
                self._place(first_offset + entry_id, value)
        contents.seen = max(contents.seen, history.end)
        told = max(contents.told, default=-1)
        if told >= history.end and not record.tail:
            raise Violation(f"offset {told} is acked, the log ends at {history.end} (I8)")

    def _require_same_values(self, history: History) -> None:
        """What a compaction has put at an offset is what was there."""
        for ledger_id, first_offset, count in history.merged:
            for offset in range(first_offset, first_offset + count):
                value = self._value_at(ledger_id, offset - first_offset)
                known = self.contents.placed.get(offset, value)
                if value != known:
                    raise Violation(f"offset {offset} was {known!r}, compacted {value!r} (I8)")
        history.merged.clear()

    def _following(self) -> Contents:
        """Contents of the next generation.

        A batch may be run again after a deletion: who knew that it was committed is gone as well.
        """
        before = self.contents
        had = before.had | self._overwritten()
        gone = before.gone | had
        if self._record is not None and self._record.is_tombstone:
            gone = gone.difference(self._entry_logs.all_values())
        return Contents(gone=gone, ever=before.ever | had)

    def _overwritten(self) -> set[bytes]:
        """What the tail held that was settled and overwritten in one step."""
        gone: set[bytes] = set()
        for ledger_id in self._record.tail if self._record else ():
            end = self.ledgers[ledger_id].metadata.last_entry_id
            for entry_id in range(0 if end is None else end + 1):
                gone.add(self._value_at(ledger_id, entry_id))
        return gone

    def _require_asked(self, record: LogRecord) -> None:
        """Nothing was truncated but what somebody wanted, or what all cursors have read."""
        allowed = self.may_begin
        if record.retention.byte_count is not None:
            keys = self._store.list(layout.cursors_prefix(self.log_name))
            stored = [(key, self._store.get(layout.cursor_key(self.log_name, key))) for key in keys]
            cursors = [
                upkeep_records.decode_cursor(self.log_name, key, found.value)
                for key, found in stored
                if found is not None
            ]
            offsets = [one.offset for one in cursors if one.generation == record.generation]
            allowed = max(allowed, min(offsets, default=record.end_offset))
        if record.first_offset > allowed:
            raise Violation(
                f"the log begins at {record.first_offset}, nobody wanted more than {allowed} (I8)"
            )

    def _place(self, offset: int, value: bytes) -> None:
        contents = self.contents
        told = contents.told.get(offset, value)
        if told != value:
            raise Violation(f"offset {offset} was {told!r} and is {value!r} (I8)")
        client, _, number = value.rpartition(b" ")
        is_there = value in contents.at or value in contents.gone
        if is_there or contents.last.get(client, -1) >= int(number):
            raise Violation(
                f"{value!r} is at {offset}, it or a later one is in the log already (RB-35)"
            )
        contents.placed[offset] = value
        contents.at[value] = offset
        contents.last[client] = int(number)

    def _tell(self, who: str, offset: int, value: bytes, rule: str = "I8") -> None:
        """From now on ``offset`` holds ``value`` for ever, which it must do by now."""
        contents = self.contents
        known = contents.told.setdefault(offset, value)
        if known != value or contents.placed.get(offset, value) != value:
            raise Violation(f"{who} is told {value!r} of offset {offset}, was {known!r} ({rule})")
        if self._value_at(*self._find(self.history, offset)) != value:
            raise Violation(f"{who} is told {value!r} of offset {offset}, it is not ({rule})")

    def _find(self, history: History, offset: int) -> tuple[int, int]:
        """The ledger and entry at ``offset`` of one generation."""
        for ledger_id, first_offset, count in reversed(history.placed):
            if first_offset <= offset < first_offset + count:
                return ledger_id, offset - first_offset
        begin = history.end
        for ledger_id in history.tail:
            end = self.ledgers[ledger_id].metadata.last_entry_id
            if end is None or offset <= begin + end:
                return ledger_id, offset - begin
            begin += end + 1
        raise Violation(f"offset {offset} is behind the log's end, {begin} (I8)")

    def _offset_of(self, ledger_id: int, entry_id: int) -> int:
        for one, first_offset, _ in (*self.history.placed, *self.history.replaced.values()):
            if one == ledger_id:
                return first_offset + entry_id
        begin = self.history.end
        for one in self.history.record.tail:
            if one == ledger_id:
                return begin + entry_id
            end = self.ledgers[one].metadata.last_entry_id
            if end is None:
                raise Violation(f"ledger {ledger_id} has acks, ledger {one} is not closed (RB-20)")
            begin += end + 1
        raise Violation(f"ledger {ledger_id} has acks and is not on the list (RB-20)")

    def _value_at(self, ledger_id: int, entry_id: int) -> bytes:
        fragments = self.ledgers[ledger_id].metadata.fragments
        if entry_id < fragments[0].first_entry_id:  # the log began there; nobody says whose it was
            known = [v for (i, _, e), v in self._values.items() if (i, e) == (ledger_id, entry_id)]
            return known[-1]
        owner = self.ledgers[ledger_id].owner_of(entry_id)
        value = self._values.get((ledger_id, owner, entry_id))
        if value is None:
            record = self.ledgers[ledger_id].group_of(entry_id)
            if record is None or not record.attempts:
                raise Violation(f"entry {entry_id} of ledger {ledger_id} was never written (I8)")
            self._note_rows(record)
            value = self._values[ledger_id, owner, entry_id]
        return value

    def _owner(self, record: AddRecord) -> int:
        """The owner of its entries, if they count; 0 in a ledger of one writer."""
        return record.term if self.ledgers[record.ledger_id].metadata.goes_on else 0

    def _note_rows(self, record: AddRecord) -> None:
        quorum, ledger_id, owner = record.quorum, record.ledger_id, self._owner(record)
        stripes = stripe_count(quorum.ensemble_size, quorum.write_quorum_size)
        for attempt in record.attempts:
            for entry_id, value in self._entry_logs.values_of(attempt, stripes).items():
                self._values[ledger_id, owner, entry_id] = value

    def _add_frame(
        self, step: int, process: str, bookie_id: str, frame: journal.Frame, data: bytes
    ) -> list[Copy]:
        record = frame.record
        ledger_id = record.ledger_id
        is_known = ledger_id in self.private or self.logs.was_listed(ledger_id)
        if not is_known and not record.is_confirmation:
            raise Violation(f"{process} writes to ledger {ledger_id}, which is not listed (RB-20)")
        return super()._add_frame(step, process, bookie_id, frame, data)

    def _require_payloads(self, record: AddRecord, stripe: int, message: bytes) -> None:
        count = stripe_count(record.quorum.ensemble_size, record.quorum.write_quorum_size)
        ids = range(record.first_entry_id, record.last_entry_id + 1)
        mine = [number for number in ids if number % count == stripe]
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), VALUE_SCHEMA)
        for number, value in zip(mine, batch.column(0).to_pylist(), strict=True):
            key = (record.ledger_id, self._owner(record), number)
            if self._values.setdefault(key, value) != value:
                raise Violation(f"entry {number} of {record.ledger_id} has two values (I4)")

    def acknowledged(self, process: str, ledger_id: int, entry_id: int, term: int = 1) -> None:
        if ledger_id not in self.private:
            self._require_there(process, self.logs.generation_of(ledger_id))
        super().acknowledged(process, ledger_id, entry_id, term)
        if ledger_id not in self.private:
            self._offset_of(ledger_id, entry_id)

    def _require_there(self, process: str, generation: int | None) -> None:
        """An ack of a generation comes before the log is deleted, or made anew."""
        is_there = not self.history.record.is_tombstone
        if generation is not None and not (is_there and generation == self.generation):
            now = f"at generation {self.generation}" if is_there else "deleted"
            raise Violation(f"{process} gets an ack of generation {generation}, it is {now} (I10)")

    # --- the end ---------------------------------------------------------------------------

    def made_by(self, ledger_id: int) -> str:
        """The process that has created a ledger."""
        return self.logs.makers[ledger_id]

    def listed_in(self, generation: int) -> list[int]:
        """Ledgers that were on the log's list first in this generation."""
        return [one for one in self.ledgers if self.logs.generation_of(one) == generation]

    def left(self) -> list[int]:
        """Ledgers that are on no list and not deleted."""
        listed = self.history.record.listed_ids
        return [one for one in self.ledgers if one not in listed and not self.is_deleted(one)]

    def unlisted(self) -> list[LedgerMetadata]:
        """Ledgers that are on no list and not dropped: to be collected."""
        return [
            ledger.metadata
            for ledger_id, ledger in sorted(self.ledgers.items())
            if not self._is_accounted_for(ledger_id)
        ]

    def _is_accounted_for(self, ledger_id: int) -> bool:
        record = self.history.record
        return self.is_deleted(ledger_id) or ledger_id in (*record.listed_ids, *record.dropped.ids)
