"""A cluster in one bucket, and all that its users and its operators do with it."""

from dataclasses import dataclass

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.format import layout
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.storage.address import parse
from bkspark.storage.objects import Objects
from tests.integration.rig import LOG, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows

SILENT = WriterSettings(explicit_lac_ms=0)
CHAIN, STREAM, EMPTY = "chain", "stream", "empty"


@dataclass
class BucketRig(Rig):
    """A rig whose bookies and metadata lie at an unused ``place`` in a bucket."""

    place: str = ""
    bookie_count: int = 3

    def __post_init__(self) -> None:
        numbers = range(1, self.bookie_count + 1)
        self.urls = {f"bookie-{n}": f"{self.place}/b{n}" for n in numbers}
        self.uri = f"{self.place}/metadata"
        init_cluster(self.uri, list(self.urls.values()))

    def lose_rows(self, bookie_id: str, ledger_id: int) -> int:
        """Remove the bookie's entry logs of a ledger, past all that would notice; how many."""
        objects = Objects(parse(self.urls[bookie_id]))
        folder = layout.entries_folder(ledger_id)
        names = list(objects.entries(folder))
        for name in names:
            objects.delete(f"{folder}/{name}")
        return len(names)


def write_and_read(rig: BucketRig) -> None:
    """DataFrames, micro-batches, ledgers and logs; among them a recovery of each kind."""
    partitions = [partitions_of(3, 4, first=first) for first in (0, 10)]
    for each in partitions:
        rig.write(each)
    assert rig.rows() == [row for each in partitions for row in flat(each)]
    rig.log_name = STREAM
    Driver(rig).run(0, 1)
    Driver(rig).run(1, 2)
    assert settled_rows(rig) == expected(0, 1, 2)
    rig.log_name = LOG
    with BookKeeper(rig.uri) as keeper:
        _use_ledgers(keeper)
        _use_logs(keeper)


def _use_ledgers(keeper: BookKeeper) -> None:
    with keeper.create_ledger(settings=SILENT) as ledger:
        values = [f"entry {number}".encode() for number in range(5)]
        assert [ledger.append(value) for value in values] == [*range(5)]
    assert [entry.value for entry in keeper.open_ledger(ledger.ledger_id).read()] == values
    left = keeper.create_ledger(settings=SILENT)
    for value in values:
        left.append(value)
    left.release()
    assert keeper.recover_ledger(left.ledger_id).last_entry_id == 4
    keeper.delete_ledger(left.ledger_id)


def _use_logs(keeper: BookKeeper) -> None:
    log = keeper.create_log(CHAIN)
    with log.writer(settings=SILENT) as writer:
        writer.append(b"0")
        writer.roll()
        writer.append(b"1")
    left = log.writer(settings=SILENT)
    left.append(b"2")
    left.release()
    with log.writer(settings=SILENT) as writer:
        writer.append(b"3")
    assert [entry.value for entry in log.read()] == [b"0", b"1", b"2", b"3"]
    cursor = log.cursor("reader", 0)
    cursor.advance(2)
    log.keep(max_seconds=1000)
    log.truncate(1)
    log.seal()
    keeper.create_log(EMPTY)
    keeper.delete_log(EMPTY)


def maintain(rig: BucketRig) -> None:
    """Scrub, repair, compact, delete and collect."""
    rows = rig.rows()
    log = rig.log()
    assert log is not None
    ledger = rig.ledger(log.listed_ids[0])
    damaged = ledger.last_fragment.ensemble[0].bookie_id
    assert rig.lose_rows(damaged, ledger.ledger_id) > 0
    verbs.scrub(rig.uri)
    assert verbs.repair(rig.uri).left == []
    assert verbs.audit(rig.uri).left == []
    assert verbs.compact(rig.uri, log=LOG).done["ledgers"] == 2
    assert rig.rows() == rows
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_log(CHAIN)
    collected = verbs.collect(rig.uri, abandoned_after=0, no_lease=True)
    assert collected.left == []
    assert collected.done
    assert rig.rows() == rows
    with Cluster(rig.uri) as cluster:
        assert all(not status.problem for status in cluster.probe())
