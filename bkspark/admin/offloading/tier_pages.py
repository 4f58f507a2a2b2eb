"""Removes pages of tiers that no record names: left by ended offloads, truncations, lost races.

Such a page lists no ledger, so a page that no record can name any more is not needed. A page is
found unnamed twice: when a collection is planned, and before the page is removed.
"""

from collections.abc import Callable, Iterable

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import UNREAD, back_off
from bkspark.errors import MetadataVersionError, NoSuchEntryError
from bkspark.protocol.log.record import LogRecord

TRIES_MAX = 20
"""Attempts against concurrent changes of a log; afterwards the pages wait for the next run."""


def unnamable(
    cluster: Cluster,
    log_name: str,
    names: Iterable[str],
    named_by: Callable[[LogRecord], set[str]],
) -> list[str]:
    """Return those of ``names`` that no record of the log can name any more.

    See "spent pages", rule 2. Stores the record again by compare-and-set: a client that has made a
    page and has not named it loses its own compare-and-set.

    Raises:
        CorruptDataError, OutcomeUnknownError: what the record names is not known.
    """
    wanted = set(names)
    for attempt in range(TRIES_MAX if wanted else 0):
        try:
            seen = cluster.logs.get(log_name)
            if seen is None:
                return []
            spent = wanted - named_by(seen.value)
            cluster.logs.replace(log_name, seen.value, seen)
        except (MetadataVersionError, NoSuchEntryError):
            back_off(attempt)
            continue
        return sorted(spent)
    return []


class SpentTierPages:
    """Finds and removes unneeded pages of tiers.

    Attributes:
        doubts: reasons for keeping possibly unneeded pages, by subject.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.doubts: dict[str, str] = {}
        self._cluster = cluster

    def found(self, log_names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Return the names of unneeded pages by log; change nothing."""
        spent = {}
        for log_name in log_names:
            try:
                # The listing comes first: a page that is made later is not in it.
                names = set(self._cluster.logs.tier_pages(log_name).names())
                seen = self._cluster.logs.get(log_name) if names else None
                unnamed = set() if seen is None else names - self._named(seen.value)
            except UNREAD as error:
                self._doubt(log_name, error)
                continue
            if unnamed:
                spent[log_name] = tuple(sorted(unnamed))
        return spent

    def free(self, log_name: str, names: Iterable[str]) -> int:
        """Remove the pages that no record can name; return their number.

        Args:
            names: pages found before.
        """
        pages = self._cluster.logs.tier_pages(log_name)
        try:
            spent = unnamable(self._cluster, log_name, names, self._named)
            for name in spent:
                pages.remove(name)
            return len(spent)
        except UNREAD as error:
            self._doubt(log_name, error)
            return 0

    def _named(self, record: LogRecord) -> set[str]:
        if record.tier is None:
            return set()
        return self._cluster.logs.tier_pages(record.name).named_by(record.tier)

    def _doubt(self, log_name: str, error: Exception) -> None:
        self.doubts[f"pages of the tier of log {log_name}"] = str(error.args[0])
