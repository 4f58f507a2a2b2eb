"""What a process loads for its first append and its first read: their caller waits for it."""

import subprocess
import sys

PROGRAM = """
import sys
from bkspark import BookKeeper
from bkspark.cluster.cluster import init_cluster

init_cluster("memory://start", ["memory://start-1", "memory://start-2", "memory://start-3"])
with BookKeeper("memory://start") as keeper:
    with keeper.create_ledger(write_quorum_size=2) as ledger:
        ledger.append_many([b"one", b"two", b"three"])
    entries = keeper.open_ledger(ledger.ledger_id).read()
    assert [entry.value for entry in entries] == [b"one", b"two", b"three"]
print("pandas" in sys.modules)
"""


def test_handles_of_bytes_load_no_pandas() -> None:
    done = subprocess.run([sys.executable, "-P", "-c", PROGRAM], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]
