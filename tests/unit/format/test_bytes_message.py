"""Messages of entries of bytes are those that Arrow makes, byte by byte."""

import random
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from bkspark.format import arrow_message, arrow_schema, bytes_message
from bkspark.format.bytes_message import message_of

SIZES = (0, 1, 7, 8, 9, 63, 64, 65, 1024, 70_000)


def of_arrow(values: Sequence[bytes]) -> bytes:
    rows = pa.record_batch([pa.array(values, pa.binary())], schema=arrow_schema.BYTES_SCHEMA)
    return rows.serialize().to_pybytes()


def groups() -> Iterator[list[bytes]]:
    draw = random.Random(1)
    for count in (1, 2, 3, 4, 7, 8, 50):
        for size in SIZES:
            yield [draw.randbytes(size)] * count
            yield [draw.randbytes(draw.choice(SIZES)) for _ in range(count)]


@pytest.fixture
def anew() -> Iterator[None]:
    """What was found out about Arrow is forgotten, also afterwards."""
    bytes_message._places.cache_clear()
    yield
    bytes_message._places.cache_clear()


def test_it_is_that_of_arrow() -> None:
    assert bytes_message._places() is not None
    for values in groups():
        assert message_of(values) == of_arrow(values), list(map(len, values))


def test_it_is_read_back() -> None:
    for values in groups():
        batch = arrow_message.decode_batch(
            message_of(values),
            arrow_schema.BYTES_SCHEMA,
            row_count=len(values),
            unpacked_bytes_max=0,
        )
        assert batch.column(0).to_pylist() == values


def test_arrow_makes_it_if_it_makes_messages_otherwise(
    anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later Arrow might say more in its metadata, such as the sum of what was written."""
    real = bytes_message._by_arrow

    def otherwise(values: Sequence[bytes]) -> bytes:
        return real(values) + b"%8d" % len(values)

    monkeypatch.setattr(bytes_message, "_by_arrow", otherwise)
    assert bytes_message._places() is None
    assert message_of([b"a"]) == otherwise([b"a"])
