"""Reads the tables of logs, and compares all rows with the digests of their offload.

Rule 1. A finding counts only if the log's record still names the digests afterwards, for the same
table. An offload, a collection or a truncation in the meantime is no damage.

Rule 2. A table that cannot be read is named as not read, never as changed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.admin.maintenance import Facts, Left, Pace
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.fan_out import no_heartbeat
from bkspark.errors import BookKeeperError, CorruptDataError, TableChangedError
from bkspark.format.tier_record import DigestsPage
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier, TierSegment
from bkspark.storage.address import shown_url

if TYPE_CHECKING:  # a scrub that finds no table loads no module of tables
    from bkspark.admin.offloading.checking import DigestWindow, TableView

SHOWN_MAX = 16
"""Changed windows listed of one table; further windows are only counted."""


@dataclass(slots=True)
class TableScrub:
    """What a scrub found in tables.

    Attributes:
        windows: ranges of offsets that were compared.
        changed: those with missing, doubled or other rows.
        rows: the first changed windows of each table.
        left: findings for people.
        unread: logs whose table could not be read to its end.
    """

    windows: int = 0
    changed: int = 0
    rows: list[Facts] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def scrub_tables(
    cluster: Cluster, log_names: Iterable[str], sample: float, bytes_per_second: float | None
) -> TableScrub:
    """Read the tables of logs.

    Args:
        sample: fraction of the windows to read, chosen at random.
        bytes_per_second: limit of the read rate; None for unlimited.
    """
    found = TableScrub()
    pace = Pace(bytes_per_second, no_heartbeat)
    for name in log_names:
        seen = cluster.logs.get(name)
        if seen is not None and seen.value.tier is not None:
            work = _OneTable(cluster, seen.value, seen.value.tier, found)
            work.scrub(sample, pace)
    return found


class _OneTable:
    """The scrub of one log's table."""

    def __init__(self, cluster: Cluster, log: LogRecord, tier: Tier, found: TableScrub) -> None:
        self._cluster = cluster
        self._log = log
        self._tier = tier
        self._found = found
        self._changed = 0

    def scrub(self, sample: float, pace: Pace) -> None:
        """Compare all windows of the table, or a sample of them."""
        from bkspark.admin.offloading.offload import own_table

        try:
            view = own_table(self._cluster, self._log, self._tier)
            self._compare(view, sample, pace)
        except BookKeeperError as error:
            self._found.unread.append(self._log.name)
            reason = f"its table was not read: {error.args[0]}"
            self._found.left.append(Left(f"log {self._log.name}", reason, error.hint))
        if self._changed > SHOWN_MAX:
            more = f"{self._changed - SHOWN_MAX:,} more ranges of offsets in its table, too"
            self._found.left.append(Left(f"log {self._log.name}", more))

    def _compare(self, view: "TableView", sample: float, pace: Pace) -> None:
        from bkspark.admin.offloading.checking import require_window, windows_of

        log, missing = self._log, self._tier.missing
        for segment, page in self._segments():
            for window in windows_of(page, log.first_offset):
                if sample < 1 and environment.draw() >= sample:
                    continue
                try:
                    pace.passed(require_window(log.name, view, window, missing))
                except TableChangedError as error:
                    if self._is_still(segment, window):
                        self._note(view, window, error)
                self._found.windows += 1

    def _segments(self) -> Iterator[tuple[TierSegment, DigestsPage]]:
        """Yield the segments with their digests, as long as the tier needs them."""
        pages = self._cluster.logs.tier_pages(self._log.name)
        try:
            for segment in pages.every_segment(self._tier):
                if segment.end <= self._log.first_offset:
                    return
                yield segment, pages.digests(segment.digests)
        except CorruptDataError:
            seen = self._cluster.logs.get(self._log.name)
            if seen is not None and seen.value.tier == self._tier:
                raise
            # The tier was changed, and a collection has removed a page that it needs no more.

    def _is_still(self, segment: TierSegment, window: "DigestWindow") -> bool:
        """Whether the log still says that its table has these rows (rule 1)."""
        seen = self._cluster.logs.get(self._log.name)
        tier = None if seen is None else seen.value.tier
        if seen is None or tier is None or seen.value.generation != self._log.generation:
            return False
        places = [(one.table_url, one.table_id, one.missing) for one in (tier, self._tier)]
        if places[0] != places[1] or window.end <= seen.value.first_offset:
            return False
        segments = self._cluster.logs.tier_pages(self._log.name).every_segment(tier)
        return any(one.digests == segment.digests for one in segments)

    def _note(self, view: "TableView", window: "DigestWindow", error: TableChangedError) -> None:
        self._found.changed += 1
        self._changed += 1
        if self._changed > SHOWN_MAX:
            return
        version, reason = view.snapshot.version, str(error.args[0])
        said = f"offsets {window.begin} to {window.end - 1}, version {version} of its table"
        self._found.left.append(Left(f"log {self._log.name}", f"{said}: {reason}", error.hint))
        self._found.rows.append(
            {
                "log": self._log.name,
                "table": shown_url(self._tier.table_url),
                "version": version,
                "first_offset": window.begin,
                "end_offset": window.end,
                "reason": reason,
            }
        )
