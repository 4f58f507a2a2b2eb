"""The audit: compare what records require with what bookies hold, and report the difference.

Each step reads records, asks all bookies at once, and compares the answers.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from bkspark import environment
from bkspark.admin.auditing.copies import (
    Absent,
    Answer,
    Gap,
    Holding,
    classify,
    gaps,
    own_part,
    with_files,
)
from bkspark.admin.auditing.findings import (
    VERB,
    AuditFindings,
    AuditPlan,
    AuditStep,
    Misplaced,
    OrphanKind,
    Short,
    WaitingLedger,
    in_words,
    plan_of_all,
    plan_of_some,
)
from bkspark.admin.auditing.look import BookieAnswers, Look, LookForFiles, NameFiles, slim
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Left,
    Progress,
    Report,
    no_progress,
    noted,
    planned,
)
from bkspark.admin.noted_damage import NotedDamage, marks_of
from bkspark.admin.offloading.tables import TableAnswers, look_at_tables
from bkspark.admin.survey import Survey, every_log, gone_from_lists, unfinished_recoveries
from bkspark.admin.sweep import (
    LOOKS_MAX,
    answers,
    answers_by_ledger,
    by_member,
    has_changed,
    last_members,
    looked_at,
    read_ledgers,
)
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import STORE_SECONDS
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.settled_ledgers import REPAIR, SettledLedgers, missed
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import for_showing
from bkspark.ledger.journals.journal_pages import JournalEnds, JournalName
from bkspark.ledger.recovery.running import Runner, in_threads
from bkspark.log.reading.ledger_files import PlacedLog
from bkspark.protocol.apart import Apart
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, LedgerState, Member

# --- placing -------------------------------------------------------------------------------------
# Check the spread of ensembles over failure domains, and over the labels that ledgers insist on.


def misplaced(ledger: LedgerMetadata, known: Mapping[Member, BookieAddress]) -> Misplaced | None:
    """Return how ``ledger`` violates placement; None if placed well.

    Each write set has the labels that the ledger insists on. A domain gets a second member only
    after each domain has its first (placement, rule 1). Ensembles including unknown members are not
    judged.

    Args:
        known: the registered bookies.
    """
    available = len({address.domain for address in known.values()})
    near: Misplaced | None = None
    for location in Locations(ledger):
        if all(member in known for member in location.members):
            members = [known[member] for member in location.members]
            where = f"fragment {location.first_entry_id}"
            lacks = Apart.of(ledger).shortfall([address.labels for address in members])
            if lacks:
                return Misplaced(f"{where}: {lacks} (minDistinct)", is_refused=True)
            used = len({address.domain for address in members})
            possible = min(len(members), available)
            if used < possible:
                said = f"{where} lies on {used} failure domains, and {possible} are possible"
                near = near or Misplaced(said)
    return near


# --- open end ------------------------------------------------------------------------------------
# Find acknowledged entries missing on members of an open ledger's last fragment.
#
# Such a ledger has no end yet, and its members receive entries at different times. So a member
# counts as lacking entries only under two conditions: its journal does not grow for
# ``STAYS_SECONDS``, and other members had shown before that later entries are acknowledged. A slow
# bookie stores a record within that time, or its writer replaces the bookie.


STAYS_SECONDS = STORE_SECONDS + 5.0
"""Longer than a writer waits for a bookie without progress."""

PAUSE_SECONDS = 1.0

REASON = (
    f"the bookie did not store these entries within {STAYS_SECONDS:g} s: it was away while "
    "they were written, or it hangs; the log's writer begins another ledger once enough "
    "bookies can be used, and `bkspark repair` makes the copies once this ledger is closed"
)


@dataclass(frozen=True, slots=True)
class OpenEnd:
    """The end of the writer's journal on one member.

    Attributes:
        last: the last entry committed or confirmed by the journal.
        confirmed: the last entry the journal shows as acknowledged.
    """

    last: int = INVALID_ENTRY_ID
    confirmed: int = INVALID_ENTRY_ID


OpenEnds = Mapping[tuple[Member, int], OpenEnd]
"""By member and ledger id, without members lacking a definite answer."""


@dataclass(frozen=True, slots=True)
class LookAtEnds:
    """Read the ends of some open ledgers' journals on one bookie; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, OpenEnd]:
        """Return the ends by ledger id."""
        found: dict[int, OpenEnd] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    end = end_of(root, self.address.member, ledger)
                    if end is not None:
                        found[ledger.ledger_id] = end
                    beat()
        except BookieUnavailableError:
            return found
        return found


