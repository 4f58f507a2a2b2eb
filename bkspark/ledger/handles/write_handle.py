"""The write handle: how one writer adds entries to an open ledger, from a driver, without Spark.

While one group of entries is being stored, the next one gathers (group commit). What is decided,
and when, is in ``writing``; ``writer`` carries it out.
"""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from functools import partial

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.hang_memory import Answer
from bkspark.cluster.records import Versioned
from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.format import arrow_schema
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import VALUE_SCHEMA, count_of
from bkspark.ledger.handles.group_bounds import (
    GROUP_BYTES_MAX,
    Entries,
    append_in_groups,
    require_within_bounds,
)
from bkspark.ledger.handles.grouping import Submitted
from bkspark.ledger.handles.membership import Membership
from bkspark.ledger.handles.promise import Promise, kept
from bkspark.ledger.handles.record_encoder import RecordEncoder
from bkspark.ledger.handles.renewals import is_there_within, result_within
from bkspark.ledger.handles.settings import USUAL, WriterSettings
from bkspark.ledger.handles.table_intake import TableIntake
from bkspark.ledger.handles.with_block import ClosedAtEnd
from bkspark.ledger.handles.writer import Writer
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import FIRST, Standing
from bkspark.protocol.writer.last_copies import gap
from bkspark.protocol.writer.writing import LedgerWriter


