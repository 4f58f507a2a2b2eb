"""Time limits of a writer: when an awaited answer counts as missing."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.handles.backlog import Backlog
from bkspark.ledger.handles.lane import Lane, seconds_for
from bkspark.ledger.handles.lanes import Lanes
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.progress import overslept
from bkspark.protocol.writer.steps import Event, Failed, Idle, TimedOut
from bkspark.protocol.writer.writing import LedgerWriter


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
        self._acknowledged_at = 0.0
        limits = (settings.add_entry_timeout_seconds, settings.add_entry_quorum_timeout_seconds)
        idle = settings.explicit_lac_ms / 1000 if settings.explicit_lac_ms else math.inf
        self._least_seconds = min(idle, min(limits) / 2)  # disks are looked at halfway

    def acknowledged(self) -> None:
        """Note that an acknowledgement came just now."""
        self._acknowledged_at = environment.monotonic()

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
        if self._settings.explicit_lac_ms and self._machine.pending.has_unsaid_lac:
            at = self._acknowledged_at + self._settings.explicit_lac_ms / 1000
            return Due(at, "idle", Idle)
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
