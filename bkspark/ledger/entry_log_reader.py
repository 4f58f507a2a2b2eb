"""Reads an entry log from any good replica.

The reader opens a replica by its index, reads only the wanted blocks, and checks each block. A
missing or damaged replica, or a bookie without an answer, is skipped and reported. The next replica
continues at the same part, because good replicas have the same bytes.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from bkspark.bookie.contract import BookieAddress, ReadableRoot, ReadsRanges, told_of
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.log_messages import BadCopy, step_over
from bkspark.errors import BookieUnavailableError, CorruptDataError, NotEnoughBookiesError
from bkspark.format import entry_log as entry_log_format
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.entry_log import Block
from bkspark.protocol.ledger.record import EntryLog

if TYPE_CHECKING:
    import pyarrow as pa

    from bkspark.format.arrow_message import BatchLayout

logger = logging.getLogger(__name__)
T = TypeVar("T")
Ranges = Sequence[tuple[int, int]]
"""Begins and ends in a block."""

READ_TOGETHER_BYTES = 2**20
"""Small pieces of a file are read in one question to its bookie: to wake the thread that asks takes
as long as to read some 100 KiB. Larger pieces gain nothing, and take memory.
"""


class EntryLogFile:
    """One replica of an entry log.

    Raises:
        CorruptDataError: the replica is absent, cut, or fails its digest.
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
        """Read exactly ``length`` bytes from ``begin`` on, unchecked."""
        return self._whole(self._root.read(self.name, begin, length), length)

    def _whole(self, data: bytes | None, length: int) -> bytes:
        if data is None:
            raise CorruptDataError(f"{self.name} is missing")
        if len(data) != length:
            raise CorruptDataError(f"{self.name} is cut")
        return data

    def block_bytes(self, block: Block) -> bytes:
        """Read the stored bytes of ``block`` and check them against their digests."""
        data = self.read(block.offset, block.length)
        self._check(data, block)
        return data

    def rows_of(
        self,
        blocks: Iterable[Block],
        layout: "BatchLayout",
        columns: Sequence[int] | None = None,
    ) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of each of ``blocks``; of ``columns`` (indexes) only, if given.

        The bytes of other columns are not checked, and those far from the wanted ones not read.
        """
        if columns is not None and [*columns] == [*range(len(layout.schema))]:
            columns = None
        for some in _together(self._with_ranges(blocks, columns)):
            wanted = [
                (block.offset + begin, end - begin)
                for block, ranges in some
                for begin, end in ranges
            ]
            pieces = self._read_each(wanted)
            for block, ranges in some:
                data = _assembled(block, ranges, pieces)
                self._check(data, block, columns)
                yield entry_log_format.decode_block(
                    data, block, layout, self._log, ledger_id=self._ledger_id, columns=columns
                )

    def _with_ranges(
        self, blocks: Iterable[Block], columns: Sequence[int] | None
    ) -> Iterator[tuple[Block, Ranges]]:
        """Yield ``blocks``, each with what to read of it for ``columns``."""
        if columns is None:
            yield from ((block, [(0, block.length)]) for block in blocks)
            return
        cost = self._root.bytes_per_request
        for block in blocks:
            yield block, entry_log_format.ranges_to_read(block, columns, cost)

    def _read_each(self, wanted: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Yield what each begin and length of ``wanted`` has; all are read at once if possible.

        A piece without an answer is asked for alone, after those before it were given.
        """
        root, found = self._root, list[bytes | None]()
        if len(wanted) > 1 and isinstance(root, ReadsRanges):
            found = root.read_ranges(self.name, wanted)
        for (_, length), data in zip(wanted, found, strict=False):
            yield self._whole(data, length)
        for begin, length in wanted[len(found) :]:
            yield self.read(begin, length)

    def _check(
        self, data: bytes | memoryview, block: Block, columns: Sequence[int] | None = None
    ) -> None:
        entry_log_format.check_block(
            data, block, self._digester, self._log, ledger_id=self._ledger_id, columns=columns
        )

    def pieces(self, begin: int = 0) -> Iterator[bytes]:
        """Yield the file from piece ``begin`` on: head, blocks, end. Each piece is checked."""
        if not begin:
            yield self.head
        for block in self.blocks[max(0, begin - 1) :]:
            yield self.block_bytes(block)
        yield self.end


