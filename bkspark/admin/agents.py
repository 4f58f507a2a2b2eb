"""Agents of bookies: processes on storage hosts that show bookies as alive and look after them.

**An agent is optional.** No guarantee rests on it. Without an agent, beside a second one, and while
one is killed, paused or cut off, everything is as safe as before: an agent makes only calls that
operators and maintenance commands make, too.

Rule 1. A bookie has one agent at a time: the leader of an election that has the bookie's name. So
a second agent of the bookie waits, and goes on when the first one is gone. The leader's place or
lease shows that the agent is alive, and since when.

Rule 2. In each round the agent looks at its bookie, notes in the bookie's record that the disk is
full or has room again, writes and reads a file there from time to time, and frees deleted ledgers.
It stores the findings as the report ``agent.<bookie>``.

Rule 3. Where the metadata store tells of changes, the agent frees a deleted ledger between two
rounds (``storage/changes``). What it is told only ends its pause: a ledger is freed because its
record says DELETING, which is final.

Rule 4. The agents that do upkeep elect one of them. It runs the maintenance commands of a schedule,
under the leases of the commands.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from bkspark import environment
from bkspark.admin.collecting.freeing import Doomed, Free, Freed, ListLedgers
from bkspark.admin.maintenance import Report
from bkspark.bookie.contract import BookieAddress, Usage, about
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_status import BookieStatus, note_fullness
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.election import Contender, Election, living
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError, BookKeeperError, CorruptDataError, NotLeaderError
from bkspark.format import layout
from bkspark.format.upkeep_records import ReportRecord
from bkspark.ledger.recovery.running import in_threads
from bkspark.metadata import freshness
from bkspark.metadata.contract import watchable
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.recovery.steps import Silence
from bkspark.quantities import plural
from bkspark.storage.address import is_billed
from bkspark.storage.changes import Changes

logger = logging.getLogger(__name__)

OF_BOOKIE = "bkspark.agent."
"""Begin of the names of the elections of agents, before the id of the bookie."""

OF_UPKEEP = "bkspark.upkeep"

EVERY_SECONDS = 60.0
SANITY_SECONDS = 600.0
BILLED_FREE_SECONDS = 3_600.0
"""Between two looks for deleted ledgers, if each look at a record is billed."""

NEWS_SECONDS = 0.2
"""From a change of a record to the look at all of them: more ledgers of a log may follow."""

NEWS_SHARE = 10
"""A look is followed by a pause that is so many times as long."""

WATCHED_MAX = 10_000
"""Ledgers of a bookie whose changes are told; each takes about 1 KiB of the kernel or of a server.
Others are looked at in the next round."""

RETRY_SECONDS = 10.0
END_SECONDS = 5.0

UPKEEP: Mapping[str, float] = {
    "recover": 600.0,
    "repair": 3_600.0,
    "collect": 3_600.0,
    "audit": 86_400.0,
    "scrub": 604_800.0,
}
"""Seconds between two runs of each command; as in ``conf/bkspark.crontab``."""

FREE_BYTES, TOTAL_BYTES, FREED = "FREE_BYTES", "TOTAL_BYTES", "DELETED_LEDGER_COUNT"

Tell = Callable[[str, str], None]
"""Receives a subject and an event."""


# --- living agents -------------------------------------------------------------------------------


def living_agents(cluster: Cluster) -> dict[str, Contender]:
    """Return the living agent of each bookie that has one, by bookie id.

    Takes some seconds if there are agents, and the metadata store has no sessions.
    """
    found = living(cluster, OF_BOOKIE)
    return {name.removeprefix(OF_BOOKIE): agent for name, agent in found.items()}


def with_agents(
    rows: Iterable[Mapping[str, Any]], agents: Mapping[str, Contender]
) -> list[dict[str, Any]]:
    """Return rows of bookies with their living agents; ``agent`` is null without one."""
    shown = {bookie_id: agent.facts for bookie_id, agent in agents.items()}
    return [{**row, "agent": shown.get(row["bookie_id"])} for row in rows]


# --- rounds --------------------------------------------------------------------------------------


class Rounds(Protocol):
    """Work that one agent does at a time, round by round.

    Attributes:
        subject: for people.
        election: the agent that leads it does the work.
    """

    subject: str
    election: str

    def round(self) -> str:
        """Do what is due; return the problem in one line, or an empty text.

        Raises:
            BookKeeperError: the round could not be finished.
        """
        ...

    def watch(self, changes: Changes) -> None:
        """Let ``changes`` be told of what ``news`` is about, from the next round on."""
        ...

    def news(self) -> str:
        """Do what a change asks for between two rounds; returns and raises as ``round``."""
        ...


@dataclass(slots=True)
class _Timer:
    """Tells when something is due again, by this process's own clock."""

    seconds: float
    next_at: float = 0.0

    def is_due(self) -> bool:
        now = environment.monotonic()
        if now < self.next_at:
            return False
        self.next_at = now + self.seconds
        return True


