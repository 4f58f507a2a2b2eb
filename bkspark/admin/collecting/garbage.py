"""Find garbage ledgers in metadata, and the bookies still holding their files.

Listings of bookies only nominate candidates. A ledger is garbage if a readable record says so: its
own record (deleted), its log's record (dropped for ever), or the note of a gone ledger. An
unreadable record proves nothing; ledgers possibly named there stay.

A ledger created for a log but absent from the log's list may have been left by a killed driver, or
a running driver may be about to add it. Metadata cannot tell the two cases apart. So the log drops
the ledger first by compare-and-set, which decides: a driver still running is refused afterwards,
and no row of its write enters the log. The ledger's age only delays the drop. The creating host's
clock gives the age. If that clock is slow, ledgers with smaller ids correct the age, because they
were created earlier.

A ledger replaced by a compaction is kept for a while, so that running reads can finish. A longer
read gets an error and finds the rows in the new ledger.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from bkspark.admin.collecting.collection_plan import CollectPlan, Garbage, GarbageKind, Unwanted
from bkspark.admin.collecting.freeing import ListLedgers, MeasureFiles
from bkspark.admin.collecting.old_journals import old_journals
from bkspark.admin.collecting.spent_pages import SpentPages
from bkspark.admin.collecting.unwanted import LeftoverFinder
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.ledger.creating import log_of, replaced_by
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.recovery.steps import Silence

LEDGERS_AT_ONCE = 500


class Metadata:
    """Ledgers and logs as the metadata store describes them; each log is read once.

    Args:
        made_before_ms: ledgers unnamed by their logs are garbage if created before.
        now_ms: creation times after ``now_ms`` come from a wrong clock and are ignored.
        replaced_before_ms: ledgers replaced by a later compaction are kept for their readers.

    Attributes:
        doubts: reasons for keeping possible garbage, by subject.
        spared: recently compacted ledgers among the records read so far.
    """

    def __init__(
        self,
        cluster: Cluster,
        made_before_ms: int,
        replaced_before_ms: int = 2**62,
        now_ms: int = 2**62,
    ) -> None:
        self._made_before_ms = made_before_ms
        self._now_ms = now_ms
        self._newest = (-1, 0)
        self._replaced_before_ms = replaced_before_ms
        self.spared = set[int]()
        self.doubts: dict[str, str] = {}
        self._cluster = cluster
        self._logs: dict[str, LogRecord | None] = {}

    def garbage(self, ledger_id: int) -> Garbage | None:
        """Return a ledger as garbage; None if the ledger is, or may be, in use."""
        ledger = self.ledger(ledger_id)
        return None if ledger is None else self.judged(ledger)

    def ledger(self, ledger_id: int) -> LedgerMetadata | None:
        """Read a ledger's record; None if missing or unreadable."""
        try:
            seen = self._cluster.ledgers.get(str(ledger_id))
        except (CorruptDataError, InvalidRequestError) as error:
            self.doubts[f"ledger {ledger_id}"] = str(error.args[0])
            return None
        if seen is not None and seen.value.settings.created_ms > self._replaced_before_ms:
            self.spared.update(replaced_by(seen.value))
        if seen is not None:
            made_ms = seen.value.settings.created_ms
            if self._newest[1] < made_ms <= self._now_ms:
                self._newest = (ledger_id, made_ms)
        return None if seen is None else seen.value

    def judged(self, ledger: LedgerMetadata) -> Garbage | None:
        """Judge a ledger by its record; None if the ledger is, or may be, in use."""
        try:
            return self._judged(ledger)
        except (CorruptDataError, InvalidRequestError) as error:
            self.doubts[f"ledger {ledger.ledger_id}"] = str(error.args[0])
            return None

    def _judged(self, ledger: LedgerMetadata) -> Garbage | None:
        ledger_id, name = ledger.ledger_id, log_of(ledger) or ""
        log = self._log(name) if name else None
        is_deleted = ledger.state is LedgerState.DELETING
        if log is not None and log.lists(ledger_id):
            # Unless the log was truncated between the two reads.
            if is_deleted and self._still_lists(name, ledger_id):
                self.doubts[f"ledger {ledger_id}"] = f"it is deleted, and log {name} lists it"
            return None
        if is_deleted:
            return Garbage(ledger_id, GarbageKind.DELETED, name)
        if log is not None and log.has_dropped(ledger_id):
            return Garbage(ledger_id, GarbageKind.DROPPED, name)
        if log is not None and ledger_id < log.committed.strays_below:
            self.doubts[f"ledger {ledger_id}"] = f"the record of log {name} was set aside"
            return None
        if name and self._made_ms(ledger) < self._made_before_ms:
            return Garbage(ledger_id, GarbageKind.UNNAMED, name)
        return None

    def _made_ms(self, ledger: LedgerMetadata) -> int:
        """Return the earliest possible creation time, by its own and by older ledgers' records."""
        ledger_id, newest_ms = self._newest
        made_ms = ledger.settings.created_ms
        return max(made_ms, newest_ms) if ledger_id < ledger.ledger_id else made_ms

    def _still_lists(self, name: str, ledger_id: int) -> bool:
        seen = self._cluster.logs.get(name)
        return seen is not None and seen.value.lists(ledger_id)

    def _log(self, name: str) -> LogRecord | None:
        if name not in self._logs:
            seen = self._cluster.logs.get(name)
            self._logs[name] = None if seen is None else seen.value
        return self._logs[name]


