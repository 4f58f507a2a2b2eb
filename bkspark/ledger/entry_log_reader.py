"""Reading an entry log, from whichever of its replicas is good.

A replica is opened index first, then only the blocks that are asked for are read, and each is
checked before it is given out. A replica that is missing or damaged, or whose bookie does not
answer, is stepped over and told of; the next one goes on where it gave up, because good replicas
are the same byte for byte.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress, ReadableRoot
from bkspark.bookie.messages import told_of
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.stepping_over import BadCopy, step_over
from bkspark.errors import BookieUnavailableError, CorruptDataError, NotEnoughBookiesError
from bkspark.format import entry_log as entry_log_format
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.entry_log import Block
from bkspark.protocol.ledger.record import EntryLog

logger = logging.getLogger(__name__)
T = TypeVar("T")


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

    def pieces(self, begin: int = 0) -> Iterator[bytes]:
        """The whole file, from piece ``begin`` on: its head, its blocks, its end; each checked."""
        if not begin:
            yield self.head
        for block in self.blocks[max(0, begin - 1) :]:
            yield self.block_bytes(block)
        yield self.end


class NoGoodSourceError(NotEnoughBookiesError):
    """No source has a good replica; who wanted it is not to blame.

    Attributes:
        problems: bookie id of each source -> why it gave none.
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
    """The storage of a bookie that is needed for one entry log only."""
    channel = BookieClient(address)
    try:
        channel.open()
        yield channel.storage()
    finally:
        channel.close()


class EntryLogReader:
    """Reads entry log ``log`` of a ledger.

    Args:
        replicas: where it should be, in the order to try.
        open_root: opens a bookie, which is waited for only so long (``BookieClient``).
        on_fault: told of each replica that was stepped over, whether its bookie could be opened,
            and why.

    Attributes:
        problems: bookie id of each replica that was stepped over -> why.
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
        """What ``parts`` gives of a replica, told how many of them are not needed any more.

        Raises:
            NoGoodSourceError: no replica gives the next one.
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
        """Tell of one copy that is no good, or of all copies of a bookie."""
        self.problems[address.bookie_id] = reason
        self._on_fault(address, is_open, reason)
        what = f"entry log {self._log.attempt_id}-{self._log.stripe}" if is_open else ""
        step_over(logger, BadCopy(address.cluster_id, address.bookie_id, what), reason)
