"""Reads the rows of a range of offsets from a table, each offset exactly once.

    for batch in read_range(table, table.snapshot(), 0, 1000, schema, columns):
        ...

Rule 1. At the end each offset of the range was found once, or the read fails and names offsets.
Rule 2. If a file vanished, because the table's owner rewrote and vacuumed it, the read goes on with
the newest version, and gives only what it has not given. The table must be the same one.
Rule 3. Rows without an offset, or with one outside of the range, are not the log's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bkspark.errors import TableChangedError, TableUnavailableError
from bkspark.format.arrow_schema import METADATA_COLUMNS, OFFSET_COLUMN
from bkspark.storage.address import shown_url
from bkspark.table.asking import FileGoneError, asking_for
from bkspark.table.conversion import (
    ID,
    ColumnSource,
    Converter,
    DroppedColumnError,
    Located,
    UnfitValueError,
    index_of,
    locate,
    parse_value,
)
from bkspark.table.data_files import DataFile, FileBatch, deleted_rows, opened
from bkspark.table.snapshot import Snapshot, TableFile
from bkspark.table.table import DeltaTable

# --- offset bits ---------------------------------------------------------------------------------
# Which offsets of a range were found, with one bit for each.
#
# The rule: **each offset is found once.** The first row with an offset that was found before is an
# error, and so is an offset that was not found at the end.
#
# A range may be read in several passes: if files vanish, the next pass reads a newer version of the
# table. Rows that an earlier pass gave are not given again, but still count for the rule.


Offsets = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class DoubledOffsetError(Exception):
    """An offset is there twice.

    Attributes:
        offset: the first of them.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class OffsetBits:
    """The found offsets of [begin, end).

    Args:
        missing: ranges ``(begin, end)`` of offsets that need not be found. Their rows are not
            given, if there are any.
    """

    def __init__(self, begin: int, end: int, missing: Sequence[tuple[int, int]] = ()) -> None:
        self.begin = begin
        self.end = end
        size = (max(0, end - begin) + 7) // 8
        self._done = np.zeros(size, np.uint8)
        self._seen = np.zeros(size, np.uint8)
        for first, last in missing:
            self._mark_done(max(first, begin), min(last, end))

    def admit(self, offsets: Offsets) -> Mask:
        """Mark offsets of the range as found; return which of their rows are to be given.

        Raises:
            DoubledOffsetError: this pass found one of them before, or it is among them twice.
        """
        places = offsets - self.begin
        first = int(places.min()) // 8
        window = slice(first, int(places.max()) // 8 + 1)
        places -= 8 * first
        seen = _unpacked(self._seen[window])
        if seen[places].any():
            raise DoubledOffsetError(int(offsets[seen[places]].min()))
        before = np.count_nonzero(seen)
        seen[places] = True
        if np.count_nonzero(seen) - before != len(offsets):
            values, counts = np.unique(offsets, return_counts=True)
            raise DoubledOffsetError(int(values[counts > 1][0]))
        self._seen[window] = np.packbits(seen, bitorder="little")
        return ~_unpacked(self._done[window])[places]

    def begin_pass(self) -> None:
        """Read the range anew; rows that were given are not given again."""
        self._done |= self._seen
        self._seen[:] = 0

    def are_done(self, first: int, last: int) -> bool:
        """Whether no row of [first, last] is to be given, since earlier passes gave all of them."""
        first, last = max(first, self.begin), min(last, self.end - 1)
        if first > last:
            return True
        begin = (first - self.begin) // 8
        bits = _unpacked(self._done[begin : (last - self.begin) // 8 + 1])
        skipped = first - self.begin - 8 * begin
        return bool(bits[skipped : skipped + last - first + 1].all())

    def left(self) -> list[tuple[int, int]]:
        """The ranges ``(begin, end)`` of offsets that were not found."""
        found = _unpacked(self._done | self._seen)[: max(0, self.end - self.begin)]
        edges = np.flatnonzero(np.diff(np.concatenate(([True], found, [True]))))
        return [
            (int(first) + self.begin, int(last) + self.begin)
            for first, last in edges.reshape(-1, 2)
        ]

    def _mark_done(self, first: int, end: int) -> None:
        if first < end:
            window = slice((first - self.begin) // 8, (end - 1 - self.begin) // 8 + 1)
            bits = _unpacked(self._done[window])
            skipped = first - self.begin - 8 * window.start
            bits[skipped : skipped + end - first] = True
            self._done[window] = np.packbits(bits, bitorder="little")


def _unpacked(packed: npt.NDArray[np.uint8]) -> Mask:
    return np.unpackbits(packed, bitorder="little").view(np.bool_)


# --- reading -------------------------------------------------------------------------------------


_PASSES_MAX = 20
"""Versions that one read goes through before it gives up."""
_SHOWN_MAX = 5

_PARTITION_TYPES = {
    "string": pa.string(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def read_range(
    table: DeltaTable,
    snapshot: Snapshot,
    begin: int,
    end: int,
    schema: pa.Schema,
    columns: Mapping[str, ColumnSource],
    missing: Sequence[tuple[int, int]] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows with offsets of [begin, end): ``_offset``, then the columns of ``schema``.

    The rows of a batch are in the order of their file, and files in the order of their first
    offsets. A user of the rows has all of them only when the iterator ends without an error.

    Args:
        snapshot: from which to read; see ``Snapshot.within``.
        schema: the wanted columns, by the log's names, in the log's types.
        columns: which column of the table a log's column is. A column without an entry was not in
            the table when the log's rows were written to it, and is null. The column of offsets
            may have an entry.
        missing: ranges ``(begin, end)`` of offsets that are accepted as missing.

    Raises:
        TableChangedError: an offset is missing or there twice, a column was dropped, a value does
            not fit, or there is another table now.
        NoSuchTableError, TableUnavailableError, CorruptDataError, UnsupportedTableError: see
            ``DeltaTable.snapshot``.
    """
    reading = _Reading(table, schema, columns, OffsetBits(begin, end, missing))
    table_id = snapshot.table_id
    for _ in range(_PASSES_MAX):
        try:
            yield from reading.pass_over(snapshot)
        except FileGoneError as gone:
            snapshot = _newer(table, snapshot, gone)
            if snapshot.table_id != table_id:
                raise _replaced(table, table_id, snapshot) from gone
            reading.bits.begin_pass()
        else:
            reading.require_all()
            return
    raise TableUnavailableError(
        f"files of the table at {shown_url(table.url)} vanished {_PASSES_MAX} times during a read",
        hint="let its maintenance keep files for longer: see delta.deletedFileRetentionDuration",
    )


def _newer(table: DeltaTable, before: Snapshot, gone: FileGoneError) -> Snapshot:
    """The newest version, which must not be the one of which a file is gone."""
    found = table.snapshot()
    if found.version <= before.version:
        raise TableChangedError(
            f"a file of the table at {shown_url(table.url)} is not there, and version "
            f"{found.version} needs it: {gone.name}",
            hint="restore the file from a backup of the table, or RESTORE an older version",
        ) from gone
    return found


def _replaced(table: DeltaTable, table_id: str, found: Snapshot) -> TableChangedError:
    return TableChangedError(
        f"another table is at {shown_url(table.url)} now: its id is {found.table_id}, "
        f"and {table_id} was expected",
        hint="put the former table back",
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where the wanted columns are in the files of a version.

    Attributes:
        partition: types of partition columns, by physical name.
    """

    offsets: Located
    columns: tuple[tuple[pa.Field, Located | None], ...]
    partition: Mapping[str, str]
    by_id: bool


class _Reading:
    """One read of a range, over one version or several."""

    def __init__(
        self,
        table: DeltaTable,
        schema: pa.Schema,
        columns: Mapping[str, ColumnSource],
        bits: OffsetBits,
    ) -> None:
        self._table = table
        self._fields = [field for field in schema if field.name != OFFSET_COLUMN]
        self._columns = columns
        self._schema = pa.schema([pa.field(OFFSET_COLUMN, pa.int64()), *self._fields])
        self.bits = bits

    def pass_over(self, snapshot: Snapshot) -> Iterator[pa.RecordBatch]:
        """Read all files of a version that may have rows of the range."""
        plan = self._planned(snapshot)
        for file in snapshot.within(self.bits.begin, self.bits.end).files:
            try:
                yield from self._rows_of(file, plan)
            except DoubledOffsetError as error:
                raise TableChangedError(
                    f"offset {error.offset} is there twice in the table at "
                    f"{shown_url(self._table.url)}, version {snapshot.version}",
                    hint="remove the rows that were added to it, for example by RESTORE",
                    doubled=(error.offset,),
                ) from None
            except UnfitValueError as error:
                raise TableChangedError(
                    f"a value in the table at {shown_url(self._table.url)} is not one of the log: "
                    f"{file.path}: {error}",
                    hint="restore the version that the log wrote",
                ) from error

    def require_all(self) -> None:
        """Raise if an offset was not found."""
        left = self.bits.left()
        if not left:
            return
        count = sum(end - begin for begin, end in left)
        shown = ", ".join(
            f"{begin}" if end == begin + 1 else f"{begin} to {end - 1}"
            for begin, end in left[:_SHOWN_MAX]
        )
        more = " and more" if len(left) > _SHOWN_MAX else ""
        raise TableChangedError(
            f"{count} offsets are not in the table at {shown_url(self._table.url)}: {shown}{more}",
            hint="RESTORE the table to a version that has them; if it was meant: `bkspark offload "
            "LOG --accept-changes`",
            missing=tuple(left),
        )

    def _planned(self, snapshot: Snapshot) -> _Plan:
        offsets = self._located(OFFSET_COLUMN, snapshot)
        assert offsets is not None
        names = set(snapshot.partition_columns)
        partition = {
            column.physical_name: column.type
            for column in snapshot.columns.values()
            if column.name in names and isinstance(column.type, str)
        }
        return _Plan(
            offsets,
            tuple((field, self._located(field.name, snapshot)) for field in self._fields),
            partition,
            snapshot.mapping == ID,
        )

    def _located(self, name: str, snapshot: Snapshot) -> Located | None:
        source = self._columns.get(name)
        if source is None and name in METADATA_COLUMNS:
            source = snapshot.columns.get(name)
            if source is None:
                raise self._dropped(name, snapshot)
        try:
            return None if source is None else locate(name, source, snapshot.columns)
        except DroppedColumnError as error:
            raise self._dropped(str(error), snapshot) from None

    def _dropped(self, name: str, snapshot: Snapshot) -> TableChangedError:
        return TableChangedError(
            f"column {name!r} is not in the table at {shown_url(self._table.url)} any more, "
            f"as of version {snapshot.version}",
            hint="read other columns, or RESTORE a version that has it",
        )

    def _rows_of(self, file: TableFile, plan: _Plan) -> Iterator[pa.RecordBatch]:
        bits = self.bits
        deleted = deleted_rows(self._table.folder, file)
        with opened(self._table.folder, file) as data:
            fields = data.fields
            index = index_of(plan.offsets, fields, by_id=plan.by_id)
            if index is None:
                return  # rows of others, which have no offsets
            offsets = fields[index].name
            for group in data.row_groups(offsets, bits.begin, bits.end):
                # Rows that were given before are still looked at: an offset may be there twice.
                is_done = bits.are_done(group.first_offset, group.last_offset)
                wanted = _NothingElse() if is_done else _Wanted(self._schema, plan, data, file)
                for batch in data.batches(group, [offsets, *wanted.names]):
                    with asking_for(data.url, data.path):
                        rows = _admitted(bits, batch, offsets, deleted)
                    if len(rows) and not is_done:
                        yield wanted.taken(batch, offsets, rows)


def _admitted(
    bits: OffsetBits, batch: FileBatch, offsets: str, deleted: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The places in a batch of the rows to give."""
    column = batch.rows.column(offsets)
    values = column.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    is_wanted = (values >= bits.begin) & (values < bits.end)
    first, last = np.searchsorted(deleted, (batch.first_row, batch.first_row + len(values)))
    is_wanted[deleted[first:last] - batch.first_row] = False
    places = np.flatnonzero(is_wanted)
    return places[bits.admit(values[places])] if len(places) else places


class _NothingElse:
    """No columns, for rows that are only checked."""

    names: tuple[str, ...] = ()

    def taken(self, *_: object) -> pa.RecordBatch:
        raise AssertionError("rows that were given before are not given again")


class _Wanted:
    """The wanted columns of one file."""

    def __init__(self, schema: pa.Schema, plan: _Plan, data: DataFile, file: TableFile) -> None:
        self._schema = schema
        self._plan = plan
        self._data = data
        self._file = file
        self._converter = Converter(plan.by_id, data.has_julian_days)
        fields = data.fields
        self._found = [
            None
            if located is None or located.physical_name in plan.partition
            else index_of(located, fields, by_id=plan.by_id)
            for _, located in plan.columns
        ]
        self.names = tuple(fields[n].name for n in self._found if n is not None)

    def taken(
        self, batch: FileBatch, offsets: str, places: npt.NDArray[np.int64]
    ) -> pa.RecordBatch:
        """The rows at ``places`` of a batch, in the wanted types."""
        rows = _taken(batch.rows, places)
        fields = self._data.fields
        arrays = [rows.column(offsets).cast(pa.int64())]
        for (field, located), index in zip(self._plan.columns, self._found, strict=True):
            if index is not None and located is not None:
                found = fields[index]
                array = rows.column(found.name)
                arrays.append(self._converter.convert(array, found, located.kind, field.type))
            else:
                arrays.append(self._constant(field, located, len(places)))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _constant(self, field: pa.Field, located: Located | None, count: int) -> Any:
        kind = None if located is None else self._plan.partition.get(located.physical_name)
        if located is None or kind is None:
            return pa.nulls(count, field.type)
        text = self._file.partition_values.get(located.physical_name)
        with asking_for(self._data.url, f"the partition values of {self._file.path}"):
            value = parse_value(kind, text)
            present = pa.scalar(value, _partition_type(kind))
        return self._converter.convert(pa.repeat(present, count), field, kind, field.type)


def _taken(rows: pa.RecordBatch, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The rows at ``places``; without a copy if they follow one another."""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == len(places):
        return rows.slice(first, len(places))
    return rows.take(pa.array(places))


def _partition_type(kind: str) -> Any:
    if kind.startswith("decimal("):
        precision, scale = kind[len("decimal(") : -1].split(",")
        return pa.decimal128(int(precision), int(scale))
    return _PARTITION_TYPES[kind]
