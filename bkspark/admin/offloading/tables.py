"""Looks at the tables of logs by their metadata, for audits; reads no rows.

Rule 1. The table is the log's: its id, its property, its columns, and no commit since the verified
version that removed rows.

Rule 2. The statistics of the table's files show whether offsets are missing or there twice. What
they do not show is not a finding; a scrub reads the rows.

Rule 3. A table that gives no certain answer is unknown, never absent.

Rule 4. A finding counts only if the log's tier is the same after the look.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from bkspark import environment
from bkspark.admin.maintenance import Facts, Left
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import UNREAD
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    OutcomeUnknownError,
    TableChangedError,
    TableUnavailableError,
)
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier
from bkspark.storage.address import shown_url

if TYPE_CHECKING:  # an audit that finds no table loads no module of tables
    from bkspark.admin.offloading.checking import TableView
    from bkspark.table.snapshot import Snapshot

LOOKS_MAX = 3

CHECKED = "NUM_TABLES_CHECKED"
WRONG = "NUM_TABLES_WITH_PROBLEMS"
UNKNOWN = "NUM_TABLES_NOT_KNOWN_TO_HAVE_ALL_ROWS"
COPIED_BYTES = "OFFLOAD_COPIED_BYTES"
FREED_BYTES = "OFFLOAD_FREED_BYTES"
LAG_SECONDS = "OFFLOAD_LAG_SECONDS"
PROBLEMS = "OFFLOAD_PROBLEMS"
"""``metrics`` shows these as ``bkspark_offload_…``."""


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """What a look at the table of a log found.

    Attributes:
        first_offset, end_offset: the offsets that the table is to have.
        version: of the table; -1 if it could not be looked at.
        is_dense: whether statistics show that each of the offsets is there once.
        problem: what is wrong, or why that is not known; empty if nothing is.
    """

    log: str
    table: str
    first_offset: int
    end_offset: int
    version: int = -1
    is_dense: bool = False
    problem: str = ""
    hint: str = ""
    is_unknown: bool = False

    @property
    def row(self) -> Facts:
        """The answer for a report."""
        return {
            "log": self.log,
            "table": self.table,
            "first_offset": self.first_offset,
            "end_offset": self.end_offset,
            "version": self.version,
            "is_dense": self.is_dense,
            "is_unknown": self.is_unknown,
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class TableAnswers:
    """What an audit found out about tables.

    Attributes:
        copied_bytes, freed_bytes: payload of the rows in all tables, and of those read from there.
        lag_seconds: how long ago the oldest of the ledgers was closed that no table has.
    """

    answers: tuple[TableAnswer, ...] = ()
    copied_bytes: int = 0
    freed_bytes: int = 0
    lag_seconds: int = 0

    @property
    def left(self) -> list[Left]:
        return [
            Left(f"log {one.log}", one.problem, one.hint) for one in self.answers if one.problem
        ]

    @property
    def counters(self) -> dict[str, int]:
        wrong = sum(bool(one.problem) and not one.is_unknown for one in self.answers)
        unknown = sum(one.is_unknown for one in self.answers)
        return {
            CHECKED: len(self.answers),
            WRONG: wrong,
            UNKNOWN: unknown,
            COPIED_BYTES: self.copied_bytes,
            FREED_BYTES: self.freed_bytes,
            LAG_SECONDS: self.lag_seconds,
            PROBLEMS: wrong + unknown,
        }

    @property
    def rows(self) -> list[Facts]:
        return [one.row for one in self.answers]


def look_at_tables(cluster: Cluster, log_names: Iterable[str]) -> TableAnswers:
    """Look at the tables of logs."""
    found = [one for one in (_answer(cluster, name) for name in log_names) if one is not None]
    logs = [log for log, _ in found]
    tiers = [log.tier for log in logs if log.tier is not None]
    now_ms = environment.now_ms()
    return TableAnswers(
        tuple(answer for _, answer in found),
        sum(tier.copied_bytes for tier in tiers),
        sum(tier.length_bytes for tier in tiers),
        max((_lag_seconds(log, now_ms) for log in logs), default=0),
    )


def _lag_seconds(log: LogRecord, now_ms: int) -> int:
    """Return how long ago the first ledger without a copy was closed; 0 if there is none."""
    begin, closed_ms = offloading.next_begin(log), 0
    with suppress(*UNREAD):
        for place in islice(log.ledgers_in(begin, log.end_offset), 1):
            closed_ms = place.closed_ms
    return max(0, now_ms - closed_ms) // 1000 if closed_ms else 0


def _answer(cluster: Cluster, log_name: str) -> tuple[LogRecord, TableAnswer] | None:
    """Return the log and what is found; None if the log has no table any more."""
    for _ in range(LOOKS_MAX):
        seen = cluster.logs.get(log_name)
        if seen is None or seen.value.tier is None:
            return None
        log, answer = seen.value, look(cluster, seen.value, seen.value.tier)
        if not answer.problem or _is_still(cluster, log):
            return log, answer
    return log, TableAnswer(
        *(answer.log, answer.table, answer.first_offset, answer.end_offset),
        problem="its table could not be judged: the log changed each time the audit looked",
        is_unknown=True,
    )


def _is_still(cluster: Cluster, log: LogRecord) -> bool:
    now = cluster.logs.get(log.name)
    return now is not None and (now.value.tier, now.value.generation) == (log.tier, log.generation)


def look(cluster: Cluster, log: LogRecord, tier: Tier) -> TableAnswer:
    """Look at the newest version of a log's table (rules 1 to 3)."""
    from bkspark.admin.offloading.checking import table_view

    begin = min(max(tier.begin, log.first_offset), tier.copied)
    what = (log.name, shown_url(tier.table_url), begin, tier.copied)
    try:
        view = table_view(tier.table_url, tier.columns)
    except InvalidRequestError as error:  # a place that this machine does not know proves nothing
        return TableAnswer(*what, **_problem(error, is_unknown=True))
    except BookKeeperError as error:
        return TableAnswer(*what, **_problem(error))
    version = view.snapshot.version
    try:
        is_dense = _require_as_written(cluster, log, tier, view)
    except BookKeeperError as error:
        return TableAnswer(*what, version, **_problem(error))
    return TableAnswer(*what, version, is_dense)