@dataclass(frozen=True, slots=True)
class TryBookie:
    """Write a file on a bookie, read it and remove it; picklable."""

    address: BookieAddress

    def run(self, beat: Heartbeat = no_heartbeat) -> str | Silence:
        """Return the problem, or an empty text."""
        data = environment.token().encode()
        name = f"{layout.SANITY_FOLDER}/{environment.token()}"
        try:
            with open_bookie(self.address).open_root() as root:
                root.remove_folder(layout.SANITY_FOLDER)  # of an agent that was killed
                root.put_new(name, data)
                beat()
            with open_bookie(self.address).open_root() as root:
                is_same = root.read(name) == data
                root.remove_folder(layout.SANITY_FOLDER)
        except BookieUnavailableError as error:
            return Silence(str(error))
        return "" if is_same else "a file that was just written has other contents"


class BookieRounds:
    """The rounds of one bookie."""

    def __init__(
        self,
        cluster: Cluster,
        bookie_id: str,
        tell: Tell,
        sanity_seconds: float = SANITY_SECONDS,
    ) -> None:
        self.subject = bookie_id
        self.election = f"{OF_BOOKIE}{bookie_id}"
        self._cluster = cluster
        self._tell = tell
        self._sanity = _Timer(sanity_seconds)
        self._freeing = _Timer(BILLED_FREE_SECONDS if is_billed(cluster.uri) else 0.0)
        self._freed = 0
        self._was_full = False
        self._changes: Changes | None = None
        self._watched = frozenset[int]()

    def round(self) -> str:
        began_ms = environment.now_ms()
        status = self._cluster.look_at(self._cluster.bookie(self.subject).value)
        note_fullness(self._cluster.registrations, status)
        self._tell_of_space(status)
        problem = status.problem or status.write_problem
        address = self._cluster.address(status.record)
        if not problem and self._sanity.is_due():
            [answer] = in_threads([TryBookie(address)])
            problem = answer.reason if isinstance(answer, Silence) else answer
        if not status.problem and self._freeing.is_due():
            problem = problem or self._free(address)
        self._note(status, began_ms, problem)
        return problem

    def _tell_of_space(self, status: BookieStatus) -> None:
        if status.problem or status.is_full == self._was_full:
            return
        self._was_full = status.is_full
        self._tell(self.subject, status.full_note or "it has room again, and gets new ledgers")

    def watch(self, changes: Changes) -> None:
        self._changes, self._watched = changes, frozenset()

    def news(self) -> str:
        """Free the ledgers that were deleted since the last round."""
        doomed = self._deleted(self._watched)
        address = self._cluster.address(self._cluster.bookie(self.subject).value)
        return self._free_all(address, doomed)

    def _free(self, address: BookieAddress) -> str:
        """Free the bookie's files of ledgers whose records say that they are deleted."""
        [found] = in_threads([ListLedgers(address)])
        if isinstance(found, Silence):
            return found.reason
        self._watch_records(found)  # before the look: what changes after it is told
        return self._free_all(address, self._deleted(found))

    def _watch_records(self, ledger_ids: frozenset[int]) -> None:
        """Let changes of the records of ``ledger_ids`` be told, as far as the store tells any."""
        store = watchable(self._cluster.store)
        if store is None or self._changes is None:
            return
        watched = frozenset(sorted(ledger_ids)[-WATCHED_MAX:])
        keys = [self._cluster.ledgers.key(str(one)) for one in watched - self._watched]
        store.watch(keys, self._changes)
        self._watched = watched

    def _free_all(self, address: BookieAddress, doomed: Sequence[Doomed]) -> str:
        if not doomed:
            return ""
        [freed] = in_threads([Free(address, tuple(doomed))])
        if not isinstance(freed, Freed):
            return str(freed.reason)
        removed = sum(freed.removed.values(), Usage())
        if removed.files:
            self._freed += len(freed.removed)
            count = plural(len(freed.removed), "deleted ledger")
            shown = f"{count} freed: {removed.bytes:,} bytes"
            self._tell(self.subject, shown)
        return next(iter(freed.problems.values()), "")

    def _deleted(self, ledger_ids: frozenset[int]) -> list[Doomed]:
        found = []
        # A deletion is final, so a late answer is never wrong. ZooKeeper tells of changes.
        with freshness.recent():
            for _, answer in self._cluster.ledgers.answers(map(str, sorted(ledger_ids))):
                try:
                    seen = answer()
                except CorruptDataError:
                    continue  # unknown is not deleted
                if seen is not None and seen.value.state is LedgerState.DELETING:
                    found.append(Doomed.of(seen.value))
        return found

    def _note(self, status: BookieStatus, began_ms: int, problem: str) -> None:
        name = f"agent.{self.subject}"
        space = {FREE_BYTES: status.free_bytes, TOTAL_BYTES: status.total_bytes}
        counters = {**(space if status.tells_space else {}), FREED: self._freed}
        record = ReportRecord(name, began_ms, environment.now_ms(), int(bool(problem)), counters)
        self._cluster.upkeep.reports.try_to_note(name, record)


