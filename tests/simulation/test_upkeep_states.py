"""Every state of small worlds with upkeep beside their clients, and proof that it would notice."""

from dataclasses import replace
from functools import cache

import pytest

from bkspark.protocol.ledger import deletion, metadata
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import (
    LEGAL_MOVES,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import Place
from tests.simulation.__main__ import main
from tests.simulation.states.search import Found, Search
from tests.simulation.states.upkeep import Order, Scope, UpkeepSteps, search
from tests.simulation.states.world import Rules

from ..thorough import always  # noqa: TID252
from . import mutants, upkeep_mutants

ONE, TWO, THREE = Quorum(1, 1, 1), Quorum(2, 2, 2), Quorum(3, 3, 2)
BOTH = ("repair", "collect")
SMALL = Scope(TWO, spares=1, jobs=BOTH)
DELETED = Scope(TWO, jobs=("delete",))
CHANGED = Scope(TWO, spares=1, failures=1, jobs=("repair",))

SCOPES = (
    SMALL,
    DELETED,
    Scope(TWO, spares=1, jobs=BOTH, is_guaranteed=True),
    Scope(Quorum(2, 2, 1), spares=1, jobs=BOTH),
    Scope(TWO, spares=1, jobs=("repair", "delete")),
    Scope(TWO, spares=1, failures=1, jobs=BOTH),
    Scope(TWO, spares=1, jobs=("repair", *BOTH)),
    Scope(ONE, spares=1, recoverers=2, jobs=BOTH, turns=1),
    Scope(THREE, spares=1, dies=True, jobs=BOTH),
)

BROKEN_ORDERS = {
    "copies go before the record says who has left": (
        replace(SMALL, order=Order(leaves_before_removing=False)),
        "(I2, I3)",
    ),
    "who has left is put over what the record says": (
        replace(SMALL, jobs=(*BOTH, "collect"), order=Order(compares_leaving=False)),
        "(I6)",
    ),
    "a place is put over what the record says": (
        replace(SMALL, order=Order(compares_swaps=False)),
        "(I6)",
    ),
    "a place goes to who was not looked at": (
        replace(SMALL, order=Order(looks_before_swapping=False)),
        "(I2, I3)",
    ),
    "a record goes before its members are clean": (
        replace(DELETED, order=Order(cleans_before_forgetting=False)),
        "(R11)",
    ),
    "a late writer of a deleted ledger does not look at its record": (
        replace(DELETED, rules=Rules(reads_metadata=False)),
        "(R13)",
    ),
    "nor does one whose fence was collected": (
        Scope(ONE, spares=1, jobs=BOTH, rules=Rules(reads_metadata=False)),
        "(I1)",
    ),
}
"""Nothing stands guard where a ledger has left, so these rest on the metadata check alone."""


def of_any_state(ledger: LedgerMetadata, place: Place) -> Location | None:
    found = Locations(ledger).at(place.fragment_first_entry_id)
    return found if found is not None and found.members[place.index] == place.member else None


def of_any_ledger(ledger: LedgerMetadata, member: Member) -> bool:
    return not Locations(ledger).names(member)


def who_has_a_place(ledger: LedgerMetadata, _member: Member) -> bool:
    return ledger.state is LedgerState.CLOSED


def all_places(ledger: LedgerMetadata, _place: Place, successor: Member) -> LedgerMetadata:
    """Whoever is first in any ensemble is replaced, and who is last as well."""
    members = [(successor, *one.ensemble[1:-1], one.ensemble[0]) for one in ledger.fragments]
    pairs = zip(ledger.fragments, members, strict=True)
    return replace(ledger, fragments=tuple(replace(one, ensemble=who) for one, who in pairs))


def nobody_owed(*_: object, **__: object) -> set[Member]:
    return set()


def of_the_last(self: Locations) -> tuple[Member, ...]:
    return self.last.members


UNDEAD = LEGAL_MOVES | {LedgerState.DELETING: frozenset(LedgerState)}
UNCHECKED = upkeep_mutants.UNCHECKED

BROKEN_DECISIONS: dict[str, tuple[tuple[mutants.Change, ...], Scope, str]] = {
    "an open ledger is repaired": (
        ((repairing, "location_of", of_any_state),),
        CHANGED,
        "(I2, I3)",
    ),
    "an open ledger is left": (
        ((repairing, "may_leave", of_any_ledger), UNCHECKED),
        replace(CHANGED, jobs=("collect",)),
        "(I2, I3)",
    ),
    "a member leaves that has a place": (
        ((repairing, "may_leave", who_has_a_place), UNCHECKED),
        SMALL,
        "(RB-30)",
    ),
    "who has left is forgotten": (
        ((repairing, "left_by", upkeep_mutants.only_these),),
        Scope(ONE, spares=2, jobs=BOTH, turns=1),
        "(RB-30)",
    ),
    "who has left is given a place": (
        ((repairing, "barred", upkeep_mutants.nobody), UNCHECKED),
        replace(SMALL, turns=1),
        "(RB-30)",
    ),
    "a repair changes more than its place": (
        ((repairing, "replaced", all_places),),
        SMALL,
        "(I6)",
    ),
    "what is deleted may be closed": (
        ((metadata, "LEGAL_MOVES", UNDEAD),),
        DELETED,
        "(R11)",
    ),
    "nobody is owed a deletion": (
        ((deletion, "owing", nobody_owed),),
        DELETED,
        "(R11)",
    ),
    "only the last fragment's members are": (
        ((Locations, "members", property(of_the_last)),),
        Scope(ONE, entries=2, failures=1, spares=1, jobs=("delete",)),
        "(R11)",
    ),
}


@cache
def searched(scope: Scope) -> tuple[Found, set[str]]:
    """What was found, and what jobs did."""
    steps = UpkeepSteps(scope)
    return Search(scope, steps).run(None), steps.happened


@pytest.mark.parametrize("scope", always(SCOPES[:2], SCOPES), ids=str)
def test_no_state_of_upkeep_breaks_a_promise(
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


def test_records_may_be_read_before_bookies_are_looked_at() -> None:
    """It is the record that was read that has to be the same when it says who has left."""
    late = Order(lists_first=False)
    found = search(replace(SMALL, order=late))
    assert found.is_complete
    assert not found.violation
    unsure = replace(late, compares_leaving=False)
    assert search(replace(SMALL, jobs=(*BOTH, "collect"), order=unsure)).violation


LARGE = ("only the last fragment's members are", "an open ledger is left")


@pytest.mark.parametrize("name", always(BROKEN_DECISIONS.keys() - LARGE, BROKEN_DECISIONS))
def test_a_decision_that_is_broken_is_noticed(name: str) -> None:
    changes, scope, rule = BROKEN_DECISIONS[name]
    with mutants.changed(*changes):
        found = search(scope)
    assert rule in found.violation


def test_jobs_come_to_their_ends() -> None:
    """Otherwise the states above would tell nothing of them."""
    happened = set[str]().union(*(searched(scope)[1] for scope in (SMALL, DELETED)))
    done = {"repair: swaps", "repair: its record changed", "collect: stores who has left"}
    assert happened >= {*done, "collect: removes what 0 has", "delete: the record goes"}


def test_the_command_has_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--exhaust", "1/1/1", "--states", "--upkeep"]) == 0
    assert "1 spares, repair, collect: " in capsys.readouterr().out
