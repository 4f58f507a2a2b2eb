"""Pages of logs that nothing names any more: of truncations, overwrites, compactions, lost races.

Rule 1. A page goes only when each ledger on it is *gone*: nothing is left of it, which is noted for
ever ("gone_ledgers"); a page of pages, when those on it went or go. So a page of ledgers that stay
is never removed, whoever names it; and who holds an older record of the log, that names the page,
would find nothing by it: what it listed could be read for as long as there was something to read.

Rule 2. And only when no record can name it any more. Whoever makes a page has read the log's record
before, and names the page by a compare-and-set against that. So the record is read, which names the
page nowhere, and stored again as it is, by compare-and-set: whoever had made the page by then loses
his, however late it comes, and who reads the record from then on does not know of the page. That a
listing names a page nominates it, no more.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import LogPages
from bkspark.cluster.records import back_off
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    MetadataVersionError,
    NoSuchEntryError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.protocol.log.record import LogRecord

PAGES_AT_ONCE = 100
UNSURE = (CorruptDataError, InvalidRequestError, NothingSentError, OutcomeUnknownError)
"""What is told, and stops nothing but the pages that it is about."""

TRIES_MAX = 20
"""Against those who change the log meanwhile; then its pages are left for the next time."""


class SpentPages:
    """Finds and frees them.

    Attributes:
        doubts: by subject, why pages stay that may be spent.
    """

    def __init__(self, cluster: Cluster, gone: GoneLedgers) -> None:
        self.doubts: dict[str, str] = {}
        self._cluster = cluster
        self._gone = gone

    def found(self) -> dict[str, tuple[str, ...]]:
        """Names of pages by the log's name; changes nothing."""
        spent = {}
        for log_name in self._cluster.log_names():
            try:
                names = tuple(sorted(self._spent(log_name)))
            except NoSuchEntryError:
                continue  # another collection was quicker
            except UNSURE as error:
                self.doubts[f"pages of log {log_name}"] = str(error.args[0])
                continue
            if names:
                spent[log_name] = names
        return spent

    def free(self, log_name: str, names: Iterable[str]) -> int:
        """Remove those of ``names``, found before, that no record can name (rule 2); how many."""
        try:
            return self._free(log_name, names)
        except UNSURE as error:
            self.doubts[f"pages of log {log_name}"] = str(error.args[0])
            return 0

    def _free(self, log_name: str, names: Iterable[str]) -> int:
        logs, pages = self._cluster.logs, self._cluster.logs.pages(log_name)
        for attempt in range(TRIES_MAX):
            try:
                seen = logs.get(log_name)
                if seen is None:
                    return 0
                spent = set(names) - _named(seen.value)
                logs.replace(log_name, seen.value, seen)
            except (MetadataVersionError, NoSuchEntryError):
                back_off(attempt)
                continue
            for name in sorted(spent):
                pages.remove(name)
            return len(spent)
        return 0

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
        for begin in range(0, len(unnamed), PAGES_AT_ONCE):
            listed = dict(self._looked_at(log_name, pages, unnamed[begin : begin + PAGES_AT_ONCE]))
            above |= {name: below for name, (_, below) in listed.items() if below}
            ids = {name: ids for name, (ids, _) in listed.items() if ids}
            gone = self._gone.among(set().union(*ids.values()))
            spent.update(name for name, own in ids.items() if own <= gone)
        return _with_those_above(spent, above, lambda name: _went(pages, name, names))

    def _looked_at(
        self, log_name: str, pages: LogPages, names: Sequence[str]
    ) -> Iterator[tuple[str, tuple[set[int], tuple[str, ...]]]]:
        """Of each page the ledgers that it has, or the names of the pages."""
        for name in names:
            try:
                found = pages.found(name)
            except UNSURE as error:
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
    """``spent``, and the pages of pages of which each is spent, or went before."""
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
    """Whether a page is surely not there: that a listing has it not is no proof."""
    with suppress(*UNSURE):
        return name not in names and pages.found(name) is None
    return False