class UpkeepRounds:
    """The schedule of maintenance commands.

    Args:
        calls: the commands by name; each runs under its own lease.
        begin: runs a command beside the rounds; None to wait for each.
    """

    subject = "upkeep"
    election = OF_UPKEEP

    def watch(self, changes: Changes) -> None:
        """Nothing is watched: what is due is due by time."""

    def news(self) -> str:
        return ""

    def __init__(
        self,
        cluster: Cluster,
        calls: Mapping[str, Callable[[], Report]],
        tell: Tell,
        begin: Callable[[Callable[[], None], str], environment.Task] | None = environment.start,
    ) -> None:
        self._cluster = cluster
        self._calls = calls
        self._tell = tell
        self._begin = begin
        self._timers = {name: _Timer(UPKEEP[name]) for name in calls}
        self._running: dict[str, environment.Task] = {}
        self._left: dict[str, str] = {}

    def round(self) -> str:
        for name, call in self._calls.items():
            running = self._running.get(name)
            if running is not None and running.is_alive():
                continue
            if not self._timers[name].is_due() or self._ran_lately(name):
                continue
            if self._begin is None:
                self._run(name, call)
            else:
                self._running[name] = self._begin(partial(self._run, name, call), f"agent-{name}")
        return "; ".join(text for text in self._left.values() if text)

    def _ran_lately(self, name: str) -> bool:
        """Whether any process ran the command lately; the times of two hosts are compared, which
        only shifts the next run.
        """
        seen = self._cluster.upkeep.reports.get(name)
        if seen is None:
            return False
        age = (environment.now_ms() - seen.value.ended_ms) / 1000
        if 0 <= age < UPKEEP[name]:
            self._timers[name].next_at = environment.monotonic() + UPKEEP[name] - age
            return True
        return False

    def _run(self, name: str, call: Callable[[], Report]) -> None:
        try:
            report = call()
        except BookKeeperError as error:
            self._left[name] = f"{name}: {error}"
            self._tell(name, str(error))
            return
        left = f"{report.left[0].subject}: {report.left[0].reason}" if report.left else ""
        self._left[name] = f"{name}: {left}" if left else ""
        done = ", ".join(f"{count:,} {what}" for what, count in report.done.items())
        self._tell(name, "; ".join(filter(None, (done or "nothing was done", left))))


