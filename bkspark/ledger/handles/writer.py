"""Runs a writer's state machine: feeds it events, and carries out its instructions.

The protocol (``writing``) decides. Callers submit appends; lanes report stored records. The thread
with an event runs the machine, under the writer's lock, and carries out instructions that take no
time. Slow work is done without the lock:

- a metadata check: by the lane that caused the check, if idle; otherwise by the writer's own task;
- a search for a bookie, and a compare-and-set: by a separate task, so that the rest continues;
- callbacks of futures, and the end: by the writer's own task, which also watches the time.
"""

import logging
import math
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    LedgerClosedError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.backlog import Backlog
from bkspark.ledger.handles.entries import RecordEncoder
from bkspark.ledger.handles.grouping import (
    PAUSE_SECONDS,
    QUICK_CHECK_SECONDS,
    Group,
    Pauses,
    Submission,
)
from bkspark.ledger.handles.lane import Appender, Lane, Lanes, seconds_for
from bkspark.ledger.handles.membership import Membership, News
from bkspark.ledger.handles.promise import Answers, Promise, Rolls, Teller, Unacknowledged
from bkspark.ledger.handles.settings import IDLE_SECONDS_MAX, USUAL, WriterSettings, busy_seconds
from bkspark.progress import overslept
from bkspark.protocol.ledger.metadata import CommitTimes, LedgerMetadata
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd
from bkspark.protocol.writer.steps import Event, Failed, Idle, TimedOut
from bkspark.protocol.writer.writing import LedgerWriter

# --- deadlines -----------------------------------------------------------------------------------
# Time limits of a writer: when an awaited answer counts as missing.


@dataclass(frozen=True, slots=True)
class Due:
    """A moment in monotonic seconds, and the event that happens then unless the wait ends before.

    Attributes:
        what: the awaited answer; equal values mean the same wait.
        event: returns the event; None if progress was made meanwhile.
    """

    at: float
    what: Hashable
    event: Callable[[], Event | None] = field(compare=False)


