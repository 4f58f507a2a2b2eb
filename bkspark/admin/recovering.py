"""``recover``: recover many ledgers in one run, all without a writer or the named ones."""

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bkspark import environment
from bkspark.admin.auditing.audit import gaps_of
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Facts,
    Left,
    Progress,
    Report,
    left_records,
    noted,
    planned,
)
from bkspark.admin.survey import Survey
from bkspark.admin.sweep import answers_by_ledger, by_member, last_members
from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.log_messages import leave_out, tell
from bkspark.cluster.password import Password
from bkspark.cluster.records import Notes
from bkspark.cluster.settled_ledgers import RECOVER, SettledLedgers, unclosed_ledgers
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    CorruptDataError,
    NoSuchLedgerError,
)
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import SIGHTINGS_MAX, Sightings
from bkspark.ledger.creating import log_of
from bkspark.ledger.journals.journal_reader import find_journals, journals_of
from bkspark.ledger.journals.member_journals import Taken
from bkspark.ledger.recovery.running import Runner
from bkspark.log.recovering import is_gone_on_with, recover_ledger
from bkspark.protocol.bounds import OPEN_GRACE_SECONDS
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.deletion import without_front
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.upkeep.idleness import Sighting, is_idle, seen_again

# --- task ----------------------------------------------------------------------------------------
# The recovery of one ledger, run in a thread or as a Spark task.


@dataclass(frozen=True, slots=True)
class Recovered:
    """The outcome of one ledger.

    Attributes:
        last_entry_id: the ledger's last entry, if CLOSED or OPEN again; otherwise None.
        losses: as reported by the recovery.
        problem: why the recovery failed, with the remedy; empty on success, or if the ledger is
            gone.
        is_open: whether the ledger is OPEN again for the next writer.
    """

    ledger_id: int
    last_entry_id: int | None = None
    kept: int = 0
    losses: tuple[str, ...] = ()
    problem: str = ""
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RecoverLedger:
    """A whole recovery with connections of its own; picklable. The recovery never accepts a loss.

    Attributes:
        seals: whether the ledger is closed even if its log could continue in the ledger.
    """

    metadata_uri: str
    cluster_id: str
    ledger_id: int
    password: Password
    seals: bool = False

    def run(self) -> Recovered:
        """Runs on: driver thread | executor."""
        try:
            with Cluster(self.metadata_uri, cluster_id=self.cluster_id) as cluster:
                report = recover_ledger(cluster, self.ledger_id, self.password, seals=self.seals)
        except NoSuchLedgerError:
            return Recovered(self.ledger_id)
        except BookKeeperError as error:
            return Recovered(self.ledger_id, problem=str(error))
        found = (report.last_entry_id, report.kept, tuple(report.losses))
        return Recovered(self.ledger_id, *found, is_open=report.is_open)


# --- lacking -------------------------------------------------------------------------------------
# Find tail ledgers of unbounded logs lacking copies that only a repair can make.
#
# A living writer moves on to another ledger by itself. A dead writer's ledger stays OPEN, and only
# closed ledgers are repaired or widened.


def lacking_copies(cluster: Cluster, ledgers: Collection[LedgerMetadata]) -> frozenset[int]:
    """Return ids of tail ledgers to be closed before a repair.

    Missing copies count only in fragments listed in ``ledgers``: the log may have dropped others.

    A copy on a silent bookie is not known to be missing and closes no ledger. A ledger created on
    too few bookies is not closed while too few bookies are available.
    """
    kept = {(x.ledger_id, at.first_entry_id) for x in ledgers for at in Locations(x)}
    found = gaps_of(cluster, sorted({ledger_id for ledger_id, _ in kept}))
    certain = {
        gap.ledger_id
        for gap in found
        if not gap.is_unknown and (gap.ledger_id, gap.fragment_first_entry_id) in kept
    }
    small = {
        one.ledger_id
        for one in ledgers
        if sizes.is_short(one) and _has_bookies(cluster, sizes.wanted(one).ensemble_size)
    }
    return frozenset(certain | small)


def _has_bookies(cluster: Cluster, count: int) -> bool:
    found = cluster.probe(enough=count, needed=count, step_over=leave_out)
    lost = cluster.lost_members()
    return sum(one.may_join and one.member not in lost for one in found) >= count


