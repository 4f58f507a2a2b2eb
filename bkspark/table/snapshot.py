"""What a version of a table has: its columns, its live files, and what its commits did."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bkspark.format.arrow_schema import OFFSET_COLUMN
from bkspark.table.deletion_vectors import DeletionVector
from bkspark.table.delta_types import TableColumn

Statistics = str | Mapping[str, Any] | None
"""Of a file: JSON, or an object of a checkpoint."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A live data file.

    Attributes:
        path: below the table.
        row_count: without deleted rows; None if unknown.
        partition_values: text by physical name; None is null.
        first_offset, last_offset: bounds of the offsets in it, deleted rows included; None if
            unknown. If no row has an offset, the first is greater than the last.
        offset_count: rows that have an offset, deleted rows included; None if unknown.
    """

    path: str
    size_bytes: int
    row_count: int | None = None
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    deletion_vector: DeletionVector | None = None
    first_offset: int | None = None
    last_offset: int | None = None
    offset_count: int | None = None

    def may_have(self, begin: int, end: int) -> bool:
        """Whether a row may have an offset from ``begin`` on, before ``end``."""
        if self.first_offset is None or self.last_offset is None:
            return True
        return self.first_offset < end and begin <= self.last_offset


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One version of a table.

    Attributes:
        table_id: made with the table; a copied folder has the same.
        properties: the table's settings.
        columns: by the names that the table's owner knows.
        partition_columns: their names.
        mapping: how a column is found in a file: ``none`` and ``name`` by its physical name,
            ``id`` by its number.
        files: in the order of their first offsets.
        transactions: the last version of each application.
        commit: the digest of the commit that made this version; "" if the commit is not there any
            more. Two drivers on a disk can make a version twice, and so can a backup.
    """

    version: int
    table_id: str
    properties: Mapping[str, str]
    reader_features: frozenset[str]
    columns: Mapping[str, TableColumn]
    partition_columns: tuple[str, ...]
    mapping: str
    files: tuple[TableFile, ...]
    transactions: Mapping[str, int]
    commit: str = ""

    def within(self, begin: int, end: int) -> "Snapshot":
        """The same version, with only the files that may have rows of these offsets."""
        return replace(self, files=tuple(file for file in self.files if file.may_have(begin, end)))

    def is_dense(self, begin: int, end: int) -> bool:
        """Whether statistics alone show that each offset from ``begin`` to ``end`` is there once.

        False proves nothing.
        """
        files = [file for file in self.files if file.may_have(begin, end)]
        at = begin
        for file in files:
            first, last, count = file.first_offset, file.last_offset, file.row_count
            if first is None or last is None or count != last - first + 1:
                return False
            if first != at and not (at == begin and first < begin):
                return False
            at = last + 1
        return begin >= end or at >= end


@dataclass(frozen=True, slots=True)
class Commit:
    """What a commit says of itself.

    Attributes:
        operation: for example ``WRITE``; "" if it does not say.
        time_ms: since 1970; None if it does not say.
        user: the committer's name; "" if it does not say.
        user_metadata: given by the committer; "" if there is none.
        adds_rows, removes_rows: whether it changes which rows the table has. An ``OPTIMIZE`` does
            not.
        changes_metadata: the schema or the properties.
        changes_protocol: the features that a reader needs.
        transactions: versions of applications.
    """

    version: int
    operation: str = ""
    time_ms: int | None = None
    user: str = ""
    user_metadata: str = ""
    adds_rows: bool = False
    removes_rows: bool = False
    changes_metadata: bool = False
    changes_protocol: bool = False
    transactions: Mapping[str, int] = field(default_factory=dict)

    @property
    def changes_rows(self) -> bool:
        return self.adds_rows or self.removes_rows


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """The part of a file's statistics that is used. All may be unknown."""

    row_count: int | None
    first_offset: int | None
    last_offset: int | None
    offset_count: int | None = None


UNKNOWN = FileStatistics(None, None, None)


def statistics_of(given: Statistics, offset_column: str = OFFSET_COLUMN) -> FileStatistics:
    """Read the statistics of a file; malformed ones are unknown, since they only save work.

    Args:
        offset_column: the physical name.
    """
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return UNKNOWN
    if not isinstance(found, Mapping):
        return UNKNOWN
    count = _number(found.get("numRecords"))
    first, last, nulls = (
        _number(_part(found, name).get(offset_column))
        for name in ("minValues", "maxValues", "nullCount")
    )
    if count is not None and nulls == count:
        return FileStatistics(count, 0, -1, 0)
    if first is None or last is None or first > last:
        first = last = None
    with_offset = None if count is None or nulls is None or nulls > count else count - nulls
    return FileStatistics(count, first, last, with_offset)


def _part(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = found.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