def _is_spared(garbage: Garbage, metadata: Metadata) -> bool:
    return garbage.kind is GarbageKind.DROPPED and garbage.ledger_id in metadata.spared


def plan_collection(
    cluster: Cluster,
    run: Runner,
    *,
    made_before_ms: int,
    now_ms: int = 2**62,
    replaced_before_ms: int = 2**62,
) -> CollectPlan:
    """Read all ledgers and bookies; change nothing.

    Raises:
        OutcomeUnknownError: the metadata store or Spark gave no definite answer.
    """
    present, silent = _listed(cluster, run)
    metadata = Metadata(cluster, made_before_ms, replaced_before_ms, now_ms)
    found = LeftoverFinder(cluster, run, present)
    garbage, unwanted = dict[int, Garbage](), list[Unwanted]()
    ids = cluster.ledger_ids()
    for begin in range(0, len(ids), LEDGERS_AT_ONCE):
        stays = []
        for ledger in filter(None, map(metadata.ledger, ids[begin : begin + LEDGERS_AT_ONCE])):
            one = metadata.judged(ledger)
            if one is not None:
                garbage[one.ledger_id] = one
            else:
                stays.append(ledger)
        unwanted += found.found([one for one in stays if one.state is LedgerState.CLOSED])
        unwanted += old_journals(run, present, stays)
    for ledger_id in sorted(set(cluster.ledger_ids()).difference(ids)):
        metadata.ledger(ledger_id)  # new ones: a compaction may have dropped ledgers
    spared = {i for i, one in garbage.items() if _is_spared(one, metadata)}
    garbage = {i: one for i, one in garbage.items() if i not in spared}
    others = set().union(*present.values()) - garbage.keys()
    gone = GoneLedgers(cluster.store)
    garbage |= {i: Garbage(i, GarbageKind.GONE) for i in gone.among(others)}
    pages = SpentPages(cluster, gone)
    spent = pages.found()
    where = {address: ids & garbage.keys() for address, ids in present.items()}
    usage = _weighed(run, where)
    later = {a: ids & spared for a, ids in present.items() if ids & spared}
    return CollectPlan(
        tuple(replace(garbage[i], usage=usage.get(i, Usage())) for i in sorted(garbage)),
        {address.bookie_id: frozenset(ids) for address, ids in where.items()},
        silent,
        _doubts(metadata, pages, gone),
        made_before_ms,
        tuple(unwanted),
        spent,
        sum(_weighed(run, later).values(), Usage()),
    )


def _doubts(metadata: Metadata, pages: SpentPages, gone: GoneLedgers) -> dict[str, str]:
    """Return reasons for keeping possible garbage, by subject."""
    unreadable = {f"metadata record {k}": why for k, why in gone.unreadable.items()}
    return {**metadata.doubts, **pages.doubts, **unreadable}


def _listed(
    cluster: Cluster, run: Runner
) -> tuple[dict[BookieAddress, frozenset[int]], dict[str, str]]:
    """Return the ledger ids found on each bookie, and reasons for silent bookies by bookie id."""
    addresses = list(cluster.addresses().values())
    answers = run([ListLedgers(address) for address in addresses])
    listed = dict(zip(addresses, answers, strict=True))
    silent = {a.bookie_id: one.reason for a, one in listed.items() if isinstance(one, Silence)}
    return {a: ids for a, ids in listed.items() if isinstance(ids, frozenset)}, silent


def _weighed(run: Runner, where: Mapping[BookieAddress, Collection[int]]) -> dict[int, Usage]:
    """Add up each listed ledger's usage over all bookies."""
    usage: dict[int, Usage] = {}
    for weighed in run(
        [MeasureFiles(address, tuple(sorted(ids))) for address, ids in where.items()]
    ):
        for ledger_id, own in weighed.items() if isinstance(weighed, Mapping) else ():
            usage[ledger_id] = usage.get(ledger_id, Usage()) + own
    return usage
