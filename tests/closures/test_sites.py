"""No change of a record is made where no operation of the table comes by."""

from .interleaving import Pair
from .operations import OPERATIONS
from .scene import scene
from .sites import Site, sites
from .test_pairs import BY_NAME

REACHED_INSIDE = (
    ("remove a new bookie", "write a ledger on a new bookie"),
    ("write a ledger on a new bookie", "remove a new bookie"),
    ("make a cursor of chained", "retain chained"),
    ("roll chained", "append to chained"),
    ("decommission all", "remove a new bookie"),
    ("widen a ledger", "remove a new bookie"),
)
"""Pairs in which one takes back, or tries again, what the other one was in the way of."""

POINTS_MAX = 12

NOTES = {
    "bkspark/admin/absent_bookies.py:note_silent",
    "bkspark/admin/agents.py:BookieRounds._note",
    "bkspark/ledger/recovery/recoverer.py:Recoverer._leave_reason",
}
"""These write over whatever is there, and decide nothing by it."""

AFTER_DAMAGE = {
    "bkspark/admin/damaged_records.py:require_unnamed",
    "bkspark/admin/restored_records.py:give_lost_place",
}
"""No scene is sound before these mend it; ``test_set_aside`` and ``test_lost_ends`` change records
inside them.
"""

OF_TABLES = {
    "bkspark/admin/offloading/ending.py:accept_changes",
    "bkspark/admin/offloading/ending.py:stop",
    "bkspark/admin/offloading/freeing.py:change_seen",
    "bkspark/admin/offloading/offload.py:_Offload._changed",
}
"""No scene has a table. ``tests/integration/tier`` changes records inside of these."""


def reached(site: Site, lines: set[tuple[str, int]]) -> bool:
    return any((site.path, line) in lines for line in range(site.first, site.last + 1))


def test_each_place_that_changes_a_record_is_come_by() -> None:
    world, _ = scene()
    for operation in OPERATIONS:
        Pair(operation, operation).traced(operation)
    for outer, inner in REACHED_INSIDE:
        pair = Pair(BY_NAME[outer], BY_NAME[inner])
        for point in pair.points(POINTS_MAX):
            pair.interrupted(point)
    left = {site.shown for site in sites() if not reached(site, world.sites)}
    assert left == NOTES | AFTER_DAMAGE | OF_TABLES


def test_places_are_found_in_the_source() -> None:
    found = {site.shown for site in sites()}
    assert len(found) > 50
    assert "bkspark/ledger/recovery/recoverer.py:Opener.open" in found  # under another name