def end_of(root: BookieRoot, member: Member, ledger: LedgerMetadata) -> OpenEnd | None:
    """Return the journal's end; None without a journal, a loss the audit reports separately."""
    digester = for_showing(ledger.settings.digest)
    name = layout.journal(ledger.ledger_id, ledger.term, ledger.token)
    source = JournalName(ledger.ledger_id, member, name, digester)
    try:
        record = JournalEnds().look(root, source).record
    except CorruptDataError:
        return None
    if record is None or record.is_header:
        return OpenEnd()
    return OpenEnd(record.last_entry_id, record.last_add_confirmed)


def ends_of(
    ledgers: Iterable[LedgerMetadata], addresses: Mapping[Member, BookieAddress], run: Runner
) -> OpenEnds:
    """Return the current ends on members of the last fragments."""
    looks = [
        LookAtEnds(addresses[member], tuple(theirs))
        for member, theirs in by_member(ledgers, last_members).items()
        if member in addresses
    ]
    return {(member, number): end for member, number, end in answers_by_ledger(run, looks)}


def lacking_at_ends(
    ledgers: Iterable[LedgerMetadata], look: Callable[[Iterable[LedgerMetadata]], OpenEnds]
) -> dict[int, list[Gap]]:
    """Return the entries surely missing on members of open last fragments, by ledger id."""
    open_ = [one for one in ledgers if one.state is LedgerState.OPEN]
    before = look(open_) if open_ else {}
    doubtful = [one for one in open_ if any(_lacking(one, before, before))]
    after, until = before, environment.monotonic() + STAYS_SECONDS
    while doubtful and environment.monotonic() < until:
        environment.sleep(PAUSE_SECONDS)
        after = look(doubtful)
        doubtful = [one for one in doubtful if any(_lacking(one, before, after))]
    return {one.ledger_id: list(_lacking(one, before, after)) for one in doubtful}


def _lacking(ledger: LedgerMetadata, before: OpenEnds, after: OpenEnds) -> Iterator[Gap]:
    location, number = Locations(ledger).last, ledger.ledger_id
    ends = {m: before[m, number] for m in location.members if (m, number) in before}
    confirmed = max((end.confirmed for end in ends.values()), default=INVALID_ENTRY_ID)
    lacks = {}
    for index, member in enumerate(location.members):
        end = ends.get(member)
        if end is None or after.get((member, number)) != end:
            continue
        first = max(end.last + 1, location.first_entry_id)
        part = own_part((first, confirmed), index, ledger.quorum)
        if part is not None:
            lacks[member] = part
    copies = classify(ledger.quorum, held=ledger.quorum.write_quorum_size - len(lacks), unknown=0)
    folder = layout.journal_folder(number)
    for member, entries in lacks.items():
        yield Gap(number, location.first_entry_id, entries, member, folder, copies, False, REASON)


# --- audit ---------------------------------------------------------------------------------------
# The audit: each step reads records, asks all bookies at once, and compares the answers.
#
# Rule 1. Metadata is read first, bookies afterwards. A finding counts only if the ledger's record
# is unchanged after the answers. Other ledgers are examined again.
#
# Rule 2. Only findings are kept from step to step, so the driver's memory does not grow with the
# data.
#
# An audit decides nothing: a repair examines the bookies again.


@dataclass(slots=True)
class _Seen:
    """Ledgers and bookies' answers of one step."""

    ledgers: Mapping[int, LedgerMetadata]
    audited: Mapping[int, LedgerMetadata]
    looked: Mapping[Member, BookieAnswers]
    holdings: dict[tuple[Member, int], Holding] = field(default_factory=dict)


