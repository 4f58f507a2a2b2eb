"""A recovered ledger that is OPEN again: what its metadata say, and what may be stored at all."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import InvalidRequestError, InvalidTermError, LedgerFencedError
from bkspark.format import ledger_metadata
from bkspark.protocol.ledger.evidence import owners
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import (
    Beginning,
    Fragment,
    LedgerMetadata,
    LedgerState,
)
from bkspark.protocol.recovery.conclusions import Decision, Term
from bkspark.protocol.recovery.reopening import Reopening
from bkspark.protocol.recovery.steps import LookAgain, Open, Opened, Prune, Take, Took
from tests.protocol.recovery_scene import record_of

from .test_ledger import CLOSED, ensemble, fragment, ledger

ABC, ABD, ABE = ensemble("abc"), ensemble("abd"), ensemble("abe")
OWNED = replace(fragment(0, "abc", 1, "w1", has_headers=True), owner=1)
FIRST = ledger(LedgerState.OPEN, OWNED, term=1)


def taken(before: LedgerMetadata) -> LedgerMetadata:
    return before.in_recovery(f"r{before.term + 1}")


def plan(of: LedgerMetadata, end: int, **changes: object) -> Open:
    opening = Open(of.term, of.token, f"w{of.term}", end, of.last_fragment.ensemble)
    return replace(opening, **changes)


def reopened(before: LedgerMetadata, end: int, **changes: object) -> LedgerMetadata:
    recovered = taken(before)
    return plan(recovered, end, **changes).applied_to(recovered)


def owners_of(metadata: LedgerMetadata, count: int) -> list[list[int]]:
    return [list(owners(metadata.fragments, entry_id)) for entry_id in range(count)]


def test_it_is_open_in_the_recoverys_term_for_the_writers_token() -> None:
    after = reopened(FIRST, 4)
    assert (after.state, after.term, after.token) == (LedgerState.OPEN, 2, "w2")
    assert after.is_writable_by(term=2, token="w2")
    assert after.fragments == (
        *FIRST.fragments,
        Fragment(5, 2, ABC, "w2", has_headers=True, owner=2),
    )
    assert owners_of(after, 7) == [[1]] * 5 + [[2]] * 2


def test_it_names_the_members_of_all_fragments() -> None:
    after = reopened(FIRST, 4, ensemble=ABD)
    assert Locations(after).names_only({*ABC, *ABD})
    assert not Locations(after).names_only(ABC)
    assert not Locations(after).names_only(ABD)


def test_a_fragment_that_nobody_filled_is_replaced() -> None:
    second = reopened(FIRST, 4)
    third = reopened(second, 4)
    assert [f.term for f in third.fragments] == [1, 3]
    assert owners_of(third, 6) == [[1]] * 5 + [[3]]
    assert [f.term for f in reopened(FIRST, -1).fragments] == [2]


def test_what_was_moved_stays_its_writers_also_when_it_replaces_his_fragment() -> None:
    """Else a record that term 1 left over, in front of the end of term 2, would count again."""
    second = reopened(FIRST, 4)
    third = reopened(second, 7, first_kept=5, kept_by=ABD, ensemble=ABE)
    assert [(f.first_entry_id, f.ensemble) for f in third.fragments] == [
        (0, ABC),
        (5, ABD),
        (8, ABE),
    ]
    assert owners_of(third, 10) == [[1]] * 5 + [[2]] * 3 + [[3]] * 2


def test_closing_it_for_good_keeps_the_owner_of_what_was_moved() -> None:
    recovered = taken(reopened(FIRST, 4)).with_recovered_ensemble(5, ABD)
    closed = recovered.closed(last_entry_id=7, length_bytes=80, term=3, token="r3")
    assert owners_of(closed, 8) == [[1]] * 5 + [[2]] * 3


def test_its_writer_changes_members_and_owns_what_follows() -> None:
    second = reopened(FIRST, 4)
    for first in (5, 6):
        after = second.with_ensemble(first, ABD, term=2, token="w2")
        assert after.last_fragment.owner == 2
        assert owners_of(after, 8) == [[1]] * 5 + [[2]] * 3


def test_an_answer_that_was_lost_is_read_back() -> None:
    recovered = taken(FIRST)
    once = plan(recovered, 4).applied_to(recovered)
    assert plan(recovered, 4).applied_to(once) is once


def test_only_the_recovery_that_took_it_over_sets_it_open() -> None:
    recovered = taken(FIRST)
    with pytest.raises(InvalidTermError) as refused:
        plan(recovered, 4).applied_to(taken(recovered))
    assert (refused.value.term, refused.value.newer_term) == (2, 3)
    for other in (replace(recovered, token="r9"), ledger(CLOSED), FIRST, recovered.deleting()):
        with pytest.raises(LedgerFencedError):
            plan(recovered, 4).applied_to(other)


def test_one_that_does_not_say_so_from_the_start_is_not_set_open_again() -> None:
    bounded = taken(replace(FIRST, fragments=(replace(FIRST.last_fragment, owner=0),)))
    with pytest.raises(InvalidRequestError, match="only the writer that created it"):
        plan(bounded, 4).applied_to(bounded)


def test_nothing_that_is_acknowledged_is_cut_off() -> None:
    recovered = taken(reopened(FIRST, 4))
    with pytest.raises(InvalidRequestError, match="its next writer cannot continue after entry 3"):
        plan(recovered, 3).applied_to(recovered)


def test_a_record_says_whose_entries_count() -> None:
    second = replace(reopened(replace(FIRST, token="1" * 32), 4), token="2" * 32)
    fragments = tuple(
        replace(f, token="3" * 32, ensemble=tuple(replace(m, incarnation="4" * 32) for m in ABC))
        for f in second.fragments
    )
    second = replace(second, fragments=fragments)
    data = ledger_metadata.encode(second, "5" * 32)
    assert ledger_metadata.decode(7, data) == second
    assert b'"owner":2' in data.replace(b" ", b"")


def test_nothing_is_pruned_where_nobody_is_any_more() -> None:
    """Also where another has the place of who was initialised anew, since what is kept is there."""
    recovered, gone = taken(FIRST), ABC[2]
    term = Term(recovered, ABC[:2], 1, "w2")
    record = record_of(recovered.quorum, 0, 0)
    reopening = Reopening.of(term, Decision(-1, (record,), 0, record), kept_by=ABD)
    state, asked = reopening.begun({gone})
    assert [take.member for take in asked if isinstance(take, Take)] == list(ABD)
    for kind in (Take, LookAgain):
        for index, member in enumerate(ABD):
            state, asked = state.receive(Took(kind(index, member)))
    opened = state.plan.applied_to(recovered)
    _, prunes = state.receive(Opened(opened))
    assert prunes == tuple(Prune(member, (1, "w1")) for member in ABC[:2])


@pytest.mark.parametrize("given_up", [(), ("entry 0",)])
def test_the_journal_of_who_owns_nothing_goes_unless_something_is_lost(
    given_up: tuple[str, ...],
) -> None:
    recovered = taken(FIRST)
    term, decision = Term(recovered, ABC, 1, "w2"), Decision(-1, (), -1, given_up=given_up)
    reopening = Reopening.of(term, decision, kept_by=())
    _, prunes = reopening.receive(Opened(reopening.plan.applied_to(recovered)))
    assert [prune.is_empty for prune in prunes if isinstance(prune, Prune)] == [not given_up] * 3


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), max_size=6))
def test_an_entry_that_was_recovered_never_changes_its_owner(
    takeovers: list[tuple[int, int, bool]],
) -> None:
    """However many take over: so many entries are written, so many of them left over, or moved."""
    metadata, owned, members = FIRST, list[int](), [ABC, ABD, ABE]
    for number, (kept, left_over, is_moved) in enumerate(takeovers):
        begin = metadata.last_fragment.first_entry_id
        writer = metadata.term
        owned += [writer] * kept
        changes: dict[str, object] = {}
        if is_moved and kept:
            others = members[(number + 1) % 3]
            changes = {"first_kept": begin + kept - 1, "kept_by": others, "ensemble": others}
        metadata = reopened(metadata, begin + kept - 1, **changes)
        assert metadata.term == writer + 1
        found = owners_of(metadata, len(owned) + left_over)
        assert found == [[t] for t in owned] + [[metadata.term]] * left_over


def test_no_fragment_is_older_than_its_records() -> None:
    with pytest.raises(InvalidRequestError, match="older than its records"):
        replace(FIRST.last_fragment, owner=FIRST.last_fragment.term + 1)


def test_a_new_fragment_says_when_it_was_begun_and_behind_how_many_bytes() -> None:
    known = {"length_bytes": 50, "now_ms": 7}
    assert reopened(FIRST, 4, **known).last_fragment.beginning == Beginning(7, 50)
    assert reopened(FIRST, 4, length_bytes=50).last_fragment.beginning is None
    assert reopened(FIRST, 4, now_ms=7).last_fragment.beginning is None
    assert reopened(FIRST, -1, length_bytes=0, now_ms=7).last_fragment.beginning is None


def test_it_is_forgotten_by_no_change_of_members_nor_told_of_another() -> None:
    """Where the writer's goes on, and where a recovery moves what it wrote back."""
    second = reopened(FIRST, 4, length_bytes=50, now_ms=7)
    for first, beginning in ((5, Beginning(7, 50)), (6, None)):
        after = second.with_ensemble(first, ABD, term=2, token="w2")
        assert after.last_fragment.beginning == beginning
        moved = taken(second).with_recovered_ensemble(first, ABD)
        assert moved.last_fragment.beginning == beginning


def test_who_writes_nothing_makes_nothing_younger() -> None:
    """What lies in front of his fragment was over when the one in its place was begun."""
    second = reopened(FIRST, 4, length_bytes=50, now_ms=7)
    assert reopened(second, 4, now_ms=9).last_fragment.beginning == Beginning(7, 50)
    third = reopened(second, 6, length_bytes=70, now_ms=9)
    assert third.last_fragment.beginning == Beginning(9, 70)


def test_only_a_ledger_that_goes_on_says_it() -> None:
    for owner, beginning in ((1, Beginning(7, 50)), (0, None)):
        before = replace(FIRST, fragments=(replace(OWNED, owner=owner),))
        known = {"beginning": Beginning(7, 50), "term": 1, "token": FIRST.token}
        assert before.with_ensemble(5, ABD, **known).last_fragment.beginning == beginning
