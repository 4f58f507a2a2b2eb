"""The log handle: a log from Python, without Spark.

A read never disturbs the log's writer. ``writer`` takes the log over from the writer before.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Election
from bkspark.cluster.guards import BoundToProcess
from bkspark.cluster.password import Password, make_digester, require_of_use
from bkspark.errors import InvalidRequestError, NoSuchEntryError, NoSuchLedgerError
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.settings import USUAL, WriterSettings
from bkspark.log import cursors, truncation
from bkspark.log.cursors import Cursor
from bkspark.log.log_writer import LogWriter
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.log.reading.log_view import LogView, LogWatch, look_at
from bkspark.log.reading.offset_by_time import offset_since
from bkspark.log.reading.ordered_read import OrderedRead, read_view_in_order
from bkspark.log.reading.slice_reader import InlinePlace
from bkspark.log.reading.waiting import Waiting
from bkspark.log.recovering import Undecided, resolve, update_with_closed_tail
from bkspark.log.rolling import RollPolicy
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.log.contents import Retention
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier
from bkspark.protocol.log.transactions import is_name, remembering

# --- fragments -----------------------------------------------------------------------------------
# The fragments of a log: each range of offsets with its bookies and its term.


@dataclass(frozen=True, slots=True)
class LogFragment:
    """A range of a log's entries on one ensemble.

    Attributes:
        first_offset: offset of the first entry, even if there is no entry yet.
        term: the term of the writer that owns the entries.
        ensemble: bookie ids, in stripe order.
    """

    first_offset: int
    ledger_id: int
    term: int
    ensemble: tuple[str, ...]


def fragments_of(
    cluster: Cluster, places: Iterable[LoggedLedger], first_offset: int
) -> list[LogFragment]:
    """Return the fragments that end after ``first_offset``, oldest first; the last one always.

    Raises:
        NoSuchLedgerError: a ledger was deleted meanwhile.
    """
    found = list(_every(cluster, places))
    ends = [one.first_offset for one in found[1:]]
    behind = sum(end <= first_offset for end in ends)
    return found[behind:]


def _every(cluster: Cluster, places: Iterable[LoggedLedger]) -> Iterator[LogFragment]:
    for place in places:
        for location in Locations(cluster.ledger(place.ledger_id).value):
            yield LogFragment(
                place.first_offset + location.first_entry_id,
                place.ledger_id,
                location.writer_term,
                tuple(location.bookie_ids),
            )


# --- transactions --------------------------------------------------------------------------------
# The transactions that a log remembers, including its open tail, read without a fence.


def transactions_of(cluster: Cluster, log_name: str, password: Password) -> dict[str, int]:
    """Return the last version per application; the application that committed last comes last.

    Raises:
        NoSuchLedgerError: there is no such log.
        BookieUnavailableError: too few bookies answer, so the readable end is unknown.
        CorruptDataError: no bookie gives the last record of the open ledger.
        UnauthorizedError: the password is missing or wrong.
    """
    view = look_at(cluster, log_name, password)
    found = dict(view.record.transactions)
    with OpenBookies(cluster) as bookies:
        for ledger_id, count in _tail_of(view).items():
            ledger = view.metadata[ledger_id]
            # The last record of a ledger repeats the transactions of all earlier records.
            records = find_records(bookies, ledger, password, begin=count - 1, end=count)
            found = remembering(found, records[-1].transactions)
    return found


def _tail_of(view: LogView) -> dict[int, int]:
    return {place.ledger_id: place.entry_count for place in view.tail}


# --- log handle ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One entry of a log of bytes."""

    offset: int
    value: bytes


def retention_of(max_bytes: int | None, max_seconds: float | None) -> Retention:
    """Make the retention settings of a log; None keeps for ever.

    Raises:
        InvalidRequestError: a value is negative, or no number.
    """
    byte_count = arguments.limit_or_none("max_bytes", max_bytes, least=0)
    return Retention(byte_count, arguments.milliseconds_or_none("max_seconds", max_seconds))


