"""A year in the life of a cluster: what is in its logs is what a plain list says, every day.

Each day something is written and something goes wrong; each night the schedule that is shipped
runs (``conf``). Every morning every row is compared; every week nothing may be missing, disks have
what the live data needs and 5 % more at most, and the metadata are as many as what they are about.
"""

from collections.abc import Callable

import pytest

from bkspark import verbs
from tests.integration.rig import Rig

from .a_year import BOOKIES, Life, begun
from .disk_use import disk_use, kept_bytes, metadata_use, misplaced

EXCESS_MAX = 0.05

LEDGER_BYTES, LOG_BYTES, BOOKIE_BYTES, OTHER_BYTES = 2_000, 8_000, 1_000, 8_000
"""What the metadata may have of each, of bookies that are gone too."""


def live(make_rig: Callable[..., Rig], days: int, seed: int) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=BOOKIES)
    with begun(rig, seed) as life:
        for number in range(1, days + 1):
            life.day()
            life.night()
            assert misplaced(rig, rig.urls.keys() - life.leaving) == []
            life.morning()
            if number % 7 == 0:
                life.rest()
                life.morning()
                sunday(life, number)


def sunday(life: Life, number: int) -> None:
    report = verbs.audit(life.rig.uri)
    assert (report.left, report.details["copies"]) == ([], [])
    use, records = disk_use(life.rig), metadata_use(life.rig)
    excess = use.excess(kept_bytes(life.rig, life.rig.urls.keys() - life.leaving))
    print(f"day {number}: {use.stored.total():,} bytes, {excess:+.2%}; {records}", flush=True)
    assert (use.lacking, use.left_behind) == ([], [])
    assert excess <= EXCESS_MAX
    assert records["ledgers"][0] == len(use.copies)
    size = sum(size for _, size in records.values())
    counts = (len(use.copies), records["logs"][0], records["bookies"][0], 1)
    allowed = (LEDGER_BYTES, LOG_BYTES, BOOKIE_BYTES, OTHER_BYTES)
    assert size <= sum(count * one for count, one in zip(counts, allowed, strict=True))


@pytest.mark.thorough
def test_seven_weeks(make_rig: Callable[..., Rig]) -> None:
    live(make_rig, 49, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(3))
def test_a_year(make_rig: Callable[..., Rig], seed: int) -> None:
    live(make_rig, 365, seed)
