"""A process that appends to a log entry by entry, and prints each number once it is durable.

    python log_appender.py METADATA_URI LOG FIRST COUNT ROLL_ENTRIES

It is meant to be killed, and to be followed by another one.
"""

import sys

import pyarrow as pa

from bkspark import BookKeeper


def main(uri: str, name: str, first: int, count: int, roll_entries: int) -> None:
    with (
        BookKeeper(uri) as bookkeeper,
        bookkeeper.open_log(name) as log,
        log.writer(roll_entries=roll_entries) as writer,
    ):
        for number in range(first, first + count):
            writer.append_many(pa.table({"id": pa.array([number], pa.int64())}))
            print(number, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *(int(text) for text in sys.argv[3:6]))