class Audit:
    """Carries out a plan.

    Args:
        dropped: ids of ledgers dropped by logs: no copy of them is required.

    Attributes:
        seen: ids of ledgers not deleted, including ledgers with unreadable records.
        unclosed: ids of audited ledgers that are OPEN or IN_RECOVERY.
        settled: ids of ledgers that need no repair (``protocol.upkeep.settling``).
    """

    def __init__(
        self, cluster: Cluster, plan: AuditPlan, run: Runner, dropped: Collection[int]
    ) -> None:
        self.findings = AuditFindings()
        self.seen: set[int] = set()
        self.unclosed: set[int] = set()
        self.settled: set[int] = set()
        self._cluster = cluster
        self._plan = plan
        self._run = run
        self._dropped = frozenset(dropped)
        self._addresses = cluster.addresses()
        self._registered = {member.bookie_id for member in self._addresses}
        self._lost = cluster.lost_members()
        self._marks = NotedDamage(cluster).marks(self._addresses)

    def carry_out(self, progress: Progress) -> None:
        """Do all steps.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        done = 0
        progress(0, self._plan.ledger_count)
        for step in self._plan.steps:
            self._take(step)
            done += len(step.ledger_ids)
            progress(done, self._plan.ledger_count)

    @property
    def lost_bookies(self) -> frozenset[str]:
        """Ids of bookies declared lost in their registered incarnation."""
        return frozenset(m.bookie_id for m in self._lost if m in self._addresses)

    def _take(self, step: AuditStep) -> None:
        again = self._look(step)
        self.findings.changing += looked_at(
            lambda ids: self._look(AuditStep(tuple(ids))), again, looks=LOOKS_MAX - 1
        )

    # --- one step ---------------------------------------------------------------------------

    def _look(self, step: AuditStep) -> list[int]:
        """Examine a step's ledgers once; return the ids to examine again."""
        ledgers = self._records(step.ledger_ids)
        audited = {
            ledger_id: slim(ledger)
            for ledger_id, ledger in ledgers.items()
            if ledger.state is not LedgerState.DELETING and ledger_id not in self._dropped
        }
        self.seen |= audited.keys()
        self.unclosed |= {i for i, x in audited.items() if x.state is not LedgerState.CLOSED}
        self.settled |= {i for i, x in ledgers.items() if x.state is LedgerState.DELETING}
        seen = _Seen(ledgers, audited, self._ask(step, audited))
        seen.holdings = {
            (member, ledger_id): holding
            for member, looked in seen.looked.items()
            for ledger_id, holding in looked.holdings.items()
        }
        self._look_for_unnamed_files(seen)
        at_ends = lacking_at_ends(audited.values(), partial(self._ends, seen))
        again: list[int] = []
        for ledger in audited.values():
            found = [*self._gaps(ledger, seen), *at_ends.get(ledger.ledger_id, ())]
            waiting = self._waiting(ledger, seen)
            is_told = found or waiting or self._is_strange(ledger, seen)
            is_told = is_told or sizes.is_short(ledger)
            if is_told and has_changed(self._cluster, ledgers[ledger.ledger_id]):
                again.append(ledger.ledger_id)
                continue
            self._note(ledger, found, waiting, seen)
            if not is_told and self._is_settled(ledger, seen):
                self.settled.add(ledger.ledger_id)
        self._note_orphans(seen)
        return again

    def _records(self, ledger_ids: Sequence[int]) -> dict[int, LedgerMetadata]:
        found = read_ledgers(self._cluster, ledger_ids)
        self.seen |= {i for i in ledger_ids if layout.ledger_key(i) in self._cluster.unreadable}
        return found

    def _ask(
        self, step: AuditStep, audited: Mapping[int, LedgerMetadata]
    ) -> dict[Member, BookieAnswers]:
        """Ask every bookie about its ledgers; a silent bookie is not asked again by the audit."""
        of_member = by_member(audited.values())
        looks = [
            Look(
                address,
                step.shards,
                tuple(of_member.get(member, ())),
                marks_of(self._marks, member, of_member.get(member, ())),
            )
            for member, address in self._addresses.items()
            if member.bookie_id not in self.findings.silent and (step.shards or member in of_member)
        ]
        looked: dict[Member, BookieAnswers] = {}
        for look, answer in answers(self._run, looks):
            if isinstance(answer, BookieAnswers):
                looked[look.address.member] = answer
            else:
                self.findings.silent[look.address.bookie_id] = answer.reason
        return looked

    def _ends(self, seen: _Seen, ledgers: Iterable[LedgerMetadata]) -> OpenEnds:
        there = {m: self._addresses[m] for m in seen.looked}
        return ends_of(ledgers, there, self._run)

    # --- files whose records are missing ------------------------------------------------------

    def _look_for_unnamed_files(self, seen: _Seen) -> None:
        """Where a bookie lacks records naming files, learn the names from others, and check."""
        lacking = [
            (member, ledger_id)
            for (member, ledger_id), holding in seen.holdings.items()
            if holding.lacks and not self._is_inline(seen, ledger_id)
        ]
        if not lacking:
            return
        sources: dict[Member, list[LedgerMetadata]] = {}
        for ledger_id in dict.fromkeys(ledger_id for _, ledger_id in lacking):
            for member in _whole_members(seen, ledger_id):
                sources.setdefault(member, []).append(seen.audited[ledger_id])
        named: dict[int, dict[PlacedLog, None]] = {}
        naming = [NameFiles(address, tuple(theirs)) for address, theirs in self._at(sources)]
        for _, ledger_id, logs in answers_by_ledger(self._run, naming):
            named.setdefault(ledger_id, {}).update(dict.fromkeys(logs))
        targets: dict[Member, list[LedgerMetadata]] = {}
        for member, ledger_id in lacking:
            if ledger_id in named:
                targets.setdefault(member, []).append(seen.audited[ledger_id])
        looks = [
            LookForFiles(address, tuple((x, tuple(named[x.ledger_id])) for x in ledgers))
            for address, ledgers in self._at(targets)
        ]
        for member, ledger_id, files in answers_by_ledger(self._run, looks):
            key = (member, ledger_id)
            seen.holdings[key] = with_files(seen.holdings[key], files)

    def _at(
        self, of_member: Mapping[Member, list[LedgerMetadata]]
    ) -> Iterator[tuple[BookieAddress, list[LedgerMetadata]]]:
        for member, ledgers in of_member.items():
            yield self._addresses[member], ledgers

    # --- judging ------------------------------------------------------------------------------

    def _gaps(self, ledger: LedgerMetadata, seen: _Seen) -> Iterator[Gap]:
        members = Locations(ledger).members
        answers = {member: self._answer(member, ledger, seen) for member in members}
        if all(answer is None for answer in answers.values()):
            return
        yield from gaps(ledger, answers, is_inline=self._is_inline(seen, ledger.ledger_id))

    def _answer(self, member: Member, ledger: LedgerMetadata, seen: _Seen) -> Answer:
        if member in seen.looked:
            return seen.holdings.get((member, ledger.ledger_id))
        return self._absent(member)

    def _absent(self, member: Member) -> Absent:
        bookie_name = f"bookie {member.bookie_id}"
        if f"{layout.BOOKIES_PREFIX}/{member.bookie_id}" in self._cluster.unreadable:
            return Absent(f"the record of {bookie_name} cannot be read", is_gone=False)
        if member.bookie_id not in self._registered:
            return Absent(f"{bookie_name} is not registered", is_gone=True)
        if member not in self._addresses:
            problem = f"{bookie_name} was initialised again and has lost its data"
            return Absent(problem, is_gone=True)
        if member in self._lost:
            return Absent(f"{bookie_name} was declared lost", is_gone=True)
        return Absent(self.findings.silent[member.bookie_id], is_gone=False)

    def _is_inline(self, seen: _Seen, ledger_id: int) -> bool | None:
        """Return whether the ledger's records hold their rows; None if no member shows one."""
        if any(ledger_id in looked.inline for looked in seen.looked.values()):
            return True
        ledger = seen.audited[ledger_id]
        members = Locations(ledger).members
        shown = [self._answer(member, ledger, seen) for member in members]
        is_shown = any(
            x is None or (isinstance(x, Holding) and x.is_inline is False) for x in shown
        )
        return False if is_shown else None

    def _waiting(self, ledger: LedgerMetadata, seen: _Seen) -> WaitingLedger | None:
        """Return why an unclosed ledger is stuck; None if closed, or OPEN with all bookies."""
        if ledger.state is LedgerState.CLOSED:
            return None
        away = dict(self._away(ledger, seen))
        for unfinished in unfinished_recoveries(self._cluster, [seen.ledgers[ledger.ledger_id]]):
            stuck = unfinished.stuck
            if stuck is not None:
                return WaitingLedger(
                    ledger.ledger_id,
                    ledger.state.value,
                    stuck.reason,
                    stuck.waiting_for,
                    stuck.hint,
                )
        if not away and ledger.state is LedgerState.OPEN:
            return None
        reason = (
            "; ".join(away.values())
            or "its recovery is running, or was killed before it stored a reason"
        )
        hint = f"`bkspark ledger recover {ledger.ledger_id}`"
        return WaitingLedger(
            ledger.ledger_id, ledger.state.value, reason, tuple(sorted(away)), hint
        )

    def _away(self, ledger: LedgerMetadata, seen: _Seen) -> Iterator[tuple[str, str]]:
        """Yield unusable members of the last fragment and the reasons (RB-25)."""
        for member in Locations(ledger).last.members:
            answer = self._answer(member, ledger, seen)
            if isinstance(answer, Absent):
                yield member.bookie_id, answer.reason
            elif answer is not None and answer.unknown:
                yield member.bookie_id, answer.unknown
            elif answer is not None and answer.is_unmarked:
                lacks = (
                    "lacks a file that its writer had stored there: it has lost data of the ledger"
                )
                yield member.bookie_id, f"bookie {member.bookie_id} {lacks}"

    def _is_strange(self, ledger: LedgerMetadata, seen: _Seen) -> bool:
        """Return whether a bookie reports a problem: a journal may be gone since the listing."""
        holdings = (seen.holdings.get((member, ledger.ledger_id)) for member in seen.looked)
        return any(holding is not None and holding.problem for holding in holdings)

    def _is_settled(self, ledger: LedgerMetadata, seen: _Seen) -> bool:
        """Return whether a ledger without findings is settled: no copy on a lost member counts."""
        there = seen.looked.keys() - self._lost
        return ledger.state is LedgerState.CLOSED and there.issuperset(Locations(ledger).members)

    # --- noting -------------------------------------------------------------------------------

    def _note(
        self, ledger: LedgerMetadata, found: list[Gap], waiting: WaitingLedger | None, seen: _Seen
    ) -> None:
        self.findings.checked += 1
        self.findings.gaps += found
        if waiting is not None:
            self.findings.waiting.append(waiting)
        if sizes.is_short(ledger):
            self.findings.short.append(Short.of(ledger))
        problem = misplaced(ledger, self._addresses)
        if problem is not None:
            self.findings.misplaced[ledger.ledger_id] = problem
        for member in seen.looked:
            holding = seen.holdings.get((member, ledger.ledger_id))
            if holding is None:
                continue
            if holding.strays:
                self.findings.strays[member.bookie_id] += holding.strays
            if holding.problem and not holding.lacks:
                told = (ledger.ledger_id, member.bookie_id, holding.problem)
                self.findings.problems.append(told)

    def _note_orphans(self, seen: _Seen) -> None:
        """Note files of unknown ledgers; a recently created ledger does not count."""
        for member, looked in seen.looked.items():
            for ledger_id in looked.others:
                kind = self._orphan_kind(ledger_id, member, seen)
                if kind:
                    self.findings.add_orphan(member.bookie_id, kind, ledger_id)

    def _orphan_kind(self, ledger_id: int, member: Member, seen: _Seen) -> str:
        ledger = seen.ledgers.get(ledger_id)
        if ledger is None or (ledger_id not in self._dropped and ledger_id in seen.audited):
            found = self._cluster.ledgers.get(str(ledger_id))
            if found is None:
                is_unreadable = layout.ledger_key(ledger_id) in self._cluster.unreadable
                return "" if is_unreadable else OrphanKind.NO_RECORD
            if Locations(found.value).names(member):
                return ""
            ledger = found.value
        if ledger.state is LedgerState.DELETING:
            return OrphanKind.DELETED
        return OrphanKind.DROPPED if ledger_id in self._dropped else OrphanKind.NO_MEMBER


