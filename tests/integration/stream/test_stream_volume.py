"""What ten thousand micro-batches leave behind in the metadata: what their rolls leave, no more.

The planning, the tasks and the commits are the sink's own, without Spark, whose triggers would take
an hour; tests/spark/test_stream_volume.py has them too.
"""

from pathlib import Path

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.log.streams.tail_writer import SINK_POLICY
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver, settled_rows, the_log

pytestmark = pytest.mark.thorough

BATCHES = 10_000
PER_LEDGER = SINK_POLICY.max_records


class Volume:
    """A stream of batches of one row, into storage that is cheap."""

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder, "memory", bookie_count=1, metadata="memory")
        self.driver = Driver(self.rig, quorum=(1, 1, 1))

    def run(self, begin: int, end: int) -> None:
        for number in range(begin, end):
            assert self.driver.commit(self.driver.planned(number, partitions_of(1, first=number)))

    def changes(self) -> int:
        """How often a record of the log or of a ledger was ever stored."""
        with Cluster(self.rig.uri) as cluster:
            found = [cluster.logs.get(self.rig.log_name)]
            found += [cluster.ledgers.get(str(number)) for number in cluster.ledger_ids()]
        return sum(seen.stored.version for seen in found if seen is not None)


def test_ten_thousand_batches_leave_ten_ledgers(tmp_path: Path) -> None:
    volume = Volume(tmp_path / "cluster")
    counts = []
    for begin in range(0, BATCHES, PER_LEDGER):
        volume.run(begin, begin + 1)
        counts.append(volume.changes())
        volume.run(begin + 1, begin + PER_LEDGER - 1)
        assert volume.changes() == counts[-1]
        volume.run(begin + PER_LEDGER - 1, begin + PER_LEDGER)
    # One record is closed, one is made, one says whose journals are begun, and the log lists it.
    assert {after - before for before, after in zip(counts, counts[1:])} == {4}
    assert [row[0] for row in settled_rows(volume.rig)] == list(range(BATCHES))
    log = the_log(volume.rig)
    assert [ledger.entry_count for ledger in log.ledgers] == [PER_LEDGER] * 10
    assert not log.dropped.ids
    with Cluster(volume.rig.uri) as cluster:
        assert len(cluster.ledger_ids()) == 10
