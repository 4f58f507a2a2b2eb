"""Named cursors: durable positions in a log. A cursor moves by compare-and-set."""

from collections.abc import Callable

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Records, Versioned
from bkspark.errors import (
    LedgerExistsError,
    MetadataVersionError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.format import layout, upkeep_records
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.log.record import LogRecord

EndOfLog = Callable[[], int]


class Cursor:
    """A named, durable position in a log; made by ``LogHandle.cursor``. It only moves forward.

    Read entries first, store your results, and then advance the cursor. After a crash in between
    you read the same entries again, and skip none.
    """

    def __init__(
        self, cluster: Cluster, log_name: str, seen: Versioned[CursorRecord], end: EndOfLog
    ) -> None:
        self._cluster = cluster
        self._records = _records(cluster, log_name)
        self._seen = seen
        self._end = end

    def __repr__(self) -> str:
        seen = self._seen.value
        return f"Cursor({seen.name!r} of log {seen.log_name!r}, offset {seen.offset})"

    @property
    def name(self) -> str:
        return self._seen.value.name

    @property
    def record(self) -> CursorRecord:
        """The cursor as this object has seen it last. The log may have changed since."""
        return self._seen.value

    @property
    def offset(self) -> int:
        """The next offset to read, as this object has seen it last.

        Raises:
            NoSuchEntryError: the log was overwritten, or deleted and made again.
        """
        record = self._seen.value
        log = self._cluster.log(record.log_name).value
        if log.generation != record.generation:
            raise NoSuchEntryError(
                f"cursor {self.name} is at offset {record.offset} of generation "
                f"{record.generation} of log {log.name}, which is now at {log.generation}",
                hint=f"delete the cursor, then make it again: `bkspark log cursors {log.name} "
                f"--delete {self.name}`",
            )
        return record.offset

    def advance(self, offset: int) -> None:
        """Move the cursor to ``offset``, durably. Everything below counts as read.

        Raises:
            InvalidRequestError: ``offset`` is lower than before, or after the log's end.
            MetadataVersionError: another client has moved the cursor since it was opened here.
            NoSuchLedgerError: another client has deleted the cursor.
            NoSuchEntryError: the log was overwritten, or deleted and made again.
        """
        offset = arguments.whole_number("a cursor's offset", offset)
        if offset == self.offset:
            return
        moved = self._seen.value.advanced(offset, self._end())
        try:
            self._seen = self._records.replace(self.name, moved, self._seen)
        except MetadataVersionError as error:
            self._require_existing()
            raise MetadataVersionError(
                f"another client moved cursor {self.name}",
                hint="open it again to continue from its new offset",
            ) from error

    def _require_existing(self) -> None:
        now = self._records.get(self.name)
        if now is None or now.value.is_deleted:
            raise NoSuchLedgerError(
                f"cursor {self.name} of log {self._seen.value.log_name} was deleted",
                hint="retention does not wait for its reader any more; make a new cursor to "
                "continue",
            )

    def delete(self) -> None:
        """Delete the cursor. Retention no longer waits for it."""
        delete(self._cluster, self._seen.value.log_name, self.name)


def open_cursor(
    cluster: Cluster, log: LogRecord, name: str, start: int | None, end: EndOfLog
) -> Cursor:
    """Return the cursor ``name``, made at ``start`` (None: the log's first offset) if missing.

    The log's record changes after the cursor is made. So a concurrent truncation that missed the
    new cursor either fails, or came before the change and is seen here. If the maker dies in
    between, the cursor may be left below the log's first offset (``protocol.log.cursor``, rule 3).

    Raises:
        NoSuchEntryError: ``start`` is not in the log.
        NoSuchLedgerError: the log was deleted meanwhile.
        MetadataVersionError: the log was overwritten, or deleted and made anew, meanwhile.
        InvalidRequestError: the name is not allowed.
    """
    layout.cursor_name(name)
    records = _records(cluster, log.name)
    while True:
        seen = records.get(name)
        if seen is not None and not seen.value.is_deleted:
            return Cursor(cluster, log.name, seen, end)
        offset = log.first_offset if start is None else start
        if not log.first_offset <= offset <= end():
            raise NoSuchEntryError(f"cursor {name} cannot begin at offset {offset}: not in the log")
        fresh = CursorRecord(log.name, name, log.generation, offset)
        try:
            made = records.replace(name, fresh, seen) if seen else records.create(name, fresh)
            touched = _touch_log(cluster, log.name)
            if touched.generation == log.generation and offset >= touched.first_offset:
                return Cursor(cluster, log.name, made, end)
            records.replace(name, fresh.deleted(), made)
        except (MetadataVersionError, LedgerExistsError):
            continue  # another client was faster: use its cursor
        log = touched.still_of(log.generation)


def existing_cursor(cluster: Cluster, log_name: str, name: str, end: EndOfLog) -> Cursor:
    """Return the cursor ``name``.

    Raises:
        NoSuchLedgerError: the log has no such cursor.
    """
    layout.cursor_name(name)
    seen = _records(cluster, log_name).get(name)
    if seen is None or seen.value.is_deleted:
        raise _no_cursor(log_name, name)
    return Cursor(cluster, log_name, seen, end)


def _no_cursor(log_name: str, name: str) -> NoSuchLedgerError:
    return NoSuchLedgerError(
        f"log {log_name!r} has no cursor {name!r}",
        hint=f"`bkspark log cursors {log_name}` lists them",
    )


def _touch_log(cluster: Cluster, log_name: str) -> LogRecord:
    """Store the log's record again with a new version and the same contents."""

    def touched(record: LogRecord | None) -> LogRecord:
        if record is None or record.is_tombstone:
            raise NoSuchLedgerError(f"there is no log {log_name!r}")
        return record.stamped(max(environment.now_ms(), record.times.changed_ms + 1))

    return cluster.logs.update(log_name, touched).value


def delete(cluster: Cluster, log_name: str, name: str) -> None:
    """Delete a cursor.

    Raises:
        NoSuchLedgerError: the log has no such cursor.
    """

    def deleted(record: CursorRecord | None) -> CursorRecord:
        if record is None or record.is_deleted:
            raise _no_cursor(log_name, name)
        return record.deleted()

    layout.cursor_name(name)
    _records(cluster, log_name).update(name, deleted)


def cursors_of(cluster: Cluster, log_name: str) -> list[CursorRecord]:
    """Return all cursors of a log, ordered by name."""
    answers = cluster.store.get_all(layout.cursors_prefix(log_name))
    found = _records(cluster, log_name).of_all(answers).values()
    return [cursor for cursor in found if not cursor.is_deleted]


def positions_of(cluster: Cluster, log: LogRecord) -> list[int]:
    """Return the offsets of the cursors of this log's generation."""
    found = cursors_of(cluster, log.name)
    return [cursor.offset for cursor in found if cursor.generation == log.generation]


def _records(cluster: Cluster, log_name: str) -> Records[CursorRecord]:
    return Records(
        cluster.store,
        cluster.cluster_id,
        lambda name: layout.cursor_key(log_name, name),
        upkeep_records.encode_cursor,
        lambda name, data: upkeep_records.decode_cursor(log_name, name, data),
    )
