"""Reads of a log whose first rows only its table has: as if they had not moved."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bkspark import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import NoSuchTableError, TableChangedError, TableUnavailableError
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.ordered_read import read_view_in_order
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.tier_rows import COMMITS_MAX, TierRows
from tests.integration.rig import LOG, SCHEMA, Rig, Row, flat, partitions_of
from tests.integration.tier.offloaded import WITH_PLACE, Offloaded


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A log of three ledgers with 20, 30 and 11 rows."""
    rig = Rig(tmp_path / "rig", bookie_count=3)
    for first, counts in ((0, (13, 7)), (20, (30,)), (50, (5, 6))):
        rig.write(partitions_of(*counts, first=first), (3, 2, 2))
    return rig


@pytest.fixture
def offloaded(rig: Rig, tmp_path: Path) -> Offloaded:
    """Two of the ledgers are in the table only."""
    offloaded = Offloaded(rig, tmp_path / "table")
    offloaded.copy(2)
    return offloaded


WRITTEN = flat(partitions_of(61))


def shown(rig: Rig, begin: int, end: int, task_bytes: int = 2**30, **options: Any) -> list[Row]:
    found = rig.batches(SliceReader(WITH_PLACE, **options), begin, end, task_bytes)
    return sorted(tuple(row.values()) for batch in found for row in batch.to_pylist())