def _problem(error: BookKeeperError, *, is_unknown: bool = False) -> dict[str, Any]:
    is_unknown = is_unknown or isinstance(error, TableUnavailableError | OutcomeUnknownError)
    return {"problem": str(error.args[0]), "hint": error.hint, "is_unknown": is_unknown}


def _require_as_written(cluster: Cluster, log: LogRecord, tier: Tier, view: "TableView") -> bool:
    """Check what the table's metadata shows; return whether it shows each offset once.

    Raises:
        BookKeeperError: it shows that the table is not as the offload has left it.
    """
    from bkspark.admin.offloading.offload import require_columns, require_own
    from bkspark.log.reading.tier_rows import require_verified_rows

    snapshot, begin = view.snapshot, max(tier.begin, log.first_offset)
    require_own(cluster, log, tier, view)
    if begin >= tier.copied:  # all that was copied is truncated
        return True
    require_columns(log.name, tier, snapshot)
    require_verified_rows(log.name, tier, view.table, snapshot)
    is_dense = snapshot.is_dense(begin, tier.copied)
    if not is_dense:
        _require_rows(cluster, log, tier, snapshot)
    return is_dense


def _require_rows(cluster: Cluster, log: LogRecord, tier: Tier, snapshot: "Snapshot") -> None:
    """Count the rows of each segment by statistics (rule 2).

    Raises:
        TableChangedError: offsets are missing, or there twice.
    """
    from bkspark.table.density import row_bounds

    ranges = sorted(_ranges(cluster, log, tier))
    whole = (ranges[0][0], ranges[-1][1]) if ranges else (0, 0)
    found = row_bounds(snapshot.files, ranges)
    [of_all] = row_bounds(snapshot.files, [whole])
    for (begin, end), bounds in ((whole, of_all), *zip(ranges, found, strict=True)):
        given_up = sum(max(0, min(end, b) - max(begin, a)) for a, b in tier.missing)
        count = end - begin - given_up
        what = f"of offsets {begin} to {end - 1} of log {log.name!r}"
        where = f"in its table at {shown_url(tier.table_url)}, version {snapshot.version}"
        if bounds.most is not None and bounds.most < count:
            raise TableChangedError(
                f"at least {count - bounds.most:,} {what} are not {where}",
                hint=f"RESTORE the table; `bkspark scrub --log {log.name}` names the offsets",
            )
        if bounds.least > count:
            raise TableChangedError(
                f"some {what} are there twice {where}",
                hint=f"remove what was added; `bkspark scrub --log {log.name}` names the offsets",
            )


def _ranges(cluster: Cluster, log: LogRecord, tier: Tier) -> Iterator[tuple[int, int]]:
    for segment in cluster.logs.tier_pages(log.name).every_segment(tier):
        if segment.end <= log.first_offset:
            return
        yield max(segment.begin, log.first_offset), segment.end
