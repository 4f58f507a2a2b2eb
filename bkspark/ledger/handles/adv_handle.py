"""The advanced write handle: its user chooses entry ids, and may add entries in any order.

An entry waits here until all entries before it were added. Then an ordinary write handle adds the
entry, and acknowledges in order, by the future that the caller has already. If an id is never
added, all later entries wait, and no bookie has them.
"""

import threading
from concurrent.futures import Future

from bkspark.cluster import arguments
from bkspark.cluster.guards import CallbackGuard
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    LedgerClosedError,
    OutcomeUnknownError,
)
from bkspark.ledger.handles.group_bounds import GROUP_BYTES_MAX, require_within_bounds
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.settings import USUAL
from bkspark.ledger.handles.write_handle import ClosedAtEnd, WriteHandle, in_callback
from bkspark.protocol.bounds import NUMBER_MAX
from bkspark.protocol.ledger.metadata import LedgerMetadata

WAITING_BYTES_MAX = 64 * 2**20
GAP_TIMEOUT_SECONDS = 60.0


Waiting = tuple[bytes, Promise]


class WaitingEntries:
    """The entries behind a missing one, by id, and whose turn it is.

    Refers to no handle: the writer's task tells it the writer's end (``fail``), and lives longer.

    Attributes:
        next: the first id that was not handed over yet.
    """

    def __init__(self, ledger_id: int, waiting_bytes_max: int, gap_seconds: float) -> None:
        self.next = 0
        self._ledger_id = ledger_id
        self._bytes_max = waiting_bytes_max
        self._gap_seconds = gap_seconds
        self._changed = threading.Condition()
        self._waiting: dict[int, Waiting] = {}
        self._waiting_bytes = 0
        self._is_handing_over = False
        self._end: BookKeeperError | None = None

    def add(self, entry_id: int, value: bytes, future: Promise) -> Waiting | None:
        """Wait for room, and add an entry; return the entry that the caller must hand over, if any.

        One thread at a time hands over. It must ask for the ``following`` entry until there is
        none.

        Raises:
            InvalidRequestError: the id was added before, or no room came in time.
            BookKeeperError: the error that ended the writer.
        """
        with self._changed:
            self._admit(entry_id, len(value))
            self._waiting[entry_id] = (value, future)
            self._waiting_bytes += len(value)
            return None if self._is_handing_over else self._take()

    def following(self) -> Waiting | None:
        """Return the next entry to hand over; None if it is missing, and the thread is done."""
        with self._changed:
            return self._take()

    def stop(self) -> None:
        """Refuse further entries, and wait for the thread that hands over."""
        error = LedgerClosedError(f"ledger {self._ledger_id} is closed", hint="make another")
        self.fail(error)
        with self._changed:
            self._changed.wait_for(lambda: not self._is_handing_over, self._gap_seconds)

    def fail(self, error: BookKeeperError) -> None:
        """Refuse further entries, and fail those after a missing entry."""
        with self._changed:
            self._end = self._end or error
            missing = self.next
            while missing in self._waiting:
                missing += 1
            behind = [entry_id for entry_id in self._waiting if entry_id > missing]
            given_up = {entry_id: self._waiting.pop(entry_id) for entry_id in behind}
            self._waiting_bytes -= sum(len(value) for value, _ in given_up.values())
            self._changed.notify_all()
        for entry_id, (_, future) in sorted(given_up.items()):
            future.set_exception(
                LedgerClosedError(
                    f"ledger {self._ledger_id}: entry {entry_id} was not added, because entry "
                    f"{missing} never was"
                )
            )

    def _admit(self, entry_id: int, byte_count: int) -> None:
        """Wait for room for the entry, or refuse the entry; needs the lock."""

        def may_stay() -> bool:
            is_next = entry_id == self.next
            has_room = self._waiting_bytes + byte_count <= self._bytes_max
            return is_next or has_room or not self._waiting or self._is_refused(entry_id)

        has_waited = self._changed.wait_for(may_stay, self._gap_seconds)
        if self._end is not None:
            raise self._end
        if self._is_refused(entry_id):
            raise InvalidRequestError(
                f"ledger {self._ledger_id}: entry {entry_id} was added before",
                hint="give each id only once",
            )
        if not has_waited:
            raise InvalidRequestError(
                f"ledger {self._ledger_id}: entry {self.next} is missing, and the entries that "
                f"wait for it have {self._waiting_bytes} bytes; entry {entry_id} was not added",
                hint=f"add entry {self.next} first",
            )

    def _is_refused(self, entry_id: int) -> bool:
        return self._end is not None or entry_id < self.next or entry_id in self._waiting

    def _take(self) -> Waiting | None:
        found = self._waiting.pop(self.next, None)
        self._is_handing_over = found is not None
        if found is not None:
            self.next += 1
            self._waiting_bytes -= len(found[0])
        self._changed.notify_all()
        return found


