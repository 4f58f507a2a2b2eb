"""Every state of small worlds with a ledger that was made too small, and what is noticed there."""

from dataclasses import replace
from functools import cache

import pytest

from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, MadeSmaller
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep import repairing
from tests.simulation.states.search import Found, Search
from tests.simulation.states.upkeep import Order
from tests.simulation.states.widening import Scope, WideningSteps, search

from ..thorough import always  # noqa: TID252
from . import mutants, upkeep_mutants

ONE, TWO = Quorum(1, 1, 1), Quorum(2, 2, 2)
SMALL = Scope(TWO, spares=1, jobs=("widen",))
TWICE = Scope(TWO, spares=2, jobs=("widen", "widen"))
COLLECTED = Scope(TWO, spares=1, jobs=("widen", "collect"))
STRIPED = Scope(Quorum(3, 2, 2), entries=2, spares=1, jobs=("widen",), wanted=Quorum(4, 2, 2))

SCOPES = (
    SMALL,
    TWICE,
    COLLECTED,
    STRIPED,
    Scope(TWO, entries=2, spares=1, jobs=("widen",)),
    Scope(ONE, spares=2, jobs=("widen", "collect"), turns=1, wanted=Quorum(3, 3, 1)),
    Scope(TWO, spares=2, jobs=("widen", "repair")),
    Scope(TWO, spares=1, jobs=("widen", "delete")),
    Scope(TWO, spares=2, failures=1, jobs=("widen",)),
    Scope(Quorum(2, 2, 1), spares=1, dies=True, jobs=("widen", "collect"), wanted=Quorum(3, 3, 1)),
)

BROKEN_ORDERS = {
    "the record names a member before it has the copies": (
        replace(SMALL, order=Order(looks_before_swapping=False)),
        "(I2, I3)",
    ),
    "a member is put over what the record says": (
        replace(COLLECTED, order=Order(compares_swaps=False)),
        "(I6)",
    ),
}


def of_any_state(ledger: LedgerMetadata) -> bool:
    return ledger.quorum.stripe_count == 1 and sizes.is_short(ledger)


def for_ever(ledger: LedgerMetadata) -> bool:
    return ledger.state is LedgerState.CLOSED


def of_any_stripes(ledger: LedgerMetadata) -> bool:
    is_short = ledger.quorum.ensemble_size < sizes.wanted(ledger).ensemble_size
    has_entries = ledger.last_entry_id != -1
    return ledger.state is LedgerState.CLOSED and is_short and has_entries


def any_sizes(*_: object, **__: object) -> bool:
    return True


UNBOUND: mutants.Change = (MadeSmaller, "may_be", any_sizes)

BROKEN_DECISIONS: dict[str, tuple[tuple[mutants.Change, ...], Scope, str]] = {
    "an open ledger is widened": (
        ((repairing, "may_widen", of_any_state), UNBOUND),
        SMALL,
        "(R18)",
    ),
    "a striped ledger is widened": (
        ((repairing, "may_widen", of_any_stripes), UNBOUND),
        STRIPED,
        "(I2, I3)",
    ),
    "a ledger is widened for ever": (
        ((repairing, "may_widen", for_ever), UNBOUND),
        replace(TWICE, jobs=("widen",), turns=1),
        "more copies than wanted",
    ),
    "who has left joins": (
        ((repairing, "barred", upkeep_mutants.nobody), upkeep_mutants.UNCHECKED),
        Scope(ONE, spares=3, jobs=("widen", "collect"), turns=1, wanted=Quorum(2, 2, 1)),
        "(RB-30)",
    ),
}


@cache
def searched(scope: Scope) -> tuple[Found, set[str]]:
    """What was found, and what jobs did."""
    steps = WideningSteps(scope)
    return Search(scope, steps).run(None), steps.happened


@pytest.mark.parametrize("scope", always(SCOPES[:4], SCOPES), ids=str)
def test_no_state_of_a_widening_breaks_a_promise(
    scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = searched(scope)
    with capsys.disabled():
        print(f"\n{found}")
    assert not found.violation, str(found)
    assert found.is_complete
    assert found.ends > 1


@pytest.mark.parametrize("name", BROKEN_ORDERS)
def test_an_order_that_is_broken_is_noticed(name: str) -> None:
    scope, rule = BROKEN_ORDERS[name]
    assert rule in search(scope).violation


@pytest.mark.parametrize("name", BROKEN_DECISIONS)
def test_a_decision_that_is_broken_is_noticed(name: str) -> None:
    changes, scope, rule = BROKEN_DECISIONS[name]
    with mutants.changed(*changes):
        found = search(scope)
    assert rule in found.violation


def test_ledgers_are_widened_and_races_are_lost() -> None:
    """Otherwise the states above would tell nothing."""
    _, happened = searched(TWICE)
    assert happened >= {
        "widen: widens",
        "widen: it is well",
        "widen: its record changed",
        "widen: nothing is to do",
    }
