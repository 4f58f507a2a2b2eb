"""Which record of an entry counts: that of the term that owns it."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bkspark.protocol.ledger.evidence import counts, counts_in, first_behind, is_owner, owners
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, confirmation

QUORUM = Quorum(3, 3, 2)
MEMBERS = tuple(Member(name, "1" * 32) for name in "abc")


def by_writer(first: int, term: int) -> Fragment:
    return Fragment(first, term, MEMBERS, f"{term:032x}", has_headers=True)


def by_recovery(first: int, term: int) -> Fragment:
    return Fragment(first, term, MEMBERS)


def record(term: int, first: int, last: int) -> AddRecord:
    return AddRecord(7, term, f"{term:032x}", first, last, first - 1, 10 * (last + 1), QUORUM, ())


def terms_that_count(fragments: Sequence[Fragment], entry_id: int, most: int = 9) -> list[int]:
    each = range(1, most + 1)
    return [term for term in each if counts(fragments, record(term, entry_id, entry_id))]


def test_a_terms_ids_end_where_a_later_ones_begin() -> None:
    moved = replace(by_recovery(9, 6), owner=3)  # by a repair, or a recovery: it keeps its owner
    fragments = (by_writer(0, 1), by_writer(4, 3), moved, by_writer(12, 7))
    ledger = LedgerMetadata(7, QUORUM, LedgerState.OPEN, 7, f"{7:032x}", fragments)
    expected = {1: 4, 2: 4, 3: 12, 6: 12, 7: None, 8: None}
    assert {term: first_behind(ledger, term) for term in expected} == expected
    assert [counts_in(ledger, record(term, 4, 8)) for term in (1, 3, 7)] == [False, True, False]


def test_an_entry_is_the_last_writers_that_opened_at_it_or_in_front() -> None:
    fragments = (by_writer(0, 1), by_writer(4, 3), by_writer(9, 3), by_writer(12, 7))
    expected = {0: 1, 3: 1, 4: 3, 8: 3, 9: 3, 11: 3, 12: 7, 10**6: 7}
    for entry_id, term in expected.items():
        assert terms_that_count(fragments, entry_id) == [term]


def test_an_older_term_counts_nowhere_behind_the_recovered_end_in_any_later_fragment() -> None:
    fragments = (by_writer(0, 1), by_writer(4, 2), by_writer(6, 3))
    for entry_id in range(4, 20):
        assert not counts(fragments, record(1, entry_id, entry_id))


def test_a_record_counts_only_with_all_its_entries() -> None:
    fragments = (by_writer(0, 1), by_writer(4, 2), by_writer(9, 2), by_writer(12, 3))
    assert counts(fragments, record(1, 0, 3))
    assert not counts(fragments, record(1, 0, 4))
    assert not counts(fragments, record(2, 3, 5))
    assert counts(fragments, record(2, 4, 11))
    assert not counts(fragments, record(2, 4, 12))


def test_what_a_recovery_moved_is_of_a_writer_in_front() -> None:
    """It closed the ledger, and where it replaced a fragment nothing says whose that was."""
    moved = (by_writer(0, 1), by_writer(4, 3), by_recovery(6, 5))
    assert terms_that_count(moved, 5) == [3]
    assert terms_that_count(moved, 6) == [3, 4, 5]
    assert terms_that_count((by_writer(0, 1), by_recovery(4, 5)), 4) == [1, 2, 3, 4, 5]


def test_a_confirmation_counts_for_ever() -> None:
    said = confirmation(
        ledger_id=7, term=1, token="1" * 32, last_add_confirmed=5, length_bytes=60, quorum=QUORUM
    )
    assert counts((by_writer(0, 1), by_writer(3, 2)), said)


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), max_size=6),
    st.integers(0, 30),
    st.integers(0, 3),
)
def test_an_entry_has_one_owner_and_that_opened_last_in_front_of_it(
    steps: list[tuple[int, int]], entry_id: int, length: int
) -> None:
    """Whatever writers did: the term goes up or stays, and the first entry always goes up."""
    fragments = [by_writer(0, 1)]
    for forward, newer in steps:
        last = fragments[-1]
        fragments.append(by_writer(last.first_entry_id + forward, last.term + newer))
    owner = [f.term for f in fragments if f.first_entry_id <= entry_id][-1]
    assert list(owners(fragments, entry_id)) == [owner]
    assert terms_that_count(fragments, entry_id, 13) == [owner]
    end = entry_id + length
    starts = [f.first_entry_id for f in fragments if f.term > owner]
    assert counts(fragments, record(owner, entry_id, end)) == (min(starts, default=end + 1) > end)


@given(st.integers(0, 12), st.integers(1, 5))
def test_a_repair_changes_nothing_about_it(entry_id: int, term: int) -> None:
    fragments = (by_writer(0, 1), by_writer(4, 2), by_recovery(8, 4))
    others = tuple(Member(name, "2" * 32) for name in "def")
    repaired = [replace(fragment, ensemble=others) for fragment in fragments]
    one = record(term, entry_id, entry_id)
    assert counts(fragments, one) == counts(repaired, one)


def owned(first: int, term: int, owner: int) -> Fragment:
    return replace(by_writer(first, term), owner=owner)


def test_a_term_owns_something_or_nothing() -> None:
    """What was moved in a later term is its writer's; a term that is not named owns nothing."""
    fragments = (owned(0, 1, 1), owned(5, 3, 2), owned(8, 6, 6), owned(9, 6, 6))
    assert [term for term in range(1, 9) if is_owner(fragments, term)] == [1, 2, 6]
    bounded = (by_writer(0, 1), by_recovery(4, 3))
    assert [term for term in range(1, 9) if is_owner(bounded, term)] == [1, 2, 3]
