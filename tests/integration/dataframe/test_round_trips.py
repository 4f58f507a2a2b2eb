"""Whatever is accepted is readable and equal, and what is refused changes nothing.

Types and values are generated. Each history of a log writes them as a DataFrame, as a micro-batch
and through a handle; then a bookie is given up and repaired, and the log is compacted.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bkspark import BookKeeper, verbs
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_schema
from bkspark.format.recovery import LostBookie
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.spark.schema import expected_by_spark, from_stored, to_stored
from tests.integration.rig import Rig, compressed
from tests.integration.stream_driver import Driver

from .generated_rows import KINDS, Kind, exact, tables

EXAMPLES = int(os.environ.get("BKSPARK_EXAMPLES", "0"))
"""As many in the place of the usual number."""

STEPS = st.lists(st.sampled_from(["batch", "stream", "handle"]), min_size=1, max_size=3)


class Log:
    """A log, and what it must hold.

    Attributes:
        held: the values that were accepted, in order.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.driver = Driver(rig)
        self.held: list[Any] = []
        self._batch_id = count()

    def write(self, how: str, rows: pa.Table) -> bool:
        """Whether it was accepted."""
        before = self._seen()
        refusal = None
        try:
            getattr(self, how)(rows)
        except InvalidRequestError as error:
            refusal = str(error)
        if refusal is not None:
            sentence, *table = refusal.splitlines()
            assert sentence, "the sentence comes before the table of differing columns"
            assert not table or table[0].split(" | ")[0].strip() == "column"
            assert self._seen() == before
            return False
        self.held += _values(rows, self.schema().field("c").type)
        return True

    def batch(self, rows: pa.Table) -> None:
        schema = _spark_schema(rows.schema)
        self.rig.write([rows.to_batches()], (3, 3, 2), schema=schema)

    def stream(self, rows: pa.Table) -> None:
        self.driver.options["schema"] = _spark_schema(rows.schema)
        batch_id = next(self._batch_id)
        self.driver.commit(self.driver.planned(batch_id, [rows.to_batches()]))

    def handle(self, rows: pa.Table) -> None:
        with BookKeeper(self.rig.uri) as keeper:
            log = (
                None if self.rig.log() else keeper.create_log(self.rig.log_name, schema=rows.schema)
            )
            log = log or keeper.open_log(self.rig.log_name)
            try:
                with log.writer() as writer:
                    writer.append_many(rows)
            except InvalidRequestError:
                if not self.held and log.end_offset == 0:
                    keeper.delete_log(self.rig.log_name)  # it was made for this table
                raise

    def schema(self) -> pa.Schema:
        log = self.rig.log()
        assert log is not None
        return arrow_schema.decode(log.schema)

    def require_held(self) -> None:
        """Readers in Python and readers in Spark get what was accepted."""
        log = self.rig.log()
        if log is None:
            assert self.held == []
            return
        with BookKeeper(self.rig.uri) as keeper:
            found = keeper.open_log(log.name).read_arrow(0)
        found.validate(full=True)
        kind = self.schema().field("c").type
        assert _values(found, kind) == self.held
        wanted = expected_by_spark(from_stored(self.schema()))
        batches = list(self.rig.batches(SliceReader(wanted), 0, len(self.held)))
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema == wanted
        read = sorted(row for batch in batches for row in map(str, _values_of(batch, kind)))
        assert read == sorted(map(str, self.held))

    def _seen(self) -> object:
        log = self.rig.log()
        return None if log is None else (log.schema, len(self.held))


def _spark_schema(schema: pa.Schema) -> pa.Schema:
    """As a DataFrame has it, if one can have such columns."""
    with suppress(Exception):
        return to_stored(from_stored(schema))
    return schema


def _values(rows: pa.Table, kind: pa.DataType) -> list[Any]:
    return [value for batch in rows.to_batches() for value in _values_of(batch, kind)]


def _values_of(rows: pa.RecordBatch, kind: pa.DataType) -> list[Any]:
    column = rows.column("c")
    return list(map(exact, _cast(column, kind).to_pylist()))


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    try:
        return column if column.type == kind else column.cast(kind)
    except pa.ArrowInvalid:  # pyarrow casts no list that is null to a list of a fixed size
        return pa.array(column.to_pylist(), kind)


def repair(rig: Rig) -> None:
    """Give a bookie up for ever, and have its copies made elsewhere."""
    rig.lose("bookie-1")
    with Cluster(rig.uri) as cluster:
        record = cluster.bookies()["bookie-1"]
        cluster.upkeep.lost.create("bookie-1", LostBookie("bookie-1", (record.incarnation,)))
    verbs.repair(rig.uri, no_lease=True)


def play(rig: Rig, kind: Kind, data: st.DataObject, *, is_kept: bool) -> None:
    """One history of a log."""
    packed = data.draw(st.sampled_from(["none", "lz4", "zstd"]), label="compression")
    log = Log(replace_blocks(rig, packed))
    for how in data.draw(STEPS, label="steps"):
        log.write(how, data.draw(tables(kind), label="rows"))
        log.require_held()
    if log.rig.log() is not None and is_kept:
        repair(log.rig)
        log.require_held()
        with suppress(InvalidRequestError):
            verbs.compact(log.rig.uri, log=log.rig.log_name)
        log.require_held()


def replace_blocks(rig: Rig, packed: str) -> Rig:
    rig.blocks = compressed(rig.blocks, packed)
    return rig


@pytest.fixture
def new_rig(make_rig: Callable[..., Rig]) -> Callable[[], Rig]:
    return lambda: make_rig(kind="memory", metadata="memory", bookie_count=4)


QUICK = settings(
    max_examples=EXAMPLES or 15,
    derandomize=True,
    database=None,
    deadline=None,
    # Each example has a cluster of its own.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
LONG = settings(QUICK, max_examples=EXAMPLES or 500, derandomize=False)


@QUICK
@given(KINDS, st.data())
def test_what_is_accepted_is_readable_and_what_is_refused_changes_nothing(
    new_rig: Callable[[], Rig], kind: Kind, data: st.DataObject
) -> None:
    play(new_rig(), kind, data, is_kept=False)


@pytest.mark.thorough
@LONG
@given(KINDS, st.data())
def test_it_stays_so_through_repairs_and_compactions(
    new_rig: Callable[[], Rig], kind: Kind, data: st.DataObject
) -> None:
    play(new_rig(), kind, data, is_kept=True)


@pytest.mark.thorough
@LONG
@given(KINDS, KINDS, st.data())
def test_a_log_takes_other_types_only_if_all_of_it_stays_readable(
    new_rig: Callable[[], Rig], first: Kind, second: Kind, data: st.DataObject
) -> None:
    log = Log(new_rig())
    for how, kind in zip(data.draw(STEPS, label="steps"), (first, second, first)):
        log.write(how, data.draw(tables(kind), label="rows"))
        log.require_held()
