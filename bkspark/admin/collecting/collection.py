"""``collect``: plan, check each ledger anew, free its files, delete its record, report."""

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from bkspark import environment
from bkspark.admin.absent_bookies import SEE_DAMAGED, leave_out_unreadable, silent_bookies
from bkspark.admin.collecting.freeing import (
    CollectPlan,
    Doomed,
    Free,
    Freed,
    Garbage,
    GarbageKind,
    Unwanted,
)
from bkspark.admin.collecting.garbage import READ_GRACE_SECONDS, Metadata, SpentPages
from bkspark.admin.collecting.planning import CollectionPlanner
from bkspark.admin.collecting.unwanted import LEDGERS_AT_ONCE, LeftoverRemover
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Left,
    Progress,
    Report,
    left_records,
    noted,
)
from bkspark.admin.offloading.freeing import FreeingDue, TierOutcome, free_offloaded, planned_steps
from bkspark.admin.offloading.tier_pages import SpentTierPages
from bkspark.admin.sweep import answers, batches
from bkspark.bookie.contract import Usage, on_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_messages import tell
from bkspark.cluster.settled_ledgers import COLLECT, SettledLedgers, members_of
from bkspark.errors import CorruptDataError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.deleting import exclude, make_tombstone
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.bounds import ABANDONED_AFTER_SECONDS, OFFLOAD_GRACE_SECONDS
from bkspark.protocol.ledger.deletion import owing
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery.steps import Silence

# --- collection ----------------------------------------------------------------------------------
# Carry out a collection's plan: check each ledger anew, free its files, delete its record.
#
# For each batch of ledgers:
#
# 1. If the ledger's log has dropped it, its record is changed to DELETING by compare-and-set,
#    unless it says DELETING already. A ledger its log does not name is first dropped by the log.
# 2. Each bookie in the ledger's ensembles, or holding files of the ledger, fences the writer and
#    frees the files.
# 3. When no bookie is owed the deletion any more ("deletion"), the id is noted as gone, and then
#    the record is deleted.
#
# Afterwards unneeded files of remaining ledgers are removed ("letting_go"). At the end logs forget
# their dropped ledgers noted as gone. Each step may safely run again after a crash, and at the same
# time in another run.


logger = logging.getLogger(__name__)


@dataclass(slots=True)
class CollectionOutcome:
    """Results of a collection so far.

    Attributes:
        freed: number of ledgers freed completely.
        pages: number of log pages removed.
        owed: bookies still to be cleaned before a ledger is forgotten, by ledger id.
        silent: reasons of bookies not answering.
        problems: reasons why files may remain, by ledger id and bookie id.
        doubts: reasons for keeping possible garbage, by subject.
        unreadable: metadata records delaying the collection, by key, with the fault.
    """

    freed: int = 0
    pages: int = 0
    removed: Usage = field(default_factory=Usage)
    owed: dict[int, list[str]] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    problems: dict[tuple[int, str], str] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


