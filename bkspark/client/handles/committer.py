"""The committer: the one thread that decides what of a ledger is acknowledged.

It reacts to events, one at a time: entries submitted, a record stored by a lane, a lane broken, an
end. So no two decisions ever overlap: while an ensemble changes nothing can complete, and what was
counted for a bookie that is replaced is taken back first (features 2.2.1).
"""

import queue
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import pyarrow as pa

from bkspark.client.cluster import Cluster
from bkspark.client.handles.ensemble import Ensemble
from bkspark.client.handles.entries import encode_parts
from bkspark.client.handles.lane import Broken, Stored
from bkspark.client.records import Seen
from bkspark.client.runtime import THREADS, Inbox, Runtime
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.protocol.adding import PendingAdd, PendingAdds
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.protocol.record import AddRecord

GROUP_ENTRIES_MAX = 10_000
GROUP_BYTES_MAX = 4 * 2**20
GROUPS_IN_FLIGHT_MAX = 4
OUTSTANDING_BYTES_MAX = 64 * 2**20
"""Back-pressure: callers wait while more than this is not acknowledged."""

ADD_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Submitted:
    """Rows that get neighbouring ids in one record; ``future`` gets the last one."""

    rows: Sequence[bytes] | pa.RecordBatch
    row_count: int
    byte_count: int
    future: "Future[int]"


@dataclass(frozen=True, slots=True)
class Stop:
    """End after what was submitted before."""


Event = Submitted | Stored | Broken | Stop


@dataclass(slots=True)
class _Group:
    """A record on its way and the submissions it holds."""

    add: PendingAdd
    record: journal.EncodedRecord
    submitted: list[Submitted]
    deadline: float = field(default_factory=lambda: time.monotonic() + ADD_TIMEOUT_SECONDS)


