"""Find what a collection may free: garbage ledgers, their files, old journals, unnamed pages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from bkspark.admin.collecting.freeing import (
    CollectPlan,
    Garbage,
    GarbageKind,
    ListLedgers,
    MeasureFiles,
    Unwanted,
)
from bkspark.admin.collecting.unwanted import LeftoverFinder
from bkspark.admin.offloading.tier_pages import unnamable
from bkspark.admin.sweep import answers_by_ledger, batches
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import LogPages
from bkspark.cluster.records import UNREAD
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NoSuchEntryError,
)
from bkspark.format import layout
from bkspark.ledger.creating import log_of, replaced_by
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.deletion import oldest_owner
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.recovery.steps import Silence

# --- old journals --------------------------------------------------------------------------------
# Find journals in which no entry counts any more, in ledgers truncated at the beginning.
#
# ``protocol.ledger.truncating`` (rule 4) defines such journals: their terms are older than all
# terms still owning an entry. A ledger never regains its beginning, so a journal once found stays
# unneeded for ever. A reader with older metadata finds no entry there and reads the metadata anew.
#
# A journal stays if its bookie cannot forget it for good (``BookieRoot.forget_journal``).


@dataclass(frozen=True, slots=True)
class FindOldJournals:
    """Find a bookie's journals of terms before ``terms``, by ledger id; picklable."""

    address: BookieAddress
    terms: Mapping[int, int]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, dict[str, int]] | Silence:
        """Return names and sizes by ledger id, for ledgers with such journals.

        Runs on: driver thread | executor.
        """
        found: dict[int, dict[str, int]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id, term in self.terms.items():
                    folder = layout.journal_folder(ledger_id)
                    old = (one for one in root.list(folder) if 0 < layout.journal_term(one) < term)
                    names = [f"{folder}/{one}" for one in old if layout.is_journal(one)]
                    if names:
                        found[ledger_id] = {name: root.size(name) or 0 for name in names}
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


def old_journals(
    run: Runner,
    listed: Mapping[BookieAddress, frozenset[int]],
    ledgers: Sequence[LedgerMetadata],
) -> Iterator[Unwanted]:
    """Yield the old journals of ``ledgers`` on the bookies ``listed`` with files of them."""
    terms = {ledger.ledger_id: oldest_owner(ledger) for ledger in ledgers}
    terms = {ledger_id: term for ledger_id, term in terms.items() if term}
    looks = [
        FindOldJournals(address, {i: term for i, term in terms.items() if i in ids})
        for address, ids in listed.items()
        if not ids.isdisjoint(terms)
    ]
    for member, ledger_id, sizes in answers_by_ledger(run, looks):
        usage = Usage(len(sizes), sum(sizes.values()))
        yield Unwanted(ledger_id, member, usage, tuple(sorted(sizes)), is_journals=True)


# --- spent pages ---------------------------------------------------------------------------------
# Remove log pages no record names: left by truncations, overwrites, compactions, lost races.
#
# Rule 1. A page is removed only if each ledger on the page is *gone*: no file of the ledger is
# left, and a permanent note says so ("gone_ledgers"). A page of pages is removed when its pages
# are, or were, removed. So a page listing remaining ledgers is never removed, even if unnamed. A
# reader with an older record naming a removed page would find no rows anyway: the listed ledgers
# stayed readable as long as they had files.
#
# Rule 2. A page is removed only if no record can name the page any more. A client making a page has
# read the log's record before, and names the page by compare-and-set against the record read. So
# the collection reads the record, checks that the page is unnamed, and stores the same record again
# by compare-and-set. A client with an unnamed page then loses its own compare-and-set, however
# late, and later readers of the record do not know the page. A listing only nominates pages.


PAGES_AT_ONCE = 100


class SpentPages:
    """Finds and removes unneeded pages.

    Attributes:
        doubts: reasons for keeping possibly unneeded pages, by subject.
    """

    def __init__(self, cluster: Cluster, gone: GoneLedgers) -> None:
        self.doubts: dict[str, str] = {}
        self._cluster = cluster
        self._gone = gone

    def found(self) -> dict[str, tuple[str, ...]]:
        """Return the names of unneeded pages by log; change nothing."""
        spent = {}
        for log_name in self._cluster.log_names():
            try:
                names = tuple(sorted(self._spent(log_name)))
            except NoSuchEntryError:
                continue  # another collection was faster
            except UNREAD as error:
                self.doubts[f"pages of log {log_name}"] = str(error.args[0])
                continue
            if names:
                spent[log_name] = names
        return spent

    def free(self, log_name: str, names: Iterable[str]) -> int:
        """Remove the pages no record can name (rule 2); return their number.

        Args:
            names: pages found before.
        """
        try:
            return self._free(log_name, names)
        except UNREAD as error:
            self.doubts[f"pages of log {log_name}"] = str(error.args[0])
            return 0

    def _free(self, log_name: str, names: Iterable[str]) -> int:
        pages = self._cluster.logs.pages(log_name)
        spent = unnamable(self._cluster, log_name, names, _named)
        for name in spent:
            pages.remove(name)
        return len(spent)

    # --- which are spent (rule 1) --------------------------------------------------------------

    def _spent(self, log_name: str) -> set[str]:
        pages = self._cluster.logs.pages(log_name)
        names = set(pages.names())
        seen = self._cluster.logs.get(log_name) if names else None
        if seen is None:
            return set()
        named = _named(seen.value)
        unnamed = sorted(names - named)
        spent: set[str] = set()
        above: dict[str, tuple[str, ...]] = {}
        for some in batches(unnamed, PAGES_AT_ONCE):
            listed = dict(self._looked_at(log_name, pages, some))
            above |= {name: below for name, (_, below) in listed.items() if below}
            ids = {name: ids for name, (ids, _) in listed.items() if ids}
            gone = self._gone.among(set().union(*ids.values()))
            spent.update(name for name, own in ids.items() if own <= gone)
        return _with_those_above(spent, above, lambda name: _went(pages, name, names))

    def _looked_at(
        self, log_name: str, pages: LogPages, names: Sequence[str]
    ) -> Iterator[tuple[str, tuple[set[int], tuple[str, ...]]]]:
        """Yield each page's ledger ids and page names."""
        for name in names:
            try:
                found = pages.found(name)
            except UNREAD as error:
                key = layout.log_page_key(log_name, name)
                self.doubts[f"metadata record {key}"] = str(error.args[0])
                continue
            if found is not None:
                ids = {*found.ids, *(ledger.ledger_id for ledger in found.ledgers)}
                yield name, (ids, tuple(page.name for page in found.pages))


def _named(record: LogRecord) -> set[str]:
    return {page.name for page in record.every_page()}


def _with_those_above(
    spent: Iterable[str], above: Mapping[str, tuple[str, ...]], went: Callable[[str], bool]
) -> set[str]:
    """Return ``spent`` and the pages of pages whose pages all are spent or were removed."""
    found = set(spent)
    while True:
        more = {
            name
            for name, below in above.items()
            if name not in found and all(one in found or went(one) for one in below)
        }
        if not more:
            return found
        found |= more


def _went(pages: LogPages, name: str, names: Collection[str]) -> bool:
    """Return whether a page surely is gone; absence from a listing is no proof."""
    with suppress(*UNREAD):
        return name not in names and pages.found(name) is None
    return False


# --- garbage -------------------------------------------------------------------------------------
# Find garbage ledgers in metadata, and the bookies still holding their files.
#
# Listings of bookies only nominate candidates. A ledger is garbage if a readable record says so:
# its own record (deleted), its log's record (dropped for ever), or the note of a gone ledger. An
# unreadable record proves nothing; ledgers possibly named there stay.
#
# A ledger created for a log but absent from the log's list may have been left by a killed driver,
# or a running driver may be about to add it. Metadata cannot tell the two cases apart. So the log
# drops the ledger first by compare-and-set, which decides: a driver still running is refused
# afterwards, and no row of its write enters the log. The ledger's age only delays the drop. The
# creating host's clock gives the age. If that clock is slow, ledgers with smaller ids correct the
# age, because they were created earlier.
#
# A ledger replaced by a compaction is kept for a while, so that running reads can finish. A longer
# read gets an error and finds the rows in the new ledger.


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
        return next(self.ledgers([ledger_id]), None)

    def ledgers(self, ledger_ids: Iterable[int]) -> Iterator[LedgerMetadata]:
        """Read the records of ledgers; leave out those that are missing or unreadable."""
        for name, answer in self._cluster.ledgers.answers(map(str, ledger_ids)):
            try:
                seen = answer()
            except (CorruptDataError, InvalidRequestError) as error:
                self.doubts[f"ledger {name}"] = str(error.args[0])
                continue
            if seen is not None:
                self._note_times(seen.value)
                yield seen.value

    def _note_times(self, ledger: LedgerMetadata) -> None:
        made_ms = ledger.settings.created_ms
        if made_ms > self._replaced_before_ms:
            self.spared.update(replaced_by(ledger))
        if self._newest[1] < made_ms <= self._now_ms:
            self._newest = (ledger.ledger_id, made_ms)

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
        if log is not None and log.is_waiting(ledger_id):
            return None  # until the tier's table was looked at again
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
    for some in batches(ids, LEDGERS_AT_ONCE):
        stays = []
        for ledger in metadata.ledgers(some):
            one = metadata.judged(ledger)
            if one is not None:
                garbage[one.ledger_id] = one
            else:
                stays.append(ledger)
        unwanted += found.found([one for one in stays if one.state is LedgerState.CLOSED])
        unwanted += old_journals(run, present, stays)
    for _ in metadata.ledgers(sorted(set(cluster.ledger_ids()).difference(ids))):
        """New ones: a compaction may have dropped ledgers."""
    spared = {i for i, one in garbage.items() if _is_spared(one, metadata)}
    garbage = {i: one for i, one in garbage.items() if i not in spared}
    others = set().union(*present.values()) - garbage.keys()
    gone = GoneLedgers(cluster.store, cluster.cluster_id)
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
    weighs = [MeasureFiles(address, tuple(sorted(ids))) for address, ids in where.items()]
    for _, ledger_id, own in answers_by_ledger(run, weighs):
        usage[ledger_id] = usage.get(ledger_id, Usage()) + own
    return usage
