"""DataFrames on disks that take a few megabytes a second, and on one that takes nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from places import Place
from pyspark.sql import SparkSession
from slow_devices import SlowDevice, missing, slow_devices

from bkspark import verbs
from bkspark.cluster.cluster import Cluster, init_cluster

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]

ROW_BYTES = 120
SLOWEST = 1
"""Bytes a second: what this disk is given is not there in a test's time."""


@pytest.fixture
def devices(tmp_path: Path) -> Iterator[list[SlowDevice]]:
    with slow_devices(tmp_path, 3) as devices:
        yield devices


@pytest.fixture
def slow_place(spark: SparkSession, tmp_path: Path, devices: list[SlowDevice]) -> Place:
    """A cluster whose three bookies are each on a device of its own."""
    folders = [device.path / "bookie" for device in devices]
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [folder.as_uri() for folder in folders])
    return Place(spark, uri, folders)


def write(place: Place, row_count: int) -> None:
    rows = place.spark.range(0, row_count, 1, 4)
    place.write(rows.selectExpr("id", "repeat(uuid(), 3) as text"))


def copies_missing(place: Place) -> int:
    report = verbs.audit(place.uri)
    return report.counters["NUM_UNDER_REPLICATED_LEDGERS"]


@pytest.mark.parametrize(("bytes_per_second", "seconds"), [(1_500_000, 25), (4_000_000, 20)])
def test_slow_disks_hold_a_write_back_and_keep_all_copies(
    slow_place: Place, devices: list[SlowDevice], bytes_per_second: int, seconds: int
) -> None:
    for device in devices:
        device.throttle(bytes_per_second)
    row_count = bytes_per_second * seconds // ROW_BYTES
    write(slow_place, row_count)
    for device in devices:
        device.throttle(0)
    assert slow_place.read().count() == row_count
    assert copies_missing(slow_place) == 0
    with Cluster(slow_place.uri) as cluster:
        [ledger_id] = cluster.log("events").value.listed_ids
        assert len(cluster.ledger(ledger_id).value.fragments) == 1


def test_a_disk_that_hangs_is_given_up(slow_place: Place, devices: list[SlowDevice]) -> None:
    devices[0].throttle(SLOWEST)
    write(slow_place, 50_000)
    devices[0].throttle(0)
    assert slow_place.read().count() == 50_000
    assert copies_missing(slow_place) == 1
