"""Copy the rows of a micro-batch into another ledger.

Between planning and commit a log's tail may change: a batch append closed the tail, or the writing
process has ended. Records never name another ledger's entry logs, and the digests of an entry log
include the ledger. So the rows are decoded, with every check, and written again.

One of the two ledgers may have been made on fewer bookies than the log wants, and so have other
stripes. Then the rows are put in order and striped again.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.format import arrow_message, arrow_schema
from bkspark.format.arrow_message import BatchLayout
from bkspark.ledger.entry_log_reader import EntryLogFile, EntryLogReader, NoGoodSourceError
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.target import BatchTarget
from bkspark.log.streams.micro_batch import StagingLedger
from bkspark.protocol.log.batch import AttemptReport, WrittenLog


def rewrite_into(
    report: AttemptReport, staging: StagingLedger, target: BatchTarget
) -> AttemptReport:
    """Write the rows of ``report`` again, into the ledger of ``target``.

    Raises:
        InvalidRequestError: the log of ``target`` has other quorum sizes.
        NotEnoughBookiesError: no bookie gives a good copy of an entry log, or too few accept one.
    """
    if target.wanted != staging.wanted:
        raise InvalidRequestError(
            f"log {target.request.log_name!r} was created with other quorum sizes",
            hint="no row of this micro-batch is in the log; restart the query",
        )
    writer = AttemptWriter(target, report.partition_id)
    if target.quorum.stripe_count != staging.quorum.stripe_count:
        stripes = [blocks_of(log, staging, target.request.password) for log in report.logs]
        return writer.write(in_order(stripes))
    blocks = (
        (log.entry_log.stripe, block)
        for log in report.logs
        for block in blocks_of(log, staging, target.request.password)
    )
    return writer.rewrite(blocks, report)


def in_order(stripes: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an attempt in order, from the blocks of its stripes.

    Row ``k`` of stripe ``s`` is row ``s + k * len(stripes)``, so the stripes' lengths differ by at
    most one row.
    """
    waiting: list[pa.Table | None] = [None] * len(stripes)
    is_over = False
    while not is_over:
        for number, blocks in enumerate(stripes):
            kept = waiting[number]
            if (kept is None or not kept.num_rows) and (block := next(blocks, None)) is not None:
                waiting[number] = pa.Table.from_batches([block])
        tables = [table for table in waiting if table is not None]
        counts = [table.num_rows for table in tables]
        count = min(counts, default=0)
        is_over = count == 0
        if is_over:  # the last round has rows of some stripes only
            tables = [table for table in tables if table.num_rows]
            count = 1 if tables else 0
        if count:
            rounds = pa.concat_tables([table.slice(0, count) for table in tables])
            order = (s * count + k for k in range(count) for s in range(len(tables)))
            rows = rounds.take(arrow_message.of_integers(order))
            yield from rows.combine_chunks().to_batches()
        waiting = [table if table is None else table.slice(count) for table in waiting]


def blocks_of(
    log: WrittenLog, staging: StagingLedger, password: Password
) -> Iterator[pa.RecordBatch]:
    """Yield the checked blocks of ``log``, a file of ``staging``, in order.

    Raises:
        NotEnoughBookiesError: no bookie gives a good copy of the file.
    """
    layout = BatchLayout(arrow_schema.decode(staging.schema))
    reader = EntryLogReader(
        log.entry_log,
        _holders(log, staging),
        make_digester(staging.digest, password),
        ledger_id=staging.ledger_id,
    )

    def blocks(file: EntryLogFile, done: int) -> Iterator[pa.RecordBatch]:
        return (file.block_rows(block, layout) for block in file.blocks[done:])

    try:
        yield from reader.read(blocks)
    except NoGoodSourceError as error:
        raise NotEnoughBookiesError(
            f"no bookie gives rows that were written into ledger {staging.ledger_id} "
            f"({'; '.join(error.problems.values())})",
            hint="no row of this micro-batch is in the log; bring back one of these bookies, "
            "or restart the query",
        ) from error


def _holders(log: WrittenLog, staging: StagingLedger) -> list[BookieAddress]:
    return [address for address in staging.bookies if address.bookie_id in log.bookie_ids]
