"""Reads a data file of a table: the row groups that may have wanted offsets, batch by batch.

Memory is bounded by a batch and the stored bytes of the wanted columns of one row group. Each row
keeps its number in the file, by which deletion vectors name rows.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from bkspark.storage.folders import Folder, fetch_ahead
from bkspark.table.asking import asking_for, path_below
from bkspark.table.deletion_vectors import (
    ABSOLUTE,
    INLINE,
    RELATIVE,
    Rows,
    file_name,
    inline_rows,
    stored_rows,
)
from bkspark.table.snapshot import TableFile

BATCH_ROWS = 65_536
_JULIAN = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Rows of a data file that follow one another.

    Attributes:
        first_row: the number of the first of them in the file.
    """

    first_row: int
    rows: Any


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A part of a data file.

    Attributes:
        first_row: the number of its first row in the file.
        first_offset, last_offset: bounds of the wanted offsets in it.
    """

    number: int
    first_row: int
    first_offset: int
    last_offset: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """An opened data file."""

    url: str
    path: str
    source: Any
    parquet: Any

    @property
    def fields(self) -> list[Any]:
        """Its columns, in the types as which pyarrow reads them."""
        return list(self.parquet.schema_arrow)

    @property
    def has_julian_days(self) -> bool:
        """Whether the writer says that old dates in it are of the Julian calendar."""
        known = self.parquet.metadata.metadata or {}
        return any(key in known for key in _JULIAN)

    def row_groups(self, offsets: str, begin: int, end: int) -> list[RowGroup]:
        """The row groups that may have offsets of [begin, end).

        Args:
            offsets: the column of offsets.
        """
        found = []
        first_row = 0
        with asking_for(self.url, self.path):
            metadata = self.parquet.metadata
            paths = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
            column = paths.index(offsets)
            for number in range(metadata.num_row_groups):
                group = metadata.row_group(number)
                known = group.column(column).statistics
                first, last = begin, end - 1
                if known is not None and known.has_min_max:
                    first, last = int(known.min), int(known.max)
                if first < end and begin <= last:
                    found.append(RowGroup(number, first_row, first, last))
                first_row += group.num_rows
        return found

    def batches(self, group: RowGroup, names: Sequence[str]) -> Iterator[FileBatch]:
        """The rows of a row group, with the named columns."""
        first_row = group.first_row
        with asking_for(self.url, self.path):
            fetch_ahead(self.source, self._ranges(group.number, names))
            found = self.parquet.iter_batches(
                BATCH_ROWS, row_groups=[group.number], columns=list(names), use_threads=False
            )
        while True:
            with asking_for(self.url, self.path):
                rows = next(found, None)
            if rows is None:
                return
            yield FileBatch(first_row, rows)
            first_row += rows.num_rows

    def _ranges(self, group: int, names: Sequence[str]) -> list[tuple[int, int]]:
        """Where the named columns of a row group are in the file."""
        metadata = self.parquet.metadata.row_group(group)
        found = []
        for number in range(metadata.num_columns):
            column = metadata.column(number)
            path = column.path_in_schema
            if any(path == name or path.startswith(f"{name}.") for name in names):
                first = column.data_page_offset
                if column.has_dictionary_page and column.dictionary_page_offset:
                    first = min(first, column.dictionary_page_offset)
                found.append((first, first + column.total_compressed_size))
        return found


@contextmanager
def opened(folder: Folder, file: TableFile) -> Iterator[DataFile]:
    """Open a data file for the block.

    Raises:
        FileGoneError: it is certainly absent.
        TableUnavailableError: storage gave no certain answer.
        CorruptDataError: it is not the file of which the log says the length.
    """
    import pyarrow.parquet as pq

    with asking_for(folder.url, file.path):
        source = folder.open(file.path, file.size_bytes)
    with source:
        with asking_for(folder.url, file.path):
            parquet = pq.ParquetFile(
                source,
                # Spark writes timestamps as INT96, and nanoseconds wrap before 1677 and after 2262.
                coerce_int96_timestamp_unit="us",
                page_checksum_verification=True,
            )
        yield DataFile(folder.url, file.path, source, parquet)


def deleted_rows(folder: Folder, file: TableFile) -> Rows:
    """The numbers of the deleted rows of a data file, in order.

    Raises:
        FileGoneError: the file of its deletion vector is certainly absent.
        TableUnavailableError: storage gave no certain answer.
        CorruptDataError: the deletion vector is damaged.
    """
    vector = file.deletion_vector
    if vector is None:
        return np.empty(0, np.int64)
    with asking_for(folder.url, f"the deletion vector of {file.path}"):
        if vector.storage == INLINE:
            return inline_rows(vector)
        if vector.storage not in (RELATIVE, ABSOLUTE):
            raise NotImplementedError(f"a deletion vector of kind {vector.storage!r}")
        is_relative = vector.storage == RELATIVE
        name = file_name(vector) if is_relative else path_below(folder.url, vector.place)
        return stored_rows(vector, lambda begin, length: folder.read(name, begin, length))
