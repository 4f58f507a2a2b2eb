"""Every state of small worlds whose log is offloaded, freed and changed, and proof of its eyes."""

from dataclasses import replace
from functools import cache

import pytest

from tests.simulation.states.tier_search import Found, search
from tests.simulation.states.tier_world import FAULTS, Rules, Scope

from ..thorough import always  # noqa: TID252

OFFLOADS = ("offload", "offload a ledger")
FREED = Scope(("offload", "collect"))
COLLECTED = Scope(("collect", "truncate"), truncations=(1, 2), is_copied=True)
OVERWRITTEN = Scope(("collect", "overwrite", "truncate"), is_copied=True)
STOPPED = Scope(("offload", "stop"))
DOUBLED = Scope(OFFLOADS, ledgers=(1, 1), faults=("updated", "lost"))
CHANGED = Scope((*OFFLOADS, "collect"), ledgers=(1, 1), faults=("updated",))

FOUR = Scope((*OFFLOADS, "collect", "truncate"), ledgers=(1, 1))
"""Two offloads, a collection, a truncation, and any one fault of the table."""
FENCE_STAYS = tuple(name for name in FAULTS if name not in ("lost", "older", "overwritten"))
"""Without its last commits a table has no fence: an offload that sleeps doubles rows there."""

SCOPES = (
    (FREED, 930),
    (COLLECTED, 1_200),
    (OVERWRITTEN, 1_050),
    (STOPPED, 1_450),
    (DOUBLED, 3_000),
    (Scope(OFFLOADS), 15_000),
    (Scope(("offload a ledger", "collect", "truncate"), truncations=(1, 2)), 143_000),
    (Scope(("collect", "collect", "truncate"), is_copied=True, has_reader=True), 30_000),
    (Scope(("collect", "overwrite", "truncate"), is_copied=True, has_reader=True), 4_600),
    (Scope((*OFFLOADS, "stop"), ledgers=(1, 1), faults=FENCE_STAYS), 177_000),
    (Scope(("offload a ledger", "collect", "truncate", "overwrite"), ledgers=(1, 1)), 87_000),
    (Scope(("collect", "offload", "stop"), is_copied=True, has_reader=True), 60_000),
    (FOUR, 5_250_000),
)
"""Each with a number of states that it has at least: a world that shrinks shows less."""

ALWAYS = SCOPES[:5]

BROKEN = {
    "no intent": (Scope(OFFLOADS), Rules(has_intent=False), "T4"),
    "a transaction is believed": (FREED, Rules(verifies=False), "T2"),
    "rows are verified in the version of their commit": (
        FREED,
        Rules(verifies_newest=False),
        "T2",
    ),
    "rows are counted": (FREED, Rules(compares_values=False), "T2"),
    "ledgers are freed without a look": (COLLECTED, Rules(looks_before_freeing=False), "T2"),
    "ledgers are deleted without a second look": (
        COLLECTED,
        Rules(looks_before_releasing=False),
        "T2",
    ),
    "the id is not compared": (COLLECTED, Rules(compares_id=False), "T2"),
    "readers do not compare the commit": (COLLECTED, Rules(compares_commit=False), "T1"),
    "a collection changes another tier than it looked at": (
        Scope(("offload a ledger", "collect")),
        Rules(wants_the_tier=False),
        "T3",
    ),
    "an offload records a look for rows that it did not see": (
        DOUBLED,
        Rules(wants_the_tier=False),
        "T3",
    ),
    "so a read gives what a user changed": (
        replace(CHANGED, requires_verified=False),
        Rules(wants_the_tier=False),
        "T1",
    ),
}
SLOW = ("so a read gives what a user changed",)


@cache
def searched(scope: Scope) -> Found:
    return search(scope)


@pytest.mark.parametrize(("scope", "count"), always(ALWAYS, SCOPES, are_rows=True), ids=str)
def test_no_state_of_a_tier_breaks_a_promise(
    scope: Scope, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    found = searched(scope)
    with capsys.disabled():
        print(f"\n{found}")
    assert not found.violation, str(found)
    assert found.states >= count
    assert found.ends > 1


@pytest.mark.parametrize("name", always(BROKEN.keys() - SLOW, BROKEN))
def test_a_rule_that_is_broken_is_noticed(name: str) -> None:
    scope, rules, promise = BROKEN[name]
    found = search(replace(scope, rules=rules))
    assert promise in found.violation, str(found)
    assert found.story


def test_clients_come_to_their_ends() -> None:
    """Otherwise the states above would tell nothing of them."""
    happened = set[str]()
    for scope in (FREED, COLLECTED, STOPPED, DOUBLED):
        happened |= searched(scope).happened
    assert happened >= {
        "offload: finds an intent",
        "offload: its append is there",
        "offload: its rows were appended",
        "offload: finds the record changed",
        "offload: stores its look",
        "offload: finds the table wrong",
        "collect: releases",
        "collect: finds the table wrong",
        "collect: finds the record changed",
        "stop: forgets the table",
    }
