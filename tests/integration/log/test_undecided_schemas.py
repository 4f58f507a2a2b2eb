"""A log that was created without a schema takes that of its first append."""

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError
from bkspark.log.batch import commit as batch_commit
from bkspark.log.streams import appending
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.integration.stream_driver import Driver, expected, settled_rows


@pytest.mark.parametrize("is_unbounded", [False, True])
def test_an_empty_log_takes_the_schema_of_its_first_append(
    memory_rig: Rig, is_unbounded: bool
) -> None:
    log = BookKeeper(memory_rig.uri).create_log(memory_rig.log_name, unbounded=is_unbounded)
    target, staging = appending.prepare(memory_rig.request())
    appending.commit(target, staging, memory_rig.tasks(target, partitions_of(3)))
    assert log.schema.names == SCHEMA.names
    assert settled_rows(memory_rig) == flat(partitions_of(3))
    with pytest.raises(InvalidRequestError, match="unexpected column value"):
        memory_rig.target(schema=pa.schema([("value", pa.binary())]))


def test_a_stream_may_be_first(memory_rig: Rig) -> None:
    log = BookKeeper(memory_rig.uri).create_log(memory_rig.log_name)
    assert Driver(memory_rig).run(0, 1) == [True, True]
    assert log.schema.names == SCHEMA.names
    assert settled_rows(memory_rig) == expected(0, 1)


def test_a_writer_of_bytes_decides_that_it_is_a_log_of_bytes(memory_rig: Rig) -> None:
    log = BookKeeper(memory_rig.uri).create_log(memory_rig.log_name)
    with log.writer() as writer:
        with pytest.raises(InvalidRequestError, match="unexpected column n"):
            memory_rig.target()
        writer.append(b"x")
    with pytest.raises(InvalidRequestError, match="unexpected column n"):
        memory_rig.target()
    assert log.schema.names == ["value"]


def test_of_two_first_appends_the_second_has_to_fit(memory_rig: Rig) -> None:
    BookKeeper(memory_rig.uri).create_log(memory_rig.log_name)
    other = pa.schema([("other", pa.int64())])
    first, second = memory_rig.target(), memory_rig.target(schema=other)
    rows = pa.record_batch([pa.array([1])], schema=other)
    batch_commit.commit(first, memory_rig.tasks(first, partitions_of(3)))
    with pytest.raises(InvalidRequestError, match="unexpected column other"):
        batch_commit.commit(second, memory_rig.tasks(second, [[rows]]))
    assert memory_rig.rows() == flat(partitions_of(3))
