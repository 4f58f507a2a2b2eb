"""The runner of a writer: it brings its machine what happens, and carries out what that decides.

What is decided, and when, is in the protocol (``writing``). Callers bring what they append, lanes
what bookies have stored. Whoever brings an event runs the machine, one at a time under a lock, and
carries out what takes no time. What may take long is done without the lock:

- a metadata check, by the lane that brought it about if the lane has nothing else to do, and by the
  writer's own task if it has;
- looking for a bookie, and a compare-and-set, by a task of its own, so that the others go on;
- callbacks of futures, and the end, by the writer's own task, which watches the time besides.
"""

import logging
import math
from collections.abc import Callable
from functools import partial
from itertools import chain

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.decisions import tell
from bkspark.cluster.records import Versioned
from bkspark.errors import BookKeeperError, LedgerClosedError
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.appender import Appender
from bkspark.ledger.handles.backlog import Backlog
from bkspark.ledger.handles.deadlines import Deadlines, Due
from bkspark.ledger.handles.grouping import Group, Submitted
from bkspark.ledger.handles.lane import Lane
from bkspark.ledger.handles.lanes import Lanes
from bkspark.ledger.handles.membership import Membership, News
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.record_encoder import RecordEncoder
from bkspark.ledger.handles.rolls import Rolls
from bkspark.ledger.handles.settings import USUAL, WriterSettings
from bkspark.ledger.handles.teller import Teller
from bkspark.ledger.handles.turns import Slow, Turns, known, nothing
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import PendingAdd
from bkspark.protocol.writer.writing import LedgerWriter

logger = logging.getLogger(__name__)

LANES_END_SECONDS = 3.0
"""How long an ending writer waits for copies that no acknowledgement needs any more."""


