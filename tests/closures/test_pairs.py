"""One operation inside another one, all in all: nothing acknowledged is lost, and all is as said.

The pairs in which a guard decides are run always; all pairs are some 20,000 points, a long run.

    pytest -n 2 -m soak tests/closures
"""

from zlib import crc32

import pytest

from tests.thorough import always

from .guarded import GUARDED
from .interleaving import Pair, require_true
from .operations import OPERATIONS, Operation

BY_NAME = {operation.name: operation for operation in OPERATIONS}
POINTS_MAX = 5
GUARDED_POINTS_MAX = 9
TIDIED_ONE_IN = 8


def run(outer: Operation, inner: Operation, points_max: int, *, tidied_one_in: int) -> int:
    """How many points were tried."""
    pair = Pair(outer, inner)
    points = pair.points(points_max)
    for point in points:
        result = pair.interrupted(point)
        is_chosen = crc32(f"{outer.name}|{inner.name}|{point}".encode()) % tidied_one_in == 0
        require_true(pair, result, tidies=is_chosen)
    return len(points)


@pytest.mark.parametrize(
    ("outer", "inner"),
    always(GUARDED[::9], GUARDED, are_rows=True),
    ids=[f"{outer}|{inner}".replace(" ", "-") for outer, inner in GUARDED],
)
def test_where_a_guard_decides(outer: str, inner: str) -> None:
    assert run(BY_NAME[outer], BY_NAME[inner], GUARDED_POINTS_MAX, tidied_one_in=4)


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.parametrize("outer", OPERATIONS, ids=lambda outer: outer.name.replace(" ", "-"))
def test_every_other_one_inside(outer: Operation) -> None:
    tried = sum(run(outer, inner, POINTS_MAX, tidied_one_in=TIDIED_ONE_IN) for inner in OPERATIONS)
    assert tried
