"""Whatever files are taken away, an audit misses no copy that reading all records misses."""

import random
from collections.abc import Callable

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from tests.integration.rig import Rig, partitions_of
from tests.integration.waiting import wait_for_all_copies
from tests.thorough import always

from .reading_all import missing_replicas
from .scenes import audited, written

SIZES = ((3, 3, 2), (4, 2, 2), (5, 3, 2))


def fill(rig: Rig) -> None:
    """Ledgers of both kinds, one that a recovery closed, and a log's that was rolled."""
    for sizes in SIZES:
        written(rig, sizes)
        rig.write(partitions_of(11, 5), sizes, log_name=f"log{sizes[0]}")
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(ensemble_size=5)
        for number in range(7):
            handle.append(b"%d" % number)
        wait_for_all_copies(handle)
        handle.release()
        keeper.recover_ledger(handle.ledger_id)
        with keeper.create_log("wal").writer() as writer:
            writer.append(b"0")
            writer.roll()
            writer.append(b"1")


@pytest.mark.parametrize("seed", always(range(2), range(8)))
def test_what_is_taken_away_is_found(make_rig: Callable[..., Rig], seed: int) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=6)
    fill(rig)
    draw = random.Random(seed)
    for _ in range(6):
        bookie_id = draw.choice(sorted(rig.urls))
        names = [n for n in rig.names(bookie_id) if "/journal/" in n or "/entries/" in n]
        name = draw.choice(names)
        data = rig.file_bytes(bookie_id, name)
        kept = draw.choice([None, data[: draw.randrange(len(data))]])
        rig.replace_file(bookie_id, name, kept)
        with Cluster(rig.uri) as cluster:
            ledgers = [cluster.ledger(ledger_id).value for ledger_id in cluster.ledger_ids()]
            read = {
                (found.ledger_id, found.bookie_id) for found in missing_replicas(cluster, ledgers)
            }
        rows = audited(rig).details["copies"]
        assert {(row["ledger_id"], row["bookie_id"]) for row in rows} == read
