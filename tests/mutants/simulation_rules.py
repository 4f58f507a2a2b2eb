"""Mutants of what the simulator leaves out, because it is the same but for names."""

from .change import Replace
from .mutant import Mutant

SYMMETRY = "tests/simulation/test_symmetry.py"
LOSSES = "tests/simulation/test_losses.py"
POWER = "tests/simulation/test_power_cuts.py"

MUTANTS = (
    Mutant(
        "recoverers that are alike take over in any order",
        "is_too_early",
        Replace("rank > takeovers", "False"),
        (f"{SYMMETRY}::test_recoverers_that_are_alike_take_over_in_their_order",),
    ),
    Mutant(
        "a bookie loses its cookie with its files",
        "Disks._names",
        Replace(
            "(name for name in self.at(bookie_id).files if name != COOKIE)",
            "(name for name in self.at(bookie_id).files)",
        ),
        (f"{LOSSES}::test_a_file_is_lost_and_never_the_cookie",),
    ),
    Mutant(
        "another bookie is hit than those that were",
        "Chance.may_hit",
        Replace("bookie_id in self.hit", "bool(self.hit)"),
        (f"{LOSSES}::test_no_other_bookie_is_hit_when_as_many_were_as_the_promise_allows",),
    ),
    Mutant(
        "a second failure makes the first durable",
        "Disks.leave_unsynced",
        Replace(
            "disk.unsynced.get(name, None if before is None else len(before.data))",
            "None if before is None else len(before.data)",
        ),
        (f"{POWER}::test_what_fails_anew_is_no_more_durable_than_before",),
    ),
    Mutant(
        "files are lost without end",
        "Chance.draw",
        Replace("sum((self.counts[one] for one in PARTIAL)) >= _PARTIAL_MAX", "False"),
        ("tests/simulation/test_losses.py::test_files_are_not_lost_without_end",),
    ),
)
