"""The log writer: the only client that appends to a log, ledger after ledger, without Spark.

A roll follows BookKeeper's protocol: create the next ledger, put it on the list, then close the old
ledger. Entries appended during the close wait for it. So the new ledger has no acknowledged entry
before the end of the old ledger is fixed, and none if the close fails: a log has no holes.
"""

import threading
from collections import deque
from concurrent.futures import Future
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Election
from bkspark.cluster.guards import CallbackGuard
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    LedgerClosedError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.entries import count_of
from bkspark.ledger.handles.group_bounds import Entries, append_in_groups
from bkspark.ledger.handles.promise import Answers, Unacknowledged
from bkspark.ledger.handles.settings import USUAL, WriterSettings
from bkspark.ledger.handles.write_handle import ClosedAtEnd
from bkspark.log import rolling
from bkspark.log.recovering import Undecided, undecided_of, with_outcome
from bkspark.log.rolling import Add, RollPolicy, Segment, Segments, WaitingAdds
from bkspark.log.tail import LogTail
from bkspark.metadata import freshness
from bkspark.protocol.ledger.metadata import FIRST

WAITING_BYTES_MAX = 64 * 2**20
"""Most bytes that wait while a ledger closes; further appends block."""


def _in_offsets(log_name: str, first_offset: int, callbacks: CallbackGuard) -> Answers:
    """Return what the callers of a ledger's writer are told: offsets, also in errors."""

    def explained(error: BookKeeperError, left: Unacknowledged) -> BookKeeperError:
        return with_outcome(error, log_name, undecided_of(first_offset, left))

    return Answers(first_offset, explained, callbacks)