# --- recovery plan -------------------------------------------------------------------------------
# Choose the ledgers a run recovers, and the ledgers left to their writers.
#
# Rule. After a recovery, the tail ledger of an unbounded log is OPEN again. But only closed ledgers
# can be repaired or can leave a bookie. So a tail ledger is closed instead if it names a bookie
# that is gone for good or was made read-only by an operator: the log continues in another ledger,
# and copies can be made elsewhere. A tail ledger lacking copies (``lacking``) is closed too.
# Fragments dropped by their log do not count here.
#
# Other tail ledgers are left alone if no entry was written since they became OPEN, for example
# after a recovery: no entry is undecided, and each run would begin a new term in vain.


_RESTS = "nothing was written to it in term {}: its log keeps it as its tail"


@dataclass(frozen=True, slots=True)
class RecoverPlan:
    """Ledgers to recover and ledgers to leave alone.

    Attributes:
        waiting: ids and reasons of open ledgers left alone: a living writer is possible, or no
            entry is undecided.
        open_grace: in seconds.
        sealed: ids of ledgers to close even if a log could continue in them.
    """

    ledgers: tuple[LedgerMetadata, ...]
    waiting: tuple[tuple[int, str], ...]
    open_grace: float
    sealed: frozenset[int] = frozenset()

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": len(self.ledgers),
            "open_grace": self.open_grace,
            "recover": [
                {
                    "ledger_id": ledger.ledger_id,
                    "state": ledger.state.value,
                    "seal": ledger.ledger_id in self.sealed,
                }
                for ledger in self.ledgers
            ],
            "wait": [{"ledger_id": i, "reason": reason} for i, reason in self.waiting],
        }


def plan_of(
    ledgers: Collection[LedgerMetadata],
    seen: Sightings,
    now_ms: int,
    open_grace: float,
    there: Collection[Member] | None = None,
    resting: Collection[int] = (),
    lacking: Collection[int] = (),
) -> RecoverPlan:
    """Plan the recovery of unclosed ledgers.

    Args:
        seen: sightings of open ledgers.
        there: members keeping their data; None if unknown.
        resting: ids of tail ledgers of logs without entries written meanwhile.
        lacking: ids of tail ledgers of logs lacking copies.
    """
    able = (one for one in ledgers if there is not None and one.goes_on)
    gone = {one.ledger_id for one in able if not Locations(one).names_only(there or ())}
    left = gone.union(lacking)
    chosen: list[LedgerMetadata] = []
    waiting: list[tuple[int, str]] = []
    for ledger in ledgers:
        sighting = seen.get(ledger.ledger_id)
        if (
            ledger.state is LedgerState.OPEN
            and sighting is not None
            and not is_idle(sighting, now_ms, open_grace)
        ):
            seconds = max(0, now_ms - sighting.since_ms) // 1000
            reason = (
                f"its writer may be alive: the ledger was seen unchanged for {seconds:,} s, "
                f"and is recovered after {open_grace:,g}"
            )
            waiting.append((ledger.ledger_id, reason))
        elif ledger.ledger_id in resting and ledger.ledger_id not in left:
            waiting.append((ledger.ledger_id, _RESTS.format(ledger.term)))
        else:
            chosen.append(ledger)
    sealed = frozenset(one.ledger_id for one in chosen if one.ledger_id in left)
    return RecoverPlan(tuple(chosen), tuple(waiting), open_grace, sealed)


# --- sighting ------------------------------------------------------------------------------------
# Examine open ledgers: their size on each bookie, and the time since the last change.
#
# Earlier sightings are a note (``cluster.notes``): if the note is unreadable, the time starts now.
#
# If every member has what it took for the last fragment, and no later record, no entry is
# undecided: earlier entries were acknowledged when the fragment was made.


@dataclass(frozen=True, slots=True)
class Weight:
    """Size of a ledger on a bookie.

    Attributes:
        size: bytes of the journals plus the number of entry logs; grows while a writer writes.
        is_bare: whether the last fragment was begun there and no record was written.
    """

    size: int
    is_bare: bool


@dataclass(frozen=True, slots=True)
class SightingRound:
    """Sightings of open ledgers.

    Attributes:
        unwritten: ids of ledgers without records in the last fragment on any member.
    """

    seen: Sightings
    unwritten: frozenset[int]


