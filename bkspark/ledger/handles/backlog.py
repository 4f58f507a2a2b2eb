"""Holds a writer's unacknowledged submissions, bounds their size, and lets callers wait for
room.
"""

import threading
from collections.abc import Iterable

from bkspark import environment
from bkspark.cluster.client_metrics import ClientCounts
from bkspark.errors import NotEnoughBookiesError
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.grouping import Group, OpenGroup, Submission
from bkspark.ledger.handles.promise import Promise

OUTSTANDING_BYTES_MAX = 64 * 2**20
"""Back-pressure: callers wait while more bytes than this are unacknowledged."""

QUICKLY_TOLD_MAX = 16


class Backlog:
    """All submissions to one writer without an acknowledgement. Changes need the writer's lock.

    Attributes:
        gathered: submissions not in a record yet.
        groups: records in flight, in entry order, by their first entry.
        kept: acknowledged records that a further bookie may still need.
        last_taken: the id of the last entry submitted, if nothing fails.
        last_promise: of that entry; None once the promise is settled.
        has_ended: whether submissions are refused.
        is_held: whether submissions wait for ``force`` (deferred sync).
        renewals: how often a time limit began anew.
    """

    def __init__(self, *, last_taken: int, is_held: bool) -> None:
        self.gathered = OpenGroup(is_held=is_held)
        self.groups: dict[int, Group] = {}
        self.kept: dict[int, EncodedRecord] = {}
        self.last_taken = last_taken
        self.last_promise: Promise | None = None
        self.has_ended = False
        self.is_held = is_held
        self.renewals = 0
        self._outstanding = 0
        self._room = threading.Condition()
        self._counts = environment.the_one(ClientCounts)
        self._counts.watch(self)

    @property
    def is_full(self) -> bool:
        """Whether a caller must wait before it submits."""
        return self._outstanding >= OUTSTANDING_BYTES_MAX and not self.has_ended

    @property
    def entry_count(self) -> int:
        """Number of unacknowledged entries; needs no lock."""
        sent = sum(group.entry_count for group in list(self.groups.values()))
        return sent + sum(submitted.row_count for submitted in list(self.gathered))

    @property
    def is_quickly_told(self) -> bool:
        """Whether few callers wait for the records in flight, and none with a callback."""
        count = sum(len(group.submitted) for group in self.groups.values())
        return count <= QUICKLY_TOLD_MAX and not any(
            submitted.promise.has_callbacks
            for group in self.groups.values()
            for submitted in group.submitted
        )

    def begin_anew(self) -> None:
        """Give all records in flight their full time again."""
        self.renewals += 1
        now = environment.monotonic()
        for group in self.groups.values():
            group.deadline = now + group.seconds

    def wait_for_room(self, seconds: float) -> None:
        """Wait up to ``seconds`` while the backlog is full; the time begins anew with progress of
        bookies.

        Raises:
            NotEnoughBookiesError: the backlog is still full.
        """
        with self._room:
            before = None
            while before != (self._outstanding, self.renewals):
                before = (self._outstanding, self.renewals)
                if self._room.wait_for(lambda: not self.is_full, seconds):
                    return
        raise NotEnoughBookiesError(
            f"the entry was not accepted: {self._outstanding} bytes wait for their acknowledgement",
            hint="bring back the bookies that do not answer, then append again",
        )

    def add(self, submitted: Submission) -> int:
        """Take rows; return the id of their last entry, if nothing fails."""
        self._outstanding += submitted.byte_count
        self.last_taken += submitted.row_count
        self.last_promise = submitted.promise
        self.gathered.add(submitted)
        return self.last_taken

    def record(self, first_entry_id: int) -> EncodedRecord:
        """Return the record that begins at ``first_entry_id``."""
        if first_entry_id in self.kept:
            return self.kept[first_entry_id]
        record = self.groups[first_entry_id].record
        assert record is not None
        return record

    def done(self, first_entry_ids: Iterable[int], *, is_kept: bool) -> list[Group]:
        """Remove and return acknowledged groups.

        Args:
            is_kept: whether to keep their records until ``forget``.
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
        """Drop kept records, which are now fully replicated."""
        for first in first_entry_ids:
            del self.kept[first]

    def told(self, promise: Promise) -> None:
        """Drop a settled promise, because its callbacks may hold the handle."""
        if self.last_promise is promise:
            self.last_promise = None

    def end(self) -> None:
        """Refuse further submissions; waiting callers return."""
        with self._room:
            self.has_ended = True
            self._room.notify_all()