class TestRowsAreTheSame:
    def test_all_of_them_in_tasks_of_any_size(self, rig: Rig, tmp_path: Path) -> None:
        before = shown(rig, 0, 61)
        offloaded = Offloaded(rig, tmp_path / "table")
        offloaded.copy(1)
        assert shown(rig, 0, 61) == before
        offloaded.copy(1)
        for task_bytes in (1, 200, 2**30):
            assert shown(rig, 0, 61, task_bytes) == before
        offloaded.copy(1)
        assert shown(rig, 0, 61) == before
        assert rig.rows() == [row[3:] for row in before]

    @pytest.mark.parametrize(("begin", "end"), [(0, 1), (19, 21), (49, 51), (50, 61), (3, 3)])
    def test_any_range_of_them(self, rig: Rig, tmp_path: Path, begin: int, end: int) -> None:
        before = shown(rig, 0, 61)
        Offloaded(rig, tmp_path / "table").copy(2)
        assert shown(rig, begin, end) == before[begin:end]

    def test_in_order_and_through_a_handle(self, offloaded: Offloaded) -> None:
        with Cluster(offloaded.rig.uri) as cluster:
            view = look_at(cluster, LOG, Password())
            read = read_view_in_order(cluster, view, None, None, Password())
            found = pa.concat_tables(read)
        assert found["_offset"].to_pylist() == list(range(61))
        with BookKeeper(offloaded.rig.uri) as bk, bk.open_log(LOG) as log:
            assert log.read_arrow().select(SCHEMA.names) == found.select(SCHEMA.names)

    def test_in_order_the_table_is_replayed_once_and_windows_end_at_its_end(
        self, offloaded: Offloaded, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        looks: list[int] = []
        monkeypatch.setattr(TierRows, "window_offsets", property(lambda _: 16))
        with Cluster(offloaded.rig.uri) as cluster:
            view = look_at(cluster, LOG, Password())
            read = read_view_in_order(cluster, view, 1, None, Password())
            assert read.tier is not None
            for table in read:
                looks.append(id(read.tier.snapshot))
                assert table.num_rows <= 16
        assert len(set(looks)) == 1
        assert len(looks) == 5

    def test_some_columns_of_them(self, offloaded: Offloaded) -> None:
        reader = SliceReader(pa.schema([("s", pa.string())]))
        batches = list(offloaded.rig.batches(reader, 0, 61))
        found = [row["s"] for batch in batches for row in batch.to_pylist()]
        assert sorted(map(str, found)) == sorted(str(row[1]) for row in WRITTEN)
        assert all(batch.schema.names == ["s"] for batch in batches)

    def test_a_column_that_the_log_got_later_is_null(self, offloaded: Offloaded) -> None:
        wanted = pa.schema([*SCHEMA, ("later", pa.float64())])
        found = offloaded.rig.batches(SliceReader(wanted), 0, 50)
        assert {row["later"] for batch in found for row in batch.to_pylist()} == {None}

    def test_no_bookie_is_asked_for_them(self, offloaded: Offloaded) -> None:
        for bookie_id in offloaded.rig.urls:
            offloaded.rig.lose(bookie_id)
        assert len(shown(offloaded.rig, 0, 50)) == 50


def optimized(offloaded: Offloaded) -> None:
    rows = offloaded.rows
    offloaded.table.rewrite(rows, list(offloaded.files))
    offloaded.table.vacuum()


def extended(offloaded: Offloaded) -> None:
    """Rows of others, which have no offset."""
    others = pa.table({"_offset": pa.nulls(2, pa.int64()), "n": [1, 2], "s": ["x", "y"]})
    offloaded.table.append(others)


class TestMaintenanceIsNoChange:
    @pytest.mark.parametrize("maintained", [optimized, extended])
    def test_rows_are_the_same(
        self, offloaded: Offloaded, maintained: Callable[[Offloaded], None]
    ) -> None:
        before = shown(offloaded.rig, 0, 61)
        maintained(offloaded)
        assert shown(offloaded.rig, 0, 61) == before

    def test_a_task_whose_files_were_vacuumed_goes_on(self, offloaded: Offloaded) -> None:
        before = shown(offloaded.rig, 0, 61)
        reader = SliceReader(WITH_PLACE)
        found = offloaded.rig.batches(reader, 0, 61)
        rows = next(found).to_pylist()
        optimized(offloaded)
        rows += [row for batch in found for row in batch.to_pylist()]
        assert sorted(tuple(row.values()) for row in rows) == before

    def test_too_many_commits_to_look_at_are_logged(
        self, offloaded: Offloaded, caplog: pytest.LogCaptureFixture
    ) -> None:
        for _ in range(COMMITS_MAX):
            offloaded.table.commit()
        assert len(shown(offloaded.rig, 0, 50)) == 50
        assert not caplog.records
        offloaded.table.commit()
        assert len(shown(offloaded.rig, 0, 50)) == 50
        assert f"{COMMITS_MAX + 1} commits" in caplog.text

    def test_commits_that_were_cleaned_up_are_logged(
        self, offloaded: Offloaded, caplog: pytest.LogCaptureFixture
    ) -> None:
        offloaded.table.commit()
        offloaded.table.commit()
        offloaded.table.checkpoint()
        offloaded.table.commit_file(offloaded.table.version - 1).unlink()
        with caplog.at_level(logging.WARNING):
            assert len(shown(offloaded.rig, 0, 50)) == 50
        assert "not known" in caplog.text


class TestChangesAreErrors:
    def test_rows_that_may_have_been_changed(self, offloaded: Offloaded) -> None:
        rows = offloaded.rows
        file = offloaded.files[0]
        changed = offloaded.table.write(rows.slice(0, 20))
        removed = offloaded.table.remove(file)
        version = offloaded.table.commit(removed, changed, operation="UPDATE", userName="ann")
        with pytest.raises(TableChangedError, match=f"version {version} .UPDATE by ann.") as error:
            shown(offloaded.rig, 0, 50)
        assert "--accept-changes" in str(error.value)

    def test_rows_that_are_not_there(self, offloaded: Offloaded) -> None:
        verified = TierRows(offloaded.rig.log() or pytest.fail("no log"))
        offloaded.table.commit(offloaded.table.remove(offloaded.files[0], data_change=False))
        with pytest.raises(TableChangedError, match="20 offsets are not in the table"):
            shown(offloaded.rig, 0, 50)
        assert verified.end == 50

    def test_rows_that_are_left_out_on_request(
        self, offloaded: Offloaded, caplog: pytest.LogCaptureFixture
    ) -> None:
        offloaded.table.commit(offloaded.table.remove(offloaded.files[0], data_change=False))
        found = shown(offloaded.rig, 0, 61, fails_on_loss=False)
        assert [row[0] for row in found] == list(range(20, 61))
        assert "left out 20 rows" in caplog.text

    def test_rows_that_are_there_twice(self, offloaded: Offloaded) -> None:
        offloaded.table.append(offloaded.rows.slice(3, 1))
        for fails_on_loss in (True, False):
            with pytest.raises(TableChangedError, match="offset 3 is there twice"):
                shown(offloaded.rig, 0, 50, fails_on_loss=fails_on_loss)

    def test_another_table(self, offloaded: Offloaded) -> None:
        offloaded.table.table_id = "0" * 32
        offloaded.table.commit(offloaded.table.metadata({"_offset": "long"}))
        with pytest.raises(TableChangedError, match="is another table"):
            shown(offloaded.rig, 0, 50)

    def test_an_older_copy_of_the_table(self, offloaded: Offloaded) -> None:
        offloaded.table.commit_file(offloaded.table.version).unlink()
        with pytest.raises(TableChangedError, match="an older copy"):
            shown(offloaded.rig, 0, 50)

    @pytest.mark.parametrize("more", [0, 1])
    def test_another_commit_as_the_verified_version(self, offloaded: Offloaded, more: int) -> None:
        """An older copy was put there, and written to until its version was as high."""
        table, texts = offloaded.table, ["other", *offloaded.parts[0]["s"].to_pylist()[1:]]
        index = offloaded.parts[0].schema.get_field_index("s")
        other = offloaded.parts[0].set_column(index, "s", pa.array(texts))
        last = table.live[offloaded.files[1]]
        table.commit_again(table.remove(offloaded.files[0]), table.write(other), {"add": last})
        for _ in range(more):
            table.commit(operation="OPTIMIZE")
        with pytest.raises(TableChangedError, match="another commit as version"):
            shown(offloaded.rig, 0, 50)

    def test_the_verified_commit_may_be_cleaned_up(self, offloaded: Offloaded) -> None:
        before = shown(offloaded.rig, 0, 61)
        offloaded.table.commit(operation="OPTIMIZE")
        offloaded.table.checkpoint()
        for version in range(offloaded.table.version):
            offloaded.table.commit_file(version).unlink()
        assert shown(offloaded.rig, 0, 61) == before

    def test_no_table(self, offloaded: Offloaded) -> None:
        offloaded.folder.rename(offloaded.folder.with_name("away"))
        with pytest.raises((NoSuchTableError, TableUnavailableError)):
            shown(offloaded.rig, 0, 50)
        assert len(shown(offloaded.rig, 50, 61)) == 11