class Writer:
    """Runs one writer's side of the protocol for one ledger in one term.

    Attributes:
        machine: decides; only under the lock.
        backlog: what was submitted and is not acknowledged.
        error: what ended it.
    """

    def __init__(
        self,
        machine: LedgerWriter,
        members: Membership,
        encoder: RecordEncoder,
        settings: WriterSettings = USUAL,
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
        self._teller = Teller(self._lock, self._own_work.put)
        ledger_id = machine.metadata.ledger_id
        self._rolls = Rolls(ledger_id, self._teller, self._own_work.put, self._go_on)
        with self._lock:
            self._turns.is_amid = True  # lanes may report before all of them are there
            self._lanes = Lanes(self._open_lane)
            self._deadlines = Deadlines(settings, self.machine, self.backlog, self._lanes)
            for index, member in enumerate(machine.ensemble):
                self._lanes.join(index, self._members.address(member))
            self._turns.is_amid = False
            self._leave(self._turn())

    # --- called by others ------------------------------------------------------------------

    def submit(self, submitted: Submitted) -> int:
        """Take rows, without waiting; returns the id that the last of them gets if all goes well.

        Raises:
            LedgerClosedError: the handle was closed.
            BookKeeperError: what ended the writer.
        """
        with self._lock:
            if not self.backlog.has_ended:
                is_next = not self.backlog.gathered.has_next
                last = self.backlog.add(submitted)
                if is_next and self._may_send:  # else whoever lets the one before go sends it too
                    self._leave(self._turn())
                return last
        raise self._never_sent()

    def force(self) -> Promise | None:
        """Have all written that was submitted; the promise of the last of it, if there is one.

        Acknowledgements come in entry order, so whoever has that one has all.
        """
        with self._lock:
            last = self.backlog.last_promise
            self.backlog.gathered.let_go()
            self._leave(self._turn())
            return last

    def roll(self) -> Promise:
        """Have what is added from now on written to a new fragment; its first entry, when it is
        begun.

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
        """End after what was submitted before; returns at once, and holds no lock."""
        self._own_work.put(self._stop)

    @property
    def is_telling_here(self) -> bool:
        """Whether the caller runs in a callback of a future that is being completed here.

        All acknowledgements wait for such a callback, so it must not wait for one.
        """
        return self._teller.is_telling_here

    @property
    def metadata(self) -> LedgerMetadata:
        return self.machine.metadata

    @property
    def faults(self) -> dict[str, str]:
        return dict(self.machine.changes.failures)

    def run(self) -> None:
        """The writer's own task: what others leave to it, until everything is done."""
        while not self._turns.is_over:
            work = self._next_work()
            try:
                work()
            except Exception as error:
                self._bring(steps.Stop(known(self.metadata, error)))

    # --- events ----------------------------------------------------------------------------

    def _report(self, event: steps.Stored | steps.Failed) -> None:
        """A lane's event; a lane that is at leisure makes the check that it leads to."""
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

    def _bring(self, event: steps.Event, seen: Versioned[LedgerMetadata] | None = None) -> None:
        with self._lock:
            self._leave(self._turn(event, seen))

    def _claimed(self, check: Slow | None, lane: Lane | None) -> Slow | None:
        """The check, if the lane makes it itself.

        Whoever runs callbacks makes it otherwise: nothing comes between it and what it confirms.
        """
        if check and lane and lane.has_nothing_to_do and self.backlog.is_quickly_told:
            lane.is_away = True
            return check
        self._leave(check)
        return None

    def _leave(self, check: Slow | None) -> None:
        if check is not None:
            self._own_work.put(lambda: self._bring(*self._news_of(check)))

    def _aside(self, work: Slow) -> None:
        name = f"ledger-{self.metadata.ledger_id}-change"
        environment.start(lambda: self._bring(*self._news_of(work)), name)

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
        """Run the machine until nothing is left to do at once; a check that is to be made.

        One that is interrupted ends the writer: what it had half done is not gone on with.
        """
        turns = self._turns
        if event is not None:
            turns.events.append((event, seen))
        if turns.is_amid:
            return None  # whoever is amid a turn on this thread goes on with it
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
        """Whether anything was done."""
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
        """Not before callers know what the next record says: that it is acknowledged."""
        may_submit = self.machine.may_submit and self.backlog.gathered.has_next
        return may_submit and not self._teller.is_busy and not self._lanes.is_congested

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

    def _send(self, taken: list[Submitted]) -> None:
        """Put what has gathered, up to the limits, into one record and send it."""
        rows = sum(submitted.row_count for submitted in taken)
        size = sum(submitted.byte_count for submitted in taken)
        first, *others = self.machine.receive(steps.Submitted(rows, size))
        assert isinstance(first, steps.Append)
        seconds = self._deadlines.seconds_to_acknowledge(first.add.length_bytes)
        group = Group(first.add, taken, environment.monotonic() + seconds, seconds)
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
                self._turns.check = partial(self._members.check, step.ticket, self._members.seen)
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
            case steps.End():
                self._end(step.error)

    def _confirmation(self) -> EncodedRecord:
        first = self.metadata.last_fragment.first_entry_id
        return self._encoder.confirm(self.machine.pending, fragment_first_entry_id=first)

    def _open_lane(
        self, index: int, address: BookieAddress, courtesy: environment.Courtesy
    ) -> Lane:
        appender = Appender(address, self.metadata, self._members.journal(address), courtesy)
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
        results = chain.from_iterable(group.last_ids() for group in groups)
        self._teller.tell(results, partial(self._told, last))

    def _told(self, last: Promise) -> None:
        self.backlog.told(last)
        self._go_on()

    def _go_on(self) -> None:
        self._leave(self._turn())

    # --- the writer's own task -------------------------------------------------------------

    def _watch(self) -> None:
        """Wake the writer's own task, if it sleeps too long."""
        if not self._deadlines.is_watched_soon:
            due = self._deadlines.next()
            if due is not None and due.at < self._deadlines.wakes_at:
                self._own_work.put(nothing)

    def _next_work(self) -> Callable[[], None]:
        """What others have left; that nothing happened in time is work too."""
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
        """Release everything; whoever still waits learns that the outcome is unknown."""
        self._lanes.stop(LANES_END_SECONDS)
        self._members.close()
        error = self._never_sent()
        self.error = self.error and error
        sent = chain.from_iterable(group.submitted for group in self.backlog.groups.values())
        waiting = [left.promise for left in (*sent, *self.backlog.gathered)]
        self._teller.fail((promise, error) for promise in (*waiting, *self._rolls.taken()))
        self._turns.is_over = True

    def _never_sent(self) -> BookKeeperError:
        """Asks the metadata for the reason until the end: never under the lock."""
        if self.error is not None:
            return self.error if self._turns.is_over else self._members.explained(self.error)
        what = f"ledger {self.metadata.ledger_id} is closed"
        return LedgerClosedError(what, hint="it can be read; write to a new one")
