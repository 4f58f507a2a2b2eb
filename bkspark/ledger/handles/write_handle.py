"""The write handle: one writer adds entries to an open ledger, from Python, without Spark.

While a group of entries is being stored, the next group gathers (group commit).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial
from types import TracebackType
from typing import Self

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.guards import BoundToProcess
from bkspark.cluster.hanging import PendingAnswer
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, InvalidRequestError, OutcomeUnknownError
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.handles.backlog import Backlog
from bkspark.ledger.handles.entries import VALUE_SCHEMA, RecordEncoder, TableIntake, count_of
from bkspark.ledger.handles.group_bounds import (
    GROUP_BYTES_MAX,
    Entries,
    append_in_groups,
    require_within_bounds,
)
from bkspark.ledger.handles.grouping import Submission
from bkspark.ledger.handles.membership import Membership
from bkspark.ledger.handles.promise import Answers, Promise, Unacknowledged, kept
from bkspark.ledger.handles.settings import USUAL, WriterSettings
from bkspark.ledger.handles.writer import WriterRunner
from bkspark.progress import overslept
from bkspark.protocol.ledger.metadata import FIRST, ConfirmedEnd, LedgerMetadata
from bkspark.protocol.writer.ensemble_change import gap
from bkspark.protocol.writer.writing import LedgerWriter

# --- with block ----------------------------------------------------------------------------------
# The end of a ``with`` block around a writer: close, or only release after an exception.


class ClosedAtEnd(BoundToProcess, ABC):
    """Closes at the end of a ``with`` block, and only releases if an exception ends the block.

    A writer that fails leaves its ledger open. The next client that opens the ledger recovers it.
    """

    @abstractmethod
    def close(self) -> None:
        """Wait until all entries are acknowledged, then close."""

    @abstractmethod
    def release(self) -> None:
        """Release resources without closing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.close()
        elif self.is_of_this_process:
            self.release()


# --- renewals ------------------------------------------------------------------------------------
# Waits for a writer as long as the writer renews its own time limits.
#
# A writer ends by its own limits, so a caller gains nothing by waiting longer. The writer renews
# its limits while a slow bookie makes progress, and its callers then wait on.


def is_there_within(
    has_come_within: Callable[[float], bool], seconds: float, backlog: Backlog
) -> bool:
    """Return whether the awaited event comes within ``seconds``, which begin anew with each
    renewal.
    """
    while True:
        renewals, until = backlog.renewals, environment.monotonic() + seconds
        if has_come_within(seconds):
            return True
        if backlog.renewals == renewals and not overslept(until):
            return False


def result_within(future: "Future[int]", seconds: float, backlog: Backlog) -> int:
    """Return ``future.result``; ``seconds`` begin anew with each renewal."""

    def has_come_within(limit: float) -> bool:
        try:
            future.exception(limit)
        except TimeoutError:
            return False
        return True

    if not future.done() and not is_there_within(has_come_within, seconds, backlog):
        raise TimeoutError
    return future.result()


def in_callback(what: str, ledger_id: int) -> InvalidRequestError:
    """Return the error of a call in a callback that would wait for the callback's end."""
    return InvalidRequestError(
        f"{what} in a callback of ledger {ledger_id} would wait for itself",
        hint="use append_async there, or append in another thread",
    )


# --- write handle --------------------------------------------------------------------------------


