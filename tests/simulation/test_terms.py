"""Every state of a small ledger that goes on in later terms, and proof that it would notice."""

import pytest

from tests.simulation.states.terms import Scope, search


def test_no_state_behind_one_takeover_breaks_a_promise() -> None:
    found = search(Scope(recoverers=1))
    assert not found.violation, found.story
    assert found.is_complete
    assert found.opened


BROKEN = {
    "a recovery that fences nobody": Scope(recoverers=1, fences=False),
    "a fence that is pruned before the permission": Scope(recoverers=1, permission_first=False),
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


@pytest.mark.thorough
def test_that_the_highest_term_counts_is_noticed() -> None:
    """H43, in as many steps."""
    found = search(Scope(takes="highest"))
    assert "(I2)" in found.violation
    assert len(found.story) == 17
