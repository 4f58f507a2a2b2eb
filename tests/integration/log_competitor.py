"""A process that wants to write to a log, with others that want it too.

    python -m tests.integration.log_competitor METADATA_URI LOG NUMBER TURNS

Waits until a line comes on its standard input. Says each offset it was given, as JSON, at once.
"""

import json
import sys

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import LedgerClosedError, OutcomeUnknownError

STEPS = 8


def main(uri: str, name: str, number: int, turns: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    with BookKeeper(uri) as keeper:
        log = keeper.open_log(name)
        for turn in range(turns):
            try:
                with log.writer(roll_entries=5) as writer:
                    for step in range(STEPS):
                        value = f"{number}-{turn}-{step}"
                        print(json.dumps([writer.append(value.encode()), value]), flush=True)
            except (OutcomeUnknownError, LedgerClosedError):
                continue


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
