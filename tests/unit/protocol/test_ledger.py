"""Ledger metadata: what is valid, and every legal and illegal change."""

import pickle
from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    InvalidTermError,
    LedgerClosedError,
    LedgerFencedError,
)
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import (
    LEGAL_MOVES,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum

OPEN, IN_RECOVERY = LedgerState.OPEN, LedgerState.IN_RECOVERY
CLOSED, DELETING = LedgerState.CLOSED, LedgerState.DELETING


def ensemble(names: str) -> tuple[Member, ...]:
    return tuple(Member(name, f"{name}-1") for name in names)


def fragment(
    first: int, names: str, term: int = 1, token: str = "", *, has_headers: bool = False
) -> Fragment:
    return Fragment(first, term, ensemble(names), token, has_headers)


def ledger(
    state: LedgerState = OPEN,
    *fragments: Fragment,
    term: int = 2,
    last: int | None = None,
    length: int | None = None,
) -> LedgerMetadata:
    if state is CLOSED and last is None:
        last, length = 9, 90
    return LedgerMetadata(
        ledger_id=7,
        quorum=Quorum(3, 2, 2),
        state=state,
        term=term,
        token="mine",
        fragments=fragments or (fragment(0, "abc"),),
        last_entry_id=last,
        length_bytes=length,
    )


def test_only_a_later_term_has_overtaken_anybody() -> None:
    taken = ledger(IN_RECOVERY, term=5)
    for term in (1, 4):
        error = taken.fenced(term, hint="so")
        assert isinstance(error, InvalidTermError)
        assert (error.term, error.newer_term, error.hint) == (term, 5, "so")
    for term in (0, 5, 6):
        assert type(taken.fenced(term)) is LedgerFencedError


def test_a_place_in_an_earlier_fragment_is_a_place_too() -> None:
    both = ledger(OPEN, fragment(0, "abc"), fragment(5, "abd"))
    assert Locations(both).names_only(ensemble("abcd"))
    assert not Locations(both).names_only(ensemble("abd"))
    assert not Locations(both).names_only(ensemble("abc"))


# --- what is valid ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"ledger_id": -1},
        {"term": 0},
        {"last_entry_id": 3},
        {"length_bytes": 3},
        {"last_entry_id": 3, "length_bytes": 3},
        {"state": CLOSED},
        {"state": CLOSED, "last_entry_id": 3},
        {"state": CLOSED, "length_bytes": 3},
        {"state": CLOSED, "last_entry_id": -2, "length_bytes": 0},
        {"state": IN_RECOVERY, "last_entry_id": 3, "length_bytes": 3},
        {"state": DELETING, "last_entry_id": -2},
        {"fragments": ()},
        {"fragments": (fragment(1, "abc"),)},
        {"fragments": (fragment(0, "abc"), fragment(0, "abd"))},
        {"fragments": (fragment(0, "abc"), fragment(5, "abd"), fragment(4, "abe"))},
        {"fragments": (fragment(0, "ab"),)},
        {"fragments": (fragment(0, "abcd"),)},
        {"fragments": (fragment(0, "aba"),)},
        {"fragments": (fragment(0, "abc"), fragment(5, "abb"))},
        {"fragments": (Fragment(0, 1, (*ensemble("ab"), Member("a", "a-2"))),)},
        {"fragments": (fragment(0, "abc", term=0),)},
        {"fragments": (fragment(0, "abc", term=3),)},
        {"fragments": (fragment(0, "abc", term=2), fragment(5, "abd", term=1))},
    ],
)
def test_an_impossible_record_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError):
        replace(ledger(), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"ledger_id": 0},
        {"state": CLOSED, "last_entry_id": -1, "length_bytes": 0},
        {"state": DELETING},
        {"state": DELETING, "last_entry_id": 3, "length_bytes": 3},
        {"fragments": (fragment(0, "abc", term=1), fragment(1, "abd", term=2))},
        {"fragments": (fragment(0, "abc"), fragment(1, "abd"), fragment(9, "abc"))},
    ],
)
def test_a_possible_record_is_accepted_and_can_be_pickled(changes: dict[str, object]) -> None:
    metadata = replace(ledger(), **changes)
    assert pickle.loads(pickle.dumps(metadata)) == metadata


def test_an_entry_belongs_to_the_last_fragment_that_does_not_begin_above_it() -> None:
    metadata = ledger(OPEN, fragment(0, "abc"), fragment(4, "abd"), fragment(5, "xyz"))
    owners = [metadata.fragment_of(entry).first_entry_id for entry in range(8)]
    assert owners == [0, 0, 0, 0, 4, 5, 5, 5]
    assert metadata.last_fragment.first_entry_id == 5


