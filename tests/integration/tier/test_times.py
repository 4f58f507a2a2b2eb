"""Reads by time over rows that only the log's table has."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from bkspark import environment
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import NoSuchEntryError
from bkspark.log import truncation
from tests.integration.rig import LOG, Rig, partitions_of
from tests.integration.tier.offloaded import Offloaded

T = 1_700_000_000_000
FOUND = {-5: 0, 0: 0, 1: 20, 100: 20, 101: 50, 200: 50, 201: 61, 300: 61, 301: 72}


@pytest.mark.parametrize("moved", [0, 1, 2, 3, 4])
def test_a_time_is_found_in_the_table_and_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    rig = Rig(tmp_path / "rig", bookie_count=3)
    sizes = ((0, 20, 0), (20, 30, 100), (50, 11, 200), (61, 11, 300))
    for first, count, ms in sizes:
        monkeypatch.setattr(environment, "now_ms", lambda at=T + ms: at)
        rig.write(partitions_of(count, first=first), (3, 2, 2))
    monkeypatch.undo()
    offloaded = Offloaded(rig, tmp_path / "table")
    for _ in range(moved):
        offloaded.copy(1)
    with BookKeeper(rig.uri) as bk, bk.open_log(LOG) as log:
        for ms, offset in FOUND.items():
            at = datetime.fromtimestamp((T + ms) / 1000, UTC)
            assert log.offset_at(at) == offset, ms


def test_a_version_below_the_ledgers_says_how_its_rows_are_read(tmp_path: Path) -> None:
    rig = Rig(tmp_path / "rig", bookie_count=3)
    for first in (0, 20, 40):
        rig.write(partitions_of(20, first=first), (3, 2, 2))
    Offloaded(rig, tmp_path / "table").copy(2)
    with Cluster(rig.uri) as cluster:
        assert cluster.log(LOG).value.end_of_version(2) == 60
        told = "the oldest version that can be read is 2; .* are read by offset or by time"
        with pytest.raises(NoSuchEntryError, match=told):
            cluster.log(LOG).value.end_of_version(1)
        truncation.truncate(cluster, LOG, 50)
        with pytest.raises(NoSuchEntryError) as gone:
            cluster.log(LOG).value.end_of_version(1)
        assert "table" not in str(gone.value)
