"""What ten thousand micro-batches leave behind: what their rolls leave, no more.

The planning, the tasks and the commits are the sink's own, without Spark, whose triggers would take
an hour; tests/spark/test_stream_volume.py has them too.

    pytest -s -n0 -m soak tests/integration/stream/test_stream_volume.py    # 10,000, unbounded
"""

from pathlib import Path

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.format import ledger_metadata
from bkspark.log.streams.commit import SINK_POLICY
from tests.integration.rig import Rig, partitions_of
from tests.integration.stream_driver import Driver, settled_rows, tail_of, the_log

BATCHES, SOME_BATCHES = 10_000, 600
PER_LEDGER = SINK_POLICY.max_records


class Volume:
    """A stream of batches of one row, into storage that is cheap."""

    def __init__(self, folder: Path, bookies: int = 1, **options: bool) -> None:
        self.rig = Rig(folder, "memory", bookie_count=bookies, metadata="memory")
        quorum = (bookies, bookies, bookies)
        self.driver = Driver(self.rig, quorum=quorum, options=options)

    def run(self, begin: int, end: int) -> None:
        for number in range(begin, end):
            assert self.driver.commit(self.driver.planned(number, partitions_of(1, first=number)))

    def changes(self) -> int:
        """How often a record of the log or of a ledger was ever stored."""
        with Cluster(self.rig.uri) as cluster:
            found = [cluster.logs.get(self.rig.log_name)]
            found += [cluster.ledgers.get(str(number)) for number in cluster.ledger_ids()]
        return sum(seen.stored.version for seen in found if seen is not None)


@pytest.mark.thorough
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


class Unbounded(Volume):
    """The same into an unbounded log on three bookies, by processes that end now and then.

    Spark ends one that was idle for a minute; who comes next goes on in the ledger, in a new term.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, 3, is_unbounded=True)

    def go_on(self, end: int, per_process: int, *, are_killed: bool) -> None:
        for first in range(0, end, per_process):
            self.run(first, min(end, first + per_process))
            if not are_killed:
                self.driver.held.rest()
            self.driver.with_new_process()

    def record_bytes(self) -> int:
        """Of the ledger that the log is."""
        return len(ledger_metadata.encode(tail_of(self.rig), "0" * 32))

    def files(self, folder: str) -> int:
        """Of one kind, on the bookie that has most of them."""
        found = ([f"/{folder}/" in name for name in self.rig.names(one)] for one in self.rig.urls)
        return max(sum(one) for one in found)


def streamed(folder: Path, batches: int, per_process: int, *, are_killed: bool) -> None:
    """An unbounded log is one ledger then, and what is left of its terms is what they wrote."""
    volume = Unbounded(folder)
    volume.go_on(batches, per_process, are_killed=are_killed)
    ledger, terms = tail_of(volume.rig), -(-batches // per_process)
    with Cluster(volume.rig.uri) as cluster:
        assert cluster.ledger_ids() == [ledger.ledger_id]
    assert the_log(volume.rig).listed_ids == (ledger.ledger_id,)
    assert len(ledger.fragments) <= terms + batches // PER_LEDGER
    assert volume.record_bytes() <= 1_000 + 400 * len(ledger.fragments)
    assert volume.files("terms") <= 3
    assert volume.files("journal") <= len(ledger.fragments)
    left = [volume.record_bytes(), volume.files("terms"), volume.files("journal")]
    print(f"{batches} batches, {ledger.term} terms, {len(ledger.fragments)} fragments: {left}")
    assert [row[0] for row in settled_rows(volume.rig)] == list(range(batches))


@pytest.mark.thorough
@pytest.mark.parametrize("are_killed", [False, True], ids=["they rest", "they are killed"])
def test_an_unbounded_log_stays_one_ledger(tmp_path: Path, are_killed: bool) -> None:
    streamed(tmp_path / "cluster", SOME_BATCHES, 5, are_killed=are_killed)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("are_killed", [False, True], ids=["they rest", "they are killed"])
def test_ten_thousand_batches_leave_one_ledger(tmp_path: Path, are_killed: bool) -> None:
    streamed(tmp_path / "cluster", BATCHES, 50, are_killed=are_killed)