def _whole_members(seen: _Seen, ledger_id: int) -> list[Member]:
    """Return members that show all their records, at most one per location."""
    ledger = seen.audited[ledger_id]
    chosen: dict[Any, Member] = {}
    for location in Locations(ledger).known:
        for member in location.members:
            holding = seen.holdings.get((member, ledger_id))
            shows = holding is None or not (holding.unknown or holding.lacking_in(location))
            if member in seen.looked and shows:
                chosen.setdefault(location.first_entry_id, member)
    return list(dict.fromkeys(chosen.values()))


# --- audit command -------------------------------------------------------------------------------
# ``audit``: plan, carry out, report; after an audit of the whole cluster, note the time.


logger = logging.getLogger(__name__)

SHOWN_TELL_SECONDS = 1.0
"""Reporting interval of views: they wait at most 12 intervals, not a minute, for a silent
bookie.
"""


MISSED = (
    "it is not closed, and `bkspark recover --all` took it for closed",
    "nothing; the next `bkspark recover --all` looks at it",
)
"""Reason and hint of a ledger that a note wrongly calls settled."""


def audit(
    cluster: Survey,
    how: Execution = IN_THREADS,
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
    nominate: Callable[[Mapping[str, str], int], None] = lambda _silent, _now_ms: None,
) -> Report:
    """Find missing copies, and ledgers waiting for recovery; see ``verbs.commands``.

    Args:
        logs, ledgers: names and ids to examine; if both are empty, all ledgers and surplus files on
            bookies.
        nominate: called after an audit of all ledgers, with the silent bookies and the time.
    """
    began_ms = environment.now_ms()
    plan = plan_audit(cluster, logs, ledgers)
    if how.dry_run:
        return planned(VERB, plan)
    dropped, tiered = dropped_and_tiered(cluster)
    work = Audit(cluster, plan, how.runner, dropped)
    work.carry_out(how.progress)
    names = cluster.log_names() if plan.is_of_all else logs
    listing = every_log(cluster, names)
    work.findings.recordless = list(gone_from_lists(cluster, listing, work.seen))
    work.findings.unreadable = dict(cluster.unreadable)
    found = work.findings.report(plan, work.lost_bookies)
    tables = look_at_tables(cluster, sorted(tiered if plan.is_of_all else tiered & set(logs)))
    found = with_tables(found, tables)
    unknown = missed(cluster, work.unclosed, began_ms) if plan.is_of_all else ()
    found = replace(found, left=[*found.left, *(Left(f"ledger {i}", *MISSED) for i in unknown)])
    SettledLedgers(cluster, REPAIR).doubt(work.seen - work.settled, began_ms)
    report = replace(found, summary=in_words(found.counters))
    for left in report.left:
        logger.info("audit: %s: %s", left.subject, left.reason)
    if report.left:
        logger.warning("audit: %s findings; the report names them", len(report.left))
    if plan.is_of_all:
        nominate(work.findings.silent, began_ms)
        report = noted(cluster, report, began_ms)
    return report