class Collector:
    """Carries out a plan.

    Args:
        unknown: ids of bookies whose records cannot be read; deletions wait for them.
    """

    def __init__(
        self, cluster: Cluster, plan: CollectPlan, run: Runner, unknown: Collection[str] = ()
    ) -> None:
        self.outcome = CollectionOutcome(silent=dict(plan.silent))
        self._unknown = unknown
        self._cluster = cluster
        self._plan = plan
        self._run = run
        self._gone = GoneLedgers(cluster.store, cluster.cluster_id)
        self._addresses = cluster.addresses()
        self._lost = cluster.lost_members()

    def carry_out(self, progress: Progress) -> None:
        """Free all ledgers of the plan still found to be garbage.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        garbage, unwanted = self._plan.garbage, self._plan.unwanted
        total = len(garbage) + len(unwanted)
        for step in batches(garbage, LEDGERS_AT_ONCE, progress, total=total):
            self._take(step)
        self._let_go(unwanted)
        progress(total, total)
        pages = SpentPages(self._cluster, self._gone)
        self.outcome.pages = sum(pages.free(*one) for one in self._plan.pages.items())
        of_tiers = SpentTierPages(self._cluster)
        self.outcome.pages += sum(of_tiers.free(*one) for one in self._plan.tier_pages.items())
        self.outcome.doubts = {**pages.doubts, **of_tiers.doubts}
        of_garbage = {one.log for one in garbage if one.log}
        for name in sorted(of_garbage.union(self._plan.dropping)):
            self._forget(name)

    def _let_go(self, unwanted: Sequence[Unwanted]) -> None:
        """Free unneeded files of remaining ledgers."""
        work = LeftoverRemover(self._cluster, self._run, self._addresses, self.outcome.silent)
        for step in batches(unwanted, LEDGERS_AT_ONCE):
            work.take(step)
        self.outcome.removed += work.outcome.removed
        self.outcome.problems |= work.outcome.problems

    def _take(self, step: Sequence[Garbage]) -> None:
        # Read again: the plan's metadata may be outdated.
        now_ms = environment.now_ms()
        metadata = Metadata(self._cluster, self._plan.made_before_ms, now_ms=now_ms)
        deleting: dict[int, LedgerMetadata] = {}
        for garbage in step:
            ledger = self._deleting(garbage, metadata)
            if ledger is not None:
                deleting[ledger.ledger_id] = ledger
        gone = self._gone.among(one.ledger_id for one in step if one.kind is GarbageKind.GONE)
        cleaned = self._free(deleting, gone)
        done = [i for i, ledger in deleting.items() if not self._owed(ledger, cleaned[i])]
        noted = self._gone.note(done)
        for ledger_id in sorted(noted):
            if self._cluster.upkeep.recoveries.get(str(ledger_id)) is not None:
                self._cluster.store.delete(layout.recovery_key(ledger_id))
            self._cluster.store.delete(layout.ledger_key(ledger_id))
            tell(logger, "ledger %d: freed, with its record", ledger_id, ledger_id=ledger_id)
        self.outcome.freed += len(noted)
        self.outcome.unreadable |= self._gone.unreadable

    def _deleting(self, garbage: Garbage, metadata: Metadata) -> LedgerMetadata | None:
        """Mark a ledger DELETING and return its record; None if no longer garbage."""
        if garbage.kind is GarbageKind.GONE:
            return None
        found = metadata.garbage(garbage.ledger_id)
        if found is None:
            return None
        with suppress(NoSuchLedgerError):  # another collection has freed the ledger meanwhile
            if found.kind is GarbageKind.UNNAMED and not self._excluded(found):
                return None
            make_tombstone(self._cluster, garbage.ledger_id)
        seen = self._cluster.ledgers.get(str(garbage.ledger_id))
        return seen.value if seen and seen.value.state is LedgerState.DELETING else None

    def _excluded(self, garbage: Garbage) -> bool:
        """Have the log drop a ledger for ever; False if the ledger joined the log meanwhile."""
        quorum = self._cluster.ledger(garbage.ledger_id).value.quorum
        return exclude(self._cluster, garbage.log, garbage.ledger_id, quorum)

    def _free(
        self, deleting: Mapping[int, LedgerMetadata], gone: set[int]
    ) -> dict[int, set[Member]]:
        """Have bookies free the ledgers; return the members surely clean, by ledger id."""
        orders = []
        for member, address in self._addresses.items():
            found = self._plan.found.get(member.bookie_id, frozenset())
            own = [
                x for x in deleting.values() if Locations(x).names(member) or x.ledger_id in found
            ]
            doomed = [*map(Doomed.of, own), *map(Doomed, sorted(gone & found))]
            if doomed and member.bookie_id not in self.outcome.silent:
                orders.append(Free(address, tuple(doomed)))
        cleaned: dict[int, set[Member]] = {ledger_id: set() for ledger_id in deleting}
        for order, answer in answers(self._run, orders):
            if isinstance(answer, Silence):
                self.outcome.silent[order.address.bookie_id] = answer.reason
            else:
                self._note(order, answer, cleaned)
        return cleaned

    def _note(self, order: Free, answer: Freed, cleaned: Mapping[int, set[Member]]) -> None:
        for ledger_id, removed in answer.removed.items():
            self.outcome.removed += removed
            said, bookie_name = "ledger %d: %d files, %d bytes freed on %s", order.address.bookie_id
            freed = (ledger_id, removed.files, removed.bytes, bookie_name)
            if removed.files:
                tell(logger, said, *freed, ledger_id=ledger_id, bookie_id=bookie_name)
            if ledger_id in cleaned:
                cleaned[ledger_id].add(order.address.member)
        for ledger_id, problem in answer.problems.items():
            self.outcome.problems[ledger_id, order.address.bookie_id] = problem

    def _owed(self, ledger: LedgerMetadata, cleaned: set[Member]) -> bool:
        """Return whether a bookie is still owed the deletion, and note such bookies."""
        members = owing(
            ledger,
            cleaned=cleaned,
            registered=self._addresses,
            lost=self._lost,
            unknown=self._unknown,
        )
        if members:
            self.outcome.owed[ledger.ledger_id] = sorted(member.bookie_id for member in members)
        return bool(members)

    def _forget(self, log_name: str) -> None:
        """Have a log forget dropped ledgers that are gone: no client can add them any more."""
        try:
            seen = self._cluster.logs.get(log_name)
            if seen is None or not seen.value.has_any_dropped:
                return
            gone = self._gone.among(seen.value.every_dropped_id())
        except CorruptDataError:
            return  # the record is listed as unreadable elsewhere
        if gone:
            self._cluster.logs.update(
                log_name, lambda record: (record or seen.value).forgetting(gone), seen=seen
            )


# --- collect command -----------------------------------------------------------------------------
# ``collect``: plan, carry out, report, and note the time.


VERB = COLLECT

DELETED = "DELETED_LEDGER_COUNT"
RECLAIMED = "RECLAIMED_DELETION_SPACE_BYTES"
FAILED = "RECLAIM_FAILED_TO_DELETE"
"""BookKeeper's names."""
TO_FREE = "SPACE_TO_RECLAIM_BYTES"
"""Bytes found but not freed yet, including ledgers kept for readers for a while."""


