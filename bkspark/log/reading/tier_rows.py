"""The rows of a log that only its tier's table has.

A table belongs to its owner too: the owner may compact it, clean it up, add columns, rename them.
None of that changes a read. A change of rows does: a reader never takes it for what was written.

Rule 1. The table must be the log's: the same id, no version before the one that was verified, and
the verified version must be of the same commit.

Rule 2. If a commit after the verified version removed rows, other than by rewriting them as they
were, the rows of the tier may be others now. A read fails until an ``offload`` has verified them.

Rule 3. A commit that only adds rows needs no look: each offset is found exactly once, or the read
fails ("table.read_range").

Rule 4. If too many commits followed, or some were removed, rule 3 alone decides, and the reader
logs a warning: only a scrub can tell.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from bkspark.errors import CommitsGoneError, TableChangedError
from bkspark.format import arrow_schema
from bkspark.format.arrow_schema import OFFSET_COLUMN, TIMESTAMP, TIMESTAMP_COLUMN
from bkspark.protocol.log.contents import LogContents
from bkspark.protocol.log.tier import TableVersion, Tier, TierColumn

if TYPE_CHECKING:  # a process that reads no tier loads no module of tables
    from bkspark.table.snapshot import Commit, Snapshot, TableFile
    from bkspark.table.table import DeltaTable

logger = logging.getLogger(__name__)

COMMITS_MAX = 100
"""Commits that are looked at since the verified version; each look is one request."""

_WINDOW_BYTES = 64 * 2**20
_WINDOW_OFFSETS_MAX = 2**20


@dataclass(frozen=True, slots=True)
class TierSlice:
    """Offsets ``[begin, end)`` in the table of a log.

    Attributes:
        log_name: for errors.
        length_bytes: approximate payload.
        offset_column: the physical name of the column of offsets.
        snapshot: a version of the table, with the files that may have these offsets.
        columns: the log's columns in the table.
        missing: ranges of offsets that an operator accepted as missing.
    """

    log_name: str
    begin: int
    end: int
    length_bytes: int
    table_url: str
    offset_column: str
    snapshot: "Snapshot"
    columns: tuple[TierColumn, ...]
    missing: tuple[tuple[int, int], ...] = ()

    @property
    def range(self) -> tuple[int, int]:
        return self.begin, self.end

    def part(self, begin: int, end: int) -> "TierSlice":
        """Return the offsets ``[begin, end)`` of these."""
        length = self.length_bytes * (end - begin) // (self.end - self.begin)
        files = self.snapshot.within(begin, end)
        return replace(self, begin=begin, end=end, length_bytes=length, snapshot=files)

    def turned(self, turn: int) -> "TierSlice":
        """Return the same slice: a table has one copy."""
        del turn
        return self


class TierRows:
    """The rows below ``freed`` of one version of a log's record.

    Looks at the table when first asked for slices, and plans all slices with the version found.

    Attributes:
        is_looked_through: whether the look saw all commits since the verified version (rule 4).
    """

    def __init__(self, log: LogContents) -> None:
        assert log.tier is not None
        self._log_name = log.name
        self._tier = log.tier
        self._snapshot: Snapshot | None = None
        self.is_looked_through = False

    @property
    def end(self) -> int:
        """The offset after the rows of the table."""
        return self._tier.freed

    @property
    def window_offsets(self) -> int:
        """How many offsets a reader in order holds in memory."""
        tier = self._tier
        each = max(1, tier.length_bytes // max(1, tier.freed - tier.begin))
        return max(1, min(_WINDOW_OFFSETS_MAX, _WINDOW_BYTES // each))

    def slices(self, begin: int, end: int) -> list[TierSlice]:
        """Return slices with the offsets of ``[begin, end)`` that are below ``freed``.

        Raises:
            NoSuchTableError, TableUnavailableError, CorruptDataError, UnsupportedTableError: the
                table cannot be read.
            TableChangedError: it is another table, or its rows may not be those that were written.
        """
        end = min(end, self._tier.freed)
        whole = TierSlice(
            self._log_name,
            begin,
            end,
            self._tier.length_bytes * (end - begin) // (self._tier.freed - self._tier.begin),
            self._tier.table_url,
            offset_column(self._tier),
            self.snapshot.within(begin, end),
            self._tier.columns,
            tuple((a, b) for a, b in self._tier.missing if a < end and b > begin),
        )
        borders = [begin, *_borders(whole.snapshot.files, begin, end), end]
        return [whole.part(a, b) for a, b in zip(borders, borders[1:], strict=False)]

    @property
    def url(self) -> str:
        return self._tier.table_url

    @property
    def snapshot(self) -> "Snapshot":
        """The version of the table that all slices are of; raises as ``slices``."""
        if self._snapshot is None:
            from bkspark.table.table import open_table

            table = open_table(self.url, offset_column(self._tier))
            found = table.snapshot()
            is_sure = require_verified_rows(self._log_name, self._tier, table, found)
            self._snapshot, self.is_looked_through = found, is_sure
        return self._snapshot

    def offset_since(self, ms: int, begin: int, end: int) -> int | None:
        """Return the first offset of ``[begin, end)`` committed at ``ms`` or later; None if none.

        Raises:
            TableChangedError: the table lacks offsets or their times, or has some twice.
        """
        schema = pa.schema([(OFFSET_COLUMN, pa.int64()), (TIMESTAMP_COLUMN, TIMESTAMP)])
        first = end
        for item in self.slices(begin, end) if begin < end else ():
            for rows in rows_of(item, schema):
                offsets, times = (
                    column.cast(pa.int64()).fill_null(-1).to_numpy() for column in rows.columns
                )
                later = offsets[times >= ms * 1000]
                first = min(first, int(later.min())) if len(later) else first
            if first < end:
                return first
        return None

    def require_each_once(self, slices: Iterable[TierSlice]) -> None:
        """Read the offsets alone of ``slices``: each must be there once.

        Raises:
            TableChangedError: an offset is missing or there twice.
        """
        schema = pa.schema([(OFFSET_COLUMN, pa.int64())])
        for item in slices:
            for _ in rows_of(item, schema):
                pass


def offset_column(tier: Tier) -> str:
    """Return the physical name of the column of offsets in a tier's table."""
    found = (one.physical_name for one in tier.columns if one.name == OFFSET_COLUMN)
    return next(found, OFFSET_COLUMN)


