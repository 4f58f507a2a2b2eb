"""Ledgers that go on in later terms: every state of a small one, schedules, and what is noticed."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bkspark.ledger import deleting
from bkspark.ledger.recovery.recover import LedgerTakeover, take_over
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord
from tests.simulation.many import run_many
from tests.simulation.schedule import run_schedule
from tests.simulation.states.terms import search
from tests.simulation.states.terms_world import Scope
from tests.simulation.term_mutants import MUTANTS
from tests.simulation.write_quorum_mutants import MUTANTS as WRITE_QUORUM_MUTANTS

from ..thorough import always  # noqa: TID252
from . import mutants


def test_no_state_behind_one_takeover_breaks_a_promise() -> None:
    found = search(Scope(recoverers=1))
    assert not found.violation, found.story
    assert found.is_complete
    assert found.opened


def test_when_markers_go_that_nobody_looks_for_makes_no_difference() -> None:
    at_once, whenever = search(Scope(recoverers=1)), search(Scope(recoverers=1, goes_at_once=False))
    assert at_once.outcomes == whenever.outcomes
    assert at_once.states < whenever.states


BROKEN = {
    "a recovery that fences nobody": Scope(recoverers=1, fences=False),
    "a fence that is pruned before the permission": Scope(
        recoverers=1, permission_first=False, forgets="nobody's"
    ),
    "a permission that is looked for before the fence": Scope(
        recoverers=1, looks_for_fence_first=False
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_rule_of_markers_that_is_broken_is_noticed(name: str) -> None:
    found = search(BROKEN[name])
    assert "is acknowledged and dead (I1)" in found.violation
    assert found.story


@pytest.mark.thorough
def test_no_state_behind_two_takeovers_breaks_a_promise() -> None:
    """Three writers, none of which ever looks at the metadata; markers are pruned at any time."""
    found = search(Scope())
    assert not found.violation, found.story
    assert found.is_complete
    assert found.opened


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("is_guaranteed", [False, True])
def test_no_state_of_three_bookies_behind_two_takeovers_breaks_a_promise(
    is_guaranteed: bool,
) -> None:
    """Some minutes, and some gigabytes."""
    found = search(Scope(Quorum(3, 3, 2), is_guaranteed=is_guaranteed))
    assert not found.violation, found.story
    assert found.is_complete
    print(f"{found.states} states, {found.opened} takeovers")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "scope",
    [
        Scope(Quorum(3, 3, 2), recoverers=1),
        Scope(recoverers=1, losses=1),
        Scope(recoverers=1, forgets="nobody's"),
    ],
    ids=["3/3/2", "2/2/2 and a bookie that loses all", "2/2/2 on object storage"],
)
def test_no_state_of_a_wider_scope_breaks_a_promise(scope: Scope) -> None:
    found = search(scope)
    assert not found.violation, found.story
    assert found.is_complete
    assert found.opened


@pytest.mark.thorough
def test_that_copies_go_with_a_journal_of_their_term_is_noticed() -> None:
    """Rule 7 of ``reopening``: copies that were made in the term of a writer who never wrote."""
    found = search(Scope(forgets="term's"))
    assert "(I2)" in found.violation
    assert found.story[-1].startswith("('journal', 2) goes from")


@pytest.mark.thorough
def test_that_the_highest_term_counts_is_noticed() -> None:
    """H43, in as many steps."""
    found = search(Scope(takes="highest", goes_at_once=False))
    assert "(I2)" in found.violation
    assert len(found.story) == 17


GUARANTEED = Scope(Quorum(2, 2, 1), recoverers=1, entries=2, is_guaranteed=True)
"""A bookie that is late for an ack has nothing that comes behind it."""


@pytest.mark.parametrize(
    "scope",
    always(
        [GUARANTEED],
        [
            GUARANTEED,
            replace(GUARANTEED, entries=3),
            replace(GUARANTEED, quorum=Quorum(3, 3, 2)),
            replace(GUARANTEED, recoverers=2),
        ],
    ),
    ids=lambda scope: f"{scope.quorum}, {scope.entries} entries, {scope.recoverers} takeovers",
)
def test_no_state_of_a_guaranteed_write_quorum_breaks_a_promise(scope: Scope) -> None:
    """In front of its last fragment such a ledger has all copies of everything."""
    found = search(scope)
    assert not found.violation, found.story
    assert found.is_complete
    assert found.opened
    print(f"{found.states} states, {found.opened} takeovers")


def lafr_of(known: Callable[[AddRecord], int]) -> mutants.Change:
    """Records tell another LAFR."""
    return (AddRecord, "last_add_fully_replicated", property(known))


OF_GUARANTEES: dict[str, tuple[mutants.Change, ...]] = {
    "a takeover leaves alone what is confirmed": WRITE_QUORUM_MUTANTS[
        "a recovery leaves alone what is confirmed"
    ],
    "all that is acknowledged is taken for fully replicated": (
        lafr_of(lambda record: record.last_add_confirmed),
    ),
    "the member that has most tells the LAFR": (
        lafr_of(lambda r: min(r.last_add_confirmed, max(r.stored, default=0) - 1)),
    ),
}


@pytest.mark.parametrize("name", OF_GUARANTEES)
def test_that_copies_of_what_is_acknowledged_are_not_made_is_noticed(name: str) -> None:
    with mutants.changed(*OF_GUARANTEES[name]):
        found = search(replace(GUARANTEED, entries=3))
    assert found.violation == "TailFragmentsReachWriteQuorum does not hold"
    assert found.story


SCHEDULES = 6
FIRST_SEEDS = range(4_000_000, 4_000_018, SCHEDULES)
LOSING: tuple[dict[str, bool], ...] = (
    {"loses_files": True, "repairs": True, "moves": True},
    {},
    {"loses_power": True},
)


@pytest.mark.parametrize("first", always([4_000_000], FIRST_SEEDS))
@pytest.mark.parametrize("losing", always(LOSING[:1], LOSING), ids=str)
def test_writers_one_behind_the_other_break_no_promise(first: int, losing: dict[str, bool]) -> None:
    """Beside readers, recoveries, repairs, moves, and bookies that lose what they had."""
    run = partial(run_schedule, terms=True, **losing)
    total = run_many(first, count=SCHEDULES, run=run)
    assert total.failed is None, total.failed
    assert total.schedules == SCHEDULES


@pytest.mark.parametrize("losing", always(LOSING[:1], LOSING), ids=str)
def test_fragments_that_roll_break_no_promise(losing: dict[str, bool]) -> None:
    """Begun by all writers, amid what they send; and the first ones go, amid all else."""
    run = partial(run_schedule, terms=True, rolls=True, **losing)
    total = run_many(1_000, count=SCHEDULES, run=run)
    assert total.failed is None, total.failed
    assert total.schedules == SCHEDULES


@pytest.mark.thorough
def test_that_the_last_record_is_let_go_of_is_noticed() -> None:
    """It alone says the length of a ledger that nothing was added to since."""

    def last_alone(ledger: LedgerMetadata, _entry_id: int) -> LedgerMetadata:
        return replace(ledger, fragments=ledger.fragments[-1:])

    with mutants.changed((deleting, "without_front", last_alone)):
        found = (run_schedule(seed, terms=True, rolls=True).violation for seed in range(15, 99))
        assert any("its last record is let go of" in one for one in found)


@pytest.mark.thorough
def test_they_go_on_where_others_were(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = list[int]()

    def noting(*args: Any, **options: Any) -> LedgerTakeover:
        taken = take_over(*args, **options)
        terms.append(taken.seen.value.term)
        return taken

    monkeypatch.setattr("tests.simulation.writers.take_over", noting)
    for seed in range(30):
        assert not run_schedule(seed, terms=True).violation
    assert len(terms) > 10
    assert max(terms) > 3


@pytest.mark.parametrize("name", always(list(MUTANTS)[:1], MUTANTS))
def test_a_broken_rule_is_noticed(name: str) -> None:
    changes, soon = MUTANTS[name]
    run = partial(run_schedule, terms=True, checks_reasons=False)
    with mutants.changed(*changes):
        assert any(run(seed).violation for seed in range(soon, soon + 400))
