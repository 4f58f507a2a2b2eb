"""Mutants of fragments that are begun because somebody asks for them."""

from .mutant import Mutant

SCRIPT = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says[fragments]"
ROLLS = "tests/integration/ledger/test_fragment_rolls.py"
CHANCE = "tests/protocol/test_fragment_rolls.py"
COMES_BACK = f"{ROLLS}::test_all_bookies_get_their_share_and_those_that_left_come_back"

MUTANTS = (
    Mutant(
        "who came back is believed to have what was written while it was away",
        "journals_shown",
        "_WITHOUT_A_GAP = 2\n",
        "_WITHOUT_A_GAP = 1_000\n",
        (f"{ROLLS}::test_who_came_back_has_not_got_what_was_written_while_it_was_away",),
    ),
    Mutant(
        "a fragment begins in front of what has no acknowledgement",
        "FragmentRoll.next",
        " and not any(pending.unfinished):",
        ":",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment begins when all is acknowledged, though the write quorum is guaranteed",
        "FragmentRoll.next",
        "not any(pending.unfinished)",
        "not pending",
        (SCRIPT, f"{ROLLS}::test_with_a_guaranteed_write_quorum_it_waits_for_all_copies"),
    ),
    Mutant(
        "what is added is sent to bookies that are about to leave",
        "LedgerWriter.may_submit",
        "not (self.roll.holds or self.is_stopping",
        "not (self.is_stopping",
        (f"{ROLLS}::test_with_a_guaranteed_write_quorum_it_waits_for_all_copies",),
    ),
    Mutant(
        "a new fragment is named while the metadata is checked",
        "LedgerWriter.receive",
        "                if self._checking is None:\n",
        "                if True:\n",
        (SCRIPT,),
    ),
    Mutant(
        "who comes in has stored what the one before has",
        "LedgerWriter._roll_over",
        "        self.pending.replace_members(changed)\n",
        "",
        (f"{CHANCE}::test_who_comes_in_is_said_to_have_nothing",),
    ),
    Mutant(
        "a member that fails ends no roll",
        "FragmentRoll.member_failed",
        "return self.give_up(reason) if self._is_looking or self._found else []",
        "return []",
        (SCRIPT,),
    ),
    Mutant(
        "bookies that were found before a member failed are named all the same",
        "FragmentRoll.found",
        "        if self._is_stale:\n            return []\n",
        "",
        (SCRIPT,),
    ),
    Mutant(
        "somebody is looked for in one place and in all places at once",
        "LedgerWriter._look_for_a_bookie",
        "self.changes.is_looking or self.roll.is_busy:",
        "self.changes.is_looking:",
        (SCRIPT,),
    ),
    Mutant(
        "all places are looked for while somebody is looked for in one",
        "FragmentRoll.next",
        " or changes.is_under_way:",
        ":",
        (SCRIPT,),
    ),
    Mutant(
        "who did not surely take the permission for a fragment is asked again",
        "LedgerWriter._react",
        "                self.changes.pass_over(dict(event.passed_over))\n",
        "",
        (
            SCRIPT,
            f"{ROLLS}::test_who_did_not_surely_take_the_permission_is_never_asked_again",
        ),
    ),
    Mutant(
        "who failed before is in the new fragment",
        "FragmentRoll.next",
        "frozenset(changes.failed), ",
        "frozenset(), ",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment is begun for copies that nobody makes",
        "FragmentRoll.next",
        "if pending.lagging is not None and changes.failed:",
        "if False:",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment without entries is begun anew",
        "FragmentRoll.next",
        "if pending.last_add_pushed < mine.last_fragment.first_entry_id:",
        "if False:",
        (SCRIPT, f"{ROLLS}::test_a_fragment_without_entries_is_new_already"),
    ),
    Mutant(
        "a writer that ends begins a fragment",
        "LedgerWriter._react",
        "return self.roll.give_up(ENDS)",
        "return []",
        (SCRIPT,),
    ),
    Mutant(
        "what a writer on an endless ledger may change is counted for ever",
        "EnsembleChanges.rolled_over",
        "        self._count = 0\n        return joins\n",
        "        return joins\n",
        (f"{CHANCE}::test_a_fragment_gives_a_writer_all_its_changes_anew",),
    ),
    Mutant(
        "one that failed in a place that somebody else has is replaced once more",
        "EnsembleChanges.rolled_over",
        "                replaced = old.bookie_id, self.failed.pop(index)\n",
        "                replaced = old.bookie_id, self.failed[index]\n",
        (SCRIPT,),
    ),
    Mutant(
        "who left is asked anew for what it took",
        "enlisting.enlist",
        "given_back = held.hand_over(client.address.bookie_id) if held else None",
        "given_back = None",
        (COMES_BACK,),
    ),
    Mutant(
        "who left is not looked at before it comes back",
        "enlisting.enlist",
        "                joining.require_shown(client.address, given_back)\n",
        "                pass\n",
        (
            f"{ROLLS}::test_who_lost_what_it_took_does_not_come_back[the permission]",
            f"{ROLLS}::test_who_lost_what_it_took_does_not_come_back[the journal]",
        ),
    ),
    Mutant(
        "who leaves forgets what it was sent",
        "Lanes.retire",
        "            lane.leave(give_back)\n",
        "            lane.abandon()\n",
        (f"{ROLLS}::test_who_leaves_finishes_what_it_was_sent", COMES_BACK),
    ),
    Mutant(
        "a bookie that still stores what it was sent is asked to come back",
        "Membership.muster",
        "        exclude = step.exclude | lent\n",
        "        exclude = step.exclude\n",
        (f"{ROLLS}::test_who_leaves_finishes_what_it_was_sent",),
    ),
    Mutant(
        "a member that stays changes its place",
        "placement.in_place",
        "        if index not in failed and member in chosen\n",
        "        if False\n",
        ("tests/unit/protocol/test_placement.py::test_who_stays_keeps_its_place",),
    ),
    Mutant(
        "what a callback of a roll adds is left unsent",
        "Rolls.begun",
        "for promise in self.taken()), self._told)",
        "for promise in self.taken()), lambda: None)",
        (f"{ROLLS}::test_what_a_callback_adds_is_sent_when_it_has_ended",),
    ),
)
