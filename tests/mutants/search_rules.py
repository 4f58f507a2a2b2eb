"""Mutants of the search through the states of a small scope."""

from .mutant import Mutant

STATES = "tests/simulation/test_exhaust_states.py"
MEMORY = "tests/simulation/test_exhaust_memory.py"
SMALLEST = "[1/1/1, one entry, closed by its writer, the writer dies anywhere, 1 recoverer]"
ENDS = f"{STATES}::test_what_is_left_out_leads_to_no_other_end{SMALLEST}"
FORGETTING = f"{STATES}::test_whoever_has_forgotten_goes_on_as_if_it_knew"

MUTANTS = (
    Mutant(
        "no other order of steps that do not commute",
        "tests/simulation/exhaustive/states.py",
        "            self._choose_rivals(crossing, deed, behind)\n        return",
        "        return",
        (ENDS,),
    ),
    Mutant(
        "what was tried before is never tried again",
        "tests/simulation/exhaustive/deeds.py",
        "                if other.task != deed.task and "
        "commute(dict(other.accesses), dict(deed.accesses)):\n",
        "                if other.task != deed.task:\n",
        (ENDS,),
    ),
    Mutant(
        "the writer dies before it does anything",
        "tests/simulation/exhaustive/moves.py",
        '        return (4, "", task)  # what it prevents would not be seen behind it\n',
        '        return (-1, "", task)\n',
        (ENDS,),
    ),
    Mutant(
        "states that were only foreseen are not looked at",
        "tests/simulation/exhaustive/states.py",
        "            self._pictures.require(row[self._width :], self._acked(row))\n",
        "            pass\n",
        (f"{STATES}::test_a_state_that_no_schedule_came_through_is_looked_at_too",),
    ),
    Mutant(
        "a picture without copies will do",
        "tests/simulation/exhaustive/pictures.py",
        '    oracle._require_copies(ledger, 0, acked, "acked", "I2")\n',
        "",
        (f"{STATES}::test_a_picture_that_breaks_a_promise_is_no_state_to_come_to",),
    ),
    Mutant(
        "what was learnt is not checked again",
        "tests/simulation/exhaustive/programs.py",
        "        if before != made:\n",
        "        if not made:\n",
        (f"{STATES}::test_a_step_that_does_something_else_the_second_time_is_found",),
    ),
    Mutant(
        "outcomes are not known",
        "tests/simulation/exhaustive/knowledge.py",
        "            known = (self._known.get(task.key), operation, _told(operation, outcome))\n",
        "            known = (self._known.get(task.key), operation)\n",
        (f"{STATES}::test_who_found_out_the_same_knows_the_same_and_nobody_else",),
    ),
    Mutant(
        "what is drawn by chance depends on what is forgotten",
        "tests/simulation/exhaustive/run.py",
        '        task.process.chance = Random(f"{task.key} {found!r}")\n',
        "",
        (f"{FORGETTING}[1/1/1, one entry, 2 recoverers]",),
    ),
    Mutant(
        "a recoverer forgets what it took over",
        "tests/simulation/exhaustive/milestones.py",
        'go_on(("has taken over", state))',
        'go_on("has taken over")',
        (f"{FORGETTING}[2/2/2, one entry, one ensemble change, 1 recoverer]",),
    ),
    Mutant(
        "what was seen unfenced is forgotten",
        "tests/simulation/exhaustive/milestones.py",
        "decided((state if isinstance(state, Closing) else state.closing).term.ledger)",
        "pass",
        (f"{STATES}::test_what_was_seen_unfenced_is_noticed_before_it_is_forgotten",),
    ),
    Mutant(
        "whoever waited could have come earlier",
        "tests/simulation/exhaustive/futures.py",
        "                if other is not Access.WAIT and conflict(access, other):\n",
        "                if conflict(access, other):\n",
        (f"{STATES}::test_steps_that_could_come_in_front_are_those_that_do_not_commute",),
    ),
    Mutant(
        "few states are told apart",
        "tests/simulation/exhaustive/memory.py",
        "blake2b(key, digest_size=8)",
        "blake2b(key, digest_size=1)",
        (f"{STATES}::test_fingerprints_tell_apart_what_differs{SMALLEST}",),
    ),
    Mutant(
        "whatever falls on the same place is the same",
        "tests/simulation/exhaustive/memory.py",
        "            if found == print_:\n",
        "            if found:\n",
        (f"{MEMORY}::test_what_falls_on_the_same_place_is_told_apart",),
    ),
    Mutant(
        "what was remembered is forgotten when the table grows",
        "tests/simulation/exhaustive/memory.py",
        "            if print_:\n                self._put(print_, number)\n",
        "            pass\n",
        (f"{MEMORY}::test_a_table_that_has_grown_still_knows_everything",),
    ),
    Mutant(
        "what is met later comes in front of nothing",
        "tests/simulation/exhaustive/deeds.py",
        "                one.later = None\n",
        "                pass\n",
        (f"{MEMORY}::test_what_is_met_later_can_come_in_front_too",),
    ),
    Mutant(
        "who sleeps later is woken by nothing",
        "tests/simulation/exhaustive/deeds.py",
        "                one.free = None\n",
        "                pass\n",
        (f"{MEMORY}::test_who_sleeps_wakes_when_something_happens_that_it_does_not_commute_with",),
    ),
    Mutant(
        "a step makes the same of whatever it looks at",
        "tests/simulation/exhaustive/moves.py",
        "        return self.moves.get(self.views.get(row[self.place]))\n",
        "        return next(iter(self.moves.values()), None)\n",
        (f"{MEMORY}::test_a_move_is_of_what_was_looked_at",),
    ),
)
