"""Bookies that fail while a DataFrame is written, and commits whose answer is lost."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from places import LOG, Place, make_place, on_row, refusal
from pyspark.sql import DataFrame, SparkSession

from bkspark.errors import NotEnoughBookiesError
from bkspark.spark.options import parse
from bkspark.spark.writer import AttemptMessage, BookKeeperWriter

ROWS = 4000
SMALL_BATCHES = {"spark.sql.execution.arrow.maxRecordsPerBatch": "100"}


def _wide_rows(spark: SparkSession) -> DataFrame:
    """Enough for several batches in every buffer between here and a bookie."""
    return spark.range(0, ROWS, 1, 2).selectExpr("id", "repeat(uuid(), 60) as text")


def _interrupted(place: Place, action: Callable[[], object]) -> DataFrame:
    """``_wide_rows``; ``action`` runs once when a part of them is being written to bookies."""
    bookies = place.bookies

    def act_once_writing() -> None:
        for _ in range(1000):
            if any(entry for bookie in bookies for entry in bookie.glob("ledgers/*/*/entries/*")):
                action()
                return
            time.sleep(0.01)
        raise AssertionError("nothing is written")

    rows = _wide_rows(place.spark)
    return rows.mapInArrow(on_row(ROWS - 100, act_once_writing), rows.schema)


def destroy(bookie: Path) -> None:
    """At one instant: while files go one by one, a writer makes folders anew between them."""
    gone = bookie.rename(bookie.with_name(f"{bookie.name}-destroyed"))
    shutil.rmtree(gone, ignore_errors=True)


def _needs_mounts() -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Callable[[str, int], Path]]:
    """``mounted(name, bytes)`` makes a file system of its own for a bookie."""
    _needs_mounts()
    mounts: list[Path] = []

    def mount(name: str, size: int) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"mounting does not work here: {done.stderr.strip()}")
        mounts.append(folder)
        return folder

    yield mount
    for folder in mounts:
        subprocess.run(["umount", "-l", str(folder)], check=True)


# One bookie fails.


@pytest.mark.thorough
def test_a_spare_steps_in_for_a_bookie_that_vanishes(spark, wide_place: Place, conf):
    bookies = list(wide_place.bookies)

    def destroy_one_that_is_written() -> None:
        for bookie in bookies:
            if any(bookie.glob("ledgers/*/*/entries/*")):
                destroy(bookie)
                return

    with conf(SMALL_BATCHES):
        rows = _interrupted(wide_place, destroy_one_that_is_written)
        wide_place.write(rows, rowsPerBlock=50)
    assert wide_place.ids() == list(range(ROWS))
    gone = {bookie.name for bookie in bookies if not bookie.exists()}
    assert len(gone) == 1
    (fragment,) = wide_place.read(view="fragments").collect()
    assert not gone & set(fragment.ensemble)
    assert wide_place.read(view="underreplicated").count() == 0


def test_without_a_spare_the_ack_quorum_is_enough(spark, place: Place, conf):
    bookies = place.bookies
    with conf(SMALL_BATCHES):
        place.write(_interrupted(place, lambda: destroy(bookies[0])))
    assert place.ids() == list(range(ROWS))
    place.write(spark.range(5), "later", writeQuorumSize=2, ensembleSize=2)
    assert place.ids("later") == list(range(5))


# Too many fail.


def test_without_an_ack_quorum_nothing_is_committed(spark, wide_place: Place, conf):
    bookies = list(wide_place.bookies)

    def destroy_all_but_one() -> None:
        for bookie in bookies[1:]:
            destroy(bookie)

    with conf(SMALL_BATCHES):
        rows = _interrupted(wide_place, destroy_all_but_one)
        text = refusal(NotEnoughBookiesError, lambda: wide_place.write(rows, rowsPerBlock=50))
    assert "add bookies or bring back the failed ones" in text
    assert not wide_place.has_log()


def test_a_write_is_not_begun_with_too_few_bookies(spark, place: Place):
    for bookie in place.bookies[1:]:
        bookie.rename(f"{bookie}-away")
    text = refusal(NotEnoughBookiesError, lambda: place.write(spark.range(5)))
    assert "2 bookies are needed but only 1 can be used" in text
    assert not place.has_log()
    Path(f"{place.bookies[1]}-away").rename(place.bookies[1])
    text = refusal(NotEnoughBookiesError, lambda: place.write(spark.range(5), strict="true"))
    assert "3 bookies are needed but only 2 can be used" in text
    assert not place.has_log()
    place.write(spark.range(5))
    assert place.ids() == list(range(5))
    (ledger,) = place.read(view="ledgers").collect()
    assert (ledger.ensemble_size, ledger.write_quorum_size, ledger.ack_quorum_size) == (2, 2, 2)


# Disks that fill up or turn read-only.


def test_a_spare_steps_in_for_a_disk_that_fills_up(spark, tmp_path, mounted, conf):
    disks = [mounted(f"disk{number}", 2**26) for number in range(4)]
    place = make_place(spark, tmp_path, bookies=disks)

    def fill_one_that_is_written() -> None:
        used = next(disk for disk in disks if any(disk.glob("ledgers/*/*/entries/*")))
        with suppress(OSError), open(used / "filler", "wb", buffering=0) as filler:
            while filler.write(bytes(2**16)):
                pass

    with conf(SMALL_BATCHES):
        place.write(_interrupted(place, fill_one_that_is_written), rowsPerBlock=50)
    assert place.ids() == list(range(ROWS))
    (full,) = (number for number, disk in enumerate(disks) if (disk / "filler").exists())
    (fragment,) = place.read(view="fragments").collect()
    assert f"bookie-{full + 1}" not in fragment.ensemble
    assert place.read(view="underreplicated").count() == 0


def test_full_disks_everywhere_are_an_error_and_nothing_is_committed(spark, tmp_path, mounted):
    place = make_place(spark, tmp_path, bookies=[mounted(f"s{n}", 2**22) for n in range(3)])
    place.write(spark.range(10))
    text = refusal(NotEnoughBookiesError, lambda: place.write(_wide_rows(spark), "other"))
    assert "No space left on device" in text
    assert not place.has_log("other")
    assert place.ids() == list(range(10))


def _remount(folder: Path, how: str) -> None:
    command = ["mount", "-o", f"remount,{how}", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def test_a_read_only_disk_is_left_out_and_its_rows_stay_readable(spark, tmp_path, mounted):
    disks = [mounted(f"disk{number}", 2**26) for number in range(4)]
    place = make_place(spark, tmp_path, bookies=disks)
    place.write(spark.range(10), ensembleSize=4)
    _remount(disks[0], "ro")
    place.write(spark.range(10, 20), "other")
    assert place.ids() == list(range(10))
    assert place.ids("other") == list(range(10, 20))
    (fragment,) = place.read("other", view="fragments").collect()
    assert "bookie-1" not in fragment.ensemble


def test_read_only_disks_everywhere_are_an_error_and_nothing_is_committed(spark, tmp_path, mounted):
    disks = [mounted(f"disk{number}", 2**26) for number in range(3)]
    place = make_place(spark, tmp_path, bookies=disks)
    for disk in disks:
        _remount(disk, "ro")
    refusal(NotEnoughBookiesError, lambda: place.write(spark.range(10)))
    assert not place.has_log()


# Commits whose answer is lost, and late ones.


def _writer(place: Place) -> tuple[BookKeeperWriter, AttemptMessage]:
    """A planned write with one finished task."""
    options = parse({"metadataServiceUri": place.uri, "path": LOG})
    writer = BookKeeperWriter(options, place.spark.range(1).schema, overwrite=False)
    batch = pa.record_batch({"id": pa.array(range(10), pa.int64())})
    message = writer.write(iter([batch]))
    assert isinstance(message, AttemptMessage)
    return writer, message


def test_an_abort_after_a_commit_leaves_its_rows(spark, place: Place):
    """Spark aborts when the answer of a commit that succeeded is lost."""
    writer, message = _writer(place)
    writer.commit([message])
    before = {number: place.entry_logs(number) for number in range(3)}
    writer.abort([message])
    writer.abort([None])
    assert place.ids() == list(range(10))
    assert {number: place.entry_logs(number) for number in range(3)} == before


def test_a_commit_that_wakes_after_its_abort_adds_nothing(spark, place: Place):
    place.write(spark.range(3))
    writer, message = _writer(place)
    writer.abort([message])
    with pytest.raises(Exception, match="was dropped from log events"):
        writer.commit([message])
    assert place.ids() == [0, 1, 2]


def test_an_abort_deletes_no_files(spark, place: Place):
    writer, message = _writer(place)
    before = place.entry_logs(0)
    writer.abort([message])
    assert place.entry_logs(0) == before != []
    assert not place.has_log()
