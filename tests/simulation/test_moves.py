"""Places move and bookies are emptied while everything may fail: no promise is broken by it."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bkspark.admin.draining import decommission
from bkspark.admin.maintenance import Report
from bkspark.admin.repairing import repair
from bkspark.admin.repairing.fill import Filled, _FillWork
from bkspark.admin.repairing.repair import Repair
from bkspark.cluster.records import Records
from bkspark.protocol.ledger.locations import Location, Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import Need, Place
from tests.simulation.many import run_many
from tests.simulation.schedule import run_schedule

from ..thorough import always  # noqa: TID252
from . import mutants
from .mutants import Change

SCHEDULES = 12
FIRST_SEEDS = range(3_500_000, 3_500_060, SCHEDULES)


@pytest.mark.parametrize("first", always([3_500_000], FIRST_SEEDS))
@pytest.mark.parametrize("loses_files", always([True], [True, False]))
def test_moves_beside_all_else_break_no_promise(first: int, loses_files: bool) -> None:
    run = partial(run_schedule, moves=True, repairs=True, loses_files=loses_files)
    total = run_many(first, count=SCHEDULES, run=run)
    assert total.failed is None, total.failed
    assert total.schedules == SCHEDULES


def test_they_do_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bookies are removed that had something, and others get places that a plan names."""
    removed, moved = list[int](), list[int]()

    def counting(*args: Any, **options: Any) -> Report:
        report = decommission(*args, **options)
        removed.append(bool(report.done["places"] and report.done["bookies"]))
        return report

    def carry_out(self: Repair, *args: Any) -> None:
        real(self, *args)
        moved.append(sum(step.to != "" for step in self.done))

    real = Repair.carry_out
    monkeypatch.setattr("tests.simulation.clients.decommission", counting)
    monkeypatch.setattr(Repair, "carry_out", carry_out)
    for seed in range(24):
        assert not run_schedule(seed, moves=True).violation
    assert sum(removed) > 2
    assert sum(moved) > 0


def unlooked(self: _FillWork, _role: object) -> Filled:
    return Filled(self.records, self.pace.byte_count)


def of_any_state(ledger: LedgerMetadata, place: Place) -> Location | None:
    found = Locations(ledger).at(place.fragment_first_entry_id)
    return found if found is not None and found.members[place.index] == place.member else None


def leaving_any(ledger: LedgerMetadata, *args: Any) -> Iterator[Need]:
    closed: dict[str, Any] = {"last_entry_id": 0, "length_bytes": 0}
    return real_places(replace(ledger, state=LedgerState.CLOSED, **closed), *args)


real_places: Callable[..., Iterator[Need]] = repairing.places_to_leave
UNLOOKED: tuple[Change, ...] = (
    (_FillWork, "_judged", unlooked),
    (repair, "problem_of", lambda *_: ""),
)
BROKEN: dict[str, tuple[Change, ...]] = {
    "places are given without copies": (*UNLOOKED, (_FillWork, "_copy_records", mutants.nothing)),
    "a record is changed without compare": ((Records, "_put", mutants.put_without_version),),
    "nobody looks at copies behind making them": UNLOOKED,
    "places of open ledgers move": (
        (repairing, "location_of", of_any_state),
        (repairing, "places_to_leave", leaving_any),
    ),
}
SEEDS_MAX = 400


@pytest.mark.parametrize("name", always(list(BROKEN)[:2], list(BROKEN)))
def test_a_broken_rule_is_noticed(name: str) -> None:
    losing = {"loses_files": True, "repairs": True}
    with mutants.changed(*BROKEN[name]):
        found = (run_schedule(seed, moves=True, **losing).violation for seed in range(SEEDS_MAX))
        assert any(found)
