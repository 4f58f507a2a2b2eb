"""Ledgers that guarantee their write quorum: all states of small worlds, and what would be noticed.

Schedules of them are among all others (``test_simulation``).
"""

import pytest

from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.schedule import guarantees_write_quorum, run_schedule
from tests.simulation.states.search import search
from tests.simulation.states.world import Scope
from tests.simulation.write_quorum_mutants import MUTANTS

from ..thorough import always  # noqa: TID252
from . import mutants

SCHEDULES_MAX = 10_000
ONE_ACK, TWO, THREE = Quorum(2, 2, 1), Quorum(2, 2, 2), Quorum(3, 3, 2)

SCOPES = (
    Scope(TWO, dies=True, is_guaranteed=True),
    Scope(ONE_ACK, dies=True, is_guaranteed=True),
    Scope(ONE_ACK, failures=1, spares=1, is_guaranteed=True),
    Scope(THREE, dies=True, is_guaranteed=True),
    Scope(ONE_ACK, entries=2, dies=True, is_guaranteed=True),
    Scope(THREE, failures=1, spares=1, is_guaranteed=True),
)

BROKEN = (
    ("a close does not wait for the last copies", Scope(ONE_ACK, is_guaranteed=True)),
    (
        "a recovery writes back to Qa",
        Scope(ONE_ACK, entries=2, failures=1, spares=1, is_guaranteed=True),
    ),
    ("the LAFR is worked out by the specification's formula", SCOPES[4]),
    ("a recovery leaves alone what is confirmed", SCOPES[4]),
)


@pytest.mark.parametrize("scope", always(SCOPES[:2], SCOPES), ids=str)
def test_no_state_of_a_small_world_breaks_a_promise(
    scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(scope)
    with capsys.disabled():
        print(f"\n{found}")
    assert not found.violation, str(found)
    assert found.is_complete
    assert found.ends > 1


@pytest.mark.parametrize(("name", "scope"), always(BROKEN[:2], BROKEN, are_rows=True))
def test_a_state_shows_what_is_broken(name: str, scope: Scope) -> None:
    with mutants.changed(*MUTANTS[name]):
        found = search(scope)
    assert "(I2, I3)" in found.violation
    assert found.story


@pytest.mark.parametrize("name", always(list(MUTANTS)[:1], MUTANTS))
def test_a_broken_rule_is_noticed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with mutants.changed(*MUTANTS[name]):
        seeds = filter(guarantees_write_quorum, range(SCHEDULES_MAX))
        seed = next((seed for seed in seeds if run_schedule(seed).violation), None)
    assert seed is not None
    with capsys.disabled():
        print(f"\n{name}: noticed by schedule {seed + 1}")
