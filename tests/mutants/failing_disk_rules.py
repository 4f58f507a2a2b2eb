"""Mutants of copies that are made on disks that are full or fail."""

from .change import Replace
from .mutant import Mutant

TESTS = "tests/integration/upkeep/test_full_targets.py"

MUTANTS = (
    Mutant(
        "a bookie that fails while it takes copies is stood in for by nobody",
        "Repair._end",
        Replace(
            "one.task.elsewhere(one.fill.address, told_of(bookie_name, reason))",
            "self._leave(one.task, reason)",
        ),
        (
            f"{TESTS}::test_another_bookie_gets_the_place[replace-append]",
            f"{TESTS}::test_another_bookie_gets_the_place[decommission-append]",
        ),
    ),
    Mutant(
        "a disk that is full is written to until it fails",
        "fill._FillWork.carry_out",
        Replace("if problem:\n    ...", "if problem is None:\n    ..."),
        (f"{TESTS}::test_a_disk_that_is_full_is_asked_for_nothing",),
    ),
)
