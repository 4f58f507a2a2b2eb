"""A process that appends to a log again and again, with others at the same time.

    python -m tests.integration.appender METADATA_URI NUMBER WRITES

Waits until a line comes on its standard input, so that all begin together.
"""

import sys

from bkspark.cluster.password import Password
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.log.batch.preparing import prepare
from bkspark.log.batch.target import WriteRequest
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.rig import BLOCKS, LOG, SCHEMA, rows_from

ROWS = 3


def main(uri: str, number: int, writes: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(writes):
        target = prepare(WriteRequest(uri, LOG, SCHEMA, Quorum(3, 3, 2), None, Password(), BLOCKS))
        rows = rows_from(number * 1000 + turn * ROWS, ROWS)
        batch_commit.commit(target, [AttemptWriter(target, 0).write([rows])])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