def plan_audit(
    cluster: Cluster, logs: Collection[str] = (), ledgers: Collection[int] = ()
) -> AuditPlan:
    """Plan an audit of some or all ledgers; raise the errors of ``audit``."""
    bookie_ids = sorted(cluster.bookies())
    if not logs and not ledgers:
        return plan_of_all(cluster.ledger_ids(), bookie_ids)
    wanted = {cluster.ledger(ledger_id).value.ledger_id for ledger_id in ledgers}
    for name in logs:
        wanted |= set(cluster.log(name).value.listed_ids)
    return plan_of_some(sorted(wanted), bookie_ids)


def gaps_of(cluster: Cluster, ledger_ids: Sequence[int]) -> list[Gap]:
    """Return the missing copies of some ledgers, for views."""
    plan = plan_of_some(ledger_ids, sorted(cluster.bookies()))
    run = partial(in_threads, tell_seconds=SHOWN_TELL_SECONDS)
    work = Audit(cluster, plan, run, dropped_ledgers(cluster))
    work.carry_out(no_progress)
    return work.findings.gaps


def with_tables(report: Report, tables: TableAnswers) -> Report:
    """Return the report of an audit with what it found out about tables."""
    return replace(
        report,
        left=[*report.left, *tables.left],
        counters={**report.counters, **tables.counters},
        details={**report.details, "tables": tables.rows},
    )


def dropped_ledgers(cluster: Cluster) -> set[int]:
    """Return the ids of all ledgers dropped by logs: no copy of them is required."""
    return dropped_and_tiered(cluster)[0]


def dropped_and_tiered(cluster: Cluster) -> tuple[set[int], set[str]]:
    """Return the ids of all ledgers dropped by logs, and the names of logs that have a table."""
    dropped, tiered = set[int](), set[str]()
    for name in cluster.log_names():
        seen = cluster.logs.get(name)
        if seen is not None:
            dropped.update(seen.value.every_dropped_id())
            if seen.value.tier is not None:
                tiered.add(name)
    return dropped, tiered
