"""Find what a collection may free: garbage ledgers, their files, old journals, unnamed pages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain

from bkspark.admin.collecting.freeing import (
    Garbage,
    GarbageKind,
)
from bkspark.admin.offloading.tier_pages import unnamable
from bkspark.admin.sweep import batches
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import LogPages
from bkspark.cluster.records import UNREAD
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    NoSuchEntryError,
)
from bkspark.format import layout
from bkspark.ledger.creating import log_of, replaced_by
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord

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
# creating host's clock gives the age. If that clock is slow, some ledgers with smaller ids correct
# the age, because they were created earlier.
#
# A ledger replaced by a compaction is kept for a while, so that running reads can finish. A longer
# read gets an error and finds the rows in the new ledger.


OLDER_BY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 4096)
"""How much smaller the ids of the ledgers are whose creation times correct the age of one."""

READ_GRACE_SECONDS = 86_400.0
"""A longer read of ledgers compacted meanwhile may fail; ``abandoned_after`` applies if shorter."""


class Metadata:
    """Ledgers and logs as the metadata store describes them; each log is read once.

    Args:
        made_before_ms: ledgers unnamed by their logs are garbage if created before.
        now_ms: creation times after ``now_ms`` come from a wrong clock and are ignored.
        replaced_before_ms: ledgers replaced by a later compaction are kept for their readers.

    Attributes:
        made_before_ms: as given.
        doubts: reasons for keeping possible garbage, by subject.
        spared: recently compacted ledgers among the records read so far.
        unread: ids of the ledgers whose records cannot be read.
        dropping: names of the logs that have dropped ledgers ("every_dropped_id").
    """

    def __init__(
        self,
        cluster: Cluster,
        made_before_ms: int,
        replaced_before_ms: int = 2**62,
        now_ms: int = 2**62,
    ) -> None:
        self.made_before_ms = made_before_ms
        self._now_ms = now_ms
        self._replaced_before_ms = replaced_before_ms
        self.spared = set[int]()
        self.doubts: dict[str, str] = {}
        self.unread = set[int]()
        self.dropping = set[str]()
        self._times: dict[int, int] = {}
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
                self.unread.add(int(name))
                continue
            if seen is not None:
                if seen.value.settings.created_ms > self._replaced_before_ms:
                    self.spared.update(replaced_by(seen.value))
                yield seen.value

    def dropped(self, names: Iterable[str]) -> set[int]:
        """Return the ids of the ledgers that these logs have dropped; reads their records."""
        found = set[int]()
        for name, answer in self._cluster.logs.answers(names):
            with suppress(CorruptDataError):  # the record is listed as unreadable elsewhere
                seen = answer()
                if seen is not None and seen.value.has_any_dropped:
                    self.dropping.add(name)
                    found.update(seen.value.every_dropped_id())
        return found

    def is_needed(self, ledger: LedgerMetadata) -> bool:
        """Return whether a change is told to collections before the ledger can become garbage.

        Its log has it: the log's record says when the log drops it. Or it is of no log: the client
        that deletes it says so ("settling", rule 6). Readers of ledgers that it has just replaced
        may need its record, so a new one is looked at.
        """
        if any(True for _ in replaced_by(ledger)) and self._is_recent(ledger):
            return False
        return ledger.state is LedgerState.CLOSED and self._is_named(ledger)

    def _is_named(self, ledger: LedgerMetadata) -> bool:
        name = log_of(ledger)
        with suppress(CorruptDataError, InvalidRequestError):
            log = self._log(name) if name else None
            if log is not None:
                return log.lists(ledger.ledger_id) or log.is_waiting(ledger.ledger_id)
        return not name

    def _is_recent(self, ledger: LedgerMetadata) -> bool:
        age_ms = self._now_ms - ledger.settings.created_ms
        return age_ms < READ_GRACE_SECONDS * 1000

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
        if name and self._is_old(ledger):
            return Garbage(ledger_id, GarbageKind.UNNAMED, name)
        return None

    def _is_old(self, ledger: LedgerMetadata) -> bool:
        """Return whether a ledger was made long ago, by its own and by older ledgers' records."""
        older = (ledger.ledger_id - by for by in OLDER_BY if by <= ledger.ledger_id)
        times = chain([ledger.settings.created_ms], map(self._made_ms, older))
        return all(made_ms < self.made_before_ms for made_ms in times)

    def _made_ms(self, ledger_id: int) -> int:
        """Return when a ledger was made; 0 if that is not known, or in the future."""
        if ledger_id not in self._times:
            seen = None
            with suppress(CorruptDataError, InvalidRequestError):
                seen = self._cluster.ledgers.get(str(ledger_id))
            made_ms = 0 if seen is None else seen.value.settings.created_ms
            self._times[ledger_id] = made_ms if made_ms <= self._now_ms else 0
        return self._times[ledger_id]

    def _still_lists(self, name: str, ledger_id: int) -> bool:
        seen = self._cluster.logs.get(name)
        return seen is not None and seen.value.lists(ledger_id)

    def _log(self, name: str) -> LogRecord | None:
        if name not in self._logs:
            seen = self._cluster.logs.get(name)
            self._logs[name] = None if seen is None else seen.value
        return self._logs[name]
