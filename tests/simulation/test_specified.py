"""The invariants of the TLA+ specifications, over all states of small worlds.

Each notices something; that they hold is shown wherever states are looked at (``test_states``,
``test_terms``, ``test_write_quorum``): they are asked of each of them.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.states import search as states
from tests.simulation.states import specified, steps, terms, world
from tests.simulation.states.specified import INVARIANTS, Seen, Shown, broken
from tests.simulation.states.terms_world import Scope
from tests.simulation.write_quorum_mutants import MUTANTS

from . import mutants

TWO, THREE = Quorum(2, 2, 2), Quorum(3, 3, 2)
MEMBERS = tuple(Member(f"bookie-{n}", "1" * 32) for n in range(3))
FIRST = Fragment(0, 1, MEMBERS, "1" * 32, owner=1)
SECOND = Fragment(1, 2, MEMBERS, "2" * 32, owner=2)
LEDGER = LedgerMetadata(7, THREE, LedgerState.OPEN, 2, "2" * 32, (FIRST, SECOND))
OLD, LEFT, NEW = Shown(1, 0, -1), Shown(1, 1, 0), Shown(2, 1, 0)
ACKED = frozenset({(1, 0), (2, 1)})
ALL = frozenset({OLD, NEW})


def seen(*bookies: frozenset[Shown], acked: frozenset[tuple[int, int]] = ACKED) -> Seen:
    return Seen(LEDGER, bookies, acked, {one.bookie_id: n for n, one in enumerate(MEMBERS)})


GOOD = seen(ALL, ALL, frozenset({OLD, LEFT}))
"""Entry 1 is of term 2, and one bookie has what a writer of term 1 has left under that id."""
CLOSED = replace(LEDGER, state=LedgerState.CLOSED, last_entry_id=0, length_bytes=9)
GUARANTEED = replace(LEDGER, settings=LedgerSettings(guarantees_write_quorum=True))
NONE: frozenset[Shown] = frozenset()

BAD = {
    "NoDivergenceBetweenClientAndMetaData": GOOD._replace(ledger=CLOSED),
    "AllCommittedIdsAreReadable": seen(*[frozenset({OLD, LEFT})] * 3),
    "AllAckedValuesAreReadable": GOOD._replace(acked=frozenset({(1, 1)})),
    "NoDirtyReads": seen(frozenset({LEFT, OLD}), NONE, NONE, acked=frozenset()),
    "TailFragmentsReachWriteQuorum": GOOD._replace(
        ledger=GUARANTEED, bookies=(ALL, ALL, frozenset({NEW}))
    ),
    "AllEntriesOfClosedLedgerReachedWriteQuorum": GOOD._replace(
        ledger=replace(CLOSED, last_entry_id=1), bookies=(ALL, frozenset({OLD}), NONE)
    ),
    "NoLogDivergence": GOOD._replace(
        ledger=replace(LEDGER, fragments=(FIRST, replace(SECOND, owner=0, token="", term=2)))
    ),
}


def test_what_an_older_term_left_over_is_no_divergence() -> None:
    assert list(broken(GOOD)) == []


@pytest.mark.parametrize("name", INVARIANTS)
def test_each_says_no_to_something(name: str) -> None:
    assert name in broken(BAD[name])


def test_bookies_that_lost_all_count_as_holders() -> None:
    lost = seen(NONE, NONE, NONE)._replace(lost=frozenset({0, 1, 2}))
    assert list(broken(lost)) == []


@pytest.fixture
def these_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else is asked of a state."""
    monkeypatch.setattr(terms.Steps, "require", terms.Steps.require_specified)
    monkeypatch.setattr(steps, "require", world.require_specified)


@pytest.mark.usefixtures("these_alone")
@pytest.mark.parametrize(
    "scope",
    [
        Scope(recoverers=1, fences=False),
        Scope(recoverers=1, looks_for_fence_first=False),
        Scope(recoverers=1, permission_first=False, forgets="nobody's"),
    ],
    ids=["nobody is fenced", "the permission is looked for first", "the fence is pruned first"],
)
def test_a_rule_of_terms_that_is_broken_breaks_one(scope: Scope) -> None:
    found = terms.search(scope)
    assert found.violation == "NoDivergenceBetweenClientAndMetaData does not hold"
    assert found.story


@pytest.mark.usefixtures("these_alone")
def test_the_formula_of_the_specification_for_the_lafr_breaks_one() -> None:
    """It takes what is acknowledged for fully replicated as soon as one entry behind is."""
    scope = world.Scope(Quorum(2, 2, 1), entries=2, dies=True, is_guaranteed=True)
    name = "the LAFR is worked out by the specification's formula"
    with mutants.changed(*MUTANTS[name]):
        found = states.search(scope)
    assert found.violation == "AllEntriesOfClosedLedgerReachedWriteQuorum does not hold"


def as_stored(self: Seen, bookie: int, entry: int) -> set[tuple[int, int]]:
    """What a bookie has, whoever owns the id; as in the specification."""
    return {one[:2] for one in self.bookies[bookie] if one.entry == entry}


@pytest.mark.thorough
@pytest.mark.usefixtures("these_alone")
@pytest.mark.parametrize("quorum", [TWO, THREE], ids=["2/2/2", "3/3/2"])
def test_without_owners_logs_diverge_as_the_specification_says(
    quorum: Quorum, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its counterexample in front of the "truncate" flag: nothing is cut off here.

    Where a journal can be forgotten, what is left over mostly goes before its id is used again.
    """
    only: dict[str, Callable[[Seen], bool]] = {"NoLogDivergence": INVARIANTS["NoLogDivergence"]}
    monkeypatch.setattr(specified, "INVARIANTS", only)
    monkeypatch.setattr(Seen, "values", as_stored)
    found = terms.search(Scope(quorum, recoverers=1, forgets="nobody's"))
    assert found.violation == "NoLogDivergence does not hold"
