"""Reading steps over bookies that are gone and files that are damaged, and says so once."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from places import Place, refusal
from pyspark.sql import SparkSession

from bkspark.errors import CorruptDataError
from tests.thorough import always

ROWS = 2000


def _flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _all_files(place: Place, bookie: int, harm: Callable[[Path], object]) -> None:
    for file in place.entry_logs(bookie):
        harm(file)


def _swap(place: Place, bookie: int) -> None:
    """Two good files, each under the other's name."""
    one, other = place.entry_logs(bookie)[:2]
    held = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(held)


DAMAGE: dict[str, Callable[[Place, int], object]] = {
    "bookie destroyed": lambda place, bookie: shutil.rmtree(place.bookies[bookie]),
    "bookie empty": lambda place, bookie: shutil.rmtree(place.bookies[bookie] / "ledgers"),
    "cookie of another": lambda place, bookie: shutil.copy(
        place.bookies[(bookie + 1) % 3] / "COOKIE", place.bookies[bookie] / "COOKIE"
    ),
    "files gone": lambda place, bookie: _all_files(place, bookie, Path.unlink),
    "bit flipped": lambda place, bookie: _all_files(place, bookie, _flip),
    "files cut": lambda place, bookie: _all_files(place, bookie, _cut),
    "files emptied": lambda place, bookie: _all_files(place, bookie, lambda f: f.write_bytes(b"")),
    "files swapped": _swap,
    "journal gone": lambda place, bookie: [
        file.unlink() for file in place.bookies[bookie].glob("ledgers/*/*/journal/*")
    ],
}


@pytest.fixture
def written(spark: SparkSession, place: Place) -> Place:
    place.write(spark.range(0, ROWS, 1, 2), rowsPerBlock=100)
    return place


@pytest.mark.parametrize("case", always(["files emptied"], DAMAGE))
def test_a_damaged_replica_is_stepped_over(written: Place, case):
    for bookie in (0, 2):  # one good copy is left
        DAMAGE[case](written, bookie)
    assert written.ids(maxBytesPerPartition=4000) == list(range(ROWS))


def test_a_single_ledger_is_read_past_a_destroyed_bookie_too(written: Place):
    (logged,) = written.log().ledgers
    shutil.rmtree(written.bookies[1])
    rows = written.read(None, ledgerId=logged.ledger_id).collect()
    assert sorted(row.id for row in rows) == list(range(ROWS))


def test_a_replica_stepped_over_is_said_once_per_process(spark, written: Place, conf):
    """The message is in Spark's log of its Python workers, and names the bookie and the file."""
    for bookie in (0, 1, 2):
        for file in written.entry_logs(bookie)[bookie % 2 :: 2]:
            _flip(file)
    with conf({"spark.sql.pyspark.worker.logging.enabled": "true"}):
        tasks = written.read().rdd.getNumPartitions()
        assert written.read().count() == ROWS
        logs = spark.tvf.python_worker_logs().filter("logger like 'bkspark%'").collect()
    assert logs
    assert max(Counter(entry.msg for entry in logs).values()) <= tasks
    for entry in logs:
        assert entry.level == "WARNING"
        assert re.match(
            r"skipped a copy: entry log [0-9a-f]{32}-[01] on bookie bookie-[123]: ", entry.msg
        )


def test_rows_that_no_replica_gives_are_an_error(written: Place):
    for bookie in range(3):
        _all_files(written, bookie, _flip)
    text = refusal(CorruptDataError, lambda: written.ids())
    assert text.startswith("no replica gives offset ")
    assert "bring back one of these bookies, or read with failOnDataLoss=false" in text


def test_rows_that_no_replica_gives_may_be_left_out(spark, written: Place, conf):
    lost = written.entry_logs(0)[0].name
    for bookie in range(3):
        for file in written.entry_logs(bookie):
            if file.name == lost:
                file.unlink()
    with conf({"spark.sql.pyspark.worker.logging.enabled": "true"}):
        found = written.ids(failOnDataLoss=False)
        logs = spark.tvf.python_worker_logs().filter("msg like 'left out %'").collect()
    assert found in (list(range(ROWS // 2)), list(range(ROWS // 2, ROWS)))
    assert any(f"left out {ROWS // 2} rows" in entry.msg for entry in logs)