class Deadlines:
    """The time limits of one writer.

    Attributes:
        wakes_at: when the writer's task looks at the time next; minus infinity while the task
            works, because it looks afterwards.
    """

    def __init__(
        self, settings: WriterSettings, machine: LedgerWriter, backlog: Backlog, lanes: Lanes
    ) -> None:
        self.wakes_at = -math.inf
        self._sleeps_until = math.inf
        self._settings = settings
        self._machine = machine
        self._backlog = backlog
        self._lanes = lanes
        self._is_idle_at = math.inf
        self._acknowledged_at = -math.inf
        self._is_busy = False
        limits = (settings.add_entry_timeout_seconds, settings.add_entry_quorum_timeout_seconds)
        idle = max(IDLE_SECONDS_MAX, settings.idle_seconds(0.0, is_busy=False))
        self._least_seconds = min(idle, min(limits) / 2)  # disks are looked at halfway

    def acknowledged(self) -> None:
        """Note that an acknowledgement came just now.

        The writer's task is woken no earlier than by ``IDLE_SECONDS_MAX``: if it sleeps, a lane
        made the acknowledgement, and that lane knows first that the writer is idle.
        """
        seconds = self.idle_seconds
        if self.wakes_at > -math.inf:
            seconds = max(IDLE_SECONDS_MAX, seconds)
        self._acknowledged_at = environment.monotonic()
        self._is_idle_at = self._acknowledged_at + seconds

    def sent(self, now: float) -> None:
        """Note that a record is sent ``now``."""
        pause = now - self._acknowledged_at
        self._is_busy = pause < busy_seconds(self._lanes.store_seconds)

    @property
    def idle_seconds(self) -> float:
        """The pause after which the writer stores its last-add-confirmed; infinite for never."""
        return self._settings.idle_seconds(self._lanes.store_seconds, is_busy=self._is_busy)

    def seconds_to_acknowledge(self, length_bytes: int) -> float:
        """Return the time limit of a group after which the ledger has ``length_bytes``."""
        extra = seconds_for(length_bytes - self._machine.pending.length_bytes)
        return self._settings.add_entry_quorum_timeout_seconds + extra

    def fall_asleep(self) -> Due | None:
        """Return the next deadline, for which the writer's own task now sleeps."""
        due = self.next()
        self.wakes_at = self._sleeps_until = math.inf if due is None else due.at
        return due

    def seconds_to_sleep(self) -> float | None:
        """Return how long to sleep unless woken; None for ever."""
        if self._sleeps_until == math.inf:
            return None
        now = environment.monotonic()
        self._sleeps_until = max(now, self._sleeps_until)
        return self._sleeps_until - now

    def event(self, due: Due) -> Event | None:
        """Return the event of ``due``, which is over; None if progress was made.

        If the process was stopped, bookies had no chance to answer: all limits begin anew.
        """
        if not overslept(self._sleeps_until):
            return due.event()
        self._lanes.begin_anew()
        self._backlog.begin_anew()
        return None

    @property
    def is_watched_soon(self) -> bool:
        """Whether the writer's task looks at the time before any limit that begins now."""
        return self.wakes_at <= environment.monotonic() + self._least_seconds

    def next(self) -> Due | None:
        """Return the earliest deadline."""
        if self._machine.has_ended:
            return None
        due, lane = self._of_entries(), self._lanes.slowest()
        if lane is not None:
            limit = self._settings.add_entry_timeout_seconds + lane.extra_seconds
            if due is None or lane.since + limit < due.at:
                return self._of_lane(lane, limit)
        return due

    def _of_entries(self) -> Due | None:
        group = next(iter(self._backlog.groups.values()), None)
        if group is not None:
            late = TimedOut(group.add.first_entry_id, group.seconds)
            return Due(group.deadline, late, lambda: self._timed_out(late))
        if self._is_idle_at < math.inf and self._machine.pending.has_unsaid_lac:
            return Due(self._is_idle_at, "idle", Idle)
        return None

    def _of_lane(self, lane: Lane, seconds: float) -> Due:
        bookie_name = lane.address.bookie_id
        if lane.looks_at_half_time:
            return Due(lane.since + seconds / 2, ("disk", bookie_name), lane.look)

        def too_slow() -> Event | None:
            if lane.gets_on():
                lane.begin_anew()
                self._backlog.renewals += 1
                return None
            limit = round(seconds, 2)
            error = BookieUnavailableError(
                f"bookie {bookie_name} did not store a record within {limit:g} s"
            )
            return Failed(lane.ensemble_index, bookie_name, error)

        return Due(lane.since + seconds, ("bookie", bookie_name), too_slow)

    def _timed_out(self, late: TimedOut) -> Event | None:
        """Return the event, unless a bookie that owes the entry makes progress."""
        period = self._settings.add_entry_quorum_timeout_seconds
        if self._lanes.has_moved(late.first_entry_id, environment.monotonic() - period):
            self._backlog.begin_anew()
            return None
        return late


# --- turns ---------------------------------------------------------------------------------------
# State of the thread that runs a writer's machine.


Slow = Callable[[], News]
"""An instruction that may take long to carry out."""


class Turns:
    """State of the machine's runner.

    Attributes:
        events: not taken yet, each with the version of the metadata it reports.
        is_amid: whether a turn is running.
        check: a metadata check to be made.
        check_seconds: how long the last check took; infinite before the first.
        pauses: for callers that were told together.
        is_over: whether all work is done.
    """

    def __init__(self) -> None:
        self.events: deque[News] = deque()
        self.is_amid = False
        self.check: Slow | None = None
        self.check_seconds = math.inf
        self.pauses = Pauses()
        self.is_over = False


def nothing() -> None:
    """Do nothing; wakes the writer's task, so that it looks at the time."""


def known(ledger: LedgerMetadata, error: BaseException) -> BookKeeperError:
    """Return why a writer ends. It has sent entries, so an unsent question leaves their outcome
    unknown.
    """
    if isinstance(error, NothingSentError):
        return error.in_doubt(f"ledger {ledger.ledger_id}")
    if isinstance(error, BookKeeperError):
        return error
    return OutcomeUnknownError(f"ledger {ledger.ledger_id}: {error!r}")


