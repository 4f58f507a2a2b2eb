"""A reader's view of a log at one moment: closed ledgers, and the confirmed part of the tail.

Rule 1. A view comes from one version of the log's record, so a reader cannot skip a ledger between
two views (RB-39), and offsets have no gaps.

Rule 2. A reader continues after a ledger only when the ledger is CLOSED: while a writer rolls, the
second ledger of the tail counts only if the end of the first is fixed.

Rule 3. An open ledger is read up to its confirmed end, which needs answers of enough bookies
(``ledger/handles/how_far``): no later reader sees less.

A view fences and disturbs no writer. Its cost does not grow with the number of ledgers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.hanging import PendingAnswer
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, NoSuchEntryError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.handles.how_far import LastSeen
from bkspark.ledger.journals.journal_pages import JournalEnds
from bkspark.log.reading.ledger_files import OpenBookies, is_quiet, readable
from bkspark.metadata import freshness
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.data_loss import LogGeneration, data_loss, lost
from bkspark.protocol.log.ledger_list import LoggedLedger, bytes_in, ledgers_in
from bkspark.protocol.log.record import LogRecord, missing_end

# --- log view ------------------------------------------------------------------------------------


_LOOKS_MAX = 20

END_SECONDS = 2.0
"""Time limit for ends of logs that are optional in the output."""

THREADS_MAX = 8
"""Number of logs looked up at once."""


@dataclass(frozen=True, slots=True)
class LogView:
    """A log as it can be read now.

    Attributes:
        tail: readable parts of the ledgers after the closed ledgers of ``record``, in offset order,
            without gaps or empty parts; the times of a part are 0 if they were not read.
        metadata: metadata of the ledgers of the tail that were looked up.
        has_open_end: whether the last ledger is still open; more entries may be confirmed than the
            view shows.
    """

    record: LogRecord
    tail: tuple[LoggedLedger, ...] = ()
    metadata: Mapping[int, LedgerMetadata] = field(default_factory=dict)
    has_open_end: bool = False

    @property
    def generation(self) -> LogGeneration:
        """Generation of the contents in the view."""
        return LogGeneration(self.record.name, self.record.generation)

    @property
    def first_offset(self) -> int:
        """The first offset that is not truncated."""
        return self.record.first_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last readable entry."""
        return self.tail[-1].end_offset if self.tail else self.record.end_offset

    @property
    def entry_count(self) -> int:
        """The number of entries from the first offset to the end, without lost entries."""
        lost = self.record.lost_count(self.first_offset, self.end_offset)
        return self.end_offset - self.first_offset - lost

    @property
    def length_bytes(self) -> int:
        """Payload bytes of the readable entries and of the truncated part of the first ledger."""
        of_table = self._bytes_of_table(self.first_offset, self.end_offset)
        of_tail = sum(place.length_bytes for place in self.tail)
        return of_table + self.record.length_bytes + of_tail

    def every_ledger(self) -> Iterator[LoggedLedger]:
        """Yield all ledgers in offset order; the cost grows with their number."""
        yield from self.record.every_ledger()
        yield from self.tail

    def ledgers_in(self, begin: int, end: int) -> Iterator[LoggedLedger]:
        """Yield the ledgers that have some of the offsets ``[begin, end)``, in order."""
        yield from self.record.ledgers_in(begin, end)
        yield from ledgers_in(self.tail, begin, end, self.record.source)

    def bytes_in(self, begin: int, end: int) -> int:
        """Return the payload of the offsets ``[begin, end)``, by the average of each ledger.

        The tier's table counts as one ledger, with the payload that its rows had in their ledgers.
        """
        of_tail = bytes_in(self.tail, begin, end, self.record.source)
        return self._bytes_of_table(begin, end) + self.record.bytes_in(begin, end) + of_tail

    def _bytes_of_table(self, begin: int, end: int) -> int:
        tier = self.record.tier
        return 0 if tier is None else tier.bytes_in(begin, end)

    def offset_after(self, begin: int, length_bytes: int) -> int:
        """Return the end of about ``length_bytes`` from ``begin`` on; at least one entry."""
        offset, room = begin, length_bytes
        for end in self._ends_after(begin):
            rest = self.bytes_in(offset, end)
            if rest > room:
                offset += (end - offset) * room // rest
                break
            offset, room = end, room - rest
        return min(max(offset, begin + 1), self.end_offset)

    def _ends_after(self, begin: int) -> Iterator[int]:
        """Yield where the table ends, and then each ledger, after ``begin``."""
        if begin < self.record.freed:
            yield self.record.freed
        for ledger in self.ledgers_in(begin, self.end_offset):
            yield ledger.end_offset

    def confirmed_to(self, end_offset: int) -> "LogView":
        """Return the view with its open end at ``end_offset``, if the view ends earlier.

        For callers that know that all entries below ``end_offset`` were confirmed: the bookie that
        confirmed them may be unavailable now.
        """
        if end_offset <= self.end_offset or not self.has_open_end:
            return self
        ledger_id = list(self.metadata)[-1]
        closed = [ledger for ledger in self.tail if ledger.ledger_id != ledger_id]
        first = closed[-1].end_offset if closed else self.record.end_offset
        length = self.bytes_in(first, self.end_offset)
        last = LoggedLedger(ledger_id, first, end_offset - first, length)
        return replace(self, tail=(*closed, last))


