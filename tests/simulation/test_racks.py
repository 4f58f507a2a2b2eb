"""Ledgers that insist on racks, while everything may fail: no change brings copies together."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from bkspark.cluster import ensembles
from bkspark.protocol import apart
from bkspark.protocol.bookies import Labels
from tests.simulation.many import run_many
from tests.simulation.racks import RackWatch
from tests.simulation.schedule import run_schedule

from ..thorough import always  # noqa: TID252
from . import mutants
from .mutants import Change

SCHEDULES = 20
FIRST_SEEDS = range(4_700_000, 4_700_100, SCHEDULES)
KINDS: dict[str, dict[str, bool]] = {
    "moves": {"moves": True, "repairs": True},
    "plain": {},
    "terms": {"terms": True, "repairs": True},
    "fragments": {"rolls": True, "moves": True},
    "upkeep": {"upkeep": True, "loses_files": True},
}


@pytest.mark.parametrize("first", always([4_700_000], FIRST_SEEDS))
@pytest.mark.parametrize("kind", always(["moves"], [*KINDS]))
def test_no_change_brings_copies_together(first: int, kind: str) -> None:
    total = run_many(first, count=SCHEDULES, run=partial(run_schedule, racks=True, **KINDS[kind]))
    assert total.failed is None, total.failed
    assert total.schedules == SCHEDULES


@pytest.mark.thorough
def test_places_change_and_a_recovery_takes_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    watches: list[RackWatch] = []
    init = RackWatch.__init__

    def noting(self: RackWatch, *args: Any) -> None:
        init(self, *args)
        watches.append(self)

    monkeypatch.setattr(RackWatch, "__init__", noting)
    for seed in range(30):
        assert not run_schedule(seed, racks=True, moves=True, repairs=True).violation
    assert sum(watch.changes for watch in watches) > 5
    for seed in range(30):
        assert not run_schedule(seed, racks=True, terms=True).violation
    assert sum(watch.losses for watch in watches) > 0


def any_labels(*_: object) -> Callable[[Labels], bool]:
    return lambda _labels: True


BROKEN: dict[str, tuple[dict[str, bool], Change]] = {
    "a place is given to any bookie": (KINDS["moves"], (ensembles, "_fitting", any_labels)),
    "a recovery does not care": ({}, (apart.Apart, "fits", mutants.always)),
    "a new fragment has its bookies in any order": (
        KINDS["fragments"],
        (apart.Apart, "is_kept", mutants.always),
    ),
    "the usual ensemble is taken": ({}, (apart.Apart, "shortfall", lambda *_: "")),
}
SEEDS_MAX = 400


@pytest.mark.parametrize("name", always(list(BROKEN)[:1], list(BROKEN)))
def test_a_broken_rule_is_noticed(name: str) -> None:
    kind, change = BROKEN[name]
    with mutants.changed(change):
        runs = (run_schedule(seed, racks=True, **kind).violation for seed in range(SEEDS_MAX))
        assert any("(apart" in found for found in runs)
