"""Watch a log while another thread writes to it: cells for a notebook, from top to bottom.

    bkspark init file:///tmp/bk --bookie file:///tmp/bk1 --bookie file:///tmp/bk2 \\
        --bookie file:///tmp/bk3
    python examples/tail_log.py file:///tmp/bk

Nothing here needs Spark. Reading does not disturb the writer. Run it again: the log continues where
it ended.
"""

import json
import sys
import threading
import time
from collections import Counter

import bkspark

URI = sys.argv[1]

# %% The writer: here a thread, in production a process on another host.


def write_events() -> None:
    with (
        bkspark.BookKeeper(URI) as bookkeeper,
        bookkeeper.open_log("clicks") as log,
        log.writer(roll_entries=40) as writer,
    ):
        for number in range(100):
            event = {"page": f"page {number % 3}", "number": number}
            writer.append(json.dumps(event).encode())
            time.sleep(0.005)


bk = bkspark.BookKeeper(URI)
if "clicks" not in bk.list_logs():
    bk.create_log("clicks")
clicks = bk.open_log("clicks")
begin = clicks.end_offset
producer = threading.Thread(target=write_events)
producer.start()

# %% Follow the log: entries come as soon as they are confirmed, over all rolls.

pages: Counter[str] = Counter()
for entry in clicks.follow(begin, timeout=5):
    event = json.loads(entry.value)
    pages[event["page"]] += 1
    if event["number"] % 25 == 0:
        print("offset", entry.offset, dict(pages))
    if event["number"] == 99:
        break

# %% Look back: the last ten, as a table.

last = clicks.read_arrow(clicks.end_offset - 10)
print(last["_offset"].to_pylist())

# %% Keep a place in it under a name, for the next time.

cursor = clicks.cursor("notebook")
cursor.advance(clicks.end_offset)
print("seen up to", cursor.offset, "in", len(clicks.ledgers), "ledgers")

producer.join()
bk.close()
