"""Cut the rows of one stripe into blocks."""

from collections.abc import Iterator

import pyarrow as pa

from bkspark.log.batch.target import BlockSettings


class BlockCutter:
    """Collects the rows of one stripe and cuts them into blocks of the requested size."""

    def __init__(self, settings: BlockSettings) -> None:
        self._settings = settings
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, part: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Add ``part``, and yield all full blocks."""
        for piece in self._pieces(part):
            if self._parts and not self._has_room(piece):
                yield from self.flush()
            self._parts.append(piece)
            self._rows += piece.num_rows
            self._bytes += piece.nbytes
            if self._rows >= self._settings.rows_per_block or (
                self._bytes >= self._settings.target_bytes
            ):
                yield from self.flush()

    def flush(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows, if any, as a block."""
        if self._parts:
            parts, self._parts = self._parts, []
            self._rows = self._bytes = 0
            yield parts[0] if len(parts) == 1 else pa.concat_batches(parts)

    def _has_room(self, piece: pa.RecordBatch) -> bool:
        return bool(
            self._rows + piece.num_rows <= self._settings.rows_per_block
            and self._bytes + piece.nbytes <= self._settings.target_bytes
        )

    def _pieces(self, part: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Split ``part`` into pieces that fit into a block; a single row is never split."""
        rows = part.num_rows
        too_wide = part.nbytes > self._settings.target_bytes and rows > 1
        if not rows:
            return
        if rows > self._settings.rows_per_block:
            for begin in range(0, rows, self._settings.rows_per_block):
                yield from self._pieces(part.slice(begin, self._settings.rows_per_block))
        elif too_wide:
            yield from self._pieces(part.slice(0, rows // 2))
            yield from self._pieces(part.slice(rows // 2))
        else:
            yield part
