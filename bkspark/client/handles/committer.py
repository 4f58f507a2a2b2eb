"""The committer: the one thread that decides what of a ledger is acknowledged.

It reacts to events, one at a time: entries submitted, a record stored by a lane, a lane broken, an
end. So no two decisions ever overlap: while an ensemble changes nothing can complete, and what was
counted for a bookie that is replaced is taken back first.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable

import pyarrow as pa

from bkspark import environment
from bkspark.client.cluster import Cluster
from bkspark.client.handles.ensemble import Ensemble
from bkspark.client.handles.entries import encode_parts
from bkspark.client.handles.events import Force, Idle, Stop
from bkspark.client.handles.grouping import GROUP_ENTRIES_MAX, Gathered, Group, Submitted, batch_of
from bkspark.client.handles.lane import Broken, Lane, Stored, seconds_for
from bkspark.client.handles.promise import Promise
from bkspark.client.handles.settings import USUAL, WriterSettings
from bkspark.client.records import Seen
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.protocol.adding import PendingAdds
from bkspark.protocol.ensemble_change import members_to_replace
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.protocol.record import AddRecord, confirmation

logger = logging.getLogger(__name__)

GROUPS_IN_FLIGHT_MAX = 4
OUTSTANDING_BYTES_MAX = 64 * 2**20
"""Back-pressure: callers wait while more than this is not acknowledged."""

LANES_END_SECONDS = 3.0
"""How long an ending writer waits for copies that no acknowledgement needs any more."""

Event = Submitted | Stored | Broken | Idle | Force | Stop


class Committer:
    """Runs one writer's side of the protocol for one ledger in one term."""

    def __init__(
        self,
        cluster: Cluster,
        seen: Seen[LedgerMetadata],
        digester: Digester,
        schema: pa.Schema,
        settings: WriterSettings = USUAL,
    ) -> None:
        self.inbox: environment.Inbox[Event] = environment.inbox()
        self.pending = PendingAdds(seen.value.quorum)
        self.error: BookKeeperError | None = None
        self.length_bytes = 0
        self.last_taken = self.pending.last_add_pushed
        self._ledger_id = seen.value.ledger_id
        self._term, self._token = seen.value.term, seen.value.token
        self._digester = digester
        self._schema = schema
        self._settings = settings
        self._ensemble = Ensemble(cluster, seen, self.inbox.put)
        self._gathered = Gathered(is_held=settings.is_sync_deferred)
        self._last_promise: Promise | None = None
        self._groups: deque[Group] = deque()
        self._pushed_bytes = 0
        self._outstanding = 0
        self._acknowledged_at = 0.0
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._is_stopping = False
        self._is_telling = False
        self._thread = 0

    # --- called by others ------------------------------------------------------------------

    def wait_for_room(self) -> None:
        """Wait while too much is not acknowledged, but never in a callback.

        Who waits must hold no lock that callbacks take: room is made behind them.

        Raises:
            NotEnoughBookiesError: nothing was acknowledged for so long that it was given up.
        """
        if self._outstanding >= OUTSTANDING_BYTES_MAX and not self.is_telling_here:
            with self._lock:
                self._wait_for_room()

    def submit(self, submitted: Submitted) -> int:
        """Hand rows over; returns the id that the last of them gets, if nothing goes wrong.

        Never waits, see ``wait_for_room``.

        Raises:
            LedgerClosedError: the handle was closed.
            BookKeeperError: what ended the writer.
        """
        with self._lock:
            if self._has_ended:
                raise self._never_sent()
            self._outstanding += submitted.byte_count
            self.last_taken += submitted.row_count
            self._last_promise = submitted.promise
            self.inbox.put(submitted)  # inside: behind the end nobody would look at it
            return self.last_taken

    def force(self) -> Promise | None:
        """Have all written that was submitted; the promise of the last of it, if there is one.

        Acknowledgements come in entry order, so whoever has that one has all.
        """
        with self._lock:  # the promise and all before it lie in front of the event
            if self._settings.is_sync_deferred:
                self.inbox.put(Force())
            return self._last_promise

    def _wait_for_room(self) -> None:
        if not self._room.wait_for(
            lambda: self._outstanding < OUTSTANDING_BYTES_MAX or self._has_ended,
            self._settings.wait_seconds_max,
        ):
            raise NotEnoughBookiesError(
                f"ledger {self._ledger_id}: {self._outstanding} bytes wait for their "
                "acknowledgement and the entry was not taken",
                hint="bring back bookies that hang, then append again",
            )

    @property
    def is_telling_here(self) -> bool:
        """Whether the caller runs in a callback of a future that is being completed here.

        All acknowledgements wait for such a callback, so it must not wait for one.
        """
        return self._is_telling and threading.get_ident() == self._thread

    def run(self) -> None:
        """The thread's work: events until everything is done."""
        self._thread = threading.get_ident()
        try:
            while not self._is_done():
                self._handle(self._next_event())
                self._drain()
                self._advance()
        except BookKeeperError as error:
            self.error = error
        except Exception as error:
            self.error = OutcomeUnknownError(f"ledger {self._ledger_id}: {error!r}")
        finally:
            if self.error is not None:
                logger.info("ledger %d: its writer ends: %s", self._ledger_id, self.error.args[0])
            self._end()

    @property
    def metadata(self) -> LedgerMetadata:
        return self._ensemble.seen.value

    @property
    def faults(self) -> dict[str, str]:
        return dict(self._ensemble.failures)

    # --- events ----------------------------------------------------------------------------

    def _next_event(self) -> Event:
        """The next event; that nothing happened in time is one too."""
        now, lane = environment.monotonic(), self._ensemble.slowest()
        due, event = self._next_due()
        if lane is not None:
            seconds = self._settings.add_entry_timeout_seconds + lane.extra_seconds
            limit = lane.since + seconds
            if due is None or limit < due:
                due, event = limit, lambda: self._too_slow(lane, seconds)
        try:
            return self.inbox.get(timeout=None if due is None else max(0.0, due - now))
        except environment.Empty:
            return event()

    def _next_due(self) -> tuple[float | None, Callable[[], Event]]:
        """Until when to wait, in monotonic seconds, and what has happened if nothing has."""
        if self._groups:
            return self._groups[0].deadline, self._quorum_timeout
        if self._settings.explicit_lac_ms and self.pending.has_unsaid_lac:
            return self._acknowledged_at + self._settings.explicit_lac_ms / 1000, Idle
        return None, Idle

    def _too_slow(self, lane: Lane, seconds: float) -> Event:
        who, limit = lane.address.bookie_id, round(seconds, 2)
        error = BookieUnavailableError(f"bookie {who} did not store a record within {limit:g} s")
        return Broken(lane.ensemble_index, who, error)

    def _quorum_timeout(self) -> Event:
        group = self._groups[0]
        seconds = self._seconds_to_acknowledge(group.record.record.length_bytes)
        raise OutcomeUnknownError(
            f"ledger {self._ledger_id}: entry {group.add.first_entry_id} was not "
            f"acknowledged within {round(seconds, 2):g} s",
            hint="recovery decides about it; open the ledger to see",
        )

    def _seconds_to_acknowledge(self, length_bytes: int) -> float:
        """How long a group may take behind which the ledger has ``length_bytes``."""
        extra = seconds_for(length_bytes - self.length_bytes)
        return self._settings.add_entry_quorum_timeout_seconds + extra

    def _say_lac(self) -> None:
        """Tell tail readers of the last entries; nobody waits for it and it counts for nothing."""
        record = confirmation(
            ledger_id=self._ledger_id,
            term=self._term,
            token=self._token,
            last_add_confirmed=self.pending.last_add_confirmed,
            length_bytes=self.length_bytes,
            quorum=self.pending.quorum,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            stored=self.pending.stored,
        )
        self.pending.confirmed()
        self._ensemble.send(journal.encode(record, self._digester))

    def _drain(self) -> None:
        """Handle what else has come, but send before callers fall silent if they never do."""
        for _ in range(GROUP_ENTRIES_MAX):
            if self.inbox.empty():
                return
            self._handle(self.inbox.get())

    def _handle(self, event: Event) -> None:
        match event:
            case Submitted():
                self._gathered.add(event)
            case Stored():
                self._count(event)
            case Broken():
                self._replace(event)
            case Idle():
                self._say_lac()
            case Force():
                self._gathered.let_go()
            case Stop():
                self._is_stopping = True
                self._gathered.hold_no_more()

    def _count(self, stored: Stored) -> None:
        if not self._ensemble.has(stored.ensemble_index, stored.bookie_id):
            return
        self._ensemble.stored(stored.ensemble_index, stored.first_entry_id)
        self.pending.count(stored.ensemble_index, stored.first_entry_id)

    def _replace(self, broken: Broken) -> None:
        """Others take the places that must be filled, and get all that is not acknowledged."""
        if isinstance(broken.error, LedgerFencedError):
            raise broken.error
        if not self._ensemble.has(broken.ensemble_index, broken.bookie_id):
            return
        reason, first = str(broken.error), self.pending.last_add_confirmed + 1
        self._ensemble.drop(broken.ensemble_index, reason)
        for index in members_to_replace(
            self.pending.quorum,
            self._ensemble.failed,
            is_delayed=self._settings.is_change_delayed,
        ):
            if not self._ensemble.replace(index, reason, first):
                break
            self.pending.replace_members([index])
            for group in self._groups:
                self._ensemble.send_to(index, group.record)
        self._ensemble.tell_of_gaps(first)

    # --- decisions -------------------------------------------------------------------------

    def _advance(self) -> None:
        self._acknowledge()
        while self._gathered.has_next and self._can_send:
            self._send_group()
        self._require_hope()

    @property
    def _can_send(self) -> bool:
        return len(self._groups) < GROUPS_IN_FLIGHT_MAX and not self._ensemble.is_congested

    def _acknowledge(self) -> None:
        ticket = self.pending.ticket()
        if ticket is None:
            return
        self._ensemble.require_current()
        done = [self._groups.popleft() for _ in self.pending.acknowledge(ticket)]
        if not done:
            return
        self.length_bytes = done[-1].record.record.length_bytes
        self._acknowledged_at = environment.monotonic()
        with self._room:
            self._outstanding -= sum(group.byte_count for group in done)
            self._room.notify_all()
        self._is_telling = True
        for group in done:
            group.complete()
        self._is_telling = False
        with self._lock:
            if self._last_promise is done[-1].submitted[-1].promise:
                self._last_promise = None  # its callbacks may hold the handle

    def _send_group(self) -> None:
        """Put what has gathered, up to the limits, into one record and send it."""
        taken = self._gathered.take()
        confirmed = self.pending.last_add_confirmed
        add = self.pending.push(sum(submitted.row_count for submitted in taken))
        self._pushed_bytes += sum(submitted.byte_count for submitted in taken)
        parts, messages = encode_parts(
            batch_of(taken, self._schema),
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
            stored=self.pending.stored,
        )
        deadline = environment.monotonic() + self._seconds_to_acknowledge(self._pushed_bytes)
        group = Group(add, journal.encode(record, self._digester, messages), taken, deadline)
        self._groups.append(group)
        self._ensemble.send(group.record)

    def _require_hope(self) -> None:
        """Fail at once what can no longer be acknowledged."""
        failed = self._ensemble.failed
        if not failed:
            return
        live = set(range(self.pending.quorum.ensemble_size)) - failed
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

    # --- the end ---------------------------------------------------------------------------

    @property
    def _has_ended(self) -> bool:
        return self.error is not None or self._is_stopping

    def _is_done(self) -> bool:
        return self._is_stopping and not self._gathered and not self._groups

    def _end(self) -> None:
        """Release everything; whoever still waits learns that the outcome is unknown."""
        with self._room:
            self._is_stopping = True
            self._room.notify_all()
        self._ensemble.stop(LANES_END_SECONDS)
        self._drain_quietly()
        self._is_telling = True
        for submitted in [s for group in self._groups for s in group.submitted]:
            submitted.promise.set_exception(self.error or self._never_sent())
        for submitted in self._gathered:
            submitted.promise.set_exception(self._never_sent())
        self._is_telling = False

    def _drain_quietly(self) -> None:
        while not self.inbox.empty():
            event = self.inbox.get()
            if isinstance(event, Submitted):
                self._gathered.add(event)

    def _never_sent(self) -> BookKeeperError:
        return self.error or LedgerClosedError(
            f"ledger {self._ledger_id} is closed", hint="it can be read; write to a new one"
        )