# --- agent ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Served:
    """Rounds, and what the agent last told of them."""

    rounds: Rounds
    inbox: environment.Inbox[object] = field(default_factory=environment.inbox)
    changes: Changes | None = None
    told: str = ""
    task: environment.Task | None = None
    is_led: bool = False

    def wake(self) -> None:
        """End each pause; any task may call this."""
        self.inbox.put(None)
        if self.changes is not None:
            self.changes.tell()

    def is_woken_within(self, seconds: float) -> bool:
        with suppress(environment.Empty):
            self.inbox.get(timeout=seconds)
            return True
        return False


class Agent:
    """Serves rounds, each while it leads their election.

    Args:
        tell: receives each event once, not each round.
    """

    def __init__(
        self,
        cluster: Cluster,
        rounds: Sequence[Rounds],
        tell: Tell,
        every_seconds: float = EVERY_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._served = [_Served(one) for one in rounds]
        self._tell = tell
        self._every_seconds = every_seconds
        self._end = environment.inbox()
        self._is_over = False

    def once(self) -> bool:
        """Run one round of all that no other agent serves; return whether all is well."""
        results = [self._once(one) for one in self._served]
        return all(results)

    def run(self) -> None:
        """Serve until ``stop``, in tasks beside the caller."""
        for one in self._served:
            one.task = environment.start(partial(self._serve, one), f"agent-{one.rounds.subject}")
        self._end.get()

    def stop(self) -> None:
        """End all that is served, and let other agents go on."""
        self._is_over = True
        for one in self._served:
            one.wake()
        for one in self._served:
            if one.is_led and one.task is not None:
                one.task.join(END_SECONDS)
        self._end.put(None)

    def _once(self, one: _Served) -> bool:
        try:
            with Election(self._cluster, one.rounds.election, timeout=0):
                self._round(one)
        except NotLeaderError as error:
            self._tell(one.rounds.subject, f"another agent serves it: {error.args[0]}")
            return True
        return not one.told

    def _serve(self, one: _Served) -> None:
        with closing(Changes()) as one.changes:
            one.changes.expect()
            one.rounds.watch(one.changes)
            while not self._is_over:
                self._serve_once(one, one.changes)

    def _serve_once(self, one: _Served, changes: Changes) -> None:
        """Wait to be elected, and serve until that is over."""
        subject = one.rounds.subject
        try:
            with Election(self._cluster, one.rounds.election, on_lost=one.wake) as election:
                self._tell(subject, "this agent serves it")
                self._lead(one, election, changes)
        except BookKeeperError as error:
            self._tell_once(one, str(error))
            one.is_woken_within(RETRY_SECONDS)

    def _lead(self, one: _Served, election: Election, changes: Changes) -> None:
        one.is_led = True
        try:
            while election.is_leader and not self._is_over:
                self._round(one)
                self._pause(one, changes)
        finally:
            one.is_led = False
        if not self._is_over:
            why = "another agent serves it, or the metadata store does not answer"
            self._tell(one.rounds.subject, f"this agent serves it no longer: {why}")

    def _round(self, one: _Served) -> None:
        self._tell_once(one, _problem_of(one.rounds.round))

    def _tell_once(self, one: _Served, problem: str) -> None:
        """Tell of a problem that is new, and of its end."""
        if problem != one.told:
            said = (
                about(f"bookie {one.rounds.subject}", problem) if problem else "the problem is over"
            )
            self._tell(one.rounds.subject, said)
        one.told = problem

    def _pause(self, one: _Served, changes: Changes) -> None:
        """Wait for the next round, or until woken, and do meanwhile what changes ask for."""
        until, pause = environment.monotonic() + self._every_seconds, NEWS_SECONDS
        while not self._is_over:
            left = until - environment.monotonic()
            if left <= 0 or not changes.wait(left):
                return
            if one.is_woken_within(min(pause, left)):
                return
            changes.forget()  # before the look
            began = environment.monotonic()
            problem = _problem_of(one.rounds.news)
            if problem:  # what the last round told is not over
                self._tell_once(one, problem)
            pause = max(NEWS_SECONDS, NEWS_SHARE * (environment.monotonic() - began))


def _problem_of(work: Callable[[], str]) -> str:
    """Do the work; return its problem in one line, or an empty text."""
    try:
        return work()
    except BookKeeperError as error:
        return str(error)