def require_verified_rows(
    log_name: str, tier: Tier, table: "DeltaTable", snapshot: "Snapshot"
) -> bool:
    """Check by the table's log that a version has the rows that were verified (rules 1 and 2).

    Returns:
        False if some commits could not be looked at (rule 4).

    Raises:
        TableChangedError: it is another table or an older version, or rows were removed.
        TableUnavailableError: storage gave no certain answer.
    """
    what, verified = f"the table of log {log_name!r} at {tier.table_url}", tier.verified_version
    if snapshot.table_id != tier.table_id:
        raise TableChangedError(
            f"{what} is another table: its id is {snapshot.table_id}, not {tier.table_id}",
            hint="put the former table back; if it was moved, run "
            f"`bkspark offload {log_name} --table URL` with its new address",
        )
    if snapshot.version < verified:
        raise TableChangedError(
            f"{what} is at version {snapshot.version}, and version {verified} was verified: an "
            "older copy of the table was put there",
            hint=f"run `bkspark offload {log_name}`, which verifies the rows again",
        )
    if not is_verified_commit(tier.table.verified, table, snapshot):
        raise TableChangedError(
            f"{what} has another commit as version {verified} than the one that was verified: two "
            "drivers made it, or an older copy of the table was put there and written to",
            hint=f"run `bkspark offload {log_name}`, which verifies the rows again",
        )
    commits = _commits_since(what, verified, table, snapshot)
    for commit in commits or ():
        if commit.removes_rows:
            raise TableChangedError(
                f"rows of {what} may have been changed at version {commit.version} "
                f"({_shown(commit)})",
                hint=f"run `bkspark offload {log_name}`, which verifies them; if rows were "
                f"changed on purpose: `bkspark offload {log_name} --accept-changes`",
            )
    return commits is not None


def is_verified_commit(verified: TableVersion, table: "DeltaTable", snapshot: "Snapshot") -> bool:
    """Whether the verified version is of the commit that was verified, as far as is known.

    Raises:
        TableUnavailableError: storage gave no certain answer.
    """
    if not verified.commit or snapshot.version < verified.number:
        return True
    is_newest = snapshot.version == verified.number
    found = snapshot.commit if is_newest else table.commit_digest(verified.number)
    return found in ("", verified.commit)


def _commits_since(
    what: str, verified: int, table: "DeltaTable", snapshot: "Snapshot"
) -> "Sequence[Commit] | None":
    """Return the commits after the verified version; None if they cannot be looked at."""
    count = snapshot.version - verified
    if count <= COMMITS_MAX:
        try:
            return table.commits(verified, snapshot.version)
        except CommitsGoneError as error:
            reason = str(error.args[0])
    else:
        reason = f"{count} commits followed version {verified}"
    logger.warning(
        "whether rows of %s were changed is not known (%s): run `bkspark offload` for the log",
        what,
        reason,
    )
    return None


def _shown(commit: "Commit") -> str:
    return " by ".join(part for part in (commit.operation, commit.user) if part) or "unnamed"


def _borders(files: "Sequence[TableFile]", begin: int, end: int) -> Iterator[int]:
    """Yield the offsets inside of ``[begin, end)`` at which no file continues."""
    last: int | None = begin
    for file in files:
        if file.first_offset is None or file.last_offset is None:
            return
        if last is not None and last < file.first_offset < end and file.first_offset > begin:
            yield file.first_offset
        last = max(last or 0, file.last_offset)


def rows_of(item: TierSlice, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``item`` with exactly ``schema``, in the order of the table's files.

    Raises:
        TableChangedError: the table lacks offsets, or has some twice; ``missing`` names them.
        NoSuchTableError, TableUnavailableError, CorruptDataError, UnsupportedTableError: the table
            cannot be read any more.
    """
    from bkspark.table.reading import read_range
    from bkspark.table.table import open_table

    table = open_table(item.table_url, item.offset_column)
    columns = {one.name: one for one in item.columns}
    missing = item.missing
    for batch in read_range(table, item.snapshot, item.begin, item.end, schema, columns, missing):
        arrays = [batch.column(name) for name in schema.names]
        rows = pa.RecordBatch.from_arrays(arrays, names=schema.names)
        yield arrow_schema.relabel(rows, schema)
