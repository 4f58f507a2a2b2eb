"""The lanes of a writer: everything sent to one bookie, one record after the other."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass

from bkspark import environment
from bkspark.bookie.checks import as_judged
from bkspark.bookie.contract import BookieAddress, Buffer, Journal, told_of
from bkspark.cluster.bookie_client import SLOWEST_BYTES_PER_SECOND, BookieClient, post_check
from bkspark.cluster.hanging import Patience
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.format.journal import EncodedRecord
from bkspark.progress import Progress
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.writer.steps import Failed, Stored

# --- appender ------------------------------------------------------------------------------------
# Appends a record on a bookie, and checks that it counts (R6); every writer does so.
#
# A handle does so from a lane to each bookie, a batch on all bookies at once.


QUICK_SECONDS = 0.0001
"""Storing a record faster than this leaves less time to wait than to compute."""


class Appender:
    """Appends to one writer's journal on one bookie; for one thread at a time.

    Args:
        ledger: as open for the writer.
        journal: the writer's own, begun when the bookie was enlisted. A missing journal is not made
            again, because that would hide its loss.
        advisory_lock: shared by the appenders of one writer to several bookies.

    Attributes:
        store_seconds: how long the bookie took to make the last record durable.
    """

    def __init__(
        self,
        address: BookieAddress,
        ledger: LedgerMetadata,
        journal: Journal | None,
        advisory_lock: environment.AdvisoryLock = nullcontext,
    ) -> None:
        self.address = address
        self._ledger = ledger
        self._journal = journal
        self._advisory_lock = advisory_lock
        self.store_seconds = 0.0

    def turn(self) -> AbstractContextManager[object]:
        """Return the turn for appending a record and its consequences, one bookie at a time.

        Only quick bookies take turns: during a slow append, the next bookie can be asked.
        """
        is_quick = 0 < self.store_seconds < QUICK_SECONDS
        return self._advisory_lock() if is_quick else nullcontext()

    @property
    def end(self) -> int:
        """Where the next record begins, in bytes."""
        return 0 if self._journal is None else self._journal.end

    def append(self, record: AddRecord, frame: Sequence[Buffer]) -> None:
        """Return once ``record`` is durable on the bookie and counts; a confirmation only has to be
        stored.

        Args:
            frame: the bytes to store, at ``end``.

        Raises:
            LedgerFencedError: another client has fenced the bookie.
            BookieUnavailableError: the bookie does not have the record, or does not show it.
        """
        mine = self._ledger
        if self._journal is None:
            raise BookieUnavailableError(
                f"bookie {self.address.bookie_id} has no journal of this writer of ledger "
                f"{mine.ledger_id}"
            )
        begin = environment.monotonic()
        self._journal.append(frame)
        self.store_seconds = environment.monotonic() - begin
        if not record.is_confirmation:
            post_check(
                self.address,
                self._journal,
                ledger_id=mine.ledger_id,
                term=mine.term,
                token=mine.token,
            )

    def let_go(self) -> Journal | None:
        """Return the journal to its next user; no more is appended here."""
        journal, self._journal = self._journal, None
        return journal

    def close(self) -> None:
        """Release the journal."""
        if self._journal is not None:
            self._journal.close()


# --- lane ----------------------------------------------------------------------------------------
# A lane: everything one writer sends to one bookie, one record after the other.
#
# Each lane has its own task, a thread, so that a slow bookie delays only itself. The task appends,
# makes the post-check and reports; the machine decides whether an entry counts. The reporting
# thread also runs the machine, and an idle lane may even make the metadata check.


@dataclass(frozen=True, slots=True)
class Framed:
    """A record, and its bytes for one bookie at their place in the journal there."""

    record: AddRecord
    frame: Sequence[Buffer]


Report = Callable[[Stored | Failed], None]
GiveBack = Callable[[BookieAddress, Journal | None], None]


@dataclass(slots=True)
class _Signs:
    """Signs that a bookie makes progress.

    Attributes:
        moved_at: when the bookie last made progress, in monotonic seconds.
    """

    patience: Patience
    moved_at: float = -math.inf


def seconds_for(byte_count: int) -> float:
    """Return the additional time allowed for storing ``byte_count`` bytes."""
    return byte_count / SLOWEST_BYTES_PER_SECOND


class Lane:
    """Sends records to one bookie.

    The sender calls all methods but ``_work``, which is the lane's own task.

    Args:
        report: called from the lane's task.

    Attributes:
        waiting_bytes: bytes sent and not answered yet.
        is_away: the lane's task works for the writer; the bookie's full time begins afterwards.
    """

    def __init__(
        self,
        ensemble_index: int,
        appender: Appender,
        report: Report,
        *,
        name: str,
    ) -> None:
        self.ensemble_index = ensemble_index
        self._appender = appender
        self._report = report
        self.waiting_bytes = 0
        self.is_away = False
        self._give_back: GiveBack | None = None
        self._sent: deque[tuple[int, int, float, float]] = deque()
        self._signs = _Signs(Patience(Progress()))
        self._waiting: environment.Inbox[Framed | None] = environment.inbox()
        self._when_idle: tuple[float, Callable[[], None]] | None = None
        self._framed_bytes = appender.end
        self._channel = BookieClient(self.address, name=f"{name}-{self.address.bookie_id}")
        try:
            self._signs.patience = Patience(self._channel.begin(self._work).progress)
        except BookieUnavailableError as error:
            report(self._failed(error))

    @property
    def since(self) -> float:
        """When the time of the oldest unanswered record began, in monotonic seconds.

        The later of its sending and the bookie's last sign of progress; infinite without such a
        record.
        """
        return max(self._sent[0][2], self._signs.moved_at) if self._sent else math.inf

    @property
    def extra_seconds(self) -> float:
        """How much longer than a small record the oldest record may take.

        Counts its own bytes and those sent before.
        """
        return self._sent[0][3] if self._sent else 0.0

    @property
    def address(self) -> BookieAddress:
        """Where the bookie is."""
        return self._appender.address

    def framed(self, record: EncodedRecord) -> Framed:
        """Frame ``record`` after all records framed before; it must be sent next.

        A journal has one writer, so its end is known before the bookie has stored the earlier
        records.
        """
        frame = record.frame(self.ensemble_index, self._framed_bytes)
        self._framed_bytes += sum(memoryview(piece).nbytes for piece in frame)
        return Framed(record.record, frame)

    def send(self, framed: Framed) -> None:
        """Append ``framed`` after everything sent before; returns at once."""
        record = framed.record
        if not record.is_confirmation:  # confirmations are not awaited
            size = sum(part.length_bytes for part in record.parts)
            self.waiting_bytes += size
            extra = seconds_for(self.waiting_bytes)
            if not self._sent:
                self._signs.patience.begin_anew()
            self._sent.append((record.first_entry_id, size, environment.monotonic(), extra))
        self._waiting.put(framed)

    def answered(self, first_entry_id: int) -> None:
        """Note that the record at ``first_entry_id`` and all before it are stored."""
        while self._sent and self._sent[0][0] <= first_entry_id:
            self.waiting_bytes -= self._sent.popleft()[1]
        self._signs.moved_at = environment.monotonic()
        self._signs.patience.begin_anew()

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all records sent were answered."""
        return not self._sent and self._waiting.empty()

    @property
    def store_seconds(self) -> float:
        """How long the bookie took to make the last record durable."""
        return self._appender.store_seconds

    def tell_when_idle(self, seconds: float, tell: Callable[[], None]) -> None:
        """Call ``tell`` once if no record comes for ``seconds``; for the lane's own task.

        The task waits for a record anyhow, so the wait costs nothing if one comes.
        """
        self._when_idle = seconds, tell

    def come_back(self) -> None:
        """Note that the task is back: the time of records sent meanwhile begins now."""
        self.is_away = False
        self.begin_anew()

    def begin_anew(self) -> None:
        """Give all records sent their full time again."""
        self._signs.moved_at = environment.monotonic()

    def gets_on(self) -> bool:
        """Return whether the bookie gave a sign since the time of the oldest record began."""
        return self._signs.patience.gets_on()

    @property
    def looks_at_half_time(self) -> bool:
        """Whether to look at the bookie's disk when half of the time is over."""
        return self._signs.patience.looks_at_half_time

    def look(self) -> None:
        """Note the progress of the bookie's disk."""
        self._signs.patience.look()

    def has_moved(self, first_entry_id: int, since: float) -> bool:
        """Return whether the bookie gave a sign after ``since`` and owes the record at
        ``first_entry_id``.
        """
        return self._signs.moved_at > since and any(
            sent[0] == first_entry_id for sent in self._sent
        )

    def stop(self) -> None:
        """End the lane once its records are written; does not wait."""
        self._waiting.put(None)

    def leave(self, give_back: GiveBack) -> None:
        """End the lane once its records are written; ``give_back`` then gets the journal if all
        were stored.
        """
        self._give_back = give_back
        self.stop()

    def abandon(self) -> None:
        """Drop unsent records, and end the lane when its bookie answers, if ever."""
        with suppress(environment.Empty):
            while not self._waiting.empty():
                self._waiting.get(timeout=0)
        self._waiting.put(None)
        self._channel.give_up()

    def end_within(self, seconds: float) -> None:
        """Wait at most ``seconds`` for the lane's end, then continue without it."""
        if not self.is_away and not self._channel.has_answered_within(seconds):
            self._channel.do_without()

    def _work(self) -> None:
        try:
            while (framed := self._next()) is not None:
                with self._appender.turn():
                    self._store(framed)
            if self._give_back is not None:
                self._give_back(self.address, self._appender.let_go())
        except BookKeeperError as error:
            self._report(self._failed(error))
        except Exception as error:
            wrapped = BookieUnavailableError(told_of(self.address.bookie_id, repr(error)))
            self._report(self._failed(wrapped))
        finally:
            self._appender.close()

    def _next(self) -> Framed | None:
        """Wait for the next record; None at the end."""
        awaited, self._when_idle = self._when_idle, None
        if awaited is not None:
            seconds, tell = awaited
            try:
                return self._waiting.get(timeout=seconds)
            except environment.Empty:
                tell()
        return self._waiting.get()

    def _store(self, framed: Framed) -> None:
        record = framed.record
        self._appender.append(record, framed.frame)
        if not record.is_confirmation:  # would be taken for the following add
            ids = record.first_entry_id, record.last_entry_id
            self._report(Stored(self.ensemble_index, self.address.bookie_id, *ids))

    def _failed(self, error: BookKeeperError) -> Failed:
        return Failed(self.ensemble_index, self.address.bookie_id, as_judged(error))


