"""Remove log pages no record names: left by truncations, overwrites, compactions, lost races.

Rule 1. A page is removed only if each ledger on the page is *gone*: no file of the ledger is left,
and a permanent note says so ("gone_ledgers"). A page of pages is removed when its pages are, or
were, removed. So a page listing remaining ledgers is never removed, even if unnamed. A reader with
an older record naming a removed page would find no rows anyway: the listed ledgers stayed readable
as long as they had files.

Rule 2. A page is removed only if no record can name the page any more. A client making a page has
read the log's record before, and names the page by compare-and-set against the record read. So the
collection reads the record, checks that the page is unnamed, and stores the same record again by
compare-and-set. A client with an unnamed page then loses its own compare-and-set, however late, and
later readers of the record do not know the page. A listing only nominates pages.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.log_records import LogPages
from bkspark.cluster.records import UNREAD, back_off
from bkspark.errors import MetadataVersionError, NoSuchEntryError
from bkspark.format import layout
from bkspark.protocol.log.record import LogRecord

PAGES_AT_ONCE = 100
TRIES_MAX = 20
"""Attempts against concurrent changes of a log; afterwards the pages wait for the next run."""


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
