"""What must hold of the contents of one log after every step, whatever its clients think.

Rule: as in ``oracle``, nothing is asked of a client. Every value is submitted once, by one client,
with a number that grows, so a log that loses, doubles or re-orders anything shows it.

I8     an acknowledged or read offset holds the same value for ever, truncated or not
RB-20  nothing is acknowledged in a ledger while one before it is not CLOSED, or is not listed
RB-20b who opened the log begins behind everything that was acknowledged
RB-35  no value is in the log twice, nor those of one client out of order
RB-39  a reader sees neighbouring offsets, and at each what is there
RB-44  who opened the log reads everything that was acknowledged before
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark.client.handles.entries import VALUE_SCHEMA
from bkspark.format import cursor_record, journal, layout
from bkspark.protocol.ledger import LedgerMetadata, LedgerState
from bkspark.protocol.log import LogRecord
from bkspark.protocol.record import AddRecord
from bkspark.testing.simulation.known import Ledger, stripe_count
from bkspark.testing.simulation.log_watch import History
from bkspark.testing.simulation.oracle import Oracle
from bkspark.testing.simulation.scheduler import Violation


def value_of(client: str, number: int) -> bytes:
    """What ``client`` submits as its ``number``-th value."""
    return b"%s %d" % (client.encode(), number)


@dataclass
class Contents:
    """What the log holds, by offset.

    Attributes:
        told: what somebody was told is there: writers by acks, readers by what they read.
        placed: values of closed ledgers, those that are truncated as well.
        at: value -> offset of ``placed``.
        last: client -> the highest number of its values in ``placed``.
        seen: how many places of the history are in ``placed``.
        gone: values of earlier generations.
    """

    told: dict[int, bytes] = field(default_factory=dict)
    placed: dict[int, bytes] = field(default_factory=dict)
    at: dict[bytes, int] = field(default_factory=dict)
    last: dict[bytes, int] = field(default_factory=dict)
    seen: int = 0
    gone: set[bytes] = field(default_factory=set)

    @property
    def known(self) -> set[bytes]:
        """All values that are, or were, surely in the log."""
        return self.gone | self.at.keys() | set(self.told.values())


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
        self._tail: tuple[int, ...] = ()
        self.contents = Contents()
        self._values: dict[tuple[int, int], bytes] = {}
        self._rows: dict[str, Sequence[bytes]] = {}

    @property
    def history(self) -> History:
        return self.logs.histories[self.log_name]

    # --- told by the simulation ------------------------------------------------------------

    def made_rows(self, attempt_ids: Iterable[str], values: Sequence[bytes]) -> None:
        """The entry logs of these attempts hold ``values`` in order."""
        self._rows.update((attempt_id, values) for attempt_id in attempt_ids)

    def rows_of(self, attempt_id: str) -> Sequence[bytes]:
        return self._rows[attempt_id]

    def committed_record(self, process: str, ledger_id: int, entry_id: int) -> None:
        """A record that names entry logs is acknowledged; its last entry is ``entry_id``."""
        first = self.ledgers[ledger_id].acked + 1
        self.acknowledged(process, ledger_id, entry_id)
        if ledger_id in self.private:
            return
        for one in range(first, entry_id + 1):
            self._tell(process, self._offset_of(ledger_id, one), self._value_at(ledger_id, one))

    def added(self, process: str, offset: int, value: bytes) -> None:
        """A log writer's user learns that ``value`` is at ``offset`` for ever."""
        ledger_id, entry_id = self._find(offset)
        self.acknowledged(process, ledger_id, entry_id)
        self._tell(process, offset, value)

    def opened(self, process: str, ledger_id: int, first_offset: int) -> None:
        """``process`` may write now; its first entry will be at ``first_offset``."""
        if self.history.record.tail[-1:] != (ledger_id,):
            return  # It has been taken over from already.
        if max(self.contents.told, default=-1) >= first_offset:
            raise Violation(
                f"{process} begins at {first_offset}, acked is {max(self.contents.told)} (RB-20b)"
            )

    def has_read_log(
        self,
        reader: str,
        begin: int,
        rows: Iterable[tuple[int, bytes]],
        *,
        least: int,
        generation: int,
    ) -> int:
        """A reader was given these rows, from ``begin`` on; returns the offset behind them.

        Args:
            least, generation: where the log began, and what it was, when the reader had not looked
                yet. What was overwritten meanwhile may be read a last time.
        """
        for offset, value in rows if generation == self.generation else ():
            if offset != begin:
                raise Violation(f"{reader} reads offset {offset}, next was {begin} (RB-39)")
            if offset < least:
                raise Violation(f"{reader} reads {offset}, the log began at {least} (I8)")
            self._tell(reader, offset, value, "RB-39")
            begin += 1
        return begin

    def require_present(self, process: str, values: Iterable[bytes]) -> None:
        """``process`` was told that all of ``values`` are in the log."""
        missing = [one for one in values if one not in self.contents.known]
        if missing:
            raise Violation(f"{process} was told that {missing} are in the log (I8)")

    # --- what appears ----------------------------------------------------------------------

    def _after_metadata(
        self, step: int, process: str, call: str, name: str, result: object
    ) -> None:
        super()._after_metadata(step, process, call, name, result)
        if call == "put" and name == f"logs/{self.log_name}":
            self._fill()

    def see(self, process: str, ledger_id: int) -> None:
        super().see(process, ledger_id)
        if process in self.readers:
            raise Violation(f"{process} only reads, and changes ledger {ledger_id} (RB-44)")

    def _fill(self) -> None:
        """Take over what was placed by the newest version of the record."""
        contents, history = self.contents, self.history
        if history.record.generation != self.generation:
            self.generation = history.record.generation
            contents = self.contents = Contents(gone=contents.known | self._overwritten())
        self._tail = history.record.tail
        self._require_asked(history.record)
        for ledger_id, first_offset, count in history.placed[contents.seen :]:
            for entry_id in range(count):
                value = self._value_at(ledger_id, entry_id)
                self._place(first_offset + entry_id, value)
        contents.seen = len(history.placed)
        told = max(contents.told, default=-1)
        if told >= history.end and not history.record.tail:
            raise Violation(f"offset {told} is acked, the log ends at {history.end} (I8)")

    def _overwritten(self) -> set[bytes]:
        """What the tail held that was settled and overwritten in one step."""
        gone: set[bytes] = set()
        for ledger_id in self._tail:
            end = self.ledgers[ledger_id].metadata.last_entry_id
            for entry_id in range(0 if end is None else end + 1):
                gone.add(self._value_at(ledger_id, entry_id))
        return gone

    def _require_asked(self, record: LogRecord) -> None:
        """Nothing was truncated but what somebody wanted, or what all cursors have read."""
        allowed = self.may_begin
        if record.retention_bytes is not None:
            keys = self._store.list(layout.cursors_prefix(self.log_name))
            stored = [(key, self._store.get(layout.cursor_key(self.log_name, key))) for key in keys]
            cursors = [
                cursor_record.decode(self.log_name, key, found.value)
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
        if self._value_at(*self._find(offset)) != value:
            raise Violation(f"{who} is told {value!r} of offset {offset}, it is not ({rule})")

    def _find(self, offset: int) -> tuple[int, int]:
        """The ledger and entry at ``offset``."""
        for ledger_id, first_offset, count in reversed(self.history.placed):
            if first_offset <= offset < first_offset + count:
                return ledger_id, offset - first_offset
        begin = self.history.end
        for ledger_id in self.history.record.tail:
            end = self.ledgers[ledger_id].metadata.last_entry_id
            if end is None or offset <= begin + end:
                return ledger_id, offset - begin
            begin += end + 1
        raise Violation(f"offset {offset} is behind the log's end, {begin} (I8)")

    def _offset_of(self, ledger_id: int, entry_id: int) -> int:
        for one, first_offset, _ in self.history.placed:
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
        value = self._values.get((ledger_id, entry_id))
        if value is None:
            record = self.ledgers[ledger_id].group_of(entry_id)
            if record is None or not record.attempts:
                raise Violation(f"entry {entry_id} of ledger {ledger_id} was never written (I8)")
            self._note_rows(record)
            value = self._values[ledger_id, entry_id]
        return value

    def _note_rows(self, record: AddRecord) -> None:
        entry_id = record.first_entry_id
        for attempt in record.attempts:
            for value in self._rows[attempt.entry_logs[0].attempt_id]:
                self._values[record.ledger_id, entry_id] = value
                entry_id += 1

    def _add_frame(
        self, step: int, process: str, bookie_id: str, frame: journal.Frame, data: bytes
    ) -> None:
        record = frame.record
        ledger_id = record.ledger_id
        is_known = ledger_id in self.private or self.logs.was_listed(ledger_id)
        if not is_known and not record.is_confirmation:
            raise Violation(f"{process} writes to ledger {ledger_id}, which is not listed (RB-20)")
        super()._add_frame(step, process, bookie_id, frame, data)

    def _require_payloads(self, record: AddRecord, stripe: int, message: bytes) -> None:
        count = stripe_count(record.quorum.ensemble_size, record.quorum.write_quorum_size)
        ids = range(record.first_entry_id, record.last_entry_id + 1)
        mine = [number for number in ids if number % count == stripe]
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), VALUE_SCHEMA)
        for number, value in zip(mine, batch.column(0).to_pylist(), strict=True):
            if self._values.setdefault((record.ledger_id, number), value) != value:
                raise Violation(f"entry {number} of {record.ledger_id} has two values (I4)")

    def acknowledged(self, process: str, ledger_id: int, entry_id: int) -> None:
        super().acknowledged(process, ledger_id, entry_id)
        if ledger_id not in self.private:
            self._offset_of(ledger_id, entry_id)

    # --- the end ---------------------------------------------------------------------------

    def made_by(self, ledger_id: int) -> str:
        """The process that has created a ledger."""
        return self.logs.makers[ledger_id]

    def unlisted(self) -> list[LedgerMetadata]:
        """Ledgers that are on no list and not dropped: to be collected."""
        return [
            ledger.metadata
            for ledger_id, ledger in sorted(self.ledgers.items())
            if not self._is_accounted_for(ledger_id, ledger)
        ]

    def _is_accounted_for(self, ledger_id: int, ledger: Ledger) -> bool:
        record = self.history.record
        is_deleted = ledger.metadata.state is LedgerState.DELETING
        return is_deleted or ledger_id in (*record.listed_ids, *record.dropped)
