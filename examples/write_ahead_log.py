"""A key-value store in a driver's memory. It journals each change first, so it survives the driver.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/write_ahead_log.py file:///tmp/bk              # kill it, and run it again

The driver that starts last takes over. It first makes a ledger of its own, and then looks for the
ledgers of other drivers. It recovers older ledgers, which fences their writers, and replays them.
If there is a newer ledger, it stops. So if several drivers start at once, one continues, and it has
seen every change that was acknowledged to any other.
"""

import argparse
import json
import random
import sys
import time

import bkspark

APPLICATION = {"application": "write-ahead-log"}


class JournaledStore:
    """A dictionary whose changes are durable before they are visible."""

    def __init__(self, bookkeeper: bkspark.BookKeeper) -> None:
        self.state: dict[str, int] = {}
        self.replayed = 0
        self.ledger = bookkeeper.create_ledger(custom_metadata=APPLICATION)
        for ledger_id in bookkeeper.list_ledgers():
            if ledger_id != self.ledger.ledger_id:
                self._take_over(bookkeeper, ledger_id)

    def put(self, key: str, value: int) -> int:
        """Journal a change, then apply it; returns its entry id."""
        change = json.dumps({"key": key, "value": value})
        entry_id = self.ledger.append(change.encode())  # an ack quorum has it when this returns
        self.state[key] = value
        return entry_id

    def _take_over(self, bookkeeper: bkspark.BookKeeper, ledger_id: int) -> None:
        try:
            found = bookkeeper.open_ledger(ledger_id, recovery=False)
        except bkspark.UnauthorizedError:  # another application's: these have no password
            return
        if found.metadata.settings.custom_metadata != APPLICATION:
            return
        if ledger_id > self.ledger.ledger_id:
            raise bkspark.LedgerFencedError(f"ledger {ledger_id} is newer: another driver runs")
        for entry in _recovered(bookkeeper, ledger_id).read():
            change = json.loads(entry.value)
            self.state[change["key"]] = change["value"]
            self.replayed += 1


def _recovered(bookkeeper: bkspark.BookKeeper, ledger_id: int) -> bkspark.ReadHandle:
    while True:
        try:
            return bookkeeper.open_ledger(ledger_id, recovery=True)
        except bkspark.OutcomeUnknownError:  # another driver recovers it at the same time
            time.sleep(random.uniform(0.05, 0.5))


def main(metadata_uri: str, changes: int) -> int:
    with bkspark.BookKeeper(metadata_uri) as bookkeeper:
        try:
            store = JournaledStore(bookkeeper)
            ledger_id = store.ledger.ledger_id
            begun = {"ledger": ledger_id, "replayed": store.replayed, "state": store.state}
            print(json.dumps(begun), flush=True)
            for number in range(changes):
                key = f"key {number % 100}"
                value = store.state.get(key, 0) + 1
                entry_id = store.put(key, value)
                acknowledged = {"ledger": ledger_id, "entry": entry_id, "key": key, "value": value}
                print(json.dumps(acknowledged), flush=True)
            store.ledger.close()
        except bkspark.LedgerFencedError as error:
            print(f"another driver took over: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("metadata_uri")
    parser.add_argument("--changes", type=int, default=10)
    arguments = parser.parse_args()
    sys.exit(main(arguments.metadata_uri, arguments.changes))
