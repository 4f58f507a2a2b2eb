"""Mutants of copies that are made on disks that are full or fail."""

from .mutant import Mutant

TESTS = "tests/integration/upkeep/test_full_targets.py"

MUTANTS = (
    Mutant(
        "a bookie that fails while it takes copies is stood in for by nobody",
        "Repair._end",
        '            return one.task.elsewhere(one.fill.address, f"{who}: {reason}")\n',
        "            return self._leave(one.task, reason)\n",
        (
            f"{TESTS}::test_another_bookie_gets_the_place[replace-append]",
            f"{TESTS}::test_another_bookie_gets_the_place[decommission-append]",
        ),
    ),
    Mutant(
        "a disk that is full is written to until it fails",
        "fill._Work.carry_out",
        "            if problem:\n",
        "            if problem is None:\n",
        (f"{TESTS}::test_a_disk_that_is_full_is_asked_for_nothing",),
    ),
    Mutant(
        "a file for which a disk has no room is begun there",
        "_Work._copy_log",
        "            if not is_there and 0 < free < log.length_bytes:\n",
        "            if False:\n",
        (f"{TESTS}::test_a_file_for_which_there_is_no_room_is_not_begun[False]",),
    ),
)
