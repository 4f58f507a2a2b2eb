"""Carrying a plan out: what it names is looked at anew, then freed, then forgotten.

For so many ledgers at a time:

1. The ledger's record says DELETING, or is made to by compare-and-set, if its log has let go of it.
   One that its log does not name is dropped by the log first.
2. Each bookie that is a member of it, or has something of it, fences its writer and frees it.
3. Where nobody is owed anything any more ("deletion"), the id is noted as gone, and then the record
   goes.

Then what is unwanted of ledgers that stay goes ("letting_go").

At the end logs forget that they have dropped what is gone. Each step is done again, and does no
harm, if whoever took it before died behind it, or takes it at the same time.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from bkspark.admin.collecting.freeing import Doomed, Free, Freed
from bkspark.admin.collecting.garbage import LEDGERS_AT_ONCE, Metadata
from bkspark.admin.collecting.letting_go import LettingGo
from bkspark.admin.collecting.plan import CollectPlan, Garbage, Kind, Unwanted
from bkspark.admin.collecting.spent_pages import SpentPages
from bkspark.admin.maintenance import Progress
from bkspark.bookie.contract import Usage
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.decisions import tell
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.errors import CorruptDataError, NoSuchLedgerError
from bkspark.format import layout
from bkspark.ledger.deleting import exclude, make_tombstone
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.deletion import members_of, owing
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery.steps import Silence

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Outcome:
    """What a collection has done so far.

    Attributes:
        freed: how many ledgers of which nothing is left.
        pages: how many pages of logs were removed.
        owed: by ledger id, the bookies that have to be cleaned of it before it is forgotten.
        silent: bookies that do not answer, and why.
        problems: by ledger id and bookie id, why something may be left.
        doubts: by subject, why something stays that may be garbage.
        unreadable: by key, metadata records that some of it waits for, and what is wrong with them.
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
    """Carries out a plan."""

    def __init__(self, cluster: Cluster, plan: CollectPlan, run: Runner) -> None:
        self.outcome = Outcome(silent=dict(plan.silent))
        self._cluster = cluster
        self._plan = plan
        self._run = run
        self._gone = GoneLedgers(cluster.store)
        self._addresses = cluster.addresses()
        self._lost = cluster.lost_members()

    def carry_out(self, progress: Progress) -> None:
        """Free all that the plan names and that is garbage still.

        Raises:
            OutcomeUnknownError: the metadata store, or Spark, gave no sure answer.
        """
        garbage, unwanted = self._plan.garbage, self._plan.unwanted
        total = len(garbage) + len(unwanted)
        progress(0, total)
        for begin in range(0, len(garbage), LEDGERS_AT_ONCE):
            step = garbage[begin : begin + LEDGERS_AT_ONCE]
            self._take(step)
            progress(begin + len(step), total)
        self._let_go(unwanted)
        progress(total, total)
        pages = SpentPages(self._cluster, self._gone)
        self.outcome.pages = sum(pages.free(*one) for one in self._plan.pages.items())
        self.outcome.doubts = pages.doubts
        for name in self._cluster.log_names():
            self._forget(name)

    def _let_go(self, unwanted: Sequence[Unwanted]) -> None:
        """Free what is unwanted of ledgers that stay."""
        work = LettingGo(self._cluster, self._run, self._addresses, self.outcome.silent)
        for begin in range(0, len(unwanted), LEDGERS_AT_ONCE):
            work.take(unwanted[begin : begin + LEDGERS_AT_ONCE])
        self.outcome.removed += work.outcome.removed
        self.outcome.problems |= work.outcome.problems

    def _take(self, step: Sequence[Garbage]) -> None:
        # Anew: a plan is what was true when it was made.
        metadata = Metadata(self._cluster, self._plan.made_before_ms)
        deleting: dict[int, LedgerMetadata] = {}
        for garbage in step:
            ledger = self._deleting(garbage, metadata)
            if ledger is not None:
                deleting[ledger.ledger_id] = ledger
        gone = self._gone.among(one.ledger_id for one in step if one.kind is Kind.GONE)
        cleaned = self._free(deleting, gone)
        done = [i for i, ledger in deleting.items() if not self._owed(ledger, cleaned[i])]
        noted = self._gone.note(done)
        for ledger_id in sorted(noted):
            if self._cluster.upkeep.recoveries.get(str(ledger_id)) is not None:
                self._cluster.store.delete(layout.recovery_key(ledger_id))
            self._cluster.store.delete(layout.ledger_key(ledger_id))
            tell(logger, "ledger %d: freed, record and all", ledger_id, ledger_id=ledger_id)
        self.outcome.freed += len(noted)
        self.outcome.unreadable |= self._gone.unreadable

    def _deleting(self, garbage: Garbage, metadata: Metadata) -> LedgerMetadata | None:
        """The record of a ledger that is garbage still, DELETING by now; None if it is not."""
        if garbage.kind is Kind.GONE:
            return None
        found = metadata.garbage(garbage.ledger_id)
        if found is None:
            return None
        with suppress(NoSuchLedgerError):  # another collection has freed it meanwhile
            if found.kind is Kind.UNNAMED and not self._excluded(found):
                return None
            make_tombstone(self._cluster, garbage.ledger_id)
        seen = self._cluster.ledgers.get(str(garbage.ledger_id))
        return seen.value if seen and seen.value.state is LedgerState.DELETING else None

    def _excluded(self, garbage: Garbage) -> bool:
        """Have its log drop a ledger for ever; False if it has joined the log meanwhile."""
        quorum = self._cluster.ledger(garbage.ledger_id).value.quorum
        return exclude(self._cluster, garbage.log, garbage.ledger_id, quorum)

    def _free(
        self, deleting: Mapping[int, LedgerMetadata], gone: set[int]
    ) -> dict[int, set[Member]]:
        """Have bookies free these ledgers: for each, who surely has nothing of it any more."""
        orders = []
        for member, address in self._addresses.items():
            found = self._plan.found.get(member.bookie_id, frozenset())
            own = [x for x in deleting.values() if member in members_of(x) or x.ledger_id in found]
            doomed = [*map(Doomed.of, own), *map(Doomed, sorted(gone & found))]
            if doomed and member.bookie_id not in self.outcome.silent:
                orders.append(Free(address, tuple(doomed)))
        cleaned: dict[int, set[Member]] = {ledger_id: set() for ledger_id in deleting}
        for order, answer in zip(orders, self._run(orders), strict=True):
            if isinstance(answer, Silence):
                self.outcome.silent[order.address.bookie_id] = answer.reason
            else:
                self._note(order, answer, cleaned)
        return cleaned

    def _note(self, order: Free, answer: Freed, cleaned: Mapping[int, set[Member]]) -> None:
        for ledger_id, removed in answer.removed.items():
            self.outcome.removed += removed
            said, who = "ledger %d: %d files, %d bytes freed on %s", order.address.bookie_id
            freed = (ledger_id, removed.files, removed.bytes, who)
            if removed.files:
                tell(logger, said, *freed, ledger_id=ledger_id, bookie_id=who)
            if ledger_id in cleaned:
                cleaned[ledger_id].add(order.address.member)
        for ledger_id, problem in answer.problems.items():
            self.outcome.problems[ledger_id, order.address.bookie_id] = problem

    def _owed(self, ledger: LedgerMetadata, cleaned: set[Member]) -> bool:
        """Whether some bookie is owed the deletion still, which is noted then."""
        members = owing(ledger, cleaned=cleaned, registered=self._addresses, lost=self._lost)
        if members:
            self.outcome.owed[ledger.ledger_id] = sorted(member.bookie_id for member in members)
        return bool(members)

    def _forget(self, log_name: str) -> None:
        """Have a log forget the dropped ledgers that are gone: none of them can join any more."""
        try:
            seen = self._cluster.logs.get(log_name)
            if seen is None or not seen.value.has_any_dropped:
                return
            gone = self._gone.among(seen.value.every_dropped_id())
        except CorruptDataError:
            return  # it is among those that cannot be read
        if gone:
            self._cluster.logs.update(
                log_name, lambda record: (record or seen.value).forgetting(gone), seen=seen
            )