def view_of(
    cluster: Cluster,
    record: LogRecord,
    password: Password,
    known: JournalEnds | None = None,
    *,
    enough: int | None = None,
    last_seen: LastSeen | None = None,
) -> LogView:
    """Return the view of this version of a log.

    Args:
        known: caches, between calls, how far each journal was read.
        enough: an offset; the search may stop once all entries below it are known to be readable.
        last_seen: see ``how_far.look``.

    Raises:
        BookieUnavailableError: too few bookies answer to know the readable end of the open ledger.
        NoSuchLedgerError: a ledger of the tail was deleted since; read the record again.
        UnauthorizedError: the password is missing or wrong.
    """
    readable_tail: list[LoggedLedger] = []
    metadata: dict[int, LedgerMetadata] = {}
    offset, is_open = record.end_offset, False
    if record.tail:
        with OpenBookies(cluster) as bookies:
            for ledger_id in record.tail:
                entry = None if enough is None else enough - 1 - offset
                rest = (ledger_id, password, known)
                # Rule 3.
                found = readable(bookies, cluster, *rest, enough=entry, last_seen=last_seen)
                metadata[ledger_id] = found.ledger
                count = found.last_entry_id + 1
                if count:
                    times = (found.times.first_ms, found.times.last_ms)
                    place = (ledger_id, offset, count, found.length_bytes, 0, 0, *times)
                    readable_tail.append(LoggedLedger(*place))
                offset, is_open = offset + count, found.ledger.state is not LedgerState.CLOSED
                if is_open:
                    break  # rule 2
    return LogView(record, tuple(readable_tail), metadata, is_open)


QUIET_LOOKS_MAX = 11
"""Looks of a reader that waits, in a row, that only ask whether there is news."""


class LogWatch:
    """Looks at one log repeatedly; each look costs only as much as is new."""

    def __init__(self, cluster: Cluster, name: str, password: Password) -> None:
        self._cluster = cluster
        self._name = name
        self._password = password
        self._ends = JournalEnds()
        self._last_seen = LastSeen()
        self._seen: Versioned[LogRecord] | None = None
        self._shown: LogView | None = None
        self._quiet_looks_left = 0

    def look_again(self, enough: int | None = None, *, is_synced: bool = False) -> LogView:
        """Return the log as this client knows it, for a reader that waits; mostly without a
        request to the metadata store.

        The view may miss what was just committed. It never ends before the view that was returned
        last, unless entries were removed. Where each look costs requests, it is the last view while
        few requests tell of no news, for ``QUIET_LOOKS_MAX`` looks at most.

        Args:
            enough: see ``look``.
            is_synced: ask the metadata store for news first.
        """
        is_waiting = enough is None and not is_synced
        if is_waiting and self._shown is not None and self._is_quiet(self._shown):
            return self._shown
        with freshness.synced() if is_synced else freshness.recent():
            view = self._look(enough)
        if enough is not None:
            return view
        shown = self._shown
        is_behind = (
            shown is not None
            and view.generation == shown.generation
            and view.end_offset < shown.end_offset
        )
        return self.look() if is_behind else self._note(view)

    def _is_quiet(self, shown: LogView) -> bool:
        """Return whether a look may wait: nothing tells of news after ``shown``.

        The answers prove no end, so they only put a look off, and not again and again.
        """
        if not shown.has_open_end or self._quiet_looks_left == 0:
            return False
        self._quiet_looks_left -= 1
        ledger_id, ledger = list(shown.metadata.items())[-1]
        with freshness.recent(), OpenBookies(self._cluster) as bookies:
            return (
                is_quiet(bookies, ledger, self._ends)
                and self._is_unchanged(ledger_id, ledger)
                and self._record() is shown.record
            )

    def _is_unchanged(self, ledger_id: int, ledger: LedgerMetadata) -> bool:
        with suppress(NoSuchLedgerError):
            return self._cluster.ledger(ledger_id).value == ledger
        return False

    def _note(self, view: LogView) -> LogView:
        self._shown, self._quiet_looks_left = view, QUIET_LOOKS_MAX
        return view

    def look(self, enough: int | None = None) -> LogView:
        """Return the log as it can be read now.

        Args:
            enough: an offset; the view may end at it once all entries below it are known to be
                readable.

        Raises:
            NoSuchLedgerError: there is no such log.
            BookieUnavailableError: too few bookies answer to know the readable end of the open
                ledger.
            UnauthorizedError: the password is missing or wrong.
        """
        with freshness.from_begin():
            view = self._look(enough)
        return view if enough is not None else self._note(view)

    def _look(self, enough: int | None) -> LogView:
        self._quiet_looks_left = 0  # journals may be read to behind what is shown
        for _ in range(_LOOKS_MAX - 1):
            record = self._record()
            try:
                return self._view(record, enough)
            except NoSuchLedgerError:  # truncated, overwritten or deleted between the two look-ups
                self._forget()
        record = self._record()
        try:
            return self._view(record, enough)
        except NoSuchLedgerError as error:
            raise missing_end(self._name, error) from error

    def _view(self, record: LogRecord, enough: int | None) -> LogView:
        rest = (self._password, self._ends)
        return view_of(self._cluster, record, *rest, enough=enough, last_seen=self._last_seen)

    def _record(self) -> LogRecord:
        seen = self._seen
        if seen is None or not self._cluster.logs.is_current(self._name, seen):
            with freshness.from_begin():  # whatever was enough to see that there is news
                seen = self._seen = self._cluster.log(self._name)
        return seen.value

    def _forget(self) -> None:
        """Read the record anew at the next try: the records seen may be of different moments."""
        if freshness.may_lag():
            self._seen = None


