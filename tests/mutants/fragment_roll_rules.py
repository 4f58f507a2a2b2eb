"""Mutants of fragments that are begun because somebody asks for them."""

from .change import Replace
from .mutant import Mutant

SCRIPT = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says[fragments]"
ROLLS = "tests/integration/ledger/test_fragment_rolls.py"
COMES_BACK = f"{ROLLS}::test_all_bookies_get_their_share_and_those_that_left_come_back"

MUTANTS = (
    Mutant(
        "who came back is believed to have what was written while it was away",
        "auditing.look",
        Replace("_WITHOUT_A_GAP = 2", "_WITHOUT_A_GAP = 1000"),
        (f"{ROLLS}::test_who_came_back_has_not_got_what_was_written_while_it_was_away",),
    ),
    Mutant(
        "a fragment begins when all is acknowledged, though the write quorum is guaranteed",
        "FragmentRoll.next",
        Replace("any(pending.unfinished)", "pending"),
        (SCRIPT, f"{ROLLS}::test_with_a_guaranteed_write_quorum_it_waits_for_all_copies"),
    ),
    Mutant(
        "who failed before is in the new fragment",
        "FragmentRoll.next",
        Replace("frozenset(changes.failed)", "frozenset()"),
        (SCRIPT,),
    ),
    Mutant(
        "a writer that ends begins a fragment",
        "LedgerWriter._react",
        Replace("self.roll.give_up(ENDS)", "[]"),
        (SCRIPT,),
    ),
    Mutant(
        "one that failed in a place that somebody else has is replaced once more",
        "EnsembleChanges.rolled_over",
        Replace("self.failed.pop(index)", "self.failed[index]"),
        (SCRIPT,),
    ),
    Mutant(
        "who leaves forgets what it was sent",
        "Lanes.retire",
        Replace("lane.leave(give_back)", "lane.abandon()"),
        (f"{ROLLS}::test_who_leaves_finishes_what_it_was_sent", COMES_BACK),
    ),
    Mutant(
        "a member that stays changes its place",
        "bookies.in_place",
        Replace("index not in failed and member in chosen", "False"),
        ("tests/unit/protocol/test_placement.py::test_who_stays_keeps_its_place",),
    ),
    Mutant(
        "what a callback of a roll adds is left unsent",
        "Rolls.begun",
        Replace("self._told", "lambda: None"),
        (f"{ROLLS}::test_what_a_callback_adds_is_sent_when_it_has_ended",),
    ),
)
