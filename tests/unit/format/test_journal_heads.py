"""A journal walked by its frames' prefixes and headers alone."""

import pytest

from bkspark.format import journal
from bkspark.format.add_record import Headers
from bkspark.format.digest import Digester, new_spec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, confirmation

PLAIN = Digester(new_spec("CRC32C", None))
LOCKED = Digester(new_spec("MAC", "secret"), "secret")
POSITION = 1000


def said(last_add_confirmed: int = 4) -> AddRecord:
    return confirmation(
        ledger_id=7,
        term=1,
        token="a" * 32,
        last_add_confirmed=last_add_confirmed,
        length_bytes=10,
        quorum=Quorum(3, 3, 2),
    )


def framed(digester: Digester) -> bytes:
    pieces = journal.encode(said(), digester).frame(0, POSITION)
    return b"".join(bytes(piece) for piece in pieces)


def head_of(
    data: bytes, digester: Digester, begin: int = 0, *, ledger_id: int = 7, position: int = POSITION
) -> AddRecord | None:
    return journal.decode_head(data, begin, digester, Headers(ledger_id), position=position)


@pytest.mark.parametrize("digester", [PLAIN, LOCKED], ids=repr)
def test_a_head_tells_the_record_and_a_prefix_the_length(digester: Digester) -> None:
    data = framed(digester)
    assert journal.frame_length(data, 0, position=POSITION) == len(data)
    assert journal.frame_length(b"xx" + data, 2, position=POSITION) == len(data)
    assert head_of(data, digester) == said()
    assert head_of(b"xx" + data, digester, 2) == said()
    head = data[: journal.head_length(data, 0)]
    assert head_of(head, digester) == said()


@pytest.mark.parametrize("digester", [PLAIN, LOCKED], ids=repr)
def test_no_flipped_bit_of_a_head_passes(digester: Digester) -> None:
    data = framed(digester)
    head_length = journal.head_length(data, 0)
    for at in range(head_length):
        for bit in range(8):
            flipped = data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
            assert head_of(flipped, digester) is None, (at, bit)
            if at < journal.PREFIX_BYTES:
                assert journal.frame_length(flipped, 0, position=POSITION) is None


def test_a_head_is_bound_to_its_place() -> None:
    data = framed(PLAIN)
    assert head_of(data, PLAIN, position=POSITION + 1) is None
    assert head_of(data, PLAIN, ledger_id=8) is None
    assert journal.frame_length(data, 0, position=0) is None


def test_what_is_cut_is_no_head() -> None:
    data = framed(PLAIN)
    for length in range(journal.head_length(data, 0)):
        assert head_of(data[:length], PLAIN) is None
    for length in range(journal.PREFIX_BYTES):
        assert journal.frame_length(data[:length], 0, position=POSITION) is None
    assert journal.frame_length(data, len(data), position=POSITION + len(data)) is None


def test_another_password_reads_no_head() -> None:
    other = Digester(new_spec("MAC", "other"), "other")
    assert head_of(framed(LOCKED), other) is None