class AdvWriteHandle(ClosedAtEnd):
    """Adds entries with chosen ids to one ledger; made by ``BookKeeper.create_ledger_adv``.

    Give each id from 0 on once, in any order and from any thread. A ``with`` block ends like a
    ``WriteHandle``'s. With deferred sync, ``append`` returns an id once all ids up to it were
    added.

    Args:
        inner: the writer of a ledger without entries.
        waiting_bytes_max: once waiting entries have so many bytes, a further append that would have
            to wait blocks.
        gap_timeout_seconds: time limit of a blocked append, which is then refused.
        wait_seconds_max: additional time limit of ``append`` for the acknowledgement.
    """

    def __init__(
        self,
        inner: WriteHandle,
        *,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
        gap_timeout_seconds: float = GAP_TIMEOUT_SECONDS,
        wait_seconds_max: float = USUAL.wait_seconds_max,
    ) -> None:
        self.ledger_id = inner.ledger_id
        self._inner = inner
        self._seconds_max = gap_timeout_seconds + wait_seconds_max
        self._entries = WaitingEntries(inner.ledger_id, waiting_bytes_max, gap_timeout_seconds)
        self._callbacks = CallbackGuard()
        inner.on_end(self._entries.fail)

    @property
    def last_add_confirmed(self) -> int:
        """The id of the last acknowledged entry; -1 without entries."""
        return self._inner.last_add_confirmed

    @property
    def last_add_pushed(self) -> int:
        """The last entry whose predecessors were all added; -1 without entries."""
        return self._inner.last_add_pushed

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata known to this writer."""
        return self._inner.metadata

    @property
    def faults(self) -> dict[str, str]:
        """Bookies no longer used by this writer, each with the reason in one line."""
        return self._inner.faults

    def append(self, entry_id: int, value: bytes) -> int:
        """Add entry ``entry_id``; return when all entries up to it are acknowledged.

        Raises:
            OutcomeUnknownError: the entry was not acknowledged in time. It may be later.
            BookKeeperError: as for ``append_async`` and ``WriteHandle.append``.
        """
        if self._callbacks.is_here:
            raise in_callback("append", self.ledger_id)
        self._inner.require_may_wait("append")
        seconds = self._seconds_max
        try:
            return self._inner.result_within(self.append_async(entry_id, value), seconds)
        except TimeoutError:
            raise OutcomeUnknownError(
                f"ledger {self.ledger_id}: entry {entry_id} was not acknowledged within "
                f"{seconds:g} s; the first that is missing is {self._entries.next}",
                hint="add the missing entries, or close the ledger",
            ) from None

    def append_async(self, entry_id: int, value: bytes) -> "Future[int]":
        """Add entry ``entry_id``. The future completes with its id, in the order of entries.

        Raises:
            InvalidRequestError: the id is no whole number from 0 on, was added before, or has
                waited too long for a missing id. The entry was not added.
            LedgerClosedError: the handle is closed.
            BookKeeperError: the error that ended the writer.
        """
        self.require_own_process()
        if not isinstance(value, bytes):
            raise InvalidRequestError("an entry of this ledger must be bytes")
        if type(entry_id) is not int or not 0 <= entry_id <= NUMBER_MAX:
            entry_id = arguments.whole_number("an entry id", entry_id, least=0)
        if len(value) > GROUP_BYTES_MAX:
            require_within_bounds(1, len(value))
        future = Promise()
        found = self._entries.add(entry_id, value, future)
        if found is not None:
            self._hand_over(found)
        return future

    def force(self) -> None:
        """Return when all entries without a missing predecessor are acknowledged."""
        self._inner.force()

    def close(self) -> None:
        """Close the ledger at its last acknowledged entry. Entries after a missing one fail.

        Raises:
            BookKeeperError: as for ``WriteHandle.close``.
        """
        self.require_own_process()
        self._entries.stop()
        self._inner.close()

    def release(self) -> None:
        """Release resources without closing. The next client that opens the ledger recovers it."""
        self.require_own_process()
        self._entries.stop()
        self._inner.release()

    def _hand_over(self, found: Waiting | None) -> None:
        """Give the writer all entries without a missing predecessor, in order.

        Runs without a lock, since the writer may block, and calls back.
        """
        while found is not None:
            value, future = found
            try:
                number = self._inner.append_for(future, value)
                if number is not None:
                    self._callbacks.complete(future, number)
            except BookKeeperError as error:
                self._callbacks.complete(future, error)
                self._entries.fail(error)
            found = self._entries.following()
