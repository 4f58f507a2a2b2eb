"""Mutants of decommission and rebalance: what moves where, what stays, what is never given up."""

from .change import Replace
from .mutant import Mutant

PURE = "tests/unit/protocol/test_draining.py"
EVEN = "tests/unit/protocol/test_balancing.py"
EVENED = "tests/integration/upkeep/test_rebalance.py"
CHANCE = f"{EVEN}::test_it_gets_better_keeps_all_promises_and_another_plan_has_nothing_to_do"
READERS = "tests/integration/upkeep/test_readers_beside_moves.py"
EMPTIED = "tests/integration/upkeep/test_decommission.py"

MUTANTS = (
    Mutant(
        "an open ledger leaves the bookie that is emptied",
        "places_to_leave",
        Replace("ledger.state is not LedgerState.CLOSED", "ledger.state is LedgerState.DELETING"),
        (f"{PURE}::test_a_ledger_that_is_not_closed_keeps_its_members",),
    ),
    Mutant(
        "an entry of an open ledger is had by all of its write set",
        "is_kept_without",
        Replace("ledger.state is LedgerState.CLOSED", "ledger.state is not LedgerState.DELETING"),
        (
            f"{PURE}::test_what_is_given_up_is_had_by_others",
            f"{EMPTIED}::test_with_an_ack_quorum_of_one_no_open_ledger_is_given_up",
        ),
    ),
    Mutant(
        "what a log has let go of is copied",
        "obstacle",
        Replace(
            "ledger.ledger_id in dropped",
            "ledger.ledger_id in dropped and ledger.state is LedgerState.OPEN",
        ),
        (f"{EMPTIED}::test_what_a_log_has_let_go_of_is_not_copied",),
    ),
    Mutant(
        "new ledgers are placed on bookies that are emptied",
        "_Decommission.close",
        Replace(
            "set_read_only(self._cluster, bookie_id)",
            "set_read_only(self._cluster, bookie_id, dry_run=True)",
        ),
        (f"{EMPTIED}::test_no_new_ledger_is_placed_on_one_that_is_being_emptied",),
    ),
    Mutant(
        "who opens a bookie again is not heard",
        "_Decommission._note_opened",
        Replace("self._opened.add", "self._opened.discard"),
        (f"{EMPTIED}::test_it_is_taken_back_by_opening_it_again",),
    ),
    Mutant(
        "what is closed meanwhile is left for another run",
        "_Decommission.empty",
        Replace("self._carry_out(steps, progress)", "return self._carry_out(steps, progress)"),
        (f"{EMPTIED}::test_a_ledger_that_is_closed_meanwhile_is_moved_by_the_same_run",),
    ),
    Mutant(
        "the last copy is given up by force",
        "_Decommission._end_of",
        Replace("if kept:\n    ...", "if not kept:\n    ..."),
        (f"{EMPTIED}::test_one_that_does_not_answer_and_may_have_the_only_copy_stays",),
    ),
    Mutant(
        "a place without entries is none",
        "Fill.run",
        Replace("Filled(0, 0)", "NotFilled('it has none')"),
        (f"{EMPTIED}::test_a_ledger_without_entries_has_places_too",),
    ),
    Mutant(
        "a place to which no entry belongs lacks all of them",
        "fill._FillWork._judged",
        Replace("[*self.holes, *self.others]", "self.holes"),
        (f"{EMPTIED}::test_a_place_to_which_no_entry_belongs_is_given_as_it_is",),
    ),
    Mutant(
        "what is nearly even is made more so",
        "moves_of",
        Replace("farthest(loads) <= threshold", "farthest(loads) <= 0"),
        (f"{EVEN}::test_nothing_moves_within_the_threshold_nor_where_no_move_helps",),
    ),
    Mutant(
        "bytes move also where that helps nobody",
        "_Balance._found",
        Replace(
            "2 * gap / (1 / source.capacity + 1 / target.capacity)",
            "4 * gap / (1 / source.capacity + 1 / target.capacity)",
        ),
        (CHANCE,),
    ),
    Mutant(
        "copies come nearer together",
        "_Balance._may_take",
        Replace("self._keeps(fragment, now, after)", "bool(after)"),
        (f"{EVEN}::test_copies_stay_as_far_apart_as_they_were",),
    ),
    Mutant(
        "who was to take a place and cannot is stood in for",
        "Successors.beside",
        Replace("if only:\n    ...", "if not staying:\n    ..."),
        (f"{EVENED}::test_who_was_to_take_a_place_and_cannot_is_named_and_nobody_else_gets_it",),
    ),
    Mutant(
        "what a bookie lost makes its ledger light",
        "balancing._places",
        Replace("median_low(known)", "min(known)"),
        (f"{EVENED}::test_what_one_bookie_lost_makes_no_ledger_light",),
    ),
    Mutant(
        "who was given a place is missed a journal that it never had",
        "_journals",
        Replace(
            "[p for p in problems[known:] if not (shows_any and p == absent)]",
            "[p for p in problems[known:]]",
        ),
        (f"{READERS}::test_rows_that_moved_are_planned_without_a_warning",),
    ),
    Mutant(
        "what gains hardly anything is moved",
        "_Balance._found",
        Replace("source.level - target.level - self._least", "source.level - target.level"),
        (f"{EVEN}::test_what_gains_hardly_anything_stays",),
    ),
)