@dataclass(frozen=True, slots=True)
class MeasureLedgers:
    """Measure some ledgers on a bookie; picklable."""

    address: BookieAddress
    ledgers: tuple[LedgerMetadata, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> dict[int, Weight]:
        """Return weights by ledger id; leave out ledgers without a definite answer."""
        found: dict[int, Weight] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger in self.ledgers:
                    is_bare = ledger.goes_on and Taken.of(ledger).is_bare_in(root)
                    found[ledger.ledger_id] = Weight(self._size(root, ledger), is_bare)
                    beat()
        except BookieUnavailableError:
            return found
        return found

    def _size(self, root: BookieRoot, ledger: LedgerMetadata) -> int:
        member = self.address.member
        known = journals_of(ledger, member)
        names = find_journals(root, member.bookie_id, ledger.ledger_id, known).names
        entry_logs = root.list(layout.entries_folder(ledger.ledger_id))
        return sum(root.size(name) or 0 for name in names) + len(entry_logs)


class OpenLedgers:
    """The stored sightings of a cluster's open ledgers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._notes: Notes[Sightings] = Notes(
            cluster.store,
            cluster.cluster_id,
            lambda name: name,
            upkeep_records.encode_sightings,
            upkeep_records.decode_sightings,
        )

    def look(self, ledgers: Sequence[LedgerMetadata], run: Runner, now_ms: int) -> SightingRound:
        """Measure open ledgers, and return since when each is unchanged; store no note."""
        weights = self._weighed(ledgers, run)
        noted = self._notes.get(layout.OPEN_LEDGERS_KEY)
        before = {} if noted is None else noted.value
        seen: dict[int, Sighting] = {}
        unwritten: set[int] = set()
        for ledger in ledgers:
            number, found = ledger.ledger_id, weights[ledger.ledger_id]
            sizes = {member.bookie_id: weight.size for member, weight in found.items()}
            now = Sighting(number, writer_of(ledger), now_ms, sizes)
            seen[number] = seen_again(before.get(number), now)
            bare = {member for member, weight in found.items() if weight.is_bare}
            last = Locations(ledger).last
            is_empty = ledger.last_confirmed < last.first_entry_id  # otherwise entries were lost
            if is_empty and bare.issuperset(last.members):
                unwritten.add(number)
        return SightingRound(seen, frozenset(unwritten))

    def note(self, seen: Sightings) -> str:
        """Store ``seen``; without enough room, keep the ledgers unchanged for longest.

        Returns:
            Why the note may not be stored, in one line; empty on success.
        """
        kept = sorted(seen.values(), key=lambda one: (one.since_ms, one.ledger_id))[:SIGHTINGS_MAX]
        after = {one.ledger_id: one for one in sorted(kept, key=lambda one: one.ledger_id)}
        known = self._notes.get(layout.OPEN_LEDGERS_KEY)
        if after == ({} if known is None else known.value):
            return ""
        return self._notes.try_to_note(layout.OPEN_LEDGERS_KEY, after)

    def _weighed(
        self, ledgers: Sequence[LedgerMetadata], run: Runner
    ) -> Mapping[int, Mapping[Member, Weight]]:
        addresses = self._cluster.addresses()
        looks = [
            MeasureLedgers(addresses[member], tuple(theirs))
            for member, theirs in by_member(ledgers, last_members).items()
            if member in addresses
        ]
        found: dict[int, dict[Member, Weight]] = {one.ledger_id: {} for one in ledgers}
        for member, ledger_id, weight in answers_by_ledger(run, looks):
            found[ledger_id][member] = weight
        return found


def writer_of(ledger: LedgerMetadata) -> str:
    """Return a text that changes with each takeover and each replacement of a bookie."""
    return f"{ledger.term}-{ledger.token}-{len(Locations(ledger))}"


# --- recover command -----------------------------------------------------------------------------
# ``recover``: plan, recover ledgers in parallel, report.
#
# Rule. Each ledger is recovered separately, as by ``bkspark ledger recover``. So one ledger's
# problem delays no other ledger, and a killed run has recovered some ledgers.


logger = logging.getLogger(__name__)

VERB = RECOVER
AT_ONCE = 8
"""Ledgers recovered in parallel in one process."""

_CLOSED = "ledger %d: closed at entry %d"

SideBySide = Callable[[Sequence[RecoverLedger]], Sequence[Recovered]]
"""Recovers ledgers separately and returns their outcomes."""


@dataclass(frozen=True, slots=True)
class RecoverRequest:
    """Arguments of a recovery run.

    Attributes:
        ledgers: ids to recover, even with living writers; empty for all ledgers with dead writers.
        open_grace: seconds an open ledger must be seen unchanged before its writer counts as dead.
    """

    ledgers: Collection[int] = ()
    open_grace: float = OPEN_GRACE_SECONDS
    password: Password = field(default_factory=Password)


def recover_many(
    cluster: Survey,
    wanted: RecoverRequest,
    how: Execution = IN_THREADS,
    *,
    recover: SideBySide | None = None,
) -> Report:
    """Close ledgers without losing acknowledged entries; leave undecidable ledgers.

    The tail ledger of an unbounded log is OPEN again afterwards (``log.recovering``), unless it
    must be closed to be repaired (``plan_of``). A dry run stores no sightings.

    Args:
        recover: runner of the recoveries; None for threads of this process.
    """
    began_ms = environment.now_ms()
    plan, problem = _planned(cluster, wanted, how.runner, is_noted=not how.dry_run)
    if how.dry_run:
        return planned(VERB, plan)
    place = cluster.uri, cluster.cluster_id
    tasks = [
        RecoverLedger(*place, x.ledger_id, wanted.password, x.ledger_id in plan.sealed)
        for x in plan.ledgers
    ]
    found = (recover or _in_threads(how.progress))(tasks)
    for one in found:
        _tell(one)
    report = _report(plan, found, cluster, problem)
    return report if wanted.ledgers else noted(cluster, report, began_ms)


def _tell(one: Recovered) -> None:
    """Log the outcome of a ledger."""
    number, last = one.ledger_id, one.last_entry_id
    if last is not None:
        line = "ledger %d: OPEN again after entry %d" if one.is_open else _CLOSED
        tell(logger, line, number, last, ledger_id=number, entry_id=last)
    for loss in one.losses:
        tell(logger, "ledger %d: %s", number, loss, level=logging.WARNING, ledger_id=number)
    if one.problem:
        tell(logger, "ledger %d: not closed yet: %s", number, one.problem, ledger_id=number)


def _planned(
    cluster: Survey, wanted: RecoverRequest, run: Runner, *, is_noted: bool
) -> tuple[RecoverPlan, str]:
    """Return the plan, and why sightings may not be stored; empty if stored."""
    now_ms = environment.now_ms()
    if wanted.ledgers:
        ids = sorted(set(wanted.ledgers))
        named = [cluster.ledger(ledger_id).value for ledger_id in ids]
        unclosed = [ledger for ledger in named if ledger.state is not LedgerState.CLOSED]
        return plan_of(unclosed, {}, now_ms, wanted.open_grace), ""
    found = unclosed_ledgers(cluster, now_ms)
    if is_noted:
        SettledLedgers(cluster, RECOVER).note(found.look)
    unclosed = [ledger for ledger in found.ledgers if not is_dropped(cluster, ledger)]
    known = OpenLedgers(cluster)
    looked = known.look([x for x in unclosed if x.state is LedgerState.OPEN], run, now_ms)
    seen = looked.seen
    problem = known.note(seen) if is_noted else ""
    unwritten = [x for x in unclosed if x.ledger_id in looked.unwritten]
    resting = [x.ledger_id for x in unwritten if is_gone_on_with(cluster, x)]
    unclosed = [_as_its_log_wants_it(cluster, ledger) for ledger in unclosed]
    left = [x for x in unclosed if _is_left(x, seen, now_ms, wanted.open_grace)]
    ends = [x for x in left if is_gone_on_with(cluster, x)]
    lacking = lacking_copies(cluster, ends) if ends else ()
    there = _there(cluster)
    plan = plan_of(unclosed, seen, now_ms, wanted.open_grace, there, resting, lacking)
    return plan, problem


def _is_left(ledger: LedgerMetadata, seen: Sightings, now_ms: int, open_grace: float) -> bool:
    """Return whether the writer counts as dead."""
    sighting = seen.get(ledger.ledger_id)
    return sighting is None or is_idle(sighting, now_ms, open_grace)


def _as_its_log_wants_it(cluster: Survey, ledger: LedgerMetadata) -> LedgerMetadata:
    """Return ``ledger`` without fragments dropped by its log; the next truncation removes them."""
    name = log_of(ledger) if ledger.goes_on else None
    seen = None if name is None else cluster.logs.get(name)
    if seen is None or seen.value.tail[:1] != (ledger.ledger_id,):
        return ledger
    return without_front(ledger, seen.value.dropped.of_tail)


def _there(cluster: Survey) -> frozenset[Member] | None:
    """Return the members keeping their data; None if a bookie's record cannot be read."""
    there = cluster.lasting_members()
    prefixes = tuple(f"{prefix}/" for prefix in (layout.BOOKIES_PREFIX, layout.LOST_PREFIX))
    return None if any(key.startswith(prefixes) for key in cluster.unreadable) else there


def is_dropped(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Return whether the ledger's log has dropped it, and needs none of its copies."""
    name = log_of(ledger)
    log = None if name is None else cluster.logs.get(name)
    number = ledger.ledger_id
    return log is not None and log.value.has_dropped(number) and not log.value.is_waiting(number)


def _in_threads(progress: Progress) -> SideBySide:
    def recover(tasks: Sequence[RecoverLedger]) -> Sequence[Recovered]:
        done: list[int] = []
        progress(0, len(tasks))

        def work(task: RecoverLedger) -> Recovered:
            result = task.run()
            done.append(task.ledger_id)
            progress(len(done), len(tasks))
            return result

        return environment.for_each(work, tasks, at_once=AT_ONCE, name="recover")

    return recover


def _report(plan: RecoverPlan, found: Sequence[Recovered], cluster: Survey, problem: str) -> Report:
    closed = [one for one in found if one.last_entry_id is not None]
    lossy = [one for one in closed if one.losses]
    left = [Left(f"ledger {one.ledger_id}", one.problem) for one in found if one.problem]
    left += left_records(cluster.unreadable)
    if problem:
        reason = f"the time since which open ledgers are unchanged could not be stored: {problem}"
        left.append(Left(f"metadata record {layout.OPEN_LEDGERS_KEY}", reason))
    words = []
    if reopened := [one for one in closed if one.is_open]:
        words.append(f"{len(reopened):,} of them OPEN again")
    if lossy:
        words.append(f"{len(lossy):,} with losses")
    if plan.waiting:
        words.append(f"{len(plan.waiting):,} open ledgers left to their writers")
    if left:
        words.append(f"{len(left):,} left")
    return Report(
        VERB,
        plan.facts,
        {"ledgers": len(closed)},
        left,
        {
            "NUM_LEDGERS_RECOVERED": len(closed),
            "NUM_LEDGERS_RECOVERED_WITH_LOSSES": len(lossy),
            "NUM_LEDGERS_NOT_RECOVERED": sum(bool(one.problem) for one in found),
            "NUM_OPEN_LEDGERS_LEFT_TO_THEIR_WRITERS": len(plan.waiting),
        },
        {
            "recovered": [
                {
                    "ledger_id": one.ledger_id,
                    "last_entry_id": one.last_entry_id,
                    "state": (LedgerState.OPEN if one.is_open else LedgerState.CLOSED).value,
                    "groups_kept": one.kept,
                    "losses": list(one.losses),
                }
                for one in closed
            ],
            "open": [{"ledger_id": i, "reason": reason} for i, reason in plan.waiting],
        },
        ", ".join(words),
    )


# --- recovering first ----------------------------------------------------------------------------
# Recover ledgers without writers before a repair of all: only closed ledgers are repaired.
#
# Rule 1. A ledger with a possibly living writer is left alone and not copied. ``recovering``
# decides when a writer counts as dead.
#
# Rule 2. Neither step stops the other: the report lists unrecovered ledgers beside unrepaired
# ledgers. If another run is recovering now, the recoveries are left to it.


RECOVERED = "NUM_LEDGERS_RECOVERED"
LOSSY = "NUM_LEDGERS_RECOVERED_WITH_LOSSES"


def recover_and_repair(recover: Callable[[], Report], repair: Callable[[], Report]) -> Report:
    """Run both steps; return their joint report under the repair's name."""
    try:
        recovered = recover()
    except CorruptDataError as error:
        left = [Left("recover", str(error.args[0]), error.hint)]
        recovered = Report("recover", {}, {"ledgers": 0}, left)
    return _joined(recovered, repair())


def _joined(recovered: Report, repaired: Report) -> Report:
    known = {left.subject for left in repaired.left}
    is_somebody_elses = not recovered.done
    more = [one for one in recovered.left if not (is_somebody_elses or one.subject in known)]
    left = [*repaired.left, *more]
    words = [*_words(recovered), f"{len(left):,} left" if left else repaired.summary]
    return replace(
        repaired,
        plan={**repaired.plan, "recover": recovered.plan},
        left=left,
        counters={**recovered.counters, **repaired.counters},
        details={**recovered.details, **repaired.details},
        summary=", ".join(filter(None, words)),
    )


def _words(recovered: Report) -> Iterator[str]:
    count, lossy = (recovered.counters.get(name, 0) for name in (RECOVERED, LOSSY))
    if count:
        which = "1 ledger was" if count == 1 else f"{count:,} ledgers were"
        yield f"{which} recovered first" + (f", {lossy:,} with losses" if lossy else "")
