"""Headers that are alike but for numbers are decoded to the same values as by their JSON."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError
from bkspark.format import add_record, strict_json
from bkspark.format.add_record import PATIENCE, Headers
from bkspark.format.digest import canonical_json
from bkspark.protocol.ledger.metadata import CommitTimes
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    InlinePart,
    Made,
    confirmation,
    stripes_of_range,
)

LEDGER, TOKEN = 7, "c" * 32


def record(
    first: int, *, count: int = 1, quorum: Quorum = DEFAULT_QUORUM, lag: int = 1, size: int = 9
) -> AddRecord:
    last = first + count - 1
    digest = f"{first:08x}"
    stripes = stripes_of_range(first, last, quorum.stripe_count)
    return AddRecord(
        ledger_id=LEDGER,
        term=2,
        token=TOKEN,
        first_entry_id=first,
        last_entry_id=last,
        last_add_confirmed=max(-1, first - lag),
        length_bytes=first * 10,
        quorum=quorum,
        stored=(first - 1,) * quorum.ensemble_size,
        made=Made(0, CommitTimes(1_700_000_000_000, 1_700_000_000_000 + first % 10**9)),
        rows=tuple(InlinePart(stripe, size, digest) for stripe in stripes),
    )


def header_of(one: AddRecord) -> bytes:
    return canonical_json(add_record.to_json(one))


def by_json(header: bytes) -> AddRecord | None:
    try:
        return add_record.from_json(strict_json.loads(header, "header"), LEDGER)
    except CorruptDataError:
        return None


def taught(model: AddRecord) -> Headers:
    """Has a pattern of headers like that of ``model``."""
    made = Headers(LEDGER)
    for _ in range(PATIENCE):
        assert made.decode(header_of(model)) == model
    return made


def decoded(made: Headers, header: bytes) -> AddRecord | None:
    try:
        return made.decode(header)
    except CorruptDataError:
        return None


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Headers whose JSON was parsed."""
    parsed: list[bytes] = []
    parse = strict_json.loads

    def loads(header: bytes, what: str) -> strict_json.Fields:
        parsed.append(header)
        return parse(header, what)

    with monkeypatch.context() as patch:
        patch.setattr(add_record.strict_json, "loads", loads)
        yield parsed


@pytest.mark.parametrize("quorum", [DEFAULT_QUORUM, Quorum(1, 1, 1), Quorum(5, 3, 2)], ids=repr)
def test_those_that_are_alike_are_decoded_without_their_json(
    quorum: Quorum, long_ways: list[bytes]
) -> None:
    made = taught(record(0, count=2, quorum=quorum))
    long_ways.clear()
    for first in (2, 47, 10**16):
        other = record(first, count=2, quorum=quorum, lag=2, size=2**31 - 1)
        assert made.decode(header_of(other)) == other
    assert long_ways == []


def test_others_are_decoded_all_the_same() -> None:
    made = taught(record(1))
    said = confirmation(
        ledger_id=LEDGER,
        term=2,
        token=TOKEN,
        last_add_confirmed=4,
        length_bytes=7,
        quorum=DEFAULT_QUORUM,
    )
    later, marked = replace(record(3), term=3), replace(record(3), transactions={"app": 5})
    for other in (said, later, marked, record(1, count=9), replace(record(8), stored=(1, -1, 0))):
        for _ in range(3 * PATIENCE):
            assert made.decode(header_of(other)) == other


def test_patterns_are_not_made_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[AddRecord] = []
    pattern_of = add_record._pattern_of
    monkeypatch.setattr(add_record, "_pattern_of", lambda one: made.append(one) or pattern_of(one))
    reader = Headers(LEDGER)
    for number in range(1000):
        reader.decode(header_of(replace(record(1), term=1 + number)))
    assert 4 <= len(made) <= 8


NUMBERS = st.one_of(
    st.integers(-2, 12), st.integers(2**31 - 3, 2**31 + 3), st.integers(2**63 - 2, 2**63 + 2)
)
OPEN = ("first", "last", "lac", "length")
TIMES = ("began", "made")


@given(
    st.dictionaries(st.sampled_from((*OPEN, *TIMES, "stored", "stripe", "bytes", "term")), NUMBERS)
)
def test_whatever_stands_in_their_places_is_judged_as_in_their_json(
    changes: dict[str, int],
) -> None:
    made, fields = taught(record(3)), add_record.to_json(record(3))
    fields |= {name: changes[name] for name in (*OPEN, "term") if name in changes}
    fields["times"] = [changes.get(name, 5) for name in TIMES]
    fields["stored"][1] = changes.get("stored", 2)
    fields["parts"][0][0] = changes.get("stripe", 0)
    fields["parts"][0][1] = changes.get("bytes", 9)
    header = canonical_json(fields)
    assert decoded(made, header) == by_json(header)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace('"first":3', '"first":03'),
        lambda text: text.replace('"first":3', '"first":-0'),
        lambda text: text.replace('"first":3', '"first":3.0'),
        lambda text: text.replace('"first":3', '"first":true'),
        lambda text: text.replace('"first":3', '"first": 3'),
        lambda text: text.replace('"first":3', '"first":3,"first":3'),
        lambda text: text.replace('"00000003"', '"0000000Ä"'),
        lambda text: text.replace('"00000003"', "3"),
        lambda text: text.replace('"ledger":7', '"ledger":8'),
        lambda text: text + "\n",
        lambda text: text + text,
        lambda text: json.dumps(json.loads(text)),
    ],
)
def test_what_is_spelt_in_another_way_is_judged_by_its_json(change: Callable[[str], Any]) -> None:
    header = change(header_of(record(3)).decode()).encode()
    assert header != header_of(record(3))
    assert decoded(taught(record(3)), header) == by_json(header)
