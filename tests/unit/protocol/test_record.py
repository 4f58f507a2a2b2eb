"""Where the rows of an attempt are, and a record that has none."""

from dataclasses import replace

import pytest

from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    InlinePart,
    confirmation,
    first_entry_of,
    later,
    stripe_row_count,
    stripes_of_range,
)


@pytest.mark.parametrize("stripe_count", range(1, 9))
def test_stripes_take_turns(stripe_count: int) -> None:
    for row_count in range(3 * stripe_count + 1):
        dealt = [0] * stripe_count
        for row in range(row_count):
            dealt[row % stripe_count] += 1
        counted = [stripe_row_count(row_count, s, stripe_count) for s in range(stripe_count)]
        assert counted == dealt


@pytest.mark.parametrize("stripe_count", [1, 3, 5])
def test_the_rows_of_all_stripes_are_a_dense_run_of_entries(stripe_count: int) -> None:
    row_count = 11
    logs = tuple(
        EntryLog("a" * 32, s, stripe_row_count(row_count, s, stripe_count), 1, 0, "")
        for s in range(stripe_count)
    )
    attempt = AttemptLogs(100, row_count, logs)
    entries = [
        first_entry_of(attempt, log) + k * stripe_count
        for log in logs
        for k in range(log.row_count)
    ]
    assert sorted(entries) == list(range(100, 111))


def test_a_confirmation_commits_nothing_and_goes_to_every_bookie() -> None:
    said = confirmation(
        ledger_id=7,
        term=2,
        token="a" * 32,
        last_add_confirmed=41,
        length_bytes=99,
        quorum=Quorum(4, 2, 2),
        transactions={"app": 3},
    )
    assert said.is_confirmation
    assert said.entry_count == 0
    assert (said.first_entry_id, said.last_entry_id, said.last_add_confirmed) == (42, 41, 41)
    assert {index for write_set in said.write_sets() for index in write_set} == {0, 1, 2, 3}
    assert [said.parts_of(index) for index in range(4)] == [(), (), (), ()]


def test_a_small_add_needs_the_write_sets_of_its_own_stripes() -> None:
    stripes = stripes_of_range(7, 8, 4)
    parts = tuple(InlinePart(stripe, 1, "0" * 8) for stripe in stripes)
    record = AddRecord(7, 1, "a" * 32, 7, 8, 6, 2, Quorum(4, 2, 2), (), rows=parts)
    assert stripes == [0, 3]
    assert record.write_sets() == ((0, 1), (3, 0))
    assert [[part.stripe for part in record.parts_of(n)] for n in range(4)] == [
        [0, 3],
        [0],
        [],
        [3],
    ]


def test_a_record_of_one_entry_is_no_confirmation() -> None:
    record = AddRecord(7, 1, "a" * 32, 0, 0, -1, 1, Quorum(3, 3, 2), ())
    assert (record.is_confirmation, record.entry_count) == (False, 1)


def test_which_record_ends_later() -> None:
    one, other = (AddRecord(0, 1, "0" * 32, 0, last, -1, 1, Quorum(1, 1, 1), ()) for last in (0, 1))
    assert later(one, other) is later(other, one) is other
    assert later(None, one) is later(one, None) is one
    assert later(None, None) is None


@pytest.mark.parametrize(("stored", "fully"), [((-1, 3, 3), -1), ((2, 3, 4), 1), ((7, 8, 9), 5)])
def test_what_all_members_had_when_it_was_written(stored: tuple[int, ...], fully: int) -> None:
    """It is never more than what is confirmed."""
    said = confirmation(
        *(),
        ledger_id=7,
        term=2,
        token="a" * 32,
        last_add_confirmed=5,
        length_bytes=99,
        quorum=Quorum(3, 3, 2),
        transactions={},
    )
    assert replace(said, stored=stored).last_add_fully_replicated == fully