def look_at(cluster: Cluster, name: str, password: Password, enough: int | None = None) -> LogView:
    """Return the log as it can be read now; see ``LogWatch.look``."""
    return LogWatch(cluster, name, password).look(enough)


def views_of(cluster: Cluster, logs: Sequence[LogRecord], password: Password) -> dict[str, LogView]:
    """Return a view of each log, by name; no writer is disturbed.

    Logs without a quick answer are left out: too few bookies answer in ``END_SECONDS``, or the log
    has another password.
    """
    found: dict[str, LogView] = {}

    def look(share: Sequence[LogRecord]) -> None:
        for log in share:
            with suppress(BookKeeperError):
                found[log.name] = view_of(cluster, log, password)

    shares = [logs[n::THREADS_MAX] for n in range(min(THREADS_MAX, len(logs)))]
    answers = [PendingAnswer(partial(look, share), "look-at-logs") for share in shares]
    until = environment.monotonic() + END_SECONDS
    for answer in answers:
        if answer.is_there_within(max(0.0, until - environment.monotonic())):
            answer.result()
    return dict(found)


# --- data loss -----------------------------------------------------------------------------------
# Explain why a ledger that a reader planned to read is gone.
#
# A reader plans with one version of the log's record, and reads later, maybe in another process.
# The log may drop ledgers in between. Then the record is read again: only the record distinguishes
# a dropped ledger from lost metadata. Lost metadata remains the original error, unless an operator
# set the ledger's record aside.


def explain_data_loss(
    cluster: Cluster, wanted: LogGeneration | None, begin: int, end: int, ledger_id: int
) -> NoSuchEntryError | None:
    """Return the error for a reader of the offsets ``[begin, end)`` of the missing ``ledger_id``.

    None if the log has not dropped the offsets and no operator set aside the ledger's record, or if
    no log is read (``wanted`` is None).
    """
    if wanted is None:
        return None
    seen = cluster.logs.get(wanted.log_name)
    if seen is None:
        return None
    gone = data_loss(wanted, seen.value, begin, end, ledger_id)
    if gone is not None or not was_set_aside(cluster, ledger_id):
        return gone
    places = [one for one in seen.value.ledgers_in(begin, end) if one.ledger_id == ledger_id]
    return lost(wanted.log_name, begin, end, places[0]) if places else None


def was_set_aside(cluster: Cluster, ledger_id: int) -> bool:
    """Whether an operator set aside the record of the ledger, which is absent now."""
    key = layout.ledger_key(ledger_id)
    return bool(cluster.store.list(f"{layout.ASIDE_PREFIX}/{key}"))
