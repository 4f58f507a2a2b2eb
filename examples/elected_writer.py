"""Two processes, of which one writes a log. If it is killed or paused, the other goes on.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/elected_writer.py file:///tmp/bk               # in two terminals

Row n is at offset n, so each leader sees in the log which row is next, and every row is there once.
The election only decides which process should write. Fencing protects the log: a process that was
paused, and wakes up when another one leads, cannot append. As it opens the log with the election,
it does not take the log back either.
"""

import argparse
import contextlib
import json
import os
import sys
import time

import bkspark

LOG = "elected"
ENDS = (bkspark.LedgerFencedError, bkspark.NotLeaderError, bkspark.OutcomeUnknownError)
"""Another process leads, or the metadata store has not answered. The log says which rows it has."""


def write(
    bookkeeper: bkspark.BookKeeper, election: bkspark.Election, rows: int, seconds: float
) -> None:
    """Write the rows that the log does not have yet, as long as this process leads."""
    with bookkeeper.open_log(LOG).writer(election=election) as writer:
        while (number := writer.end_offset) < rows:
            writer.append(f"row {number}".encode())
            print(json.dumps({"process": os.getpid(), "row": number}), flush=True)
            time.sleep(seconds)


def main(metadata_uri: str, rows: int, seconds: float) -> int:
    with bkspark.BookKeeper(metadata_uri) as bookkeeper:
        with contextlib.suppress(bkspark.LedgerExistsError):
            bookkeeper.create_log(LOG)
        while True:
            print("waits to lead", flush=True)
            with bookkeeper.election(LOG) as election:
                try:
                    write(bookkeeper, election, rows, seconds)
                except ENDS as error:
                    print(f"writes no more: {error}", file=sys.stderr, flush=True)
                else:
                    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metadata_uri")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.1, help="between two rows")
    arguments = parser.parse_args()
    sys.exit(main(arguments.metadata_uri, arguments.rows, arguments.seconds))
