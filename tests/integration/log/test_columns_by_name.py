"""Producers with other columns, or columns in another order, share one log."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import bkspark
from bkspark.log.streams import appending
from tests.integration.rig import Rig, Row
from tests.integration.stream_driver import Driver, settled_rows, the_log

WIDE = pa.schema([("n", pa.int64()), ("s", pa.string()), ("t", pa.list_(pa.int8()))])
Append = Callable[[Rig, pa.RecordBatch, bool], None]


def by_batch(rig: Rig, rows: pa.RecordBatch, merges: bool) -> None:
    rig.write([[rows], []], schema=rows.schema, merges_schema=merges)


def by_append(rig: Rig, rows: pa.RecordBatch, merges: bool) -> None:
    request = rig.request(schema=rows.schema, merges_schema=merges, is_unbounded=True)
    target, staging = appending.prepare(request)
    appending.commit(target, staging, rig.tasks(target, [[rows], []]))


def by_stream(rig: Rig, rows: pa.RecordBatch, merges: bool) -> None:
    options = {"schema": rows.schema, "merges_schema": merges}
    driver = Driver(rig, f"query of {rows.schema.names}", options=options)
    assert driver.commit(driver.planned(0, [[rows], []]))


ways = pytest.mark.parametrize("append", [by_batch, by_append, by_stream])


def some(**columns: Sequence[object]) -> pa.RecordBatch:
    kinds = {"n": pa.int64(), "s": pa.string(), "t": pa.list_(pa.int8()), "u": pa.int8()}
    arrays = [pa.array(values, kinds[name.lower()]) for name, values in columns.items()]
    return pa.record_batch(arrays, names=list(columns))


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path / "cluster", "memory")


@ways
def test_order_and_case_do_not_matter_and_missing_columns_are_null(
    rig: Rig, append: Append
) -> None:
    append(rig, some(n=[1], s=["a"], t=[[1]]), False)
    append(rig, some(t=[[2]], s=["b"], n=[2]), False)
    append(rig, some(S=["c"], N=[3], T=[None]), False)
    append(rig, some(s=["d"]), False)
    rows: list[Row] = [(1, "a", [1]), (2, "b", [2]), (3, "c", None), (None, "d", None)]
    assert settled_rows(rig) == rows
    names = pa.ipc.read_schema(pa.py_buffer(the_log(rig).schema)).names
    assert names == ["n", "s", "t"]


@pytest.mark.parametrize(
    ("append", "other"),
    [
        (by_batch, by_batch),
        (by_batch, by_stream),
        (by_stream, by_batch),
        (by_stream, by_stream),
        (by_append, by_append),
    ],
)
def test_producers_go_on_after_one_of_them_has_added_a_column(
    rig: Rig, append: Append, other: Append
) -> None:
    append(rig, some(n=[1], s=["a"]), False)
    other(rig, some(u=[9], N=[2]), True)
    append(rig, some(s=["c"], n=[3]), False)
    other(rig, some(n=[4], s=["d"], u=[8]), False)
    append(rig, some(s=["e"]), True)
    rows: list[Row] = [(1, "a", None), (2, None, 9), (3, "c", None), (4, "d", 8), (None, "e", None)]
    assert settled_rows(rig) == rows


def test_a_tail_has_all_columns_of_the_log(rig: Rig) -> None:
    """Whoever makes it: so the next producer need not make another."""
    by_stream(rig, some(n=[1], s=["a"]), False)
    late = Driver(rig, "late", options={"schema": some(n=[2]).schema})
    batch = late.planned(0, [[some(n=[2])]])
    by_batch(rig, some(n=[3], u=[9]), True)
    assert late.commit(batch)
    by_stream(rig, some(s=["d"], n=[4], u=[8]), False)
    by_stream(rig, some(S=["e"]), False)
    assert (len(the_log(rig).ledgers), len(the_log(rig).tail)) == (2, 1)
    rows = [(1, "a", None), (3, None, 9), (2, None, None), (4, "d", 8), (None, "e", None)]
    assert settled_rows(rig) == rows


def test_producers_with_fewer_columns_share_the_tail(rig: Rig) -> None:
    by_stream(rig, some(n=[1], s=["a"]), False)
    by_stream(rig, some(n=[2]), False)
    by_stream(rig, some(s=["c"], n=[3]), False)
    assert len(the_log(rig).tail) == 1
    assert not the_log(rig).ledgers


def test_tables_of_handles_are_matched_by_name(rig: Rig) -> None:
    client = bkspark.BookKeeper(rig.uri)
    client.create_log("tables", schema=WIDE)
    with client.open_log("tables").writer() as writer:
        writer.append_many(pa.table(some(t=[[1]], N=[1], s=["a"])))
        writer.append_many(pa.table(some(s=["b"])))
    found = client.open_log("tables").read_arrow().select(WIDE.names)
    assert found.to_pylist() == [
        {"n": 1, "s": "a", "t": [1]},
        {"n": None, "s": "b", "t": None},
    ]
