"""The pauses of a reader that waits for entries, between its looks at a log.

A pause ends at once if something changes that the log's writer changes: a journal of the open
ledger, or the log's or the ledger's record. If all of them are watched, a reader that waits looks
rarely (``storage/changes``). A look alone decides what the reader sees.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Self

from bkspark import environment
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.hanging import PendingAnswer
from bkspark.cluster.log_messages import leave_out
from bkspark.ledger.journals.member_journals import Taken
from bkspark.log.reading.log_view import LogView
from bkspark.metadata.contract import watchable
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.storage.address import is_billed
from bkspark.storage.changes import Changes, Watch, Watchable, watch_all

POLL_SECONDS = 0.05
"""First pause, and the longest if the kernel does not tell of all changes."""

WATCHED_POLL_SECONDS = 1.0
"""Longest pause if the kernel tells of all changes."""

BILLED_POLL_SECONDS = 5.0
"""Longest pause for an object store, where each look costs requests."""

SETTLE_SECONDS = 0.001
"""From the change of one journal to the look: the other bookies get the record now."""

SETTLE_SECONDS_MAX = 0.008
"""The same while changes come all the time, so that one look shows more; and the longest wait from
an entry to the record that says that it was acknowledged.
"""

WATCH_SECONDS = 2.0
"""Time to begin to watch. Storage may hang; a reader does without."""


class Waiting:
    """The pauses of one reader; for one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._next = POLL_SECONDS
        self._settle = SETTLE_SECONDS
        self._longest = POLL_SECONDS
        self._has_news = False
        self._waits_for: object = None
        self._changes: Changes | None = None
        self._journals: frozenset[str] = frozenset()
        self._awaited = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def begin_anew(self) -> None:
        """Begin anew after news: with short pauses, and with none unless all changes are told."""
        self._next = POLL_SECONDS
        self._has_news = True

    def sleep(self, view: LogView, until: float) -> None:
        """Pause before the next look, at most ``until`` a time of the monotonic clock.

        The first pause after ``view`` has changed may be none: what has changed before it was
        watched is looked at.
        """
        ledger = _open_end(view)
        end = None if ledger is None else (Taken.of(ledger).journal, Locations(ledger).last.members)
        waits_for = (view.record.name, end)
        before, self._waits_for = self._waits_for, waits_for
        if waits_for != before and self._begins(view, ledger):
            return
        has_news, self._has_news = self._has_news, False
        self._awaited = 2 if has_news else 1
        left = max(0.0, until - environment.monotonic())
        if has_news and self._longest != WATCHED_POLL_SECONDS:
            return
        if self._changes is None:
            environment.sleep(min(self._next, left))
        elif self._is_told_within(min(self._next, left), has_news=has_news):
            if self._settle > SETTLE_SECONDS:
                environment.sleep(min(self._settle, left))
                self._changes.forget()
            else:
                self._settle_down(min(environment.monotonic() + SETTLE_SECONDS_MAX, until))
            return
        self._next = min(2 * self._next, self._longest)

    def _is_told_within(self, seconds: float, *, has_news: bool) -> bool:
        """Wait for a change; return whether there was one. More of them are awaited if changes came
        during the last look, and it had news.
        """
        assert self._changes is not None
        is_changed = self._changes.wait(0.0)
        again = min(2 * self._settle, SETTLE_SECONDS_MAX)
        self._settle = again if is_changed and has_news else SETTLE_SECONDS
        return is_changed or self._changes.wait(seconds)

    def _settle_down(self, until: float) -> None:
        """Wait until the journals have the record that lets an entry be read, or ``until``.

        Mostly it is the second one: the first has the entry. After a look without news, which came
        between the two, it is the first. Any other change is looked at now.
        """
        assert self._changes is not None
        changed = self._changes.forget()
        while changed.keys() <= self._journals:
            have = sum(changed[path] >= self._awaited for path in self._journals)
            now = environment.monotonic()
            if have:
                until = min(until, now + SETTLE_SECONDS)
            if have == len(self._journals) or now >= until or not self._changes.wait(until - now):
                return
            changed += self._changes.forget()

    def _begins(self, view: LogView, ledger: LedgerMetadata | None) -> bool:
        """Watch what changes next, and choose the pauses; return whether anything is watched."""
        self._close()
        members = [] if ledger is None else Locations(ledger).last.members
        places = self._cluster.addresses_of(members, leave_out).values()
        bookies = [open_bookie(address) for address in places]
        self._longest = POLL_SECONDS
        if any(map(is_billed, [self._cluster.uri, *(address.url for address in places)])):
            self._longest = BILLED_POLL_SECONDS
            return False
        files = [bookie for bookie in bookies if isinstance(bookie, Watchable)]
        journal = "" if ledger is None else Taken.of(ledger).journal
        journals = [bookie.path_to_watch(journal) for bookie in files if journal]
        self._journals = frozenset(journals)
        store = watchable(self._cluster.store)
        records = [] if store is None else [partial(store.watch, self._records(view, ledger))]
        self._changes, is_told = self._watched(journals, records)
        has_all = bool(records) and len(files) == len(members) == len(journals)
        if is_told and has_all:
            self._longest = WATCHED_POLL_SECONDS
        return self._changes is not None

    def _records(self, view: LogView, ledger: LedgerMetadata | None) -> list[str]:
        """The keys of the records that change if the log gets another open end."""
        log = self._cluster.logs.key(view.record.name)
        return [log] if ledger is None else [log, self._cluster.ledgers.key(str(ledger.ledger_id))]

    def _watched(
        self, paths: Sequence[str], others: Sequence[Watch]
    ) -> tuple[Changes | None, bool]:
        """Watch ``paths`` and ``others``; None if nothing is watched in time."""
        answer = PendingAnswer(partial(watch_all, paths, others), "watch-files")
        if answer.is_there_within(WATCH_SECONDS):
            return answer.result()
        answer.add_done_callback(_close_late)
        return None, False

    def _close(self) -> None:
        changes, self._changes = self._changes, None
        if changes is not None:
            changes.close()


def _open_end(view: LogView) -> LedgerMetadata | None:
    """The metadata of the ledger that may get entries; None without one."""
    return list(view.metadata.values())[-1] if view.has_open_end else None


def _close_late(answer: "Future[tuple[Changes | None, bool]]") -> None:
    changes, _ = answer.result()
    if changes is not None:
        changes.close()