def test_the_members_of_an_entry_come_from_its_own_fragment_in_write_order() -> None:
    metadata = ledger(OPEN, fragment(0, "abc"), fragment(4, "abd"))
    names = ["".join(m.bookie_id for m in Locations(metadata).holders(entry)) for entry in range(6)]
    assert names == ["ab", "bc", "ca", "ab", "bd", "da"]


@pytest.mark.parametrize(
    ("state", "term", "token", "expected"),
    [
        (OPEN, 2, "mine", True),
        (OPEN, 1, "mine", False),
        (OPEN, 3, "mine", False),
        (OPEN, 2, "theirs", False),
        (IN_RECOVERY, 2, "mine", False),
        (CLOSED, 2, "mine", False),
        (DELETING, 2, "mine", False),
    ],
)
def test_only_the_token_of_the_open_term_may_write(
    state: LedgerState, term: int, token: str, expected: bool
) -> None:
    assert ledger(state).is_writable_by(term=term, token=token) is expected


# --- moves -----------------------------------------------------------------------------------

MOVES = {
    # from          to: OPEN, IN_RECOVERY, CLOSED, DELETING
    OPEN: (True, True, True, True),
    IN_RECOVERY: (True, True, True, True),
    CLOSED: (False, False, True, True),
    DELETING: (False, False, False, True),
}


@pytest.mark.parametrize("state", list(LedgerState))
def test_the_table_of_state_moves(state: LedgerState) -> None:
    to = dict(zip((OPEN, IN_RECOVERY, CLOSED, DELETING), MOVES[state], strict=True))
    assert {target: target in LEGAL_MOVES[state] for target in LedgerState} == to


def change_ensemble(metadata: LedgerMetadata, term: int, token: str) -> LedgerMetadata:
    return metadata.with_ensemble(5, ensemble("abd"), term=term, token=token)


def close(metadata: LedgerMetadata, term: int, token: str) -> LedgerMetadata:
    return metadata.closed(last_entry_id=8, length_bytes=80, term=term, token=token)


def close_again(metadata: LedgerMetadata, term: int, token: str) -> LedgerMetadata:
    return metadata.closed(last_entry_id=9, length_bytes=90, term=term, token=token)


def delete(metadata: LedgerMetadata, term: int, token: str) -> LedgerMetadata:
    return metadata.deleting()


Change = Callable[[LedgerMetadata, int, str], LedgerMetadata]
FENCED, ENDED = LedgerFencedError, LedgerClosedError


@pytest.mark.parametrize(
    ("change", "state", "by_writer", "by_another"),
    [
        (change_ensemble, OPEN, OPEN, FENCED),
        (change_ensemble, IN_RECOVERY, FENCED, FENCED),
        (change_ensemble, CLOSED, ENDED, ENDED),
        (change_ensemble, DELETING, FENCED, FENCED),
        (close, OPEN, CLOSED, FENCED),
        (close, IN_RECOVERY, CLOSED, FENCED),
        (close, CLOSED, ENDED, ENDED),
        (close, DELETING, FENCED, FENCED),
        (close_again, CLOSED, CLOSED, CLOSED),
        (delete, OPEN, DELETING, DELETING),
        (delete, IN_RECOVERY, DELETING, DELETING),
        (delete, CLOSED, DELETING, DELETING),
        (delete, DELETING, DELETING, DELETING),
    ],
)
def test_every_change_in_every_state(
    change: Change,
    state: LedgerState,
    by_writer: LedgerState | type[BookKeeperError],
    by_another: LedgerState | type[BookKeeperError],
) -> None:
    others = [(1, "mine"), (3, "mine"), (2, "theirs")]
    for expected, callers in ((by_writer, [(2, "mine")]), (by_another, others)):
        for term, token in callers:
            before = ledger(state)
            if isinstance(expected, LedgerState):
                assert change(before, term, token).state is expected
            else:
                with pytest.raises(expected) as raised:
                    change(before, term, token)
                is_overtaken = expected is LedgerFencedError and term < before.term
                assert type(raised.value) is (InvalidTermError if is_overtaken else expected)
            assert before == ledger(state)


# --- ensemble change -------------------------------------------------------------------------


def test_a_change_at_the_last_fragments_first_entry_replaces_its_members() -> None:
    before = ledger(OPEN, fragment(0, "abc"), fragment(5, "abd"))
    after = before.with_ensemble(5, ensemble("abe"), term=2, token="mine")
    assert after.fragments == (fragment(0, "abc"), fragment(5, "abe", term=2, token="mine"))


