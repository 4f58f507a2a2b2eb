"""Copying the rows of a micro-batch into another ledger.

Between planning and commit a log's tail may change: a batch append closed it, or the process that
wrote to it has ended. Records never name another ledger's entry logs, and the digests of an entry
log bind its ledger, so its rows are decoded, with every check, and written anew.
"""

import logging
from collections.abc import Iterator

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress
from bkspark.client.batch.attempt_writer import AttemptWriter
from bkspark.client.batch.target import BatchTarget
from bkspark.client.channel import Channel
from bkspark.client.entry_log_file import EntryLogFile
from bkspark.client.password import Password, make_digester
from bkspark.client.stepping_over import BadCopy, step_over
from bkspark.client.streams.micro_batch import Home
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    InvalidRequestError,
    NotEnoughBookiesError,
)
from bkspark.format import arrow_schema
from bkspark.protocol.batch import AttemptReport, WrittenLog

logger = logging.getLogger(__name__)


def rehomed(report: AttemptReport, home: Home, target: BatchTarget) -> AttemptReport:
    """The rows of ``report`` written once more, into the ledger of ``target``.

    Raises:
        InvalidRequestError: that ledger has other quorum sizes, so its stripes are others.
        NotEnoughBookiesError: no bookie gives a good copy of an entry log, or too few take one.
    """
    if target.quorum.stripe_count != home.quorum.stripe_count:
        raise InvalidRequestError(
            f"log {target.log_name!r} was founded with other quorum sizes",
            hint="nothing of this micro-batch is in it; restart the query",
        )
    writer = AttemptWriter(target, report.partition_id)
    blocks = (
        (log.entry_log.stripe, block)
        for log in report.logs
        for block in _blocks(log, home, target.password)
    )
    return writer.rewrite(blocks, report)


def _blocks(log: WrittenLog, home: Home, password: Password) -> Iterator[pa.RecordBatch]:
    """The checked blocks of ``log`` in order, from whichever replica has the next one."""
    schema = arrow_schema.decode(home.schema)
    problems: list[str] = []
    done = 0
    for source in _holders(log, home):
        channel = Channel(source)
        try:
            file = EntryLogFile(
                channel.storage(),
                log.entry_log,
                make_digester(home.digest, password),
                ledger_id=home.ledger_id,
            )
            for block in file.blocks[done:]:
                yield file.block_rows(block, schema)
                done += 1
            return
        except (BookieUnavailableError, CorruptDataError) as error:
            problems.append(str(error))
            what = f"entry log {log.entry_log.attempt_id}-{log.entry_log.stripe}"
            step_over(logger, BadCopy(source.cluster_id, source.bookie_id, what), str(error))
        finally:
            channel.close()
    raise NotEnoughBookiesError(
        f"no bookie gives rows that were written into ledger {home.ledger_id} "
        f"({'; '.join(problems)})",
        hint="nothing of this micro-batch is in the log; bring back one of these bookies, "
        "or restart the query",
    )


def _holders(log: WrittenLog, home: Home) -> list[BookieAddress]:
    return [address for address in home.bookies if address.bookie_id in log.bookie_ids]