class WriteHandle(ClosedAtEnd):
    """Adds entries to one ledger; made by ``BookKeeper.create_ledger``.

    A ``with`` block closes the ledger at its end. If an exception ends the block, the handle only
    releases resources, and the ledger stays open for recovery.

    **Deferred sync** (``WriterSettings(is_sync_deferred=True)``): ``append`` and ``append_many``
    return an id as soon as this handle has the entry in memory. The id is no acknowledgement: no
    bookie has the entry, ``last_add_confirmed`` does not include it, and a crash of this process
    loses the entry. ``force``, ``close`` and the roll of a log write all entries, in order. When
    they return, all entries are durable on ack quorums and confirmed. ``release`` writes them too,
    but does not report success. If the memory for entries is full (``HELD_BYTES_MAX``), the handle
    writes them by itself. After an error the next append and ``force`` raise it. They cannot say
    how many of the entries a recovery will keep.

    BookKeeper's DEFERRED_SYNC differs: there, unsynced entries lie on the bookies and mostly
    survive their writer. Here, a bookie never has bytes that are not durable.

    A handle that is garbage-collected without ``close`` is released, with a ``ResourceWarning``.

    Args:
        begun: the journals of the members.
        standing: where the writer begins, in a ledger with earlier writers.
        unjoined: ids of bookies that the writer must not ask to join (R19).
        answers: what the futures of entries give; None for entry ids.
    """

    _is_let_go = True  # until there are resources to release

    def __init__(
        self,
        cluster: Cluster,
        seen: Versioned[LedgerMetadata],
        digester: Digester,
        *,
        begun: Begun,
        settings: WriterSettings = USUAL,
        standing: ConfirmedEnd = FIRST,
        unjoined: Collection[str] = (),
        answers: Answers | None = None,
    ) -> None:
        self.ledger_id = seen.value.ledger_id
        self._cluster = cluster
        settings = settings.with_metadata_timeout(cluster.store.seconds)
        self._settings = settings
        schema = arrow_schema.decode(seen.value.settings.schema)
        self._tables = TableIntake(schema)
        self._members = Membership(cluster, seen, digester, begun)
        machine = LedgerWriter(
            seen.value,
            is_change_delayed=settings.is_change_delayed,
            last_add_confirmed=standing.last_entry_id,
            length_bytes=standing.length_bytes,
            times=standing.times,
            unjoined=unjoined,
        )
        self._transactions = standing.transactions
        encoder = RecordEncoder(seen.value, digester, standing.transactions)
        self._writer = WriterRunner(machine, self._members, encoder, settings, answers)
        self._is_of_bytes = schema == VALUE_SCHEMA
        self._is_sealed = False
        self._task = environment.start(self._writer.run, f"ledger-{self.ledger_id}")
        self._is_let_go = False

    def __del__(self) -> None:
        if not self._is_let_go and self.is_of_this_process:
            environment.dropped(self, repr(self), self._writer.stop)

    def __repr__(self) -> str:
        return f"WriteHandle(ledger {self.ledger_id}, last_add_confirmed {self.last_add_confirmed})"

    @property
    def last_add_confirmed(self) -> int:
        """The id of the last acknowledged entry; -1 without entries."""
        return self._writer.machine.pending.last_add_confirmed

    @property
    def last_ms(self) -> int:
        """When the last acknowledged entry was committed, in milliseconds since 1970.

        The time of the log's earlier entries without entries of this writer; 0 without any.
        """
        return self._writer.machine.pending.times.last_ms

    @property
    def last_add_fully_replicated(self) -> int | None:
        """The last entry such that all up to it are on every bookie of their write sets; -1 if
        none.

        None for a ledger that does not guarantee its write quorum: its writer keeps no such count.
        """
        lagging = self._writer.machine.pending.lagging
        return None if lagging is None else lagging.last_add_fully_replicated

    @property
    def last_add_pushed(self) -> int:
        """The last entry id given so far; -1 without entries."""
        if self._settings.is_sync_deferred:
            return self._writer.backlog.last_taken
        return self._writer.machine.pending.last_add_pushed

    @property
    def unacknowledged(self) -> Unacknowledged:
        """The entries without an acknowledgement."""
        return self._writer.unacknowledged

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata known to this writer."""
        return self._writer.metadata

    @property
    def faults(self) -> dict[str, str]:
        """Bookies no longer used by this writer, each with the reason in one line."""
        return self._writer.faults

    @property
    def is_short_of_bookies(self) -> bool:
        """Whether a failed member was not replaced, so that entries get fewer copies.

        Never for a ledger that guarantees its write quorum: its writer ends instead.
        """
        machine = self._writer.machine
        return bool(machine.changes.failed) and machine.pending.lagging is None

    @property
    def may_be_sealed(self) -> bool:
        """Whether ``close`` can end without waiting for the copies of an absent bookie."""
        machine = self._writer.machine
        return machine.pending.lagging is None or not machine.changes.failed

    def on_failure(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` whenever the writer gives up a member; it must take no lock, and not
        wait.
        """
        self._members.on_failure = tell

    def on_end(self, tell: Callable[[BookKeeperError], None]) -> None:
        """Call ``tell`` with the error that ends the writer, after its entries' callers were told.

        The writer's task calls ``tell``, and lives longer than the handle: ``tell`` must refer to
        no handle.
        """
        self._writer.on_end(tell)

    def append(self, value: bytes) -> int:
        """Add one entry, and return its id when the entry is durable on an ack quorum.

        With deferred sync the call returns at once, without any promise before ``force``.

        Raises:
            LedgerFencedError: another client recovers the ledger. The outcome is unknown.
            OutcomeUnknownError: the entry was not acknowledged in time. The outcome is unknown.
            NotEnoughBookiesError: too few bookies. The outcome is unknown until a recovery.
            LedgerClosedError: the handle is closed.
        """
        self.require_may_wait("append")
        return self._wait_for(self.append_async(value))

    def append_async(self, value: bytes) -> "Future[int]":
        """Add one entry. The future completes with the entry's id, in the order of entries.

        A callback of the future may call ``append_async``. It must not call ``append``: the call
        would wait for itself, and raises.
        """
        if not (self._is_of_bytes and isinstance(value, bytes)):
            self._require_bytes(is_bytes=isinstance(value, bytes))
        if len(value) > GROUP_BYTES_MAX:
            require_within_bounds(1, len(value))
        self.wait_for_room()
        return self._submit(value, 1, len(value))

    def append_for(self, promise: Promise, value: bytes) -> int | None:
        """Add one entry, whose number, or error, goes to ``promise``.

        Returns:
            The number with deferred sync, when it is no acknowledgement: the promise then gets
            nothing.
        """
        if not self._is_of_bytes:
            self._require_bytes(is_bytes=True)
        self.wait_for_room()
        is_deferred = self._settings.is_sync_deferred
        told = Promise() if is_deferred else promise
        last = self._writer.submit(Submission(value, 1, len(value), told))
        return self._writer.answers.first + last if is_deferred else None

    def append_many(self, entries: Entries, *, may_split: bool = False) -> tuple[int, int]:
        """Add all of ``entries`` as one atomic group.

        Args:
            entries: bytes, or a table with the ledger's columns.
            may_split: add more than one group may have (``GROUP_BYTES_MAX``) as several groups, in
                order. Each group is atomic. Entries of other threads may come between.

        Returns:
            The first and the last id.

        Raises:
            InvalidRequestError: there is no entry, there are too many, or they do not fit the
                ledger's schema. No entry was added.
        """
        self.require_may_wait("append_many")
        if may_split and count_of(entries):
            add, wait = self.append_many_async, self._wait_for
            return append_in_groups(entries, self.require_appendable, add, wait)
        last = self._wait_for(self.append_many_async(entries))
        return last - len(entries) + 1, last

    def require_appendable(self, entries: Entries, first_row: int = 0) -> None:
        """Raise the error that ``append_many`` would raise for these entries. No entry is added.

        Args:
            first_row: the number of the first entry, for messages.
        """
        if isinstance(entries, pa.Table):
            self._tables.rows_of(entries, first_row)
        else:
            self._require_values(entries)

    def append_many_async(self, entries: Entries) -> "Future[int]":
        """Like ``append_many``. The future completes with the last id, in the order of entries."""
        self.wait_for_room()
        return self.append_at_once(entries)

    def wait_for_room(self) -> None:
        """Wait while too many bytes are not acknowledged. In a callback, return at once.

        The caller must hold no lock needed by callbacks, because callbacks run before there is
        room.

        Raises:
            NotEnoughBookiesError: no entry was acknowledged for the whole time limit.
        """
        self.require_own_process()
        if self._writer.backlog.is_full and not self._writer.is_telling_here:
            self._writer.backlog.wait_for_room(self._settings.wait_seconds_max)

    def append_at_once(self, entries: Entries) -> "Future[int]":
        """Like ``append_many_async``, without waiting for room."""
        self.require_own_process()
        if not count_of(entries):
            raise InvalidRequestError("there is nothing to append")
        if isinstance(entries, pa.Table):
            rows = self._tables.rows_of(entries)
            return self._submit(rows, rows.num_rows, rows.nbytes)
        values = list(entries)
        return self._submit(values, len(values), self._require_values(values))

    def force(self) -> None:
        """Return when all entries added so far, by any thread, are acknowledged.

        Acknowledged means durable on Qa bookies of the write set, with and without deferred sync.
        BookKeeper's ``force`` waits for all E bookies. Here a bookie that hangs does not delay it.

        Raises:
            OutcomeUnknownError: there was no answer in time.
            BookKeeperError: the error that ended the writer. Only a recovery can tell the outcome
                of entries since the last ``force``.
        """
        self.require_may_wait("force")
        last = self._writer.force()
        if last is not None:
            self._wait_for(last)

    def begin_fragment(self) -> "Future[int]":
        """Choose bookies anew, and write all entries to them that are not in flight yet.

        Returns at once. The future completes with the first entry of the new fragment. Or it fails
        with ``NotEnoughBookiesError``: then the handle continues on the old bookies. Entries added
        meanwhile are delayed by at most the time to store one entry and to change the metadata.

        Raises:
            LedgerClosedError: the handle is closed.
            BookKeeperError: the error that ended the writer.
        """
        self.require_own_process()
        return self._writer.roll()

    def close(self) -> None:
        """Wait until all entries are acknowledged, then close the ledger at the last of them.

        A ledger that guarantees its write quorum is closed only if each entry is on every bookie of
        its write set; otherwise the ledger stays open. Afterwards no entry is acknowledged (H11).

        Raises:
            LedgerFencedError: another client recovers the ledger.
            LedgerClosedError: another client closed the ledger at another entry.
            OutcomeUnknownError: the writer or the metadata store gave no answer in time.
            BookKeeperError: the error that ended the writer. The ledger stays open for recovery.
        """
        self.leave()
        if self._is_sealed:
            return
        sealing = PendingAnswer(
            self._seal,
            f"ledger-{self.ledger_id}-close",
        )
        if not sealing.comes_within(self._settings.wait_seconds_max):
            raise self._no_end("the metadata store")
        with self.explaining():
            sealing.result()
        self._is_sealed = True

    def leave(self) -> None:
        """Wait until all entries are acknowledged, and leave the ledger OPEN for the next writer.

        Readers of a ledger with several terms learn its end ("writing", rule 9).

        Raises:
            OutcomeUnknownError: the writer gave no answer in time.
            BookKeeperError: the error that ended the writer. The ledger stays open for recovery.
        """
        self.release()
        if self._writer.error is not None:
            raise self._writer.error
        if self._task.is_alive():
            raise self._no_end("the writer")

    def explaining(self) -> AbstractContextManager[None]:
        """Return a block that turns errors into ``InvalidTermError`` if a later term has begun."""
        return self._members.explaining()

    def release(self) -> None:
        """Wait until all entries are acknowledged, without closing the ledger.

        The next client that opens the ledger recovers it.
        """
        self.require_may_wait("close")
        self._is_let_go = True
        if self._task.is_alive():
            self._writer.stop()
        seconds = self._settings.wait_seconds_max
        is_there_within(self._has_ended_within, seconds, self._writer.backlog)

    def _has_ended_within(self, seconds: float) -> bool:
        self._task.join(seconds)
        return not self._task.is_alive()

    def _submit(
        self, rows: bytes | Sequence[bytes] | pa.RecordBatch, row_count: int, byte_count: int
    ) -> "Future[int]":
        promise = Promise()
        last = self._writer.submit(Submission(rows, row_count, byte_count, promise))
        is_deferred = self._settings.is_sync_deferred
        return kept(self._writer.answers.first + last) if is_deferred else promise

    def require_may_wait(self, what: str) -> None:
        """Raise if the caller runs in a callback, which would wait for itself."""
        self.require_own_process()
        if self._writer.is_telling_here:
            raise in_callback(what, self.ledger_id)

    def result_within(self, future: "Future[int]", seconds: float) -> int:
        """Return the result of ``future``; ``seconds`` begin anew while slow bookies make progress.

        Raises:
            TimeoutError: there was no result.
        """
        return result_within(future, seconds, self._writer.backlog)

    def _wait_for(self, future: "Future[int]") -> int:
        try:
            return self.result_within(future, self._settings.wait_seconds_max)
        except TimeoutError:
            raise self._no_end("the writer") from None

    def _no_end(self, actor: str) -> OutcomeUnknownError:
        machine = self._writer.machine
        what = gap(machine.metadata, machine.pending) if self._task.is_alive() else ""
        what = what and f"; {what}"
        return OutcomeUnknownError(
            f"ledger {self.ledger_id}: {actor} gave no answer within "
            f"{self._settings.wait_seconds_max:g} s{what}",
            hint="open the ledger: a recovery decides about unacknowledged entries",
        )

    def _seal(self) -> None:
        closed = partial(self._writer.machine.closed, transactions=self._transactions)
        self._cluster.ledgers.update(str(self.ledger_id), closed)

    def _require_values(self, values: Sequence[bytes]) -> int:
        """Return the total bytes of ``values``, or refuse values that cannot be appended at
        once.
        """
        are_plain = set(map(type, values)) == {bytes}  # a sixth of the time of asking each
        are_bytes = are_plain or all(isinstance(value, bytes) for value in values)
        self._require_bytes(is_bytes=are_bytes)
        size = sum(map(len, values))
        require_within_bounds(len(values), size)
        return size

    def _require_bytes(self, *, is_bytes: bool) -> None:
        if not self._is_of_bytes:
            raise InvalidRequestError(
                "this ledger holds rows, not bytes", hint="append a pyarrow.Table with append_many"
            )
        if not is_bytes:
            raise InvalidRequestError("an entry of this ledger must be bytes")
