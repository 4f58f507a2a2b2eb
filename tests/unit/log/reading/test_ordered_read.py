"""Reading in order without Spark."""

import shutil

import pyarrow as pa
import pytest

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError, NoSuchEntryError
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.creating import create_log
from bkspark.log.reading import ordered_read
from bkspark.log.reading.log_view import look_at
from bkspark.log.reading.ordered_read import read_ledger_in_order, read_view_in_order
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings


@pytest.fixture
def opened(small_cluster, numbers):
    small_cluster.append("a", [numbers(0, 30), numbers(30, 53)])
    small_cluster.append("a", [numbers(53, 60)])
    with Cluster(small_cluster.uri) as cluster:
        yield cluster


def read_log(cluster, begin, end):
    view = look_at(cluster, "a", Password())
    found = read_view_in_order(cluster, view, begin, end, Password())
    return found, pa.concat_tables(found)


@pytest.mark.parametrize("window", [1, 7, 60, 1000])
def test_rows_come_in_order_whatever_the_window(opened, numbers, monkeypatch, window):
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", window)
    _, table = read_log(opened, None, None)
    assert table["_offset"].to_pylist() == list(range(60))
    assert table.drop(["_offset"]).equals(numbers(0, 60))


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (5, 55), (52, 54), (59, 60)])
def test_a_range(opened, begin, end):
    _, table = read_log(opened, begin, end)
    assert table["n"].to_pylist() == list(range(begin, end))


def test_a_ledger_alone_counts_its_own_entries(opened):
    found = read_ledger_in_order(opened, opened.ledger(1).value, 2, 999, Password())
    table = pa.concat_tables(found)
    assert table["_entry_id"].to_pylist() == [2, 3, 4, 5, 6]
    assert table["n"].to_pylist() == [55, 56, 57, 58, 59]


@pytest.mark.parametrize(
    ("begin", "end", "error"), [(61, None, NoSuchEntryError), (5, 3, InvalidRequestError)]
)
def test_ranges_that_are_not_there(opened, begin, end, error):
    view = look_at(opened, "a", Password())
    with pytest.raises(error):
        read_view_in_order(opened, view, begin, end, Password())


def test_what_an_empty_log_has_is_said(opened):
    create_log(opened, "empty", LogSettings(Quorum(3, 3, 2)), VALUE_SCHEMA)
    view = look_at(opened, "empty", Password())
    with pytest.raises(NoSuchEntryError, match="is empty, its end is 0, and does not have 5"):
        read_view_in_order(opened, view, 5, None, Password())


def test_an_open_ledger_is_not_read(small_cluster, numbers, opened):
    target = small_cluster.prepare("a", numbers(0, 1).schema)
    with pytest.raises(InvalidRequestError, match="OPEN"):
        read_ledger_in_order(opened, opened.ledger(target.ledger_id).value, 0, None, Password())


def test_replicas_stepped_over_are_named_once(small_cluster, opened, monkeypatch):
    monkeypatch.setattr(ordered_read, "WINDOW_ROWS", 10)
    lost = opened.ledger(0).value.last_fragment.ensemble[1].bookie_id
    shutil.rmtree(small_cluster.bookie(lost))
    found, table = read_log(opened, None, None)
    assert table["n"].to_pylist() == list(range(60))
    assert [fault.bookie_id for fault in found.faults] == [lost]
