"""Tables in a bucket are read by the requests that they need, and what is unknown is not absent."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark.errors import (
    CorruptDataError,
    NoSuchTableError,
    TableChangedError,
    TableUnavailableError,
)
from bkspark.storage import folders
from bkspark.table.reading import read_range
from bkspark.table.table import DeltaTable, open_table
from tests.kit.delta import HandTable
from tests.kit.s3 import S3Proxy, S3Server

pytestmark = pytest.mark.thorough

COLUMNS = {"_offset": "long", "k": "long", "v": "string"}
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.string())])


def rows_of(begin: int, end: int) -> pa.Table:
    numbers = pa.array(range(begin, end), pa.int64())
    return pa.table({"_offset": numbers, "k": numbers, "v": [f"v{n}" for n in range(begin, end)]})


class InBucket:
    """A table that is written by hand to a folder, and copied to a bucket."""

    def __init__(self, folder: Path, server: S3Server, back_door: Any) -> None:
        self.hand = HandTable(folder / "table")
        self.hand.create(COLUMNS)
        self.url = f"{server.url()}/a b"
        self._back_door = back_door
        self._there = set[str]()

    @property
    def table(self) -> DeltaTable:
        return open_table(self.url.replace("s3:", "s3a:"))

    def copy(self) -> None:
        """Make the bucket like the folder."""
        files = {str(p.relative_to(self.hand.path)): p for p in self.hand.path.rglob("*")}
        for name in self._there - set(files):
            self._back_door.remove(self.url, name)
        for name, file in files.items():
            if file.is_file() and (name not in self._there or "_last" in name):
                self._back_door.put(self.url, name, file.read_bytes())
        self._there = {name for name, file in files.items() if file.is_file()}


@pytest.fixture
def there(tmp_path: Path, server: S3Server, proxy: S3Proxy, back_door: Any) -> InBucket:
    """Offsets 0 to 99 in one file, whose name has a blank and a percent sign."""
    table = InBucket(tmp_path, server, back_door)
    table.hand.append(rows_of(0, 100), name="part a%20b.parquet", row_group_size=30)
    table.copy()
    proxy.heal()
    return table


def read(table: DeltaTable, begin: int, end: int) -> list[int]:
    snapshot = table.snapshot()
    batches = read_range(table, snapshot, begin, end, SCHEMA, snapshot.columns)
    return [k for batch in batches for k in batch.column("k").to_pylist()]


def test_a_table_in_a_bucket_is_read(there: InBucket) -> None:
    assert there.table.url == there.url
    assert read(there.table, 0, 100) == list(range(100))
    assert read(there.table, 25, 31) == list(range(25, 31))


def test_a_read_makes_few_requests(there: InBucket, proxy: S3Proxy) -> None:
    """The hint and a listing, two commits; the end of the file, and each wanted row group."""
    assert read(there.table, 30, 90) == list(range(30, 90))
    kinds = [path.partition("?")[0].rpartition("/")[2] for _, path, _ in proxy.seen]
    assert kinds[0] == "_last_checkpoint"
    assert len(kinds) == 1 + 1 + 2 + 1 + 2


def test_a_listing_begins_at_the_last_checkpoint(there: InBucket, proxy: S3Proxy) -> None:
    there.hand.checkpoint()
    there.hand.append(rows_of(100, 110))
    there.copy()
    proxy.heal()
    assert [file.first_offset for file in there.table.snapshot().files] == [0, 100]
    [listing] = [path for _, path, _ in proxy.seen if "list-type" in path]
    assert "start-after=" in listing
    # the hint, the listing, the checkpoint's end and its actions, the commit after it
    assert len(proxy.seen) <= 3 + 5


def test_columns_that_are_not_wanted_are_not_fetched(
    there: InBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched = []
    fetch = folders.RangedFile.fetch

    def noted(file: folders.RangedFile, ranges: Any) -> None:
        fetched.append(len(ranges))
        fetch(file, ranges)

    monkeypatch.setattr(folders.RangedFile, "fetch", noted)
    table, snapshot = there.table, there.table.snapshot()
    assert sum(b.num_rows for b in read_range(table, snapshot, 0, 30, pa.schema([]), {})) == 30
    assert fetched == [1]


def test_no_table_is_said_and_no_answer_is_not_no_table(
    there: InBucket, server: S3Server, proxy: S3Proxy
) -> None:
    with pytest.raises(NoSuchTableError, match="there is no Delta table at s3://"):
        open_table(server.url()).snapshot()
    proxy.fail("GET", status=503, code="SlowDown")
    with pytest.raises(TableUnavailableError, match="the store answered 503"):
        there.table.snapshot()
    proxy.heal()
    proxy.fail("GET", ".json", status=403, code="AccessDenied")
    with pytest.raises(TableUnavailableError, match=r"0\.json: access was refused"):
        there.table.snapshot()
    proxy.heal()
    proxy.fail("GET", "part", status=500)
    with pytest.raises(TableUnavailableError, match="the store answered 500"):
        read(there.table, 0, 100)


def test_an_answer_that_is_lost_is_asked_for_again(there: InBucket, proxy: S3Proxy) -> None:
    proxy.fail("GET", "part", times=3)
    assert read(there.table, 0, 100) == list(range(100))


def test_a_missing_bucket_is_not_a_missing_table(there: InBucket) -> None:
    with pytest.raises(TableUnavailableError, match="the bucket does not exist"):
        open_table("s3://no-such-bucket-here/table").snapshot()
    assert there.table.snapshot().version == 1


def test_a_read_goes_on_in_the_newest_version(there: InBucket) -> None:
    """A file is removed between two row groups, which are two requests."""
    table, snapshot = there.table, there.table.snapshot()
    batches = read_range(table, snapshot, 0, 100, SCHEMA, snapshot.columns)
    found = next(batches).column("k").to_pylist()
    there.hand.rewrite(rows_of(0, 100), list(there.hand.live))
    there.hand.vacuum()
    there.copy()
    found += [k for batch in batches for k in batch.column("k").to_pylist()]
    assert found == list(range(100))


def test_a_file_of_another_length_is_damaged(there: InBucket, back_door: Any) -> None:
    back_door.put(there.url, "part a%20b.parquet", b"x" * 100)
    with pytest.raises(CorruptDataError, match="is damaged: part a%20b"):
        read(there.table, 0, 100)


def test_a_live_file_that_is_gone_is_named(there: InBucket, back_door: Any) -> None:
    back_door.remove(there.url, "part a%20b.parquet")
    with pytest.raises(TableChangedError, match=r"version 1 needs it: part a%20b\.parquet"):
        read(there.table, 0, 100)
