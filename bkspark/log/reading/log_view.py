"""What a reader sees of a log at one moment: closed ledgers, and the tail up to what is confirmed.

Rule 1. Everything comes from one version of the log's record, so no ledger can be skipped between
two looks at it (RB-39); offsets are without gaps.

Rule 2. A reader goes past a ledger only when it is CLOSED: while a writer rolls, the second ledger
of the tail counts only behind a first one whose end is fixed.

Rule 3. An open ledger is read up to what is confirmed, which is told by enough of its bookies or
not at all (``ledger/handles/how_far``): no later reader is shown less.

Nobody is fenced or disturbed by looking. The cost does not grow with the ledgers.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.hang_memory import Answer
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, NoSuchLedgerError
from bkspark.ledger.journals.journal_end import JournalEnds
from bkspark.log.reading.ledger_files import OpenBookies, readable
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.data_loss import LogGeneration
from bkspark.protocol.log.ledger_list import LoggedLedger, bytes_in, ledgers_in
from bkspark.protocol.log.record import LogRecord

_LOOKS_MAX = 20

END_SECONDS = 2.0
"""For a number that is nice to have."""

THREADS_MAX = 8
"""So many logs are looked at at once."""


@dataclass(frozen=True, slots=True)
class LogView:
    """A log as it can be read now.

    Attributes:
        tail: behind the closed ledgers of ``record``, in offset order, without gaps, the readable
            part of each; none is empty.
        metadata: of the ledgers of the tail, which were looked at.
        has_open_end: whether the last ledger is still open, so that more may be confirmed than was
            seen here.
    """

    record: LogRecord
    tail: tuple[LoggedLedger, ...] = ()
    metadata: Mapping[int, LedgerMetadata] = field(default_factory=dict)
    has_open_end: bool = False

    @property
    def generation(self) -> LogGeneration:
        """Of the contents that are seen here."""
        return LogGeneration(self.record.name, self.record.generation)

    @property
    def first_offset(self) -> int:
        """The first offset that is not truncated."""
        return self.record.first_offset

    @property
    def end_offset(self) -> int:
        """The offset behind the last entry that may be read."""
        return self.tail[-1].end_offset if self.tail else self.record.end_offset

    @property
    def length_bytes(self) -> int:
        """Payload of all that may be read, and of what is truncated of the first ledger."""
        return self.record.length_bytes + sum(place.length_bytes for place in self.tail)

    def every_ledger(self) -> Iterator[LoggedLedger]:
        """All ledgers in offset order; costs as much as there are."""
        yield from self.record.every_ledger()
        yield from self.tail

    def ledgers_in(self, begin: int, end: int) -> Iterator[LoggedLedger]:
        """The ledgers that have some of the offsets ``[begin, end)``, in order."""
        yield from self.record.ledgers_in(begin, end)
        yield from ledgers_in(self.tail, begin, end, self.record.source)

    def bytes_in(self, begin: int, end: int) -> int:
        """Payload of the offsets ``[begin, end)``, by the average of each ledger."""
        of_tail = bytes_in(self.tail, begin, end, self.record.source)
        return self.record.bytes_in(begin, end) + of_tail

    def offset_after(self, begin: int, length_bytes: int) -> int:
        """The end of about ``length_bytes`` from ``begin`` on; at least one entry, if there is."""
        offset, room = begin, length_bytes
        for ledger in self.ledgers_in(begin, self.end_offset):
            rest = self.bytes_in(offset, ledger.end_offset)
            if rest > room:
                offset += (ledger.end_offset - offset) * room // rest
                break
            offset, room = ledger.end_offset, room - rest
        return min(max(offset, begin + 1), self.end_offset)

    def confirmed_to(self, end_offset: int) -> "LogView":
        """The same view with the open end at ``end_offset``, if it was seen before it.

        For who knows that everything below was confirmed once: the bookie that said so may be away.
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
) -> LogView:
    """What can be read of this version of a log.

    Args:
        known: remembers, from one call to the next, how far each journal was read.
        enough: an offset; who knows that what lies below it may be read needs to know of no more.

    Raises:
        BookieUnavailableError: too few bookies tell how far the open ledger may be read.
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
                found = readable(  # rule 3
                    bookies, cluster, ledger_id, password, known, enough=entry
                )
                metadata[ledger_id] = found.ledger
                count = found.last_entry_id + 1
                if count:
                    place = LoggedLedger(ledger_id, offset, count, found.length_bytes)
                    readable_tail.append(place)
                offset, is_open = offset + count, found.ledger.state is not LedgerState.CLOSED
                if is_open:
                    break  # rule 2
    return LogView(record, tuple(readable_tail), metadata, is_open)


class LogWatch:
    """Looks at one log again and again; each look costs only what is new."""

    def __init__(self, cluster: Cluster, name: str, password: Password) -> None:
        self._cluster = cluster
        self._name = name
        self._password = password
        self._ends = JournalEnds()
        self._seen: Versioned[LogRecord] | None = None

    def look(self, enough: int | None = None) -> LogView:
        """The log as it can be read now.

        Args:
            enough: an offset; who knows that what lies below it may be read needs to know of no
                more, and the view may end there.

        Raises:
            NoSuchLedgerError: there is no such log.
            BookieUnavailableError: too few bookies tell how far the open ledger may be read.
            UnauthorizedError: the password is missing or wrong.
        """
        for _ in range(_LOOKS_MAX - 1):
            record = self._record()
            try:
                return self._view(record, enough)
            except NoSuchLedgerError:  # truncated, overwritten or deleted between the two look-ups
                continue
        return self._view(self._record(), enough)

    def _view(self, record: LogRecord, enough: int | None) -> LogView:
        return view_of(self._cluster, record, self._password, self._ends, enough=enough)

    def _record(self) -> LogRecord:
        seen = self._seen
        if seen is None or not self._cluster.logs.is_current(self._name, seen):
            seen = self._seen = self._cluster.log(self._name)
        return seen.value


def look_at(cluster: Cluster, name: str, password: Password, enough: int | None = None) -> LogView:
    """The log as it can be read now; see ``LogWatch.look``."""
    return LogWatch(cluster, name, password).look(enough)


def views_of(cluster: Cluster, logs: Sequence[LogRecord], password: Password) -> dict[str, LogView]:
    """Each log as it can be read now, by name; nobody is disturbed.

    Without those of which that cannot be told at once: too few bookies answer, or it takes another
    password.
    """
    found: dict[str, LogView] = {}

    def look(share: Sequence[LogRecord]) -> None:
        for log in share:
            with suppress(BookKeeperError):
                found[log.name] = view_of(cluster, log, password)

    shares = [logs[n::THREADS_MAX] for n in range(min(THREADS_MAX, len(logs)))]
    answers = [Answer(partial(look, share), "look-at-logs") for share in shares]
    until = environment.monotonic() + END_SECONDS
    for answer in answers:
        if answer.is_there_within(max(0.0, until - environment.monotonic())):
            answer.result()
    return dict(found)
