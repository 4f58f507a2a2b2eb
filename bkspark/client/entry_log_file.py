"""An entry log on one bookie, opened for reading: index first, then only the blocks asked for."""

from collections.abc import Sequence

import pyarrow as pa

from bkspark.bookie.contract import ReadableRoot
from bkspark.errors import CorruptDataError
from bkspark.format import entry_log as entry_log_format
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.entry_log import Block
from bkspark.protocol.record import EntryLog


class EntryLogFile:
    """One replica of an entry log.

    Raises:
        CorruptDataError: absent, cut, or failing its digest: this replica is no good.
        BookieUnavailableError: the bookie gives no sure answer.
    """

    def __init__(
        self, root: ReadableRoot, log: EntryLog, digester: Digester, *, ledger_id: int
    ) -> None:
        self._root = root
        self._log = log
        self._digester = digester
        self._ledger_id = ledger_id
        self.name = layout.entry_log(ledger_id, log.attempt_id, log.stripe)
        self.end = self.read(log.index_offset, log.length_bytes - log.index_offset)
        head_length = entry_log_format.head_length(self.end)
        if not 0 < head_length <= log.index_offset:
            raise CorruptDataError(f"{self.name}: damaged block index")
        self.head = self.read(0, head_length)
        self.blocks: list[Block] = entry_log_format.decode_index(
            self.head, self.end, digester, log, ledger_id=ledger_id
        )

    def read(self, begin: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``begin`` on, not checked."""
        data = self._root.read(self.name, begin, length)
        if data is None:
            raise CorruptDataError(f"{self.name} is missing")
        if len(data) != length:
            raise CorruptDataError(f"{self.name} is cut")
        return data

    def block_bytes(self, block: Block) -> bytes:
        """The stored bytes of ``block``, checked against its digest."""
        data = self.read(block.offset, block.length)
        entry_log_format.check_block(
            data, block, self._digester, self._log, ledger_id=self._ledger_id
        )
        return data

    def block_rows(
        self, block: Block, schema: pa.Schema, columns: Sequence[int] | None = None
    ) -> pa.RecordBatch:
        """The rows of ``block``; only ``columns`` (indexes) if given."""
        return entry_log_format.decode_block(
            self.block_bytes(block),
            block,
            schema,
            self._log,
            ledger_id=self._ledger_id,
            columns=columns,
        )