def collect(
    cluster: Cluster,
    how: Execution = IN_THREADS,
    *,
    abandoned_after: float = ABANDONED_AFTER_SECONDS,
    offload_grace: float = OFFLOAD_GRACE_SECONDS,
    full: bool = False,
) -> Report:
    """Free files left by deleted ledgers, truncations, overwrites and aborted writes.

    Also free unneeded files of closed ledgers: copies on former members, unnamed entry logs, and
    journals of truncated beginnings without any counting entry. Then remove unnamed log pages of
    gone ledgers. ``verbs.commands`` says more.

    Args:
        abandoned_after: seconds to keep a ledger its log does not name, counted from the ledger's
            creation: a longer write may count as abandoned, and fails at commit. Ledgers replaced
            by a compaction are kept as long, but at most a day: a longer read must be repeated.
        offload_grace: seconds from an offload to the first look at its table, and at most a day
            from that look to the second one, after which the ledgers are deleted.
        full: look at all ledgers, and at all files of bookies, and not only at those that may have
            changed.
    """
    began_ms = environment.now_ms()
    unreadable = leave_out_unreadable(cluster)
    reads = min(max(abandoned_after, offload_grace), READ_GRACE_SECONDS)
    due = FreeingDue(began_ms - int(offload_grace * 1000), began_ms - int(reads * 1000))
    tiers = (planned_steps if how.dry_run else free_offloaded)(cluster, due)
    made_before_ms = began_ms - int(abandoned_after * 1000)
    replaced_before_ms = began_ms - int(min(abandoned_after, READ_GRACE_SECONDS) * 1000)
    metadata = Metadata(cluster, made_before_ms, replaced_before_ms, began_ms)
    silent = silent_bookies(cluster, how.runner)
    notes = SettledLedgers(cluster, VERB)
    asked = notes.to_look_at(began_ms, members_of(cluster, silent), is_all=full)
    look = CollectionPlanner(cluster, how.runner, metadata, silent, asked)
    plan = look.planned(tiers.dropping)
    of_tiers = SpentTierPages(cluster)
    tier_pages = of_tiers.found(tiers.paged)
    plan = replace(plan, tier_pages=tier_pages, doubts={**plan.doubts, **of_tiers.doubts})
    if how.dry_run:
        return Report(VERB, plan.facts, details=_rows(plan, tiers))
    work = Collector(cluster, plan, how.runner, cluster.left_out)
    work.carry_out(how.progress)
    notes.note(notes.seen(asked, plan.unsettled, plan.absent))
    outcome = work.outcome
    lost = {member.bookie_id for member in cluster.lost_members()}
    left = (*tiers.left, *left_records(unreadable, SEE_DAMAGED))
    report = _report(plan, outcome, lost, left, tiers)
    logger.info("collect: %d ledgers, %d bytes freed", outcome.freed, outcome.removed.bytes)
    return noted(cluster, report, began_ms)