class LogWriter(ClosedAtEnd):
    """Appends entries to one log; made by ``LogHandle.writer``, which fences the previous writer.

    A ``with`` block closes the log's last ledger at its end. The open ledger of an unbounded log
    stays OPEN, for the next writer. If an exception ends the block, it only releases resources, and
    the next client that opens the log recovers the ledger.

    Raises:
        NoSuchLedgerError, LedgerClosedError: there is no such log, or the log is sealed.
        NotEnoughBookiesError: the last ledger cannot be recovered yet; the message gives the
            reason.
        UnauthorizedError: the password is missing or wrong. No writer was fenced.
        NotLeaderError: this process does not lead the election.
    """

    def __init__(
        self,
        cluster: Cluster,
        log_name: str,
        password: Password,
        policy: RollPolicy = rolling.NEVER,
        *,
        settings: WriterSettings = USUAL,
        election: Election | None = None,
    ) -> None:
        self.roll_error: BookKeeperError | None = None
        began = freshness.begin()
        ask = None if election is None else election.require_leader
        self._tail = LogTail(cluster, log_name, password, ask=ask)
        tail = self._tail.open()
        self._segments = Segments(
            *(cluster, password, policy, settings),
            look=self._look_for_bookies,
            answers=partial(_in_offsets, log_name),
        )
        self._lock = threading.Condition()  # re-entered by callbacks that append
        self._rolling = environment.lock()
        self._roll_task: environment.Task | None = None
        self._waiting: WaitingAdds | None = None
        self._error: BookKeeperError | None = None
        self._is_closed = False
        with freshness.at(began):  # the bookies' places are as new as that
            self._segment = self._segments.begin(
                tail.ledger, tail.begun, tail.first_offset, tail.began, tail.unjoined
            )
        self._open_handle = self._segment.unlimited_handle

    def __repr__(self) -> str:
        return f"LogWriter({self.log_name!r}, ledger {self.ledger_id})"

    @property
    def log_name(self) -> str:
        return self._tail.log_name

    @property
    def ledger_id(self) -> int:
        """Id of the ledger that takes new entries."""
        return self._segment.ledger_id

    @property
    def end_offset(self) -> int:
        """The offset after the last acknowledged entry."""
        segment = self._segment
        return segment.first_offset + segment.handle.last_add_confirmed + 1

    @property
    def faults(self) -> dict[str, str]:
        """Bookies that the writer stopped using, each with the reason in one line."""
        return {**self._segment.faults_before, **self._segment.handle.faults}

    @property
    def undecided(self) -> Undecided | None:
        """Entries without acknowledgement, for ``LogHandle.resolve_outcome``; or None."""
        segment = self._segment
        return undecided_of(segment.first_offset, segment.handle.unacknowledged)

    # --- adding --------------------------------------------------------------------------------

    def append(self, value: bytes) -> int:
        """Append one entry; return its offset when the entry is durable on an ack quorum.

        Raises:
            LedgerFencedError: another writer has opened the log. The message names undecided
                offsets, or says that nothing was sent.
            NotEnoughBookiesError: too few bookies. The message says the same.
            LedgerClosedError: the writer has ended. The entry was not sent.
            OutcomeUnknownError: there was no answer in time. The message names undecided offsets.
        """
        return self._wait_for(self.append_async(value))

    def append_async(self, value: bytes) -> "Future[int]":
        """Append one entry. The future gets the offset; futures complete in offset order."""
        handle = self._open_handle
        if handle is not None and not handle.is_short_of_bookies:
            try:
                return handle.append_async(value)
            except LedgerClosedError:  # by a roll or a close in another thread: nothing was sent
                if handle is self._open_handle:
                    raise
        return self._add([value], 1, len(value) if isinstance(value, bytes) else 0)

    def append_many(self, entries: Entries, *, may_split: bool = False) -> tuple[int, int]:
        """Append all of ``entries`` as one atomic group; return its first and last offset.

        Args:
            may_split: as for ``WriteHandle.append_many``.
        """
        if may_split and count_of(entries):
            check = self._segment.handle.require_appendable
            return append_in_groups(entries, check, self._add_all, self._wait_for)
        last = self._wait_for(self._add_all(entries))
        return last - len(entries) + 1, last

    def _add_all(self, entries: Entries) -> "Future[int]":
        return self._add(entries, count_of(entries), rolling.size_of(entries))

    def force(self) -> None:
        """Wait until all appended entries are acknowledged; raise if that is impossible."""
        self.require_own_process()
        with self._rolling:
            self._segment.handle.force()

    def _wait_for(self, future: "Future[int]") -> int:
        """Wait for the offset; an add that waits for a ledger to close gets more time."""
        seconds = self._segments.wait_seconds_max * (
            1 if self._waiting is None else rolling.CLOSING_WAITS
        )
        try:
            return self._segment.handle.result_within(future, seconds)
        except TimeoutError:
            raise self._with_outcome(
                OutcomeUnknownError(f"log {self.log_name}: no answer within {seconds:g} s")
            ) from None

    def _add(self, entries: Entries, entry_count: int, byte_count: int) -> "Future[int]":
        self._require_usable()
        # Without the lock: callbacks run before room is made and before a roll ends.
        if not self._segments.callbacks.is_here:
            self._segment.handle.wait_for_room()
            self._wait_for_roll()
        with self._lock:
            if self._waiting is not None:
                self._wait_for_room()
            self._require_usable()
            if self._roll_task is not None and self._segment.filling.reached():
                self._roll_if_due()  # a limit was reached while a roll was running
            segment = self._segment
            if self._waiting is not None:
                future = self._waiting.add(entries, byte_count)
            else:  # the ledger's future gives the offset
                future = segment.handle.append_at_once(entries)
            segment.filling.add(entry_count, byte_count)
            self._roll_if_due()
        return future

    def _wait_for_room(self) -> None:
        """Block while too many bytes wait for a ledger to close; callbacks never block here."""
        if self._segments.callbacks.is_here or self._lock.wait_for(
            lambda: self._waiting_bytes < WAITING_BYTES_MAX, self._segments.wait_seconds_max
        ):
            return
        raise NotEnoughBookiesError(
            f"log {self.log_name}: the entry was not accepted: {self._waiting_bytes} bytes "
            f"wait for ledger {self.ledger_id} to close",
            hint="bring back the bookies that do not answer, then append again",
        )

    def _wait_for_roll(self) -> None:
        """Wait for a running roll if a limit is reached again: ledgers are at most twice full."""
        roll = self._roll_task
        if roll is not None and self._segment.filling.reached():
            roll.join(self._segments.wait_seconds_max)

    def _send_late(self, add: Add) -> None:
        """Send an add that has waited; its future gets what the ledger's future gives."""
        try:
            sent = self._segment.handle.append_at_once(add.entries)
        except InvalidRequestError as error:  # only this add is wrong
            self._segments.callbacks.complete(add.future, error)
        else:
            sent.add_done_callback(lambda done: self._complete(add.future, done))

    def _complete(self, future: "Future[int]", done: "Future[int]") -> None:
        error = done.exception()
        self._segments.callbacks.complete(future, done.result() if error is None else error)

    def _with_outcome(self, error: BookKeeperError) -> BookKeeperError:
        return with_outcome(error, self.log_name, self.undecided)

    def _require_usable(self) -> None:
        self.require_own_process()
        if self._error is None and not self._is_closed:
            return
        if isinstance(self._error, LedgerFencedError):
            raise self._error.reworded(
                f"this writer of log {self.log_name} was fenced, so this call sent nothing",
                hint="if this program is still to write, open the log again",
            ) from self._error
        raise LedgerClosedError(
            f"this writer of log {self.log_name} has ended, so this call sent nothing",
            hint="open the log again to write",
        ) from self._error

    # --- rolling -------------------------------------------------------------------------------

    def roll(self) -> None:
        """Begin a new ledger. Entries added during the roll go into the old or the new ledger.

        In an unbounded log, begin a new fragment of its ledger, on newly chosen bookies
        (``tail``, rules 3 to 5).

        Raises:
            LedgerFencedError: another writer has opened the log.
            NotEnoughBookiesError: no new ledger can be made. The writer continues in the old
                ledger.
        """
        self._roll("the caller asked for it")

    def _roll(self, reason: str, due: rolling.Filling | None = None) -> None:
        """Roll; do nothing if the roll was ``due`` and another roll came first."""
        self.require_own_process()
        with self._rolling:
            with self._lock:
                self._require_usable()
                if due is None:
                    self._segment.filling = self._segment.filling.anew()
                elif self._segment.filling is not due:
                    return
            old = self._segment
            if self._tail.begin_fragment(old, reason, self._segments.wait_seconds_max):
                return
            began = freshness.begin()
            with old.handle.explaining():
                following = self._tail.roll(old.handle.metadata)
            self._switch(old, following, began)
            rolling.rolled(self.log_name, old.ledger_id, self.ledger_id, self.end_offset, reason)
            self._list_closed(old, began)

    def _switch(
        self, old: Segment, following: CreatedLedger, roll_began: freshness.Freshness
    ) -> None:
        """Close ``old`` while new adds wait, then send the waiting adds to ``following``."""
        with self._lock:
            self._waiting, self._open_handle = WaitingAdds(), None
        try:
            old.handle.close()
            end = old.first_offset + old.handle.last_add_confirmed + 1
            standing = FIRST.not_before(old.handle.last_ms)
            with freshness.at(roll_began):
                begun = self._segments.begin(following.seen, following.begun, end, standing)
            begun.faults_before = self.faults
            with self._lock:
                self._segment = begun
                self._send_waiting()
                self._open_handle = begun.unlimited_handle
        except BookKeeperError as error:
            self._end(error)
            raise self._with_outcome(error) from error
        except BaseException as error:  # complete the waiting adds after any error
            self._end(OutcomeUnknownError(f"log {self.log_name}: {error!r}"))
            raise

    def _send_waiting(self) -> None:
        """Send in order; if an add cannot be sent, leave the rest to ``_end``."""
        left = self._no_longer_waiting()
        try:
            while left:
                self._send_late(left[0])
                self._segment.filling.add(count_of(left[0].entries), left[0].byte_count)
                left.popleft()
        except BaseException:
            self._waiting = WaitingAdds(left)
            raise

    def _no_longer_waiting(self) -> deque[Add]:
        waiting, self._waiting = self._waiting or WaitingAdds(), None
        self._lock.notify_all()
        return waiting.adds

    @property
    def _waiting_bytes(self) -> int:
        return 0 if self._waiting is None else self._waiting.byte_count

    def _list_closed(self, segment: Segment, began: freshness.Freshness) -> None:
        """List the ledger as closed; after a failure the next roll or the next opener does.

        Args:
            began: the begin of the roll or the close.
        """
        try:
            self._tail.close(segment.ledger_id, began)
        except BookKeeperError as error:
            self.roll_error = rolling.failed(self.log_name, error)

    def _roll_if_due(self) -> None:
        is_rolling = self._roll_task is not None and self._roll_task.is_alive()
        reason = "" if is_rolling else self._segment.why_due()
        if reason:
            if reason != rolling.SHORT:
                self._segment.filling = self._segment.filling.anew()
            due = self._segment.filling
            name = f"roll-{self.log_name}"
            self._roll_task = environment.start(lambda: self._roll_in_background(reason, due), name)

    def _look_for_bookies(self) -> bool:
        """Roll if bookies are back; return whether to check again. Called by the watch."""
        with self._lock:
            if is_short := not (self._is_closed or self._error) and self._segment.is_short:
                self._roll_if_due()
            return is_short

    def _roll_in_background(self, reason: str, due: rolling.Filling) -> None:
        try:
            if reason != rolling.SHORT or self._tail.may_move(self._segment):
                self._roll(reason, due)
        except BookKeeperError as error:
            self.roll_error = rolling.failed(self.log_name, error)

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait until all entries are acknowledged, then close the last ledger.

        The ledger of an unbounded log stays OPEN, and readers learn its end; it is closed if its
        entries have too few copies.

        Raises:
            LedgerFencedError: another writer has opened the log. The message names undecided
                offsets.
            BookKeeperError: the error that ended the writer. The ledger stays open for recovery.
        """
        self.require_own_process()
        began = freshness.begin()
        with self._rolling:
            if not self._stop_taking():
                return
            try:
                if self._is_unbounded and not self._segment.handle.is_short_of_bookies:
                    self._segment.handle.leave()
                    return
                self._segment.handle.close()
            except BookKeeperError as error:
                raise self._with_outcome(error) from error
            finally:
                self._tail.drop_made()
            self._list_closed(self._segment, began)

    def release(self) -> None:
        """Wait until all entries are acknowledged, without closing the ledger.

        The next client that opens the log recovers the ledger.
        """
        self.require_own_process()
        with self._rolling:
            if self._stop_taking():
                self._segment.handle.release()
                self._tail.drop_made()

    @property
    def _is_unbounded(self) -> bool:
        """Whether later writers may continue the ledger; other ledgers have one writer."""
        return self._segment.handle.metadata.goes_on

    def _stop_taking(self) -> bool:
        """Refuse further adds; return False if the writer was closed before."""
        with self._lock:
            was_closed, self._is_closed, self._open_handle = self._is_closed, True, None
        self._segments.watch.stop()
        return not was_closed

    def _end(self, error: BookKeeperError) -> None:
        self._segments.watch.stop()
        with self._lock:
            self._error, self._open_handle = error, None
            waiting = self._no_longer_waiting()
        for add in waiting:
            told = LedgerClosedError(
                f"the writer of log {self.log_name} ended before this was sent"
            )
            told.__cause__ = error
            add.future.set_exception(told)