class Committer:
    """Runs one writer's side of the protocol for one ledger in one term."""

    def __init__(
        self,
        cluster: Cluster,
        seen: Seen[LedgerMetadata],
        digester: Digester,
        schema: pa.Schema,
        runtime: Runtime = THREADS,
    ) -> None:
        self.inbox: Inbox[Event] = runtime.inbox()
        self.pending = PendingAdds(seen.value.quorum)
        self.error: BookKeeperError | None = None
        self.length_bytes = 0
        self._ledger_id = seen.value.ledger_id
        self._term, self._token = seen.value.term, seen.value.token
        self._digester = digester
        self._schema = schema
        self._ensemble = Ensemble(cluster, seen, self.inbox.put, runtime)
        self._gathered: deque[Submitted] = deque()
        self._groups: deque[_Group] = deque()
        self._pushed_bytes = 0
        self._outstanding = 0
        self._room = threading.Condition()
        self._is_stopping = False

    # --- called by others ------------------------------------------------------------------

    def submit(self, submitted: Submitted) -> None:
        """Hand rows over; waits while too much is not acknowledged.

        Raises:
            LedgerClosedError: the handle was closed.
            BookKeeperError: what ended the writer.
        """
        with self._room:
            self._room.wait_for(
                lambda: self._outstanding < OUTSTANDING_BYTES_MAX or self._has_ended
            )
            if self._has_ended:
                raise self.error or LedgerClosedError(f"ledger {self._ledger_id} is closed")
            self._outstanding += submitted.byte_count
            self.inbox.put(submitted)  # inside: behind the end nobody would look at it

    def run(self) -> None:
        """The thread's work: events until everything is done."""
        try:
            while not self._is_done():
                self._handle(self._next_event())
                self._drain()
                self._advance()
        except BookKeeperError as error:
            self._fail(error)
        except Exception as error:
            self._fail(OutcomeUnknownError(f"ledger {self._ledger_id}: {error!r}"))
        finally:
            self._end()

    @property
    def metadata(self) -> LedgerMetadata:
        return self._ensemble.seen.value

    # --- events ----------------------------------------------------------------------------

    def _next_event(self) -> Event:
        if not self._groups:
            return self.inbox.get()
        try:
            return self.inbox.get(timeout=max(0.0, self._groups[0].deadline - time.monotonic()))
        except queue.Empty:
            raise OutcomeUnknownError(
                f"ledger {self._ledger_id}: entry {self._groups[0].add.first_entry_id} was not "
                f"acknowledged within {ADD_TIMEOUT_SECONDS:.0f} s",
                hint="recovery decides about it; open the ledger to see",
            ) from None

    def _drain(self) -> None:
        while not self.inbox.empty():
            self._handle(self.inbox.get())

    def _handle(self, event: Event) -> None:
        match event:
            case Submitted():
                self._gathered.append(event)
            case Stored():
                self._count(event)
            case Broken():
                self._replace(event)
            case Stop():
                self._is_stopping = True

    def _count(self, stored: Stored) -> None:
        if not self._ensemble.has(stored.ensemble_index, stored.bookie_id):
            return
        for group in self._groups:
            if group.add.first_entry_id == stored.first_entry_id:
                group.add.counted.add(stored.ensemble_index)

    def _replace(self, broken: Broken) -> None:
        """Another bookie takes the place, and gets everything that is not acknowledged."""
        if isinstance(broken.error, LedgerFencedError):
            raise broken.error
        if not self._ensemble.has(broken.ensemble_index, broken.bookie_id):
            return
        first = self.pending.last_add_confirmed + 1
        if self._ensemble.replace(broken.ensemble_index, str(broken.error), first):
            self.pending.replace_members([broken.ensemble_index])
            for group in self._groups:
                self._ensemble.send_to(broken.ensemble_index, group.record)

    # --- decisions -------------------------------------------------------------------------

    def _advance(self) -> None:
        self._acknowledge()
        while self._gathered and len(self._groups) < GROUPS_IN_FLIGHT_MAX:
            self._send_group()
        self._require_hope()

    def _acknowledge(self) -> None:
        ticket = self.pending.ticket()
        if ticket is None:
            return
        self._ensemble.require_current()
        acknowledged = len(self.pending.acknowledge(ticket))
        freed = 0
        for group in [self._groups.popleft() for _ in range(acknowledged)]:
            self.length_bytes = group.record.record.length_bytes
            entry_id = group.add.first_entry_id - 1
            for submitted in group.submitted:
                entry_id += submitted.row_count
                freed += submitted.byte_count
                submitted.future.set_result(entry_id)
        with self._room:
            self._outstanding -= freed
            self._room.notify_all()

    def _send_group(self) -> None:
        """Put what has gathered, up to the limits, into one record and send it."""
        taken = [self._gathered.popleft()]
        rows, size = taken[0].row_count, taken[0].byte_count
        while self._gathered and self._fits(taken[0], self._gathered[0], rows, size):
            taken.append(self._gathered.popleft())
            rows, size = rows + taken[-1].row_count, size + taken[-1].byte_count
        confirmed = self.pending.last_add_confirmed
        add = self.pending.push(rows)
        self._pushed_bytes += size
        parts, messages = encode_parts(
            _batch(taken, self._schema),
            self._digester,
            ledger_id=self._ledger_id,
            first_entry_id=add.first_entry_id,
            quorum=self.pending.quorum,
        )
        record = AddRecord(
            ledger_id=self._ledger_id,
            term=self._term,
            token=self._token,
            first_entry_id=add.first_entry_id,
            last_entry_id=add.last_entry_id,
            last_add_confirmed=confirmed,
            length_bytes=self._pushed_bytes,
            quorum=self.pending.quorum,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            parts=parts,
        )
        group = _Group(add, journal.encode(record, self._digester, messages), taken)
        self._groups.append(group)
        self._ensemble.send(group.record)

    def _fits(self, first: Submitted, following: Submitted, rows: int, size: int) -> bool:
        """Rows of tables are not put together with others."""
        return (
            not isinstance(first.rows, pa.RecordBatch)
            and not isinstance(following.rows, pa.RecordBatch)
            and rows + following.row_count <= GROUP_ENTRIES_MAX
            and size + following.byte_count <= GROUP_BYTES_MAX
        )

    def _require_hope(self) -> None:
        """Fail at once what can no longer be acknowledged."""
        live = {index for index in range(self.pending.quorum.ensemble_size) if self._is_live(index)}
        for group in self._groups:
            reachable = group.add.counted | live
            if not all(
                self.pending.quorum.is_ack_quorum(ws, reachable) for ws in group.add.write_sets
            ):
                reasons = "; ".join(self._ensemble.failures.values())
                raise NotEnoughBookiesError(
                    f"ledger {self._ledger_id}: entry {group.add.first_entry_id} cannot reach "
                    f"{self.pending.quorum.ack_quorum_size} bookies ({reasons})",
                    hint="recovery decides about it; add bookies and open the ledger",
                )

    def _is_live(self, index: int) -> bool:
        member = self.metadata.last_fragment.ensemble[index]
        return self._ensemble.has(index, member.bookie_id)

    # --- the end ---------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self.error is not None or self._is_stopping

    def _is_done(self) -> bool:
        return self._is_stopping and not self._gathered and not self._groups

    def _fail(self, error: BookKeeperError) -> None:
        self.error = error

    def _end(self) -> None:
        """Release everything; whoever still waits learns that the outcome is unknown."""
        with self._room:
            self._is_stopping = True
            self._room.notify_all()
        self._ensemble.stop(timeout=1.0)
        self._drain_quietly()
        for submitted in [s for group in self._groups for s in group.submitted]:
            submitted.future.set_exception(self.error or self._never_sent())
        for submitted in self._gathered:
            submitted.future.set_exception(self._never_sent())

    def _drain_quietly(self) -> None:
        while not self.inbox.empty():
            event = self.inbox.get()
            if isinstance(event, Submitted):
                self._gathered.append(event)

    def _never_sent(self) -> BookKeeperError:
        return self.error or LedgerClosedError(f"ledger {self._ledger_id} is closed")


def _batch(taken: Sequence[Submitted], schema: pa.Schema) -> pa.RecordBatch:
    first = taken[0].rows
    if isinstance(first, pa.RecordBatch):
        return first
    values = [value for submitted in taken for value in submitted.rows]
    return pa.record_batch([pa.array(values, pa.binary())], schema=schema)