def test_a_change_behind_the_last_fragments_first_entry_appends_a_fragment() -> None:
    before = ledger(OPEN, fragment(0, "abc"), fragment(5, "abd"))
    after = before.with_ensemble(6, ensemble("abe"), term=2, token="mine")
    assert after.fragments == (*before.fragments, fragment(6, "abe", term=2, token="mine"))


@pytest.mark.parametrize("first_entry_id", [-1, 0, 1, 4])
def test_entries_before_the_last_fragment_never_move(first_entry_id: int) -> None:
    before = ledger(OPEN, fragment(0, "abc"), fragment(5, "abd"))
    with pytest.raises(InvalidRequestError, match="only the last fragment"):
        before.with_ensemble(first_entry_id, ensemble("abe"), term=2, token="mine")


def test_a_change_to_an_ensemble_with_one_bookie_twice_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="distinct bookies"):
        ledger().with_ensemble(5, ensemble("abb"), term=2, token="mine")


@pytest.mark.parametrize("has_headers", [False, True])
def test_members_that_stay_have_begun_no_more_than_before(has_headers: bool) -> None:
    before = ledger(OPEN, fragment(0, "abc", 2, "mine", has_headers=has_headers))
    for first in (0, 5):
        after = before.with_ensemble(first, ensemble("abd"), term=2, token="mine")
        assert after.last_fragment.has_headers is has_headers


def test_nobody_began_the_journal_of_nobody() -> None:
    with pytest.raises(InvalidRequestError, match="journal of a writer"):
        fragment(0, "abc", has_headers=True)


# --- closing ---------------------------------------------------------------------------------


def closed_at(metadata: LedgerMetadata, last: int, length: int = 0) -> LedgerMetadata:
    return metadata.closed(last_entry_id=last, length_bytes=length, term=2, token="mine")


def test_closing_stores_end_length_and_transactions() -> None:
    transactions = {"app": 4}
    after = ledger().closed(
        last_entry_id=8, length_bytes=80, transactions=transactions, term=2, token="mine"
    )
    transactions["app"] = 5
    assert (after.last_entry_id, after.length_bytes, after.transactions) == (8, 80, {"app": 4})


@pytest.mark.parametrize(("last", "kept"), [(4, [0]), (5, [0, 5]), (6, [0, 5])])
def test_closing_keeps_the_fragments_that_hold_entries(last: int, kept: list[int]) -> None:
    after = closed_at(ledger(OPEN, fragment(0, "abc"), fragment(5, "abd")), last)
    assert [f.first_entry_id for f in after.fragments] == kept


def test_an_empty_ledger_keeps_its_first_fragment() -> None:
    assert closed_at(ledger(), -1).fragments == ledger().fragments


@pytest.mark.parametrize("last", [-2, -1, 0, 3])
def test_closing_never_cuts_off_what_a_fragment_was_put_behind(last: int) -> None:
    with pytest.raises(InvalidRequestError, match="were acknowledged"):
        closed_at(ledger(OPEN, fragment(0, "abc"), fragment(5, "abd")), last)


@pytest.mark.parametrize(("last", "length"), [(8, 90), (10, 90), (9, 89), (-1, 0)])
def test_a_closed_ledger_never_gets_another_end(last: int, length: int) -> None:
    with pytest.raises(LedgerClosedError, match="closed at entry 9 with 90 bytes"):
        closed_at(ledger(CLOSED), last, length)


def test_closing_at_the_same_end_again_changes_nothing() -> None:
    before = ledger(CLOSED)
    assert before.closed(last_entry_id=9, length_bytes=90, term=9, token="other") is before


# --- what a recovery changes -------------------------------------------------------------------


def test_a_closed_ledger_is_not_recovered() -> None:
    with pytest.raises(LedgerClosedError):
        ledger(CLOSED).in_recovery("theirs")


@pytest.mark.parametrize("first", [0, 4])
def test_a_recovery_replaces_the_members_from_where_it_wrote(first: int) -> None:
    changed = ledger(IN_RECOVERY).with_recovered_ensemble(first, ensemble("abd"))
    assert changed.fragments[-1] == fragment(first, "abd", term=2)
    assert changed.fragments[:-1] == (fragment(0, "abc"),) * bool(first)


def test_a_recovery_never_replaces_an_earlier_fragment() -> None:
    """RB-04: the entries before it are where they were."""
    fragments = fragment(0, "abc"), fragment(4, "abd"), fragment(6, "abe")
    with pytest.raises(InvalidRequestError):
        ledger(IN_RECOVERY, *fragments).with_recovered_ensemble(4, ensemble("abf"))
    with pytest.raises(InvalidRequestError):
        ledger(OPEN).with_recovered_ensemble(0, ensemble("abd"))
