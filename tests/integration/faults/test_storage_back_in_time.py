"""What stays true of a bookie that comes back as it was some time ago, with its cookie."""

from copy import deepcopy

import pytest

from bkspark.admin import views
from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig, flat, partitions_of

Files = dict[str, memory.MemoryFile]


def snapshot(rig: Rig, bookie_id: str) -> Files:
    disk = memory.find_disk(rig.urls[bookie_id])
    assert disk is not None
    return deepcopy(disk.files)


def restore(rig: Rig, bookie_id: str, files: Files) -> None:
    disk = memory.find_disk(rig.urls[bookie_id])
    assert disk is not None
    disk.files = files


@pytest.mark.parametrize("restored", range(5))
def test_closed_ledgers_are_read_from_the_others_and_what_is_missing_is_shown(
    restored: int, memory_rig: Rig
) -> None:
    before = {bookie_id: snapshot(memory_rig, bookie_id) for bookie_id in memory_rig.urls}
    partitions = partitions_of(10, 8)
    ledger_id = memory_rig.write(partitions, (5, 3, 2)).ledger_id
    bookie_id = memory_rig.ledger(ledger_id).last_fragment.ensemble[restored].bookie_id
    restore(memory_rig, bookie_id, before[bookie_id])
    assert memory_rig.rows() == flat(partitions)
    with Cluster(memory_rig.uri) as cluster:
        missing = views.underreplicated(cluster, None)
    assert {row["bookie_id"] for row in missing} == {bookie_id}


@pytest.mark.parametrize("restored", [0, 1, 2])
def test_what_was_acknowledged_is_found_as_long_as_the_others_answer(
    restored: int, memory_rig: Rig
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    files = snapshot(memory_rig, writer.names[restored])
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    restore(memory_rig, writer.names[restored], files)
    assert writer.recover().last_entry_id == writer.acked[-1]
    with BookKeeper(memory_rig.uri) as keeper:
        found = [entry.value for entry in keeper.open_ledger(writer.ledger_id).read()]
    assert found == list(writer.sent.values())
