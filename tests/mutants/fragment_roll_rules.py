"""Mutants of fragments that are begun because somebody asks for them."""

from .mutant import Mutant

ROLL = "protocol/writer/fragment_roll.py"
SCRIPT = "tests/protocol/test_scripts.py::test_the_machine_does_what_the_script_says[fragments]"
ROLLS = "tests/integration/ledger/test_fragment_rolls.py"
CHANCE = "tests/protocol/test_fragment_rolls.py"
COMES_BACK = f"{ROLLS}::test_all_bookies_get_their_share_and_those_that_left_come_back"

MUTANTS = (
    Mutant(
        "who came back is believed to have what was written while it was away",
        "admin/auditing/journals_shown.py",
        "_WITHOUT_A_GAP = 2\n",
        "_WITHOUT_A_GAP = 1_000\n",
        (f"{ROLLS}::test_who_came_back_has_not_got_what_was_written_while_it_was_away",),
    ),
    Mutant(
        "a fragment begins in front of what has no acknowledgement",
        ROLL,
        " and not any(pending.unfinished):",
        ":",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment begins when all is acknowledged, though the write quorum is guaranteed",
        ROLL,
        "not any(pending.unfinished)",
        "not pending",
        (SCRIPT, f"{ROLLS}::test_with_a_guaranteed_write_quorum_it_waits_for_all_copies"),
    ),
    Mutant(
        "what is added is sent to bookies that are about to leave",
        "protocol/writer/writing.py",
        "not (self.roll.holds or self.is_stopping",
        "not (self.is_stopping",
        (f"{ROLLS}::test_with_a_guaranteed_write_quorum_it_waits_for_all_copies",),
    ),
    Mutant(
        "a new fragment is named while the metadata is checked",
        "protocol/writer/writing.py",
        "                if self._checking is None:\n",
        "                if True:\n",
        (SCRIPT,),
    ),
    Mutant(
        "who comes in has stored what the one before has",
        "protocol/writer/writing.py",
        "        self.pending.replace_members(changed)\n",
        "",
        (f"{CHANCE}::test_who_comes_in_is_said_to_have_nothing",),
    ),
    Mutant(
        "a member that fails ends no roll",
        ROLL,
        "return self.give_up(reason) if self._is_looking or self._found else []",
        "return []",
        (SCRIPT,),
    ),
    Mutant(
        "bookies that were found before a member failed are named all the same",
        ROLL,
        "        if self._is_stale:\n            return []\n",
        "",
        (SCRIPT,),
    ),
    Mutant(
        "somebody is looked for in one place and in all places at once",
        "protocol/writer/writing.py",
        "self.changes.is_looking or self.roll.is_busy:",
        "self.changes.is_looking:",
        (SCRIPT,),
    ),
    Mutant(
        "all places are looked for while somebody is looked for in one",
        ROLL,
        " or changes.is_under_way:",
        ":",
        (SCRIPT,),
    ),
    Mutant(
        "who did not surely take the permission for a fragment is asked again",
        "protocol/writer/writing.py",
        "                self.changes.pass_over(dict(event.passed_over))\n",
        "",
        (
            SCRIPT,
            f"{ROLLS}::test_who_did_not_surely_take_the_permission_is_never_asked_again",
        ),
    ),
    Mutant(
        "who failed before is in the new fragment",
        ROLL,
        "frozenset(changes.failed), ",
        "frozenset(), ",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment is begun for copies that nobody makes",
        ROLL,
        "if pending.lagging is not None and changes.failed:",
        "if False:",
        (SCRIPT,),
    ),
    Mutant(
        "a fragment without entries is begun anew",
        ROLL,
        "if pending.last_add_pushed < mine.last_fragment.first_entry_id:",
        "if False:",
        (SCRIPT, f"{ROLLS}::test_a_fragment_without_entries_is_new_already"),
    ),
    Mutant(
        "a writer that ends begins a fragment",
        "protocol/writer/writing.py",
        "return self.roll.give_up(ENDS)",
        "return []",
        (SCRIPT,),
    ),
    Mutant(
        "what a writer on an endless ledger may change is counted for ever",
        "protocol/writer/ensemble_change.py",
        "        self._count = 0\n        return joins\n",
        "        return joins\n",
        (f"{CHANCE}::test_a_fragment_gives_a_writer_all_its_changes_anew",),
    ),
    Mutant(
        "one that failed in a place that somebody else has is replaced once more",
        "protocol/writer/ensemble_change.py",
        "                replaced = old.bookie_id, self.failed.pop(index)\n",
        "                replaced = old.bookie_id, self.failed[index]\n",
        (SCRIPT,),
    ),
    Mutant(
        "who left is asked anew for what it took",
        "cluster/enlisting.py",
        "given_back = held.hand_over(client.address.bookie_id) if held else None",
        "given_back = None",
        (COMES_BACK,),
    ),
    Mutant(
        "who left is not looked at before it comes back",
        "cluster/enlisting.py",
        "                joining.require_shown(client.address, given_back)\n",
        "                pass\n",
        (
            f"{ROLLS}::test_who_lost_what_it_took_does_not_come_back[the permission]",
            f"{ROLLS}::test_who_lost_what_it_took_does_not_come_back[the journal]",
        ),
    ),
    Mutant(
        "who leaves forgets what it was sent",
        "ledger/handles/lanes.py",
        "            lane.leave(give_back)\n",
        "            lane.abandon()\n",
        (f"{ROLLS}::test_who_leaves_finishes_what_it_was_sent", COMES_BACK),
    ),
    Mutant(
        "a bookie that still stores what it was sent is asked to come back",
        "ledger/handles/membership.py",
        "        exclude = step.exclude | lent\n",
        "        exclude = step.exclude\n",
        (f"{ROLLS}::test_who_leaves_finishes_what_it_was_sent",),
    ),
    Mutant(
        "a member that stays changes its place",
        "protocol/bookies/placement.py",
        "        if index not in failed and member in chosen\n",
        "        if False\n",
        ("tests/unit/protocol/test_placement.py::test_who_stays_keeps_its_place",),
    ),
    Mutant(
        "what a callback of a roll adds is left unsent",
        "ledger/handles/rolls.py",
        "for promise in self.taken()), self._told)",
        "for promise in self.taken()), lambda: None)",
        (f"{ROLLS}::test_what_a_callback_adds_is_sent_when_it_has_ended",),
    ),
)