def nominate(cluster: Cluster, run: Runner, silent: Mapping[str, str], now_ms: int) -> None:
    """Look at all, as a full collection does, and doubt the ledgers with something to free.

    For an audit. Ages of ledgers and reads do not matter: a collection decides.

    Args:
        silent: reasons of the bookies that do not answer, by id.
    """
    metadata = Metadata(cluster, now_ms, now_ms=now_ms)
    plan = CollectionPlanner(cluster, run, metadata, silent).planned()
    SettledLedgers(cluster, COLLECT).doubt(plan.unsettled, now_ms)


def _rows(plan: CollectPlan, tiers: TierOutcome) -> dict[str, list[Mapping[str, Any]]]:
    ledgers = [*(one.row for one in plan.garbage), *(one.row for one in plan.unwanted)]
    return {"ledgers": ledgers, **tiers.details}


def _report(
    plan: CollectPlan,
    outcome: CollectionOutcome,
    lost: Collection[str],
    others: Collection[Left],
    tiers: TierOutcome,
) -> Report:
    left = [*_left(plan, outcome, lost), *others]
    removed = outcome.removed
    return Report(
        VERB,
        plan.facts,
        {
            "ledgers": outcome.freed,
            "files": removed.files,
            "bytes": removed.bytes,
            "pages": outcome.pages,
        },
        left,
        {
            DELETED: outcome.freed,
            RECLAIMED: removed.bytes,
            TO_FREE: max(0, plan.usage.bytes - removed.bytes) + plan.later.bytes,
            FAILED: len({*outcome.owed, *(ledger_id for ledger_id, _ in outcome.problems)}),
        },
        _rows(plan, tiers),
        summary="some is left for the next run" if left else "",
    )


def _left(plan: CollectPlan, outcome: CollectionOutcome, lost: Collection[str]) -> Iterator[Left]:
    for bookie_id, reason in sorted(outcome.silent.items()):
        if bookie_id not in lost:  # expected to stay silent
            yield Left(f"bookie {bookie_id}", reason)
    for (ledger_id, bookie_id), problem in sorted(outcome.problems.items()):
        yield Left(f"ledger {ledger_id}", on_bookie(bookie_id, problem))
    for ledger_id, bookie_ids in sorted(outcome.owed.items()):
        yield Left(f"ledger {ledger_id}", f"to be freed on {', '.join(bookie_ids)}")
    waiting = {f"metadata record {key}": why for key, why in outcome.unreadable.items()}
    for subject, reason in sorted({**plan.doubts, **outcome.doubts, **waiting}.items()):
        yield Left(subject, reason)
