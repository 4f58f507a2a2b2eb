"""Where the rows of an attempt are."""

import pytest

from bkspark.protocol.record import AttemptLogs, EntryLog, first_entry_of, stripe_row_count


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
