"""What records say that bookies had, and who lacks it."""

from dataclasses import replace

import pytest

from bkspark.protocol.ledger.evidence import lacking, stored, together
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import confirmation

SAID = confirmation(
    ledger_id=7,
    term=1,
    token="a" * 32,
    last_add_confirmed=5,
    length_bytes=10,
    quorum=Quorum(3, 3, 2),
    stored=(5, 4, -1),
)
OLDER = replace(SAID, stored=(2, 4, 1))


def test_the_most_that_is_said_of_each_member_counts() -> None:
    assert stored([OLDER, SAID, OLDER], -1) == {0: 5, 1: 4, 2: 1}
    assert together([{0: 3}, {}, {1: 2, 0: 1}]) == {0: 3, 1: 2}
    assert stored([], -1) == {}


@pytest.mark.parametrize(("before", "found"), [(4, {0: 5, 1: 4}), (5, {})])
def test_only_who_knows_more_confirmed_than_was_before_the_last_change_says_who_is_there(
    before: int, found: dict[int, int]
) -> None:
    assert stored([SAID], before) == found


def test_whoever_ends_in_front_of_what_it_had_lacks_it() -> None:
    had = {0: 5, 1: 4}
    assert lacking(had, {0: 4, 1: 4, 2: -1}) == {0: 5}
    assert lacking(had, {0: -1, 1: 9}) == {0: 5}
    assert lacking(had, {1: 9}) == {}
    assert lacking({}, {0: -1}) == {}