class LogHandle(BoundToProcess):
    """One log; made by ``BookKeeper.create_log`` and ``open_log``.

    A log handle needs no closing. Each call reads the metadata anew, so two calls may see two
    versions of the log.
    """

    def __init__(self, cluster: Cluster, name: str, password: Password) -> None:
        self.name = name
        self._cluster = cluster
        self._password = password
        self._watch = LogWatch(cluster, name, password)

    def __repr__(self) -> str:
        return f"LogHandle({self.name!r})"

    def __enter__(self) -> "LogHandle":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    # --- looking -------------------------------------------------------------------------------

    @property
    def record(self) -> LogRecord:
        """The newest version of the log's record."""
        return self._cluster.log(self.name).value

    @property
    def schema(self) -> pa.Schema:
        """The schema of the log's rows; ``value: binary`` for a log of bytes."""
        return arrow_schema.decode(self.record.schema)

    @property
    def ledgers(self) -> list[LoggedLedger]:
        """Return the log's ledgers in order; of an open ledger, only the readable part."""
        view = self._watch.look()
        shown = {ledger.ledger_id for ledger in view.tail}
        hidden = (ledger_id for ledger_id in view.record.tail if ledger_id not in shown)
        empty = (LoggedLedger(ledger_id, view.end_offset, 0, 0) for ledger_id in hidden)
        return [*view.every_ledger(), *empty]

    @property
    def fragments(self) -> list[LogFragment]:
        """The ranges of the log, each with its bookies, oldest first. Reads each ledger's record.

        Raises:
            NoSuchLedgerError: a ledger was truncated meanwhile.
        """
        return fragments_of(self._cluster, self.ledgers, self.first_offset)

    @property
    def transactions(self) -> dict[str, int]:
        """The last version of each application (``txnAppId``) that the log remembers by name.

        The application that committed last comes last. A streaming query has the name
        ``stream/ID``.
        """
        found = transactions_of(self._cluster, self.name, self._password)
        return {name: version for name, version in found.items() if is_name(name)}

    @property
    def first_offset(self) -> int:
        """The first offset that is not truncated."""
        return self.record.first_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last entry that may be read now."""
        return self._watch.look().end_offset

    def count(self) -> int:
        """Return how many entries can be read now, from metadata and the end of the open ledger.

        Truncated and lost entries do not count.

        Raises:
            BookieUnavailableError: too few bookies know the end of the open ledger.
        """
        return self._watch.look().entry_count

    @property
    def is_sealed(self) -> bool:
        """Whether the log takes no more entries, for good."""
        return self.record.is_sealed

    @property
    def tier(self) -> Tier | None:
        """The table that has the log's first rows, and how far it has them; None without one.

        Below ``tier.copied`` the rows were verified in the table ``tier.table_url``.
        """
        return self.record.tier

    def offset_at(self, time: datetime | int) -> int:
        """Return the first offset that was committed at ``time`` or later.

        If all entries are older, the result is the log's end. The time of an entry is that of its
        writer's clock, but never before the times of earlier entries. The list of ledgers has the
        answer for logs that DataFrame writes fill. In a ledger of a writer or a stream, records
        are read too.

        Args:
            time: a ``datetime`` with a time zone, or milliseconds since 1970.

        Raises:
            InvalidRequestError: ``time`` has no time zone, is before 1970, or is no time.
            BookieUnavailableError: too few bookies answer to know the log's end.
            CorruptDataError: no bookie gives a record that the search needs.
        """
        ms = arguments.milliseconds_since_1970("time", time)
        return offset_since(self._cluster, self.record, self._watch, self._password, ms)

    # --- reading -------------------------------------------------------------------------------

    def read(self, start: int | None = None, end: int | None = None) -> Iterator[LogEntry]:
        """The entries ``[start, end)`` of a log of bytes; by default all.

        Raises:
            NoSuchEntryError: ``start`` is truncated, or after the end.
            InvalidRequestError: the log holds rows, not bytes; or an offset is below 0.
            CorruptDataError: no bookie gives a good copy of an entry.
        """
        return self._entries(self._ordered(start, end))

    def read_arrow(self, start: int | None = None, end: int | None = None) -> pa.Table:
        """The entries ``[start, end)`` as a table, with ``_offset`` (int64) as its last column."""
        found = self._ordered(start, end)
        wanted = pa.schema([(OFFSET_COLUMN, pa.int64()), *found.schema])
        table = pa.concat_tables([wanted.empty_table(), *found])
        return table.select([*found.schema.names, OFFSET_COLUMN])

    def follow(self, start: int | None = None, timeout: float | None = None) -> Iterator[LogEntry]:
        """Yield the entries from ``start`` on and all later entries, across rolls and takeovers.

        The iterator ends when the log is sealed and all entries were given, or after ``timeout``
        seconds without an entry. None waits for ever.

        Raises:
            NoSuchEntryError: the next entry was truncated, or the log was overwritten, meanwhile.
        """
        view = self._watch.look()
        generation = view.record.generation
        begin = _offset("start", start)
        offset = view.first_offset if begin is None else begin
        deadline, place = _deadline(timeout), InlinePlace()
        with Waiting(self._cluster) as waiting:
            while True:
                if view.record.generation != generation:
                    raise NoSuchEntryError(
                        f"log {self.name} was overwritten while it was read at offset {offset}",
                        hint="read again, from the start of the new contents",
                    )
                if offset < view.end_offset or offset < view.first_offset:
                    rest = (self._cluster, view, offset, None, self._password)
                    rows = read_view_in_order(*rest, place)
                    yield from self._entries(rows)
                    offset, deadline = view.end_offset, _deadline(timeout)
                    waiting.begin_anew()
                elif view.record.is_sealed or environment.monotonic() >= deadline:
                    return
                waiting.sleep(view, deadline)
                view = self._watch.look_again()

    def wait_for(self, offset: int, timeout: float | None) -> bool:
        """Wait until ``offset`` may be read.

        Returns:
            False after ``timeout`` seconds (None waits for ever), or if the log is sealed.
        """
        offset = arguments.whole_number("an offset", offset, least=0)
        deadline = _deadline(timeout)
        view = self._watch.look()
        with Waiting(self._cluster) as waiting:
            while view.end_offset <= offset:
                if view.record.is_sealed or environment.monotonic() >= deadline:
                    return False
                waiting.sleep(view, deadline)
                view = self._watch.look_again()
        return True

    def cursor(self, name: str, start: int | None = None) -> Cursor:
        """Return the cursor ``name``, made at ``start`` (None: the log's first offset) if missing.

        Raises:
            NoSuchEntryError: ``start`` is not in the log.
            InvalidRequestError: the name is not valid.
        """
        begin = _offset("start", start)
        return cursors.open_cursor(self._cluster, self.record, name, begin, lambda: self.end_offset)

    @property
    def cursors(self) -> list[CursorRecord]:
        """All cursors of the log, in the order of their names."""
        return cursors.cursors_of(self._cluster, self.name)

    # --- writing -------------------------------------------------------------------------------

    def writer(
        self,
        *,
        roll_bytes: int | None = None,
        roll_entries: int | None = None,
        roll_seconds: float | None = None,
        settings: WriterSettings = USUAL,
        election: Election | None = None,
    ) -> LogWriter:
        """Fence the log's writer, recover its ledger, and become the log's one writer.

        Args:
            roll_bytes, roll_entries, roll_seconds: begin a new ledger after this much. A ledger
                gets at most twice these bytes or entries, and one more group. An unbounded log
                stays in its ledger, and begins a new fragment there.
            settings: time limits and deferred sync.
            election: refuse to fence, and to change a record, unless this process leads it.

        Raises:
            LedgerClosedError: the log is sealed.
            NotLeaderError: another process leads the election. The log is still that process's.
            NotEnoughBookiesError: the last ledger cannot be recovered yet. The message says why.
            UnauthorizedError: the password is missing or wrong. No writer was fenced.
            InvalidRequestError: the log was opened with a password that it does not need, or a
                limit is no number above 0.
        """
        policy = RollPolicy(roll_bytes, roll_entries, roll_seconds)
        if election is not None:
            what, hint = "election must be an Election", "bk.election(name) makes one"
            arguments.instance(what, election, Election, hint=hint)
        require_of_use(self.record, self._password)
        return LogWriter(
            *(self._cluster, self.name, self._password, policy),
            settings=settings,
            election=election,
        )

    def resolve_outcome(self, undecided: Undecided) -> range:
        """Find out which of a fenced writer's entries are in the log.

        Entries that were in the log and deleted since also count. The call recovers the writer's
        ledger (RB-35). The ledger of an unbounded log is OPEN afterwards.

        Args:
            undecided: the value of ``writer.undecided``.

        Returns:
            The offsets of the entries in the log. The other entries will never be in the log.

        Raises:
            NoSuchLedgerError, NoSuchEntryError: the entries were deleted; the outcome is unknown
                for good.
            NotEnoughBookiesError: the outcome is not known yet. The message names the bookies that
                could decide it.
        """
        return resolve(self._cluster, undecided, self._password)

    def truncate(self, before_offset: int) -> None:
        """Hide all entries below ``before_offset``, at once and for good.

        Ledgers that have no other entry are deleted.

        Raises:
            InvalidRequestError: ``before_offset`` is below 0, or after the log's closed ledgers. In
                an unbounded log: it is after the start of the fragment in use (roll the writer
                first).
            MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
        """
        offset = arguments.whole_number("before_offset", before_offset, least=0)
        truncation.truncate(self._cluster, self.name, offset)

    def keep(self, *, max_bytes: int | None = None, max_seconds: float | None = None) -> None:
        """Set how much the log keeps. None, and values that are too large, keep for ever.

        Each DataFrame append, and each writer that rolls, then deletes older ledgers, except
        entries that a cursor has yet to read. ``retain`` deletes immediately. An unbounded log
        loses fragments instead.

        Args:
            max_bytes: delete the oldest ledger while the others have at least this many bytes.
            max_seconds: delete a ledger this long after it was closed, or a fragment this long
                after the next one was begun. The clocks of two hosts are compared: the closing and
                the deleting host. Entries go earlier or later by the difference of the clocks.

        Raises:
            InvalidRequestError: a value is negative, or no number.
        """
        retention = retention_of(max_bytes, max_seconds)

        def kept(record: LogRecord | None) -> LogRecord:
            log = self._existing(record)
            after = replace(log, retention=retention)
            return log if after == log else after.stamped(environment.now_ms())

        self._cluster.logs.update(self.name, kept)

    def retain(self, *, respects_cursors: bool = True) -> None:
        """Delete now the entries that ``keep`` no longer keeps.

        Args:
            respects_cursors: keep what a cursor has yet to read.
        """
        respects = arguments.yes_or_no("respects_cursors", given=respects_cursors)
        truncation.retain(self._cluster, self.name, respects_cursors=respects)

    def convert(self, *, unbounded: bool) -> bool:
        """Make the log unbounded (one ledger for all writers) or chained (a ledger for each).

        The log's writer is fenced. Readers are not disturbed, streams continue by themselves, and
        entries keep their offsets.

        Returns:
            Whether the log was changed.

        Raises:
            LedgerClosedError: the log is sealed.
            MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
            UnauthorizedError: the password is missing or wrong. No writer was fenced.
        """
        wanted = arguments.yes_or_no("unbounded", given=unbounded)
        before = self.record
        if before.is_unbounded == wanted and not before.is_sealed:
            return False
        make_digester(before.digest, self._password)

        def converted(record: LogRecord | None) -> LogRecord:
            log = self._existing(record).still_of(before.generation)
            return log.converted(is_unbounded=wanted)

        update_with_closed_tail(self._cluster, self.name, self._password, converted)
        return True

    def seal(self) -> None:
        """End the log for good: fence its writer and close its last ledger.

        Raises:
            MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
        """
        generation = self.record.generation

        def sealed(record: LogRecord | None) -> LogRecord:
            return self._existing(record).still_of(generation).sealed()

        update_with_closed_tail(self._cluster, self.name, self._password, sealed)

    def _entries(self, found: OrderedRead) -> Iterator[LogEntry]:
        if not found.schema.equals(VALUE_SCHEMA):
            raise InvalidRequestError(
                f"log {self.name} holds rows, not bytes", hint="read it by read_arrow"
            )
        return _each(found)

    def _ordered(self, start: int | None, end: int | None) -> OrderedRead:
        begin, behind = _offset("start", start), _offset("end", end)
        view = self._watch.look(enough=behind)
        return read_view_in_order(self._cluster, view, begin, behind, self._password)

    def _existing(self, record: LogRecord | None) -> LogRecord:
        if record is None or record.is_tombstone:
            raise NoSuchLedgerError(f"there is no log {self.name!r}")
        return record


def _each(found: OrderedRead) -> Iterator[LogEntry]:
    for table in found:
        offsets, values = table.columns
        for offset, value in zip(offsets.to_pylist(), values.to_pylist(), strict=True):
            yield LogEntry(offset, value)


def _offset(what: str, given: object) -> int | None:
    return arguments.whole_number_or_none(what, given, least=0)


def _deadline(timeout: float | None) -> float:
    seconds = arguments.seconds_or_none("timeout", timeout)
    return float("inf") if seconds is None else environment.monotonic() + seconds