# --- writer --------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

LANES_END_SECONDS = 3.0
"""How long an ending writer waits for copies that no acknowledgement needs."""


class WriterRunner:
    """Runs one writer's side of the protocol for one ledger in one term.

    Attributes:
        machine: decides; used only under the lock.
        backlog: unacknowledged submissions.
        error: the error that ended the writer.
    """

    def __init__(
        self,
        machine: LedgerWriter,
        members: Membership,
        encoder: RecordEncoder,
        settings: WriterSettings = USUAL,
        answers: Answers | None = None,
    ) -> None:
        self.machine = machine
        begin = machine.pending.last_add_confirmed
        self.backlog = Backlog(last_taken=begin, is_held=settings.is_sync_deferred)
        self.error: BookKeeperError | None = None
        self._own_work: environment.Inbox[Callable[[], None]] = environment.inbox()
        self._lock = environment.lock()
        self._turns = Turns()
        self._members = members
        self._encoder = encoder
        self._teller = Teller(self._lock, self._own_work.put, answers or Answers())
        ledger_id = machine.metadata.ledger_id
        self._rolls = Rolls(ledger_id, self._teller, self._own_work.put, self._go_on)
        with self._lock:
            self._turns.is_amid = True  # lanes may report before all lanes exist
            self._lanes = Lanes(self._open_lane)
            self._deadlines = Deadlines(settings, self.machine, self.backlog, self._lanes)
            for index, member in enumerate(machine.ensemble):
                self._lanes.join(index, self._members.address(member))
            self._turns.is_amid = False
            self._leave(self._turn())

    # --- called by others ------------------------------------------------------------------

    def submit(self, submitted: Submission) -> int:
        """Take rows without waiting; return the id of their last entry, if no error follows.

        Raises:
            LedgerClosedError: the handle was closed.
            BookKeeperError: the error that ended the writer.
        """
        with self._lock:
            if not self.backlog.has_ended:
                last = self.backlog.add(submitted)
                # Else sending earlier rows sends these too.
                may_be_next = self.backlog.gathered.is_due or self._turns.pauses.is_on
                if may_be_next and self._may_send:
                    self._leave(self._turn())
                return last
        raise self._never_sent()

    def force(self) -> Promise | None:
        """Write all held submissions; return the promise of the last entry, if any.

        Acknowledgements come in entry order, so the last one implies all. Raises as ``submit``.
        """
        with self._lock:
            if self.error is None:
                last = self.backlog.last_promise
                self.backlog.gathered.let_go()
                self._leave(self._turn())
                return last
        raise self._never_sent()

    def roll(self) -> Promise:
        """Write later entries to a new fragment; the promise gives its first entry.

        Raises:
            As ``submit``.
        """
        with self._lock:
            if not self.backlog.has_ended:
                promise = self._rolls.ask()
                self._leave(self._turn(steps.Roll()))
                return promise
        raise self._never_sent()

    def stop(self) -> None:
        """End after all earlier submissions; returns at once and takes no lock."""
        self._own_work.put(self._stop)

    def on_end(self, tell: Callable[[BookKeeperError], None]) -> None:
        """Call ``tell`` with the error that ends the writer, after its entries' callers were told.

        The writer's task calls ``tell``, which must refer to no handle.
        """
        self._teller.on_end = tell

    @property
    def is_telling_here(self) -> bool:
        """Whether the caller runs in a callback of a future completed by this writer.

        All acknowledgements wait for the callback, so the callback must not wait for an
        acknowledgement.
        """
        return self._teller.is_telling_here

    @property
    def answers(self) -> Answers:
        """What callers are told."""
        return self._teller.answers

    @property
    def unacknowledged(self) -> Unacknowledged:
        """The entries without an acknowledgement: those sent, or all taken with deferred sync."""
        pending, backlog, mine = self.machine.pending, self.backlog, self.metadata
        first = pending.last_add_confirmed + 1
        last = backlog.last_taken if backlog.is_held else pending.last_add_pushed
        return Unacknowledged(mine.ledger_id, first, last - first + 1, mine.term)

    @property
    def metadata(self) -> LedgerMetadata:
        return self.machine.metadata

    @property
    def faults(self) -> dict[str, str]:
        return dict(self.machine.changes.failures)

    def run(self) -> None:
        """Run the writer's own task: work left by other threads, until all is done."""
        while not self._turns.is_over:
            work = self._next_work()
            try:
                work()
            except Exception as error:
                self._bring(steps.Stop(known(self.metadata, error)))

    # --- events ----------------------------------------------------------------------------

    def _report(self, event: steps.Stored | steps.Failed) -> None:
        """Take a lane's event; an idle lane also makes the check that follows."""
        with self._lock:
            lane = self._lanes.at(event.ensemble_index, event.bookie_id)
            if lane is not None and isinstance(event, steps.Stored):
                lane.answered(event.first_entry_id)
            check = self._claimed(self._turn(event), lane)
        while check is not None and lane is not None:
            news = self._news_of(check)
            with self._lock:
                lane.come_back()
                check = self._claimed(self._turn(*news), lane)
                self._let_tell(lane)
            self._let_callers_return()

    def _let_callers_return(self) -> None:
        """After a check, let callers that were told append again before entries are sent.

        The last of them sends, or this thread when the pause is over.
        """
        pauses = self._turns.pauses
        if pauses.is_on and not pauses.all_come_within(PAUSE_SECONDS):
            with self._lock:
                pauses.end(len(self.backlog.gathered))
                self._go_on()

    def _let_tell(self, lane: Lane) -> None:
        """Let ``lane`` tell when the writer is idle, so that readers learn of the last entries."""
        pending, seconds = self.machine.pending, self._deadlines.idle_seconds
        if pending.has_unsaid_lac and seconds < math.inf:
            idle = partial(self._confirm, pending.last_add_confirmed)
            lane.tell_when_idle(seconds, idle)

    def _confirm(self, last_add_confirmed: int) -> None:
        """Store the last-add-confirmed if it is still ``last_add_confirmed``."""
        with self._lock:
            if self.machine.pending.last_add_confirmed == last_add_confirmed:
                self._leave(self._turn(Idle()))

    def _bring(self, event: steps.Event, seen: Versioned[LedgerMetadata] | None = None) -> None:
        with self._lock:
            self._leave(self._turn(event, seen))

    def _claimed(self, check: Slow | None, lane: Lane | None) -> Slow | None:
        """Return the check if the lane makes it itself: an idle lane, and no waiting callbacks.

        Otherwise the writer's own task makes the check, and then runs the callbacks without a
        switch.
        """
        if check and lane and lane.has_nothing_to_do and self.backlog.is_quickly_told:
            lane.is_away = True
            return check
        self._leave(check)
        return None

    def _leave(self, check: Slow | None) -> None:
        if check is not None:
            self._own_work.put(partial(self._make, check))

    def _make(self, check: Slow) -> None:
        self._bring(*self._news_of(check))
        self._let_callers_return()

    def _aside(self, work: Slow) -> None:
        name = f"ledger-{self.metadata.ledger_id}-change"
        environment.start(lambda: self._bring(*self._news_of(work)), name)

    def _check(self, ticket: CheckTicket, seen: Versioned[LedgerMetadata]) -> News:
        begin = environment.monotonic()
        news = self._members.check(ticket, seen)
        self._turns.check_seconds = environment.monotonic() - begin
        return news

    def _news_of(self, work: Slow) -> News:
        try:
            return work()
        except BookKeeperError as error:
            return steps.Stop(known(self.metadata, error)), None
        except Exception as error:
            return steps.Stop(known(self.metadata, error)), None

    # --- the machine -----------------------------------------------------------------------

    def _turn(
        self, event: steps.Event | None = None, seen: Versioned[LedgerMetadata] | None = None
    ) -> Slow | None:
        """Run the machine until it needs an event; return a metadata check to be made.

        An interrupted turn ends the writer: half-done work is not continued.
        """
        turns = self._turns
        if event is not None:
            turns.events.append((event, seen))
        if turns.is_amid:
            return None  # the turn running lower on this stack takes it
        turns.is_amid = True
        try:
            if self._run_machine():
                self._watch()
        except BaseException as error:
            self.machine.has_ended = True
            self._end(known(self.metadata, error))
            if not isinstance(error, Exception):
                raise
        finally:
            turns.is_amid = False
        check, turns.check = turns.check, None
        return check

    def _run_machine(self) -> bool:
        """Return whether any work was done."""
        events, has_done = self._turns.events, False
        while True:
            if events:
                self._take(*events.popleft())
            elif self._may_send:
                self._send(self.backlog.gathered.take())
            elif self._may_stop:
                self._take(steps.Stop())
            else:
                return has_done
            has_done = True

    @property
    def _may_send(self) -> bool:
        """Whether to send: callers must know of acknowledgements before a record states them.

        While bookies store earlier entries, and while callers come back, further entries gather
        for a record together: a record costs as much as many entries. They also gather during a
        metadata check, unless the check takes so long that bookies could store meanwhile.
        """
        gathered, pending = self.backlog.gathered, self.machine.pending
        if not (gathered.has_next and self.machine.may_submit):
            return False
        if self._teller.is_busy or self._lanes.is_congested:
            return False
        if gathered.fills_a_record:
            return True
        if self._turns.pauses.holds(gathered):
            return False
        is_check_quick = self._turns.check_seconds < QUICK_CHECK_SECONDS
        return not (pending if is_check_quick else pending.awaits_copies)

    @property
    def _may_stop(self) -> bool:
        is_last = self.backlog.has_ended and not self.backlog.gathered
        return is_last and not self.machine.is_stopping and not self.machine.has_ended

    def _take(self, event: steps.Event, seen: Versioned[LedgerMetadata] | None = None) -> None:
        instructions = self.machine.receive(event)
        if seen is not None and seen.value is self.machine.metadata:
            self._members.seen = seen
        for step in instructions:
            self._carry_out(step)

    def _send(self, taken: list[Submission]) -> None:
        """Put gathered submissions, up to the limits, into one record and send it."""
        self._turns.pauses.end(len(taken) + len(self.backlog.gathered))
        rows = sum(submitted.row_count for submitted in taken)
        size = sum(submitted.byte_count for submitted in taken)
        times = CommitTimes.at(environment.now_ms())
        first, *others = self.machine.receive(steps.Submitted(rows, size, times=times))
        assert isinstance(first, steps.Append)
        seconds = self._deadlines.seconds_to_acknowledge(first.add.length_bytes)
        now = environment.monotonic()
        self._deadlines.sent(now)
        group = Group(first.add, taken, now + seconds, seconds)
        self.backlog.groups[first.add.first_entry_id] = group
        group.record = self._encoder.encode(first.add, taken)
        for step in (first, *others):
            self._carry_out(step)

    def _carry_out(self, step: steps.Instruction) -> None:
        match step:
            case steps.Append():
                self._lanes.send(self.backlog.record(step.add.first_entry_id), step.indexes)
            case steps.Confirm():
                self._lanes.send(self._confirmation(), step.indexes)
            case steps.CheckMetadata():
                self._turns.check = partial(self._check, step.ticket, self._members.seen)
            case steps.Acknowledge():
                self._acknowledge(step.adds)
            case steps.Forget():
                self.backlog.forget(add.first_entry_id for add in step.adds)
            case steps.Release():
                self._lanes.release(step.ensemble_index)
                self._members.released(step)
            case steps.Enlist():
                self._aside(partial(self._members.enlist, step))
            case steps.Swap():
                self._aside(partial(self._members.swap, step))
            case steps.Join():
                self._lanes.join(step.ensemble_index, self._members.address(step.member))
                self._members.joined(step)
            case steps.Muster():
                self._aside(partial(self._members.muster, step))
            case steps.RolledOver():
                self._rolled_over(step)
            case steps.NotRolled():
                self._rolls.refused(step.reason)
            case steps.WarnOfGaps():
                self._members.warn(step)
            case steps.EndWriter():
                self._end(step.error)

    def _confirmation(self) -> EncodedRecord:
        first = self.metadata.last_fragment.first_entry_id
        return self._encoder.confirm(self.machine.pending, fragment_first_entry_id=first)

    def _open_lane(
        self, index: int, address: BookieAddress, advisory_lock: environment.AdvisoryLock
    ) -> Lane:
        appender = Appender(address, self.metadata, self._members.journal(address), advisory_lock)
        return Lane(index, appender, self._report, name=f"ledger-{self.metadata.ledger_id}")

    def _rolled_over(self, step: steps.RolledOver) -> None:
        for index in step.changed:
            self._lanes.retire(index, self._members.take_back)
            self._lanes.join(index, self._members.address(self.machine.ensemble[index]))
        self._members.rolled(self.metadata)
        self._rolls.begun(self.metadata.last_fragment.first_entry_id)

    def _acknowledge(self, adds: tuple[PendingAdd, ...]) -> None:
        is_kept = self.machine.pending.lagging is not None
        groups = self.backlog.done((add.first_entry_id for add in adds), is_kept=is_kept)
        self._deadlines.acknowledged()
        last = groups[-1].submitted[-1].promise
        first = self.answers.first
        results = chain.from_iterable(group.last_numbers(first) for group in groups)
        self._teller.tell(results, partial(self._told, last))
        may_come_back = not (self.backlog.is_held or self.backlog.has_ended)
        if may_come_back and not (self._teller.is_busy or self.machine.pending):
            count = sum(len(group.submitted) for group in groups)
            self._turns.pauses.told(count, self.backlog.gathered)

    def _told(self, last: Promise) -> None:
        self.backlog.told(last)
        self._go_on()

    def _go_on(self) -> None:
        self._leave(self._turn())

    # --- the writer's own task -------------------------------------------------------------

    def _watch(self) -> None:
        """Wake the writer's own task if it would sleep too long."""
        if not self._deadlines.is_watched_soon:
            due = self._deadlines.next()
            if due is not None and due.at < self._deadlines.wakes_at:
                self._own_work.put(nothing)

    def _next_work(self) -> Callable[[], None]:
        """Return work left by other threads, or the work of a passed deadline."""
        with self._lock:
            due = self._deadlines.fall_asleep()
        try:
            return self._own_work.get(timeout=self._deadlines.seconds_to_sleep())
        except environment.Empty:
            assert due is not None
            return partial(self._be_late, due)
        finally:
            self._deadlines.wakes_at = -math.inf

    def _be_late(self, due: Due) -> None:
        with self._lock:
            if self._deadlines.next() == due:
                self._leave(self._turn(self._deadlines.event(due)))

    def _stop(self) -> None:
        with self._lock:
            self.backlog.end()
            self.backlog.gathered.hold_no_more()
            self._leave(self._turn())

    def _end(self, error: BookKeeperError | None) -> None:
        if error is not None:
            mine = self.metadata.ledger_id
            tell(logger, "ledger %d: its writer ends: %s", mine, error.args[0], ledger_id=mine)
        self.error = self.error or error
        self.backlog.end()
        self._own_work.put(self._finish)

    def _finish(self) -> None:
        """Release all resources; fail waiting callers, as their outcome is unknown."""
        self._lanes.stop(LANES_END_SECONDS)
        self._members.close()
        error = self._never_sent()
        self.error = self.error and error
        sent = chain.from_iterable(group.submitted for group in self.backlog.groups.values())
        waiting = [left.promise for left in (*sent, *self.backlog.gathered)]
        told = self.answers.explained(error, self.unacknowledged)
        self._teller.fail((promise, told) for promise in waiting)
        self._teller.fail((promise, error) for promise in self._rolls.taken())
        self._turns.is_over = True
        if self.error is not None:
            self._teller.on_end(self.error)

    def _never_sent(self) -> BookKeeperError:
        """Return the reason of the end; may ask the metadata, so never call it under the lock."""
        if self.error is not None:
            return self.error if self._turns.is_over else self._members.explained(self.error)
        what = f"ledger {self.metadata.ledger_id} is closed"
        return LedgerClosedError(what, hint="read it, or write to a new ledger")