class WriteHandle(ClosedAtEnd):
    """Adds entries to one ledger; made by ``BookKeeper.create_ledger``.

    A ``with`` block closes the ledger at its end, or, if it ends by an exception, only releases
    resources: the ledger stays open for recovery.

    **Deferred sync** (``WriterSettings(is_sync_deferred=True)``).
    ``append``, ``append_many`` and their futures answer with an entry's id as soon as this handle
    has the entry in memory. That is no acknowledgement: no bookie has the entry,
    ``last_add_confirmed`` does not cover it, and if this process dies it is gone. ``force``,
    ``close`` and the roll of a log write everything that was taken, in order and like any entries;
    when they return all of it is durable on ack quorums and confirmed. (``release`` writes it too,
    but does not tell whether that worked.) What is too much to be kept (``HELD_BYTES_MAX``) is
    written, and confirmed, unasked. Whatever goes wrong is told by the next append and by
    ``force``, which cannot tell then how much of it recovery will keep.

    One that is dropped without having been closed is released behind the back of who dropped it,
    with a ``ResourceWarning``.

    Args:
        begun: the journals of the members.
        standing: where it begins; of a ledger that was taken over behind another writer.
        unjoined: ids of bookies that it must not ask to join (R19).

    This is not quite BookKeeper's DEFERRED_SYNC: there entries lie on the bookies, without a sync,
    and mostly outlive their writer; here no bookie ever has bytes that are not durable, and only
    ``force`` makes entries outlive the writer.
    """

    _is_let_go = True  # until there is something to let go of

    def __init__(
        self,
        cluster: Cluster,
        seen: Versioned[LedgerMetadata],
        digester: Digester,
        *,
        begun: Begun,
        settings: WriterSettings = USUAL,
        standing: Standing = FIRST,
        unjoined: Collection[str] = (),
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
            unjoined=unjoined,
        )
        self._transactions = standing.transactions
        encoder = RecordEncoder(seen.value, digester, schema, standing.transactions)
        self._writer = Writer(machine, self._members, encoder, settings)
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
        """The last acknowledged entry, -1 if there is none."""
        return self._writer.machine.pending.last_add_confirmed

    @property
    def last_add_fully_replicated(self) -> int | None:
        """The last entry up to which all are on every bookie of their write sets, -1 if none is.

        None of a ledger that does not guarantee its write quorum: nobody counts there.
        """
        lagging = self._writer.machine.pending.lagging
        return None if lagging is None else lagging.last_add_fully_replicated

    @property
    def last_add_pushed(self) -> int:
        """The last entry that was given an id, -1 if there is none."""
        if self._settings.is_sync_deferred:
            return self._writer.backlog.last_taken
        return self._writer.machine.pending.last_add_pushed

    @property
    def metadata(self) -> LedgerMetadata:
        """The ledger's metadata as this writer knows it."""
        return self._writer.metadata

    @property
    def faults(self) -> dict[str, str]:
        """Bookies that this writer has given up so far, each with the reason in one line."""
        return self._writer.faults

    @property
    def is_short_of_bookies(self) -> bool:
        """Whether a member failed and no bookie has its place, so that entries get fewer copies.

        Never of a ledger that guarantees its write quorum: there the writer ends.
        """
        machine = self._writer.machine
        return bool(machine.changes.failed) and machine.pending.lagging is None

    def append(self, value: bytes) -> int:
        """Add one entry and return its id once it is durable on an ack quorum.

        With deferred sync it returns at once, and nothing is promised before ``force``.

        Raises:
            LedgerFencedError: another client recovers the ledger; the outcome is unknown.
            OutcomeUnknownError: it was not acknowledged in time; the outcome is unknown.
            NotEnoughBookiesError: too few bookies; the outcome is unknown until recovery.
            LedgerClosedError: the handle is closed.
        """
        self._require_may_wait("append")
        return self._wait_for(self.append_async(value))

    def append_async(self, value: bytes) -> "Future[int]":
        """Add one entry; the future completes, in entry order, with its id.

        Callbacks of the future may append too, by this method: what waits for an acknowledgement,
        as ``append`` does, would wait for itself in a callback, and raises.
        """
        self._require_bytes(is_bytes=isinstance(value, bytes))
        if len(value) > GROUP_BYTES_MAX:
            require_within_bounds(1, len(value))
        self.wait_for_room()
        return self._submit([value], 1, len(value))

    def append_many(self, entries: Entries, *, may_split: bool = False) -> tuple[int, int]:
        """Add all of ``entries`` as one atomic group; returns its first and last id.

        Args:
            may_split: whether more than one group may have (``GROUP_BYTES_MAX``) is added as
                several groups, in order. Each is atomic. Other threads' entries may come between.

        Raises:
            InvalidRequestError: there are none, there are too many, they do not have the ledger's
                schema, or a reader could not decode them. Nothing was added.
        """
        self._require_may_wait("append_many")
        if may_split and count_of(entries):
            add, wait = self.append_many_async, self._wait_for
            return append_in_groups(entries, self.require_appendable, add, wait)
        last = self._wait_for(self.append_many_async(entries))
        return last - len(entries) + 1, last

    def require_appendable(self, entries: Entries, first_row: int = 0) -> None:
        """Refuse what ``append_many`` refuses; nothing is added.

        Args:
            first_row: the number of the first entry, for messages.
        """
        if isinstance(entries, pa.Table):
            self._tables.rows_of(entries, first_row)
        else:
            self._require_values(entries)

    def append_many_async(self, entries: Entries) -> "Future[int]":
        """Like ``append_many``; the future completes, in entry order, with the last id."""
        self.wait_for_room()
        return self.append_at_once(entries)

    def wait_for_room(self) -> None:
        """Wait while too much is not acknowledged, but never in a callback.

        Who waits must hold no lock that callbacks take: room is made behind them.

        Raises:
            NotEnoughBookiesError: nothing was acknowledged for so long that it was given up.
        """
        self.require_own_process()
        if self._writer.backlog.is_full and not self._writer.is_telling_here:
            self._writer.backlog.wait_for_room(self._settings.wait_seconds_max)

    def append_at_once(self, entries: Entries) -> "Future[int]":
        """Like ``append_many_async``, for who has waited for room already, or must not wait."""
        self.require_own_process()
        if not count_of(entries):
            raise InvalidRequestError("there is nothing to append")
        if isinstance(entries, pa.Table):
            rows = self._tables.rows_of(entries)
            return self._submit(rows, rows.num_rows, rows.nbytes)
        values = list(entries)
        return self._submit(values, len(values), self._require_values(values))

    def force(self) -> None:
        """Return once everything added so far, by any thread, is acknowledged.

        Acknowledged means durable on Qa bookies of its write set, with and without deferred sync.
        (BookKeeper's ``force`` waits for all E; here a bookie that hangs holds nobody up.)

        Raises:
            OutcomeUnknownError: there was no answer in time.
            BookKeeperError: what ended the writer; of what was added since the last ``force``
                nothing is known, until recovery decides.
        """
        self._require_may_wait("force")
        last = self._writer.force()
        if last is not None:
            self._wait_for(last)

    def begin_fragment(self) -> "Future[int]":
        """Have entries that are not on their way yet written to bookies that are chosen anew.

        Returns at once; the future completes with the first entry of the new fragment, when it is
        begun, or with ``NotEnoughBookiesError``: then the one before is in use, and nothing is
        wrong with this handle. Entries that are added meanwhile wait for no longer than it takes to
        store one and to change the metadata.

        Raises:
            LedgerClosedError: the handle is closed.
            BookKeeperError: what ended the writer.
        """
        self.require_own_process()
        return self._writer.roll()

    def close(self) -> None:
        """Wait for what was added, then seal the ledger at its last acknowledged entry.

        Nothing is acknowledged behind it (H11). A ledger that guarantees its write quorum is sealed
        when all entries are on every bookie of their write sets, and otherwise left open.

        Raises:
            LedgerFencedError: another client recovers the ledger.
            LedgerClosedError: it was closed at another entry.
            OutcomeUnknownError: the writer or the metadata store gave no answer in time.
            BookKeeperError: what ended the writer; the ledger is left to recovery.
        """
        self.leave()
        if self._is_sealed:
            return
        sealing = Answer(
            self._seal,
            f"ledger-{self.ledger_id}-close",
        )
        if not sealing.comes_within(self._settings.wait_seconds_max):
            raise self._no_end("the metadata store")
        with self.explaining():
            sealing.result()
        self._is_sealed = True

    def leave(self) -> None:
        """Wait until what was added is acknowledged, and leave the ledger OPEN for others.

        Readers of one that goes on in later terms are told how far that is ("writing", rule 9).

        Raises:
            OutcomeUnknownError: the writer gave no answer in time.
            BookKeeperError: what ended the writer; the ledger is left to recovery.
        """
        self.release()
        if self._writer.error is not None:
            raise self._writer.error
        if self._task.is_alive():
            raise self._no_end("the writer")

    def explaining(self) -> AbstractContextManager[None]:
        """An error in its block is an ``InvalidTermError`` where a later term has begun."""
        return self._members.explaining()

    def release(self) -> None:
        """Wait for what was added, without sealing: whoever opens the ledger next recovers it."""
        self._require_may_wait("close")
        self._is_let_go = True
        if self._task.is_alive():
            self._writer.stop()
        seconds = self._settings.wait_seconds_max
        is_there_within(self._has_ended_within, seconds, self._writer.backlog)

    def _has_ended_within(self, seconds: float) -> bool:
        self._task.join(seconds)
        return not self._task.is_alive()

    def _submit(
        self, rows: Sequence[bytes] | pa.RecordBatch, row_count: int, byte_count: int
    ) -> "Future[int]":
        promise = Promise()
        last = self._writer.submit(Submitted(rows, row_count, byte_count, promise))
        return kept(last) if self._settings.is_sync_deferred else promise

    def _require_may_wait(self, what: str) -> None:
        self.require_own_process()
        if self._writer.is_telling_here:
            raise InvalidRequestError(
                f"{what} in a callback of ledger {self.ledger_id} would wait for itself",
                hint="use append_async there, or hand over to another thread",
            )

    def result_within(self, future: "Future[int]", seconds: float) -> int:
        """What ``future`` of an append gives; ``seconds`` begin anew while slow bookies get on.

        Raises:
            TimeoutError: it gave nothing.
        """
        return result_within(future, seconds, self._writer.backlog)

    def _wait_for(self, future: "Future[int]") -> int:
        try:
            return self.result_within(future, self._settings.wait_seconds_max)
        except TimeoutError:
            raise self._no_end("the writer") from None

    def _no_end(self, who: str) -> OutcomeUnknownError:
        machine = self._writer.machine
        what = gap(machine.metadata, machine.pending) if self._task.is_alive() else ""
        what = what and f"; {what}"
        return OutcomeUnknownError(
            f"ledger {self.ledger_id}: {who} gave no answer within "
            f"{self._settings.wait_seconds_max:g} s{what}",
            hint="open the ledger to see; recovery decides about what has no acknowledgement",
        )

    def _seal(self) -> None:
        closed = partial(self._writer.machine.closed, transactions=self._transactions)
        self._cluster.ledgers.update(str(self.ledger_id), closed)

    def _require_values(self, values: Sequence[bytes]) -> int:
        """How many bytes they have, if they can be appended at once."""
        self._require_bytes(is_bytes=all(isinstance(value, bytes) for value in values))
        size = sum(map(len, values))
        require_within_bounds(len(values), size)
        return size

    def _require_bytes(self, *, is_bytes: bool) -> None:
        if not self._is_of_bytes:
            raise InvalidRequestError(
                "this ledger holds rows, not bytes", hint="append a pyarrow.Table by append_many"
            )
        if not is_bytes:
            raise InvalidRequestError("an entry of this ledger is bytes, and nothing else")
