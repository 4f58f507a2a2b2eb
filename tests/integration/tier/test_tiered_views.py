"""What a view of a log tells of the rows that only its table has."""

from pathlib import Path

import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log.reading.log_view import LogView, look_at
from tests.integration.rig import LOG, Rig, partitions_of
from tests.integration.tier.offloaded import Offloaded


@pytest.fixture
def views(tmp_path: Path) -> tuple[LogView, LogView]:
    """The views of one log, before and after two of its three ledgers were offloaded."""
    rig = Rig(tmp_path / "rig", bookie_count=3)
    for first, count in ((0, 20), (20, 30), (50, 11)):
        rig.write(partitions_of(count, first=first), (3, 2, 2))
    with Cluster(rig.uri) as cluster:
        before = look_at(cluster, LOG, Password())
        Offloaded(rig, tmp_path / "table").copy(2)
        return before, look_at(cluster, LOG, Password())


def test_entries_and_payload_stay(views: tuple[LogView, LogView]) -> None:
    before, after = views
    assert after.record.freed == 50
    assert after.entry_count == before.entry_count == 61
    assert after.length_bytes == before.length_bytes
    assert after.bytes_in(0, 61) == before.bytes_in(0, 61)
    assert after.bytes_in(50, 61) == before.bytes_in(50, 61)
    assert 0 < after.bytes_in(10, 20) < after.bytes_in(0, 20)
    assert after.bytes_in(3, 3) == 0


def test_micro_batches_go_through_the_table_and_on(views: tuple[LogView, LogView]) -> None:
    _, after = views
    offset, size = 0, after.length_bytes // 7
    ends = []
    while offset < after.end_offset:
        end = after.offset_after(offset, size)
        assert offset < end
        assert after.bytes_in(offset, end) <= size
        ends.append(end)
        offset = end
    assert ends[-1] == 61
    assert len(ends) in (7, 8, 9)
    assert after.offset_after(0, 0) == 1
    assert after.offset_after(0, 2**60) == 61
