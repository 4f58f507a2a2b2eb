"""A record is stored only if a reader decodes it: bounds that are compared say the same."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookKeeperError, InvalidRequestError
from bkspark.format import add_record, journal, strict_json
from bkspark.format.digest import canonical_json
from bkspark.protocol.ledger.metadata import STEPS_MAX, CommitTimes, DigestSpec, TimeStep
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    InlinePart,
    Made,
)

DIGESTER = make_digester(DigestSpec(), Password())
QUORUMS = st.sampled_from([Quorum(3, 3, 2), Quorum(4, 2, 2), Quorum(1, 1, 1)])
NUMBERS = st.one_of(
    st.integers(-3, 9), st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, True])
)
PARTS = st.builds(
    InlinePart,
    st.integers(0, 3),
    st.sampled_from([-1, 0, 1, 9, 2**31 - 1, 2**31]),
    st.sampled_from(["deadbeef", "ü"]),
)


@st.composite
def records(draw: st.DrawFn) -> AddRecord:
    """Records, most of them possible but for a value or two."""
    quorum = draw(QUORUMS)
    first = draw(st.integers(0, 6))
    last = first + draw(st.integers(-1, 3))
    stripes = sorted({n % quorum.stripe_count for n in range(first, last + 1)})
    record = AddRecord(
        7,
        1,
        "c" * 32,
        first,
        last,
        first - 1,
        draw(st.integers(0, 9)),
        quorum,
        (-1,) * draw(st.sampled_from([0, quorum.ensemble_size, quorum.ensemble_size])),
        Made(),
        draw(st.dictionaries(st.text(max_size=2), st.integers(0, 9), max_size=2)),
        tuple(InlinePart(stripe, 9, "deadbeef") for stripe in stripes),
    )
    changes = {
        "first_entry_id": NUMBERS,
        "last_entry_id": NUMBERS,
        "last_add_confirmed": NUMBERS,
        "length_bytes": NUMBERS,
        "term": NUMBERS,
        "made": st.builds(Made, NUMBERS, st.builds(CommitTimes, NUMBERS, NUMBERS)),
        "transactions": st.dictionaries(st.text(max_size=2), NUMBERS, max_size=2),
        "rows": st.lists(PARTS, max_size=3).map(tuple),
        "stored": st.lists(st.integers(-2, 9), max_size=4).map(tuple),
    }
    for name in draw(st.lists(st.sampled_from(sorted(changes)), max_size=2)):
        record = replace(record, **{name: draw(changes[name])})
    return record


def is_read(record: AddRecord) -> bool:
    try:
        header = canonical_json(add_record.to_json(record))
        fields = strict_json.loads(header, "a record")
        return add_record.from_json(fields, 7) == record
    except BookKeeperError:
        return False


def is_stored(record: AddRecord) -> bool:
    try:
        journal.encode(record, DIGESTER)
    except InvalidRequestError:
        return False
    return True


@given(records())
def test_what_is_stored_is_what_a_reader_reads(record: AddRecord) -> None:
    assert is_stored(record) == is_read(record)


@pytest.mark.parametrize(("row_count", "index"), [(0, 50), (2, 50), (3, 50), (2, 100)])
def test_a_record_of_entry_logs_is_stored_if_it_is_read(row_count: int, index: int) -> None:
    log = EntryLog("a" * 32, 0, row_count, 100, index, "deadbeef")
    rows = (AttemptLogs(0, row_count, (log,)),)
    record = AddRecord(7, 1, "c" * 32, 0, 1, -1, 100, Quorum(3, 3, 2), (-1, -1, -1), rows=rows)
    assert is_stored(record) == is_read(record) == ((row_count, index) == (2, 50))
    large = replace(record, transactions={"app": 2**63}, rows=rows)
    assert is_stored(large) is is_read(large) is False


@pytest.mark.parametrize(("first_ms", "last_ms"), [(6, 5), (-1, 5), (5, 2**63), (True, 5)])
def test_times_that_no_reader_takes_are_not_stored(first_ms: int, last_ms: int) -> None:
    parts = (InlinePart(0, 9, "deadbeef"),)
    good = AddRecord(7, 1, "c" * 32, 0, 0, -1, 9, Quorum(3, 3, 2), (-1, -1, -1), rows=parts)
    record = replace(good, made=Made(0, CommitTimes(first_ms, last_ms)))
    assert is_stored(good) is is_read(good) is True
    assert is_stored(record) is is_read(record) is False


def with_steps(*steps: tuple[int, int]) -> AddRecord:
    """Of the entries 4 to 7, the last of them committed at 20."""
    logs = tuple(EntryLog("a" * 32, stripe, 4, 100, 50, "deadbeef") for stripe in range(1))
    rows = (AttemptLogs(4, 4, logs),)
    made = Made(0, CommitTimes(1, 20), tuple(TimeStep(*step) for step in steps))
    return AddRecord(7, 1, "c" * 32, 4, 7, 3, 99, Quorum(3, 3, 2), (-1, -1, -1), made, rows=rows)


def test_steps_of_a_record_come_back() -> None:
    for record in (with_steps(), with_steps((4, 20)), with_steps((4, 1), (5, 1), (7, 20))):
        assert is_stored(record) is is_read(record) is True


@pytest.mark.parametrize(
    "steps",
    [
        *([(5, 20)], [(3, 20)], [(4, 19)], [(4, 21)], [(4, 1), (8, 20)], [(4, 1), (4, 20)]),
        *([(4, 20), (5, 1)], [(4, 1), (6, 2), (5, 20)], [(4, -1), (5, 20)], [(4, 2**63)]),
    ],
)
def test_steps_that_contradict_their_record_are_not_stored(steps: list[tuple[int, int]]) -> None:
    record = with_steps(*steps)
    assert is_stored(record) is is_read(record) is False


def test_a_record_with_inline_rows_has_no_steps() -> None:
    parts = (InlinePart(0, 9, "deadbeef"),)
    record = replace(with_steps((4, 1), (6, 20)), rows=parts)
    assert is_stored(record) is is_read(record) is False


def test_a_record_has_a_bounded_number_of_steps() -> None:
    count = STEPS_MAX + 1
    log = EntryLog("a" * 32, 0, count, 100, 50, "deadbeef")
    made = Made(0, CommitTimes(), tuple(TimeStep(entry, 0) for entry in range(count)))
    rows = (AttemptLogs(0, count, (log,)),)
    record = AddRecord(
        *(7, 1, "c" * 32, 0, count - 1, -1, 9, Quorum(3, 3, 2), (-1, -1, -1), made), rows=rows
    )
    assert is_stored(record) is is_read(record) is False
    fewer = replace(record, made=made._replace(steps=made.steps[:-1]))
    assert is_stored(fewer) is is_read(fewer) is True
