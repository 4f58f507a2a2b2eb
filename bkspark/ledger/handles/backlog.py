"""What a writer was given and has not acknowledged: how much it may be, and who waits for it."""

import threading
from collections.abc import Iterable

from bkspark import environment
from bkspark.cluster.client_counts import ClientCounts
from bkspark.errors import NotEnoughBookiesError
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.grouping import Gathered, Group, Submitted
from bkspark.ledger.handles.promise import Promise

OUTSTANDING_BYTES_MAX = 64 * 2**20
"""Back-pressure: callers wait while more than this is not acknowledged."""

QUICKLY_TOLD_MAX = 16


class Backlog:
    """All that was submitted to one writer and is not acknowledged.

    Whoever changes it holds the writer's lock.

    Attributes:
        gathered: what is in no record yet.
        groups: records on their way, in entry order, by their first entry.
        kept: records that are acknowledged and may have to be sent to yet another bookie.
        last_taken: the id that the last of all entries gets, if nothing goes wrong.
        last_promise: of it; None if it is kept.
        has_ended: whether nothing is taken any more.
        renewals: how often a time limit began anew.
    """

    def __init__(self, *, last_taken: int, is_held: bool) -> None:
        self.gathered = Gathered(is_held=is_held)
        self.groups: dict[int, Group] = {}
        self.kept: dict[int, EncodedRecord] = {}
        self.last_taken = last_taken
        self.last_promise: Promise | None = None
        self.has_ended = False
        self.renewals = 0
        self._outstanding = 0
        self._room = threading.Condition()
        self._counts = environment.the_one(ClientCounts)
        self._counts.watch(self)

    @property
    def is_full(self) -> bool:
        """Whether who submits has to wait first."""
        return self._outstanding >= OUTSTANDING_BYTES_MAX and not self.has_ended

    @property
    def entry_count(self) -> int:
        """How many entries are not acknowledged; who asks need not hold the lock."""
        sent = sum(group.entry_count for group in list(self.groups.values()))
        return sent + sum(submitted.row_count for submitted in list(self.gathered))

    @property
    def is_quickly_told(self) -> bool:
        """Whether few wait for what is on its way, and none by a callback."""
        count = sum(len(group.submitted) for group in self.groups.values())
        return count <= QUICKLY_TOLD_MAX and not any(
            submitted.promise.has_callbacks
            for group in self.groups.values()
            for submitted in group.submitted
        )

    def begin_anew(self) -> None:
        """What is on its way has its time once more."""
        self.renewals += 1
        now = environment.monotonic()
        for group in self.groups.values():
            group.deadline = now + group.seconds

    def wait_for_room(self, seconds: float) -> None:
        """Wait while it is full, so long at most, and anew as long as bookies get on.

        Raises:
            NotEnoughBookiesError: it still is.
        """
        with self._room:
            before = None
            while before != (self._outstanding, self.renewals):
                before = (self._outstanding, self.renewals)
                if self._room.wait_for(lambda: not self.is_full, seconds):
                    return
        raise NotEnoughBookiesError(
            f"{self._outstanding} bytes wait for their acknowledgement and the entry was not taken",
            hint="bring back bookies that hang, then append again",
        )

    def add(self, submitted: Submitted) -> int:
        """Take rows; returns the id that the last of them gets, if nothing goes wrong."""
        self._outstanding += submitted.byte_count
        self.last_taken += submitted.row_count
        self.last_promise = submitted.promise
        self.gathered.add(submitted)
        return self.last_taken

    def record(self, first_entry_id: int) -> EncodedRecord:
        """The record that begins there."""
        if first_entry_id in self.kept:
            return self.kept[first_entry_id]
        record = self.groups[first_entry_id].record
        assert record is not None
        return record

    def done(self, first_entry_ids: Iterable[int], *, is_kept: bool) -> list[Group]:
        """Take out groups that are acknowledged.

        Args:
            is_kept: whether their records are, until ``forget``.
        """
        firsts = list(first_entry_ids)
        if is_kept:
            self.kept.update((first, self.record(first)) for first in firsts)
        groups = [self.groups.pop(first) for first in firsts]
        now = environment.monotonic()
        self._counts.added([(group.entry_count, now - group.sent_at) for group in groups])
        with self._room:
            self._outstanding -= sum(group.byte_count for group in groups)
            self._room.notify_all()
        return groups

    def forget(self, first_entry_ids: Iterable[int]) -> None:
        """Keep records no more that are fully replicated."""
        for first in first_entry_ids:
            del self.kept[first]

    def told(self, promise: Promise) -> None:
        """It is kept; its callbacks may hold the handle."""
        if self.last_promise is promise:
            self.last_promise = None

    def end(self) -> None:
        """Take nothing any more; nobody waits for room then."""
        with self._room:
            self.has_ended = True
            self._room.notify_all()
