"""Plan a collection: look at ledgers, at the bookies with files of them, and at pages of logs.

Rule 1. Records are read first, bookies afterwards. So a ledger that is settled was closed when the
bookies were asked for files that are not needed.

Rule 2. A collection looks at the ledgers that are not settled ("settling"), and at those that logs
have dropped. An audit looks at all, and doubts what a collection may free. So a collection needs no
look at a settled ledger, and no list of all files.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from bkspark.admin.absent_bookies import silent_bookies
from bkspark.admin.auditing.findings import SHARDS, AuditStep, plan_of_all
from bkspark.admin.collecting.freeing import (
    CollectPlan,
    Garbage,
    GarbageKind,
    ListLedgers,
    MeasureFiles,
    Unwanted,
)
from bkspark.admin.collecting.garbage import Metadata, SpentPages
from bkspark.admin.collecting.unwanted import LeftoverFinder
from bkspark.admin.sweep import answers, answers_by_ledger
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.settled_ledgers import ToLookAt
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.recovery.steps import Silence

Files = Mapping[BookieAddress, frozenset[int]]
"""Ids of ledgers with files on each bookie, as a hint."""


class CollectionPlanner:
    """Finds garbage; changes nothing.

    Args:
        metadata: judges ledgers.
        silent: reasons of the bookies that do not answer, by id.
        asked: the ledgers to look at; None for all ledgers and all files.
    """

    def __init__(
        self,
        cluster: Cluster,
        run: Runner,
        metadata: Metadata,
        silent: Mapping[str, str],
        asked: ToLookAt | None = None,
    ) -> None:
        self._cluster = cluster
        self._run = run
        self._metadata = metadata
        self._silent = dict(silent)
        self._asked = None if asked is None or not asked.known.below else asked
        self._gone = GoneLedgers(cluster.store, cluster.cluster_id)
        self._leftovers: LeftoverFinder | None = None
        self._garbage: dict[int, Garbage] = {}
        self._unwanted: list[Unwanted] = []
        self._where: dict[BookieAddress, set[int]] = {}
        self._unsettled: set[int] = set()
        self._absent: set[int] = set()

    def planned(self, log_names: Collection[str] | None = None) -> CollectPlan:
        """Look, and return the plan.

        Args:
            log_names: names of the logs that may have dropped ledgers; None for all.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        end = self._cluster.next_ledger_id()
        names = self._cluster.log_names() if log_names is None else log_names
        dropped = self._metadata.dropped(names)
        ids = self._asked.ledger_ids if self._asked else self._cluster.ledger_ids()
        wanted = sorted({*ids, *dropped})
        for step in self._steps(wanted):
            self._look(step)
        for _ in self._metadata.ledgers(self._newer(wanted, end)):
            """New ones: a compaction may have dropped ledgers."""
        garbage, spared = self._garbage, self._metadata.spared
        later = {i for i, one in garbage.items() if one.kind is GarbageKind.DROPPED and i in spared}
        garbage = {i: one for i, one in garbage.items() if i not in later}
        pages = SpentPages(self._cluster, self._gone)
        spent = pages.found()
        usage = self._weighed(garbage)
        return CollectPlan(
            tuple(replace(garbage[i], usage=usage.get(i, Usage())) for i in sorted(garbage)),
            {a.bookie_id: frozenset(ids & garbage.keys()) for a, ids in self._where.items()},
            self._silent,
            self._doubts(pages),
            self._metadata.made_before_ms,
            tuple(sorted(self._unwanted, key=lambda one: one.ledger_id)),
            spent,
            sum(self._weighed(later).values(), Usage()),
            dropping=frozenset(self._metadata.dropping),
            unsettled=frozenset(self._unsettled | self._metadata.unread),
            absent=frozenset(self._absent - self._metadata.unread),
        )

    def _steps(self, ledger_ids: list[int]) -> Iterator[AuditStep]:
        """Yield the ledgers by whole shards, so that each folder of a bookie is listed once."""
        for step in plan_of_all(ledger_ids, ()).steps:
            if self._asked is None:
                yield step
            elif step.ledger_ids:
                named = {ledger_id % SHARDS for ledger_id in step.ledger_ids}
                yield replace(step, shards=tuple(sorted(named)))

    def _newer(self, known: Collection[int], end: int | None) -> list[int]:
        """Return the ids of the ledgers that may have come since the look began."""
        now = self._cluster.next_ledger_id()
        if self._asked is None or end is None or now is None:
            return sorted(set(self._cluster.ledger_ids()).difference(known))
        return [*range(end, now)]

    # --- one step ---------------------------------------------------------------------------------

    def _look(self, step: AuditStep) -> None:
        stays: list[LedgerMetadata] = []
        found: dict[int, Garbage] = {}
        for ledger in self._metadata.ledgers(step.ledger_ids):
            one = self._metadata.judged(ledger)
            if one is None:
                stays.append(ledger)
            else:
                found[ledger.ledger_id] = one
        known = found.keys() | {one.ledger_id for one in stays}
        self._absent.update(set(step.ledger_ids) - known)
        listed = self._listed(step)
        gone = self._gone.among(set().union(*listed.values()) - known)
        found |= {i: Garbage(i, GarbageKind.GONE) for i in gone}
        self._garbage |= found
        for address, ids in listed.items():
            self._where.setdefault(address, set()).update(ids & found.keys())
        self._unsettled |= found.keys()
        self._find_unwanted(stays, listed)

    def _find_unwanted(self, stays: list[LedgerMetadata], listed: Files) -> None:
        if stays and self._leftovers is None:
            self._leftovers = LeftoverFinder(self._cluster, self._run)
        if self._leftovers is not None:
            unwanted = self._leftovers.found(stays, listed)
            self._unwanted += unwanted
            self._unsettled |= {one.ledger_id for one in unwanted} | self._leftovers.unsure
        needed = self._metadata.is_needed
        self._unsettled |= {one.ledger_id for one in stays if not needed(one)}

    def _listed(self, step: AuditStep) -> Files:
        """Return the ids of ledgers with files on each bookie; a silent one is asked no more."""
        shards = frozenset(step.shards)
        is_all = len(shards) == SHARDS
        looks = [
            ListLedgers(address, None if is_all else shards)
            for address in self._cluster.addresses().values()
            if address.bookie_id not in self._silent
        ]
        listed: dict[BookieAddress, frozenset[int]] = {}
        for look, ids in answers(self._run, looks):
            if isinstance(ids, Silence):
                self._silent[look.address.bookie_id] = ids.reason
                self._unsettled.update(step.ledger_ids)
            else:
                listed[look.address] = ids if self._asked is None else ids & set(step.ledger_ids)
        return listed

    # --- the plan ---------------------------------------------------------------------------------

    def _weighed(self, ledger_ids: Collection[int]) -> dict[int, Usage]:
        """Add up each ledger's usage over the bookies that were listed with files of it."""
        usage: dict[int, Usage] = {}
        where = {address: ids.intersection(ledger_ids) for address, ids in self._where.items()}
        weighs = [
            MeasureFiles(address, tuple(sorted(ids))) for address, ids in where.items() if ids
        ]
        for _, ledger_id, own in answers_by_ledger(self._run, weighs):
            usage[ledger_id] = usage.get(ledger_id, Usage()) + own
        return usage

    def _doubts(self, pages: SpentPages) -> dict[str, str]:
        """Return reasons for keeping possible garbage, by subject."""
        unreadable = {f"metadata record {k}": why for k, why in self._gone.unreadable.items()}
        return {**self._metadata.doubts, **pages.doubts, **unreadable}


def plan_collection(
    cluster: Cluster,
    run: Runner,
    *,
    made_before_ms: int,
    now_ms: int = 2**62,
    replaced_before_ms: int = 2**62,
) -> CollectPlan:
    """Look at all ledgers and at all files of bookies; change nothing.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    metadata = Metadata(cluster, made_before_ms, replaced_before_ms, now_ms)
    return CollectionPlanner(cluster, run, metadata, silent_bookies(cluster, run)).planned()