# --- lanes ---------------------------------------------------------------------------------------
# The lanes of an open ledger's writer: one lane to each member in use.


LANE_BYTES_MAX = 32 * 2**20
"""Most bytes that may wait for one bookie: some seconds of work for a slow but healthy disk."""


class Lanes:
    """The lanes of one writer, by ensemble index.

    Args:
        open_lane: makes the lane to a bookie at an index; lanes of one writer take turns.
    """

    def __init__(
        self, open_lane: Callable[[int, BookieAddress, environment.AdvisoryLock], Lane]
    ) -> None:
        self._open_lane = open_lane
        self._advisory_lock = environment.advisory_lock()
        self._lanes: dict[int, Lane] = {}
        self._leaving: dict[str, Lane] = {}

    def join(self, index: int, address: BookieAddress) -> None:
        """Use a bookie from now on."""
        self._lanes[index] = self._open_lane(index, address, self._advisory_lock)

    def release(self, index: int) -> None:
        """Stop using the bookie at ``index``, and wait for none of its answers."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            lane.abandon()

    def retire(self, index: int, give_back: GiveBack) -> None:
        """Send the bookie at ``index`` no more records; it may finish earlier records."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            self._leaving[lane.address.bookie_id] = lane
            lane.leave(give_back)

    def at(self, index: int, bookie_id: str) -> Lane | None:
        """Return the lane at ``index`` if it belongs to ``bookie_id``."""
        lane = self._lanes.get(index)
        return lane if lane is not None and lane.address.bookie_id == bookie_id else None

    def send(self, record: EncodedRecord, indexes: Iterable[int]) -> None:
        """Send ``record`` to the members at ``indexes``.

        All frames are made before any is sent. A thread that made its frame while others begin to
        write would take turns with them, and each turn costs more than the work.
        """
        lanes = [self._lanes[index] for index in indexes if index in self._lanes]
        ready = [(lane, lane.framed(record)) for lane in lanes]
        for lane, framed in ready:
            lane.send(framed)

    # --- what the slowest of them allows ---------------------------------------------------

    @property
    def is_congested(self) -> bool:
        """Whether a bookie has so much waiting that the writer should pause.

        A slow bookie so slows its writer down. Dropping it would leave entries with fewer copies,
        and queueing would take all memory. A bookie that hangs is replaced in time.
        """
        return any(lane.waiting_bytes > LANE_BYTES_MAX for lane in self._lanes.values())

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all records sent were answered."""
        return all(lane.has_nothing_to_do for lane in self._lanes.values())

    @property
    def store_seconds(self) -> float:
        """How long the slowest bookie took to make its last record durable."""
        return max((lane.store_seconds for lane in self._lanes.values()), default=0.0)

    def slowest(self) -> Lane | None:
        """Return the lane whose oldest record reaches its time limit first."""
        found, first = None, math.inf
        for lane in self._lanes.values():
            if not lane.is_away and lane.since + lane.extra_seconds < first:
                found, first = lane, lane.since + lane.extra_seconds
        return found

    def has_moved(self, first_entry_id: int, since: float) -> bool:
        """Return whether a bookie that owes the record at ``first_entry_id`` gave a sign after
        ``since``.
        """
        return any(lane.has_moved(first_entry_id, since) for lane in self._lanes.values())

    def begin_anew(self) -> None:
        """Give every bookie its full time again, after the process was stopped."""
        for lane in self._lanes.values():
            lane.begin_anew()

    # --- the end -----------------------------------------------------------------------------

    def stop(self, timeout: float) -> None:
        """End all lanes once their records are written, waiting at most ``timeout`` seconds."""
        lanes = [*self._lanes.values(), *self._leaving.values()]
        for lane in lanes:
            lane.stop()
        deadline = environment.monotonic() + timeout
        for lane in lanes:
            lane.end_within(max(0.0, deadline - environment.monotonic()))
