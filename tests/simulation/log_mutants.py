"""Single rules of logs and of the streaming sink, broken in the real code while a context lasts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any

from bkspark.admin import recovering as recover_many
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.environment import now_ms
from bkspark.errors import BookieUnavailableError, MetadataVersionError, OutcomeUnknownError
from bkspark.ledger.deleting import make_tombstone
from bkspark.ledger.handles.how_far import Readable, _Look
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.log import log_handle, recovering, tail, truncation
from bkspark.log.log_writer import LogWriter
from bkspark.log.reading import log_view
from bkspark.log.reading.ledger_files import OpenBookies, readable
from bkspark.log.recovering import Undecided, with_closed_tail
from bkspark.log.rolling import Segment
from bkspark.log.streams.commit import TailWriter
from bkspark.log.streams.micro_batch import MicroBatch
from bkspark.log.tail import LogTail, OpenTail
from bkspark.metadata import freshness
from bkspark.protocol.ledger.metadata import FIRST, LedgerMetadata, LedgerState
from bkspark.protocol.log.ledger_list import LoggedLedger
from bkspark.protocol.log.record import LogRecord
from tests.simulation.environment import SimulatedLock
from tests.unpaged import unpaged

from .mutants import MUTANTS, Change, nothing


def as_if_closed(cluster: Cluster, ledger_id: int, password: Password) -> LedgerMetadata:
    """The ledger as a reader sees it, taken for its end."""
    with OpenBookies(cluster) as bookies:
        found = readable(bookies, cluster, ledger_id, password)
    return replace(
        found.ledger,
        state=LedgerState.CLOSED,
        last_entry_id=found.last_entry_id,
        length_bytes=found.length_bytes,
    )


def tail_not_recovered(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    return log.with_closed(*(as_if_closed(cluster, ledger_id, password) for ledger_id in log.tail))


def last_recovered(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    for ledger_id in log.tail[-1:]:
        recover(cluster, ledger_id, password)
    return tail_not_recovered(cluster, log, password)


def first_recovered(cluster: Cluster, log: LogRecord, password: Password) -> LogRecord:
    for ledger_id in log.tail[:1]:
        recover(cluster, ledger_id, password)
    return tail_not_recovered(cluster, log, password)


def attempt_with_old_list(self: Any) -> Any:
    """A lost compare-and-set is tried again with what was worked out for the list as it was."""
    newest = self._cluster.log(self.log_name)
    if not hasattr(self, "after"):
        log = with_closed_tail(self._cluster, self._checked(newest.value), self._password)
        self.after = log.with_tail(self._provide_ledger(log).value)
    try:
        stamped = self.after.stamped(now_ms())
        joined = self._cluster.logs.replace(self.log_name, stamped, newest)
    except (MetadataVersionError, OutcomeUnknownError):
        return None
    return self._opened(joined)


def opened_before_the_list(self: Any) -> Any:
    """A compare-and-set that is lost counts as one that is won."""
    seen = self._cluster.log(self.log_name)
    settled = with_closed_tail(self._cluster, self._checked(seen.value), self._password)
    ledger = self._provide_ledger(settled)
    after = settled.with_tail(ledger.value)
    try:
        joined = self._cluster.logs.replace(self.log_name, after.stamped(now_ms()), seen)
    except (MetadataVersionError, OutcomeUnknownError):
        joined = replace(seen, value=after)
    return OpenTail(ledger, joined, self._made.begun)


def roll_without_close(self: Any, old: Segment, following: Any, roll_began: object) -> None:
    """It goes on in the next ledger, and nobody has closed the one before."""
    del roll_began
    old.handle.release()
    end = old.first_offset + old.handle.last_add_confirmed + 1
    begun = self._segments.begin(following.seen, following.begun, end)
    with self._lock:
        self._segment = begun


def roll_before_the_list(self: Any, *_: object) -> None:
    """The next ledger is added to before it is on the list."""
    with self._rolling:
        with self._lock:
            self._require_usable()
        old = self._segment
        cluster = self._tail._cluster
        began = freshness.begin()
        following = self._tail._provide_made(cluster.log(self.log_name).value)
        self._tail._made = None
        self._switch(old, following, began)
        cluster.logs.update(self.log_name, listed_behind(old, following.seen))
        self._list_closed(old, began)


def listed_behind(old: Segment, following: Any) -> Callable[[Any], LogRecord]:
    return lambda record: record.with_tail(following.value, own=old.ledger_id)


def deleted_before_hidden(
    cluster: Cluster, log_name: str, offset_of: Callable[[LogRecord], int], *_: object
) -> Any:
    log = cluster.log(log_name).value
    for ledger in log.every_ledger():
        if ledger.end_offset <= offset_of(log):
            make_tombstone(cluster, ledger.ledger_id)
    cluster.logs.update(log_name, lambda record: record.truncated(offset_of(record)))  # type: ignore[union-attr, arg-type]


def truncated_too_far(self: LogRecord, before_offset: int, confirmed: int = 0) -> LogRecord:
    """To the end of the ledger that holds the offset."""
    ends = [one.end_offset for one in self.every_ledger() if one.first_offset < before_offset]
    return REAL_TRUNCATED(self, max([before_offset, *ends[-1:]]), confirmed)


def truncated_from_zero(self: LogRecord, before_offset: int, confirmed: int = 0) -> LogRecord:
    """What is left begins at offset 0 again."""
    after = unpaged(REAL_TRUNCATED(self, before_offset, confirmed))
    begin = 0
    moved: list[LoggedLedger] = []
    for ledger in after.ledgers:
        moved.append(replace(ledger, first_offset=begin))
        begin += ledger.entry_count
    listed = replace(after.listed, ledgers=tuple(moved))
    return replace(after, listed=listed, first_offset=0)


def nothing_found(_cluster: Cluster, undecided: Undecided, _password: Password) -> range:
    return range(undecided.first_offset, undecided.first_offset)


def commit_again(real: Callable[..., bool]) -> Callable[..., bool]:
    def commit(self: Any, batch: MicroBatch) -> bool:
        self._last_version = -1
        return real(self, batch)

    return commit


def begun_from_an_old_list(real: Callable[..., None]) -> Callable[..., None]:
    """What was committed is looked up before the tail is taken over."""

    def begin(self: Any, request: Any, batch: MicroBatch, *, adopts: bool) -> None:
        with Cluster(request.metadata_uri) as cluster:
            seen = cluster.logs.get(request.log_name)
        real(self, request, batch, adopts=adopts)
        before = {} if seen is None else seen.value.transactions
        self._last_version = before.get(batch.transaction.app_id, -1)

    return begin


def joined_without_transactions(
    self: LogRecord, ledger: LedgerMetadata, _done: Mapping[str, int]
) -> LogRecord:
    return REAL_JOINED(self, ledger, {})


def closed_up_to_an_empty_one(self: LogRecord, *ledgers: LedgerMetadata) -> LogRecord:
    return REAL_WITH_CLOSED(self, *takewhile(lambda ledger: ledger.last_entry_id != -1, ledgers))


def view_of_two_versions(real: Callable[..., Any]) -> Callable[..., Any]:
    def view(cluster: Cluster, record: LogRecord, *given: Any, **options: Any) -> Any:
        listed = replace(record.listed, tail=cluster.log(record.name).value.tail)
        return real(cluster, replace(record, listed=listed), *given, **options)

    return view


def readable_by_recovery(
    bookies: Any, cluster: Cluster, ledger_id: int, password: Password, *given: Any, **options: Any
) -> Any:
    recover(cluster, ledger_id, password)
    return readable(bookies, cluster, ledger_id, password, *given, **options)


def nothing_lacks(_cluster: Cluster, _ledgers: object) -> frozenset[int]:
    return frozenset()


def settled_by(settle: Callable[..., LogRecord]) -> tuple[Change, ...]:
    return ((recovering, "with_closed_tail", settle), (tail, "with_closed_tail", settle))


def no_positions(_cluster: Cluster, _log: LogRecord) -> list[int]:
    return []


def whole_copies(real: Callable[..., Any]) -> Callable[..., Any]:
    """A bookie where one entry log of a record is damaged takes no copy of the record."""

    def copy(self: WriteCopies, *given: Any) -> Any:
        for _, reason in real(self, *given):
            raise BookieUnavailableError(reason)
        return []

    return copy


REAL_TRUNCATED = LogRecord.truncated
REAL_JOINED = LogRecord._joined
REAL_WITH_CLOSED = LogRecord.with_closed


def all_that_is_there(self: _Look) -> Readable:
    """What a journal ends with is taken for confirmed."""
    found, record = REAL_READABLE(self), self._last_record
    return found if record is None else replace(found, last_entry_id=record.last_entry_id)


def what_all_confirm(self: _Look) -> Readable:
    """Who knows least of those that happen to answer is believed."""
    ends = [end.last_add_confirmed for end in self.answers.ends.values()]
    return replace(REAL_READABLE(self), last_entry_id=min(ends, default=-1))


def has_heard_any(self: _Look) -> bool:
    return bool(self.answers.ends)


REAL_READABLE = _Look.readable

LOG_MUTANTS: dict[str, tuple[Change, ...]] = {
    "opening recovers nothing": settled_by(tail_not_recovered),
    "opening recovers only the last ledger": settled_by(last_recovered),
    "opening recovers only the first of the tail": settled_by(first_recovered),
    "opening does not begin again": ((LogTail, "_try_open", attempt_with_old_list),),
    "opening goes on with a list that it lost": ((LogTail, "_try_open", opened_before_the_list),),
    "who loses the list leaves its ledger": ((tail, "drop_unlisted", nothing),),
    "a log is changed without compare": MUTANTS["a log is changed without compare"],
    "an empty ledger stays in the tail": ((LogRecord, "with_closed", closed_up_to_an_empty_one),),
    "a roll does not close": ((LogWriter, "_switch", roll_without_close),),
    "a roll writes before it is listed": ((LogWriter, "_roll", roll_before_the_list),),
    "one writer rolls twice at once": ((SimulatedLock, "__enter__", nothing),),
    "truncation deletes before it hides": ((truncation, "_truncate", deleted_before_hidden),),
    "truncation takes a ledger that holds more": ((LogRecord, "truncated", truncated_too_far),),
    "offsets begin at 0 behind a truncation": ((LogRecord, "truncated", truncated_from_zero),),
    "retention ignores cursors": ((truncation, "positions_of", no_positions),),
    "what was dropped may join": ((LogRecord, "_require_joinable", nothing),),
    "undecided entries are taken for lost": ((log_handle, "resolve", nothing_found),),
    "the batch id is not looked at": ((TailWriter, "commit", commit_again(TailWriter.commit)),),
    "batches are looked up before the takeover": (
        (TailWriter, "__init__", begun_from_an_old_list(TailWriter.__init__)),
    ),
    "recovered transactions are forgotten": ((LogRecord, "_joined", joined_without_transactions),),
    "readers put two versions together": (
        (log_view, "view_of", view_of_two_versions(log_view.view_of)),
    ),
    "copies are judged bookie by bookie": (
        (WriteCopies, "_copy_entry_logs", whole_copies(WriteCopies._copy_entry_logs)),
    ),
    "readers read on behind what is confirmed": ((_Look, "readable", all_that_is_there),),
    "readers believe any bookie that nothing more is confirmed": (
        (_Look, "readable", what_all_confirm),
        (_Look, "is_known", property(has_heard_any)),
    ),
    "readers recover": ((log_view, "readable", readable_by_recovery),),
}

CASES = {
    "RB-20": "a roll writes before it is listed",
    "RB-20b": "who loses the list leaves its ledger",
    "RB-21": "an empty ledger stays in the tail",
    "RB-35": "undecided entries are taken for lost",
    "RB-39": "readers put two versions together",
    "RB-44": "readers recover",
    "I7": "readers believe any bookie that nothing more is confirmed",
}
"""What other systems got wrong with logs of ledgers, and a mutant that does."""


def continued_from_the_first_entry(self: Any, seen: Any, ledger: Any) -> OpenTail | None:
    """Whoever takes the ledger over begins at its entry 0."""
    found = self._continue_in(seen, ledger)
    return None if found is None else replace(found, standing=FIRST)


UNBOUNDED_MUTANTS: dict[str, tuple[Change, ...]] = {
    "who goes on begins at entry 0": ((LogTail, "_continued", continued_from_the_first_entry),),
    "undecided entries of a term are taken for lost": (
        (recovering, "_end_of", lambda _cluster, mine, _password: mine.first_entry_id),
    ),
    "undecided entries of a term are taken for added": (
        (
            recovering,
            "_end_of",
            lambda _cluster, mine, _password: mine.first_entry_id + mine.entry_count,
        ),
    ),
}
"""Of logs that are one ledger, which changes hands."""

HEALING_MUTANTS: dict[str, tuple[Change, ...]] = {
    "what lacks copies stays open": ((recover_many, "lacking_copies", nothing_lacks),),
}
"""Of what a repair makes whole."""