def _together(blocks: Iterable[tuple[Block, Ranges]]) -> Iterator[list[tuple[Block, Ranges]]]:
    """Yield ``blocks`` in groups of at most ``READ_TOGETHER_BYTES``, or of one block."""
    group: list[tuple[Block, Ranges]] = []
    room = READ_TOGETHER_BYTES
    for block, ranges in blocks:
        room -= sum(end - begin for begin, end in ranges)
        if group and room < 0:
            yield group
            group, room = [], READ_TOGETHER_BYTES - sum(end - begin for begin, end in ranges)
        group.append((block, ranges))
    if group:
        yield group


def _assembled(block: Block, ranges: Ranges, pieces: Iterator[bytes]) -> bytes | memoryview:
    """Return ``block`` with the next of ``pieces`` at ``ranges``."""
    if ranges == [(0, block.length)]:
        return next(pieces)
    data = entry_log_format.sparse_block(block.length)
    for begin, end in ranges:
        data[begin:end] = next(pieces)
    return data.toreadonly()


class NoGoodSourceError(NotEnoughBookiesError):
    """No source has a good replica; the target is not at fault.

    Attributes:
        problems: bookie id of each source -> reason.
    """

    def __init__(self, name: str, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        reasons = "; ".join(told_of(bookie_id, reason) for bookie_id, reason in problems.items())
        super().__init__(
            f"no bookie gives a good copy of {name} ({reasons})",
            hint="bring back one of these bookies",
        )
        self.problems = dict(problems)


@contextmanager
def opened(address: BookieAddress) -> Iterator[ReadableRoot]:
    """Open the storage of a bookie for one entry log."""
    channel = BookieClient(address)
    try:
        channel.open()
        yield channel.storage()
    finally:
        channel.close()


class EntryLogReader:
    """Reads entry log ``log`` of a ledger.

    Args:
        replicas: bookies to try, in order.
        open_root: opens a bookie, with a bounded wait (``BookieClient``).
        on_fault: called for each skipped replica: its bookie, whether the bookie was opened, the
            reason.

    Attributes:
        problems: bookie id of each skipped replica -> reason.
    """

    def __init__(
        self,
        log: EntryLog,
        replicas: Iterable[BookieAddress],
        digester: Digester,
        *,
        ledger_id: int,
        open_root: Callable[[BookieAddress], AbstractContextManager[ReadableRoot]] = opened,
        on_fault: Callable[[BookieAddress, bool, str], None] = lambda *_: None,
    ) -> None:
        self.problems: dict[str, str] = {}
        self._log = log
        self._replicas = replicas
        self._digester = digester
        self._ledger_id = ledger_id
        self._open_root = open_root
        self._on_fault = on_fault

    def read(self, parts: Callable[[EntryLogFile, int], Iterator[T]]) -> Iterator[T]:
        """Yield the parts of the first good replica; after a fault continue with the next replica.

        Args:
            parts: yields parts of a replica, without the given number of first parts.

        Raises:
            NoGoodSourceError: no replica gives the next part.
        """
        done = 0
        for address in self._replicas:
            is_open = False
            try:
                with self._open_root(address) as root:
                    is_open = True
                    file = EntryLogFile(root, self._log, self._digester, ledger_id=self._ledger_id)
                    for part in parts(file, done):
                        yield part
                        done += 1
                    return
            except (CorruptDataError, BookieUnavailableError) as error:
                self._step_over(address, str(error), is_open=is_open)
        name = layout.entry_log(self._ledger_id, self._log.attempt_id, self._log.stripe)
        raise NoGoodSourceError(name, self.problems)

    def _step_over(self, address: BookieAddress, reason: str, *, is_open: bool) -> None:
        """Report one bad copy, or all copies of a bookie that could not be opened."""
        self.problems[address.bookie_id] = reason
        self._on_fault(address, is_open, reason)
        what = f"entry log {self._log.attempt_id}-{self._log.stripe}" if is_open else ""
        step_over(logger, BadCopy(address.cluster_id, address.bookie_id, what), reason)
