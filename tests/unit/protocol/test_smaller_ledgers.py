"""Ledgers that are made on fewer bookies than wanted: their sizes, and what their records say."""

from dataclasses import replace
from itertools import product

import pytest

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    MadeSmaller,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings

WANTED, MADE = Quorum(3, 3, 2), Quorum(2, 2, 2)
MEMBERS = tuple(Member(f"bookie-{n}", f"{n:032x}") for n in range(6))


def ledger(wanted: Quorum, made: Quorum, now: Quorum | None = None) -> LedgerMetadata:
    """A closed ledger of ten entries that was made smaller."""
    now = now or made
    return LedgerMetadata(
        ledger_id=7,
        quorum=now,
        state=LedgerState.CLOSED,
        term=1,
        token="ab" * 16,
        fragments=(Fragment(0, 1, MEMBERS[: now.ensemble_size]),),
        settings=LedgerSettings(smaller=MadeSmaller(made, wanted)),
        last_entry_id=9,
        length_bytes=10,
    )


@pytest.mark.parametrize(
    ("wanted", "count", "made"),
    [
        ((3, 3, 2), 2, (2, 2, 2)),
        ((3, 3, 1), 1, (1, 1, 1)),
        ((5, 3, 2), 4, (4, 3, 2)),
        ((5, 3, 2), 3, (3, 3, 2)),
        ((5, 3, 2), 2, (2, 2, 2)),
        ((5, 5, 3), 4, (4, 4, 3)),
        ((3, 3, 2), 7, (3, 3, 2)),
    ],
)
def test_a_smaller_ledger_keeps_the_ack_quorum_and_what_it_can_of_the_rest(
    wanted: tuple[int, int, int], count: int, made: tuple[int, int, int]
) -> None:
    assert Quorum(*wanted).on_fewer(count) == Quorum(*made)


def test_no_ledger_is_made_below_its_ack_quorum() -> None:
    with pytest.raises(InvalidRequestError):
        WANTED.on_fewer(1)


def test_every_smaller_ledger_loses_nothing_while_as_many_are_lost_as_in_one_of_full_size() -> None:
    """Any Qa of a write set meet any (Qw - Qa) + 1 of it, whatever the sizes."""
    for e, qw, qa in product(range(1, 7), repeat=3):
        if e >= qw >= qa:
            for count in range(qa, e + 1):
                made = Quorum(e, qw, qa).on_fewer(count)
                assert made.losses_max == Quorum(e, qw, qa).losses_max
                proofs = made.write_quorum_size - made.ack_quorum_size + 1
                assert proofs + made.ack_quorum_size > made.write_quorum_size


def test_what_is_short_has_fewer_copies_than_wanted() -> None:
    assert sizes.is_short(ledger(WANTED, MADE))
    assert not sizes.is_short(ledger(Quorum(5, 3, 2), Quorum(4, 3, 2)))
    assert sizes.is_short(ledger(Quorum(5, 3, 2), MADE))
    assert not sizes.is_short(ledger(WANTED, MADE, WANTED))
    assert not sizes.is_short(replace(ledger(WANTED, MADE), last_entry_id=-1, length_bytes=0))


def test_its_records_go_on_naming_what_it_was_made_with() -> None:
    grown = ledger(WANTED, MADE, WANTED)
    assert (sizes.of_records(grown), sizes.wanted(grown)) == (MADE, WANTED)
    usual = replace(grown, settings=LedgerSettings())
    assert (sizes.of_records(usual), sizes.wanted(usual)) == (WANTED, WANTED)


@pytest.mark.parametrize(
    ("wanted", "made", "now"),
    [
        ((5, 3, 2), (4, 3, 2), (5, 3, 2)),  # striped
        ((5, 3, 2), (2, 2, 2), (4, 4, 2)),  # more copies than wanted
        ((5, 3, 2), (2, 2, 2), (3, 2, 2)),  # no copies of all entries on the new member
        ((5, 5, 3), (4, 4, 3), (3, 3, 3)),  # fewer than it was made with
        ((5, 5, 3), (3, 3, 3), (4, 4, 2)),  # another ack quorum
    ],
)
def test_sizes_that_it_cannot_have_grown_to_are_refused(
    wanted: tuple[int, int, int], made: tuple[int, int, int], now: tuple[int, int, int]
) -> None:
    with pytest.raises(InvalidRequestError):
        ledger(Quorum(*wanted), Quorum(*made), Quorum(*now))


@pytest.mark.parametrize("state", [LedgerState.OPEN, LedgerState.IN_RECOVERY])
def test_one_that_is_not_closed_has_not_grown(state: LedgerState) -> None:
    grown = ledger(WANTED, MADE, WANTED)
    with pytest.raises(InvalidRequestError):
        replace(grown, state=state, last_entry_id=None, length_bytes=None)


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ((3, 3, 2), (3, 3, 2)),
        ((2, 2, 1), (3, 3, 2)),
        ((3, 2, 2), (5, 3, 2)),
        ((4, 4, 2), (3, 3, 2)),
    ],
)
def test_sizes_that_no_shortage_gives_are_refused(
    made: tuple[int, int, int], wanted: tuple[int, int, int]
) -> None:
    with pytest.raises(InvalidRequestError):
        MadeSmaller(Quorum(*made), Quorum(*wanted))


def test_a_log_that_is_strict_is_so_for_every_write() -> None:
    usual, strict = LogSettings(WANTED), LogSettings(WANTED, is_strict=True)
    assert [usual.strictness("wal", said) for said in (None, False, True)] == [False, False, True]
    assert [strict.strictness("wal", said) for said in (None, True)] == [True, True]
    with pytest.raises(InvalidRequestError, match="created strict"):
        strict.strictness("wal", wanted=False)


def test_a_log_says_whether_its_ledgers_may_be_smaller_than_wanted() -> None:
    assert LogSettings(WANTED).permits_smaller
    assert not LogSettings(WANTED, is_strict=True).permits_smaller
    assert not LogSettings(WANTED, guarantees_write_quorum=True).permits_smaller


def test_the_labels_that_a_log_insists_on_are_those_of_its_creation() -> None:
    usual, apart = LogSettings(WANTED), LogSettings(WANTED, min_distinct={"rack": 2})
    assert usual.distinctness("wal", None) == usual.distinctness("wal", {}) == {}
    assert apart.distinctness("wal", None) == apart.distinctness("wal", {"rack": 2}) == {"rack": 2}
    for log, wanted, told in (
        (apart, {"rack": 3}, "log 'wal' was created with minDistinct rack:2, not rack:3"),
        (apart, {}, "log 'wal' was created with minDistinct rack:2, not none"),
        (usual, {"zone": 2}, "log 'wal' was created with minDistinct none, not zone:2"),
    ):
        with pytest.raises(InvalidRequestError) as refused:
            log.distinctness("wal", wanted)
        assert refused.value.args[0] == told
        assert refused.value.hint == "leave minDistinct out"


def test_a_log_that_a_smaller_ledger_makes_wants_what_the_ledger_should_have_had() -> None:
    made = ledger(WANTED, MADE)
    assert LogSettings.of(made, is_unbounded=False) == LogSettings(WANTED)
    strict = replace(made, settings=LedgerSettings(is_strict=True))
    assert LogSettings.of(strict, is_unbounded=True).is_strict
