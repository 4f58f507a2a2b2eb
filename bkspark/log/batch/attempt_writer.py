"""One task attempt of a write: writes rows as entry logs on the bookies.

Rows are striped by their offset in the attempt and serialised once, and all bookies of a stripe's
write set get the same bytes (RB-34b). Memory does not grow with the rows: each stripe holds at
most two blocks, one being written while the next is filled. The attempt stops using a bookie that
fails. At the end a spare gets the failed bookie's part, copied from a complete replica.

The written files have no effect until the commit names them.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial

import pyarrow as pa

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, EntryFile
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.bookie_client import BookieClient, seconds_to_store
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.format import arrow_schema, layout
from bkspark.format.arrow_message import stripes_of
from bkspark.format.arrow_values import ValueRules
from bkspark.format.digest import Buffer
from bkspark.format.entry_log import EntryLogEncoder
from bkspark.ledger.copying import copy_entry_log
from bkspark.ledger.entry_log_reader import NoGoodSourceError
from bkspark.log.batch.target import BatchTarget, BlockSettings
from bkspark.protocol.ledger.record import EntryLog
from bkspark.protocol.log.batch import AttemptReport, WrittenLog

# --- block cutter --------------------------------------------------------------------------------
# Cut the rows of one stripe into blocks.


class BlockCutter:
    """Collects the rows of one stripe and cuts them into blocks of the requested size."""

    def __init__(self, settings: BlockSettings) -> None:
        self._settings = settings
        self._parts: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def add(self, part: pa.RecordBatch, byte_count: int | None = None) -> Iterator[pa.RecordBatch]:
        """Add ``part``, and yield all full blocks.

        Args:
            byte_count: of ``part``, if known: Arrow adds up all buffers each time.
        """
        for piece, size in self._pieces(part, part.nbytes if byte_count is None else byte_count):
            if self._parts and not self._has_room(piece.num_rows, size):
                yield from self.flush()
            self._parts.append(piece)
            self._rows += piece.num_rows
            self._bytes += size
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

    def _has_room(self, row_count: int, byte_count: int) -> bool:
        return (
            self._rows + row_count <= self._settings.rows_per_block
            and self._bytes + byte_count <= self._settings.target_bytes
        )

    def _pieces(self, part: pa.RecordBatch, size: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Split ``part``, of ``size`` bytes, into pieces that fit into a block, each with its size.

        A single row is never split.
        """
        rows, most = part.num_rows, self._settings.rows_per_block
        if rows > most:
            cuts = range(0, rows, most)
            pieces = [part.slice(begin, most) for begin in cuts]
        elif size > self._settings.target_bytes and rows > 1:
            pieces = [part.slice(0, rows // 2), part.slice(rows // 2)]
        else:
            if rows:
                yield part, size
            return
        for piece in pieces:
            yield from self._pieces(piece, piece.nbytes)


# --- attempt writer ------------------------------------------------------------------------------


class AttemptWriter:
    """Writes the rows of one attempt of one partition.

    Args:
        target: where to write; not ``is_done``.
        partition_id: Spark's partition id, >= 0; fixes the order of the rows in the ledger.
    """

    def __init__(self, target: BatchTarget, partition_id: int) -> None:
        self._target = target
        self._partition_id = partition_id
        self._attempt_id = environment.token()
        self._digester = target.digester()
        self._schema = arrow_schema.decode(target.schema)
        self._rules = ValueRules(self._schema)

    def write(self, batches: Iterable[pa.RecordBatch]) -> AttemptReport:
        """Write all rows, each stripe durably on at least Qa bookies: its write set, or spares.

        Raises:
            NotEnoughBookiesError: too many bookies fail.
            InvalidRequestError: a batch has another schema than the target, or a reader could not
                decode a value; the message names the column and the row of the partition.
        """
        return self._write(lambda replicas: self._write_stripes(batches, replicas))

    def rewrite(
        self, blocks: Iterable[tuple[int, pa.RecordBatch]], of: AttemptReport
    ) -> AttemptReport:
        """Write the ``blocks`` of attempt ``of`` again, each to the stripe given with the block.

        Raises:
            NotEnoughBookiesError, InvalidRequestError: as ``write``.
        """

        def write_blocks(replicas: "_Replicas") -> tuple[int, int]:
            for stripe, block in blocks:
                rows = arrow_schema.relabel(block, self._schema)
                replicas.write(stripe, self._encode(replicas, stripe, rows))
            return of.row_count, of.length_bytes

        return self._write(write_blocks)

    def _write(self, write_blocks: Callable[["_Replicas"], tuple[int, int]]) -> AttemptReport:
        """Run ``write_blocks``, which returns the number of rows and of payload bytes."""
        with ExitStack() as cleanup:
            replicas = _Replicas(self._target, self._attempt_id)
            cleanup.callback(replicas.close)
            row_count, length_bytes = write_blocks(replicas)
            logs = replicas.finish()
        return AttemptReport(
            self._partition_id, row_count, length_bytes, logs, tuple(replicas.failures.items())
        )

    def _write_stripes(
        self, batches: Iterable[pa.RecordBatch], replicas: "_Replicas"
    ) -> tuple[int, int]:
        count = self._target.quorum.stripe_count
        cutters = [BlockCutter(self._target.request.blocks) for _ in range(count)]
        row_count = length_bytes = 0
        for batch in batches:
            rows = arrow_schema.relabel(batch, self._schema)
            self._rules.require(rows, first_row=row_count, of=f"partition {self._partition_id}")
            size = rows.nbytes
            for stripe, part in stripes_of(rows, first_row=row_count, stripe_count=count):
                for block in cutters[stripe].add(part, size if part is rows else None):
                    replicas.write(stripe, self._encode(replicas, stripe, block))
            row_count += rows.num_rows
            length_bytes += size
        for stripe, cutter in enumerate(cutters):
            for block in cutter.flush():
                replicas.write(stripe, self._encode(replicas, stripe, block))
        return row_count, length_bytes

    def _encode(self, replicas: "_Replicas", stripe: int, block: pa.RecordBatch) -> list[Buffer]:
        encoder = replicas.encoders.get(stripe)
        if encoder is None:
            encoder = replicas.encoders[stripe] = EntryLogEncoder(
                self._schema,
                self._digester,
                ledger_id=self._target.ledger_id,
                attempt_id=self._attempt_id,
                stripe=stripe,
                compression=self._target.request.blocks.compression,
            )
        return encoder.encode(block)


class _Replicas:
    """The files of one attempt: for every stripe one file on each bookie of its window."""

    def __init__(self, target: BatchTarget, attempt_id: str) -> None:
        self.encoders: dict[int, EntryLogEncoder] = {}
        self.failures: dict[str, str] = {}
        self._target = target
        self._attempt_id = attempt_id
        self._channels: dict[str, BookieClient] = {}
        self._files: dict[tuple[int, str], EntryFile] = {}
        self._writing: dict[str, int] = {}
        self._bytes: Counter[str] = Counter()

    def write(self, stripe: int, parts: list[Buffer]) -> None:
        """Start to append ``parts`` to the stripe's files, in the background."""
        for address in self._window(stripe):
            self._await(address.bookie_id)
            if address.bookie_id not in self.failures:
                self._begin(stripe, address, parts)
        self._require_survivor(stripe)

    def finish(self) -> tuple[WrittenLog, ...]:
        """Make all files durable and visible, replace failed bookies; return where each file is."""
        ends: dict[int, EntryLog] = {}
        for stripe, encoder in sorted(self.encoders.items()):
            end, ends[stripe] = encoder.finish()
            self.write(stripe, [end])
        for bookie_id in list(self._writing):
            self._await(bookie_id)
        finishing = [
            bookie_id
            for bookie_id in dict.fromkeys(on for _, on in self._files)
            if bookie_id not in self.failures
            and self._begin_on(bookie_id, partial(self._finish_bookie, bookie_id))
        ]
        for bookie_id in finishing:
            self._answer(bookie_id)
        return tuple(self._place(log) for log in ends.values())

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()

    def _window(self, stripe: int) -> list[BookieAddress]:
        return [self._target.ensemble[index] for index in self._target.quorum.write_set(stripe)]

    def _begin(self, stripe: int, address: BookieAddress, parts: list[Buffer]) -> None:
        bookie_id = address.bookie_id
        channel = self._channels.get(bookie_id)
        if channel is None:
            channel = self._channels[bookie_id] = BookieClient(address)
        known = self._files.get((stripe, bookie_id))

        def write() -> EntryFile:
            file = known
            if file is None:
                file = channel.root().create(self._name(stripe))
                channel.cleanup.callback(file.discard)
            for part in parts:
                file.write(part)
            return file

        self._bytes[bookie_id] += sum(len(part) for part in parts)
        if self._begin_on(bookie_id, write):
            self._writing[bookie_id] = stripe

    def _finish_bookie(self, bookie_id: str) -> None:
        """Finish the bookie's files, then check them through a newly opened root (R6, H19)."""
        files = {stripe: file for (stripe, on), file in self._files.items() if on == bookie_id}
        for file in files.values():
            file.finish()
        with open_bookie(self._target.address(bookie_id)).open_root() as root:
            for stripe in files:
                if root.size(self._name(stripe)) is None:
                    raise BookieUnavailableError(
                        f"bookie {bookie_id} does not show what was just written to it"
                    )

    def _place(self, log: EntryLog) -> WrittenLog:
        """Return where ``log`` is, after spares have replaced failed bookies."""
        window = [address.bookie_id for address in self._window(log.stripe)]
        holders = [bookie_id for bookie_id in window if bookie_id not in self.failures]
        for spare in self._target.spares:
            if not 0 < len(holders) < len(window):
                break
            if spare.bookie_id not in self.failures and self._copy_to_spare(log, holders, spare):
                holders.append(spare.bookie_id)
            holders = [bookie_id for bookie_id in holders if bookie_id not in self.failures]
        if len(holders) < self._target.quorum.ack_quorum_size:
            raise self._too_few(log.stripe)
        return WrittenLog(log, tuple(holders))

    def _copy_to_spare(self, log: EntryLog, holders: list[str], spare: BookieAddress) -> bool:
        """Copy ``log`` to ``spare``; False after a failure. Note bad bookies in ``failures``."""
        sources = [self._target.address(holder) for holder in holders]
        ledger_id, digester = self._target.ledger_id, self._target.digester()
        try:
            bad = copy_entry_log(log, sources, spare, digester, ledger_id=ledger_id)
        except NoGoodSourceError as error:
            self.failures.update(error.problems)
            return False
        except BookieUnavailableError as error:
            self.failures[spare.bookie_id] = str(error)
            return False
        self.failures.update(bad)
        return True

    def _await(self, bookie_id: str) -> None:
        stripe = self._writing.pop(bookie_id, None)
        if stripe is not None:
            file = self._answer(bookie_id)
            if file is not None:
                self._files[stripe, bookie_id] = file

    def _begin_on(self, bookie_id: str, question: Callable[[], object]) -> bool:
        """Ask the bookie's channel; False, and the bookie has failed, if the channel is busy."""
        try:
            self._channels[bookie_id].begin(question)
            return True
        except BookieUnavailableError as error:
            self.failures[bookie_id] = str(error)
            return False

    def _answer(self, bookie_id: str) -> EntryFile | None:
        """Wait for the answer of the bookie's channel; None if the bookie failed."""
        seconds = seconds_to_store(self._bytes[bookie_id])
        try:
            found: EntryFile | None = self._channels[bookie_id].answer(seconds)
            return found
        except BookieUnavailableError as error:
            self.failures[bookie_id] = str(error)
            return None

    def _require_survivor(self, stripe: int) -> None:
        if all(address.bookie_id in self.failures for address in self._window(stripe)):
            raise self._too_few(stripe)

    def _too_few(self, stripe: int) -> NotEnoughBookiesError:
        window = ", ".join(address.bookie_id for address in self._window(stripe))
        reasons = "; ".join(self.failures.values())
        return NotEnoughBookiesError(
            f"stripe {stripe} on {window} has fewer than {self._target.quorum.ack_quorum_size} "
            f"good copies ({reasons})",
            hint="add bookies or bring back the failed ones",
        )

    def _name(self, stripe: int) -> str:
        return layout.entry_log(self._target.ledger_id, self._attempt_id, stripe)
