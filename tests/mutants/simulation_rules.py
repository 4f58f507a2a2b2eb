"""Mutants of what the simulator leaves out, because it is the same but for names."""

from .mutant import Mutant

SYMMETRY = "tests/simulation/test_symmetry.py"
LOSSES = "tests/simulation/test_losses.py"
POWER = "tests/simulation/test_power_cuts.py"

MUTANTS = (
    Mutant(
        "bookies that are alike answer in any order",
        "Turns.wait",
        "                self._scheduler.pause(lambda: self._answered == rank)\n",
        "",
        (f"{SYMMETRY}::test_bookies_that_are_alike_answer_the_writer_in_their_order",),
    ),
    Mutant(
        "every answer has a turn",
        "Turns.wait",
        "if rank is not None and rank >= self._answered:",
        "if rank is not None:",
        (f"{SYMMETRY}::test_the_second_answer_has_no_turn",),
    ),
    Mutant(
        "other processes wait for the writer's bookies",
        "Turns._rank",
        "if task is None or task.process.name != self._writer:",
        "if task is None:",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "whatever is waited for is an answer",
        "Turns.wait",
        ' and thing.startswith("lock")',
        "",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "whoever lets go of a lock answers",
        "Turns.wait",
        "is_answer = access is Access.WAIT and thing",
        "is_answer = thing",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "recoverers that are alike take over in any order",
        "is_too_early",
        "rank > takeovers",
        "False",
        (f"{SYMMETRY}::test_recoverers_that_are_alike_take_over_in_their_order",),
    ),
    Mutant(
        "who comes second waits for a takeover that never comes",
        "is_too_early",
        "    return ledger.state is not LedgerState.CLOSED and rank",
        "    return rank",
        (f"{SYMMETRY}::test_a_recoverer_waits_with_a_takeover_only",),
    ),
    Mutant(
        "a recoverer that only looks has to wait",
        "is_too_early",
        '    if pending is None or pending[:2] != (METADATA, "put"):\n',
        "    if pending is None:\n",
        (f"{SYMMETRY}::test_a_recoverer_waits_with_a_takeover_only",),
    ),
    Mutant(
        "what cannot be known is lost",
        "Disks.cut_to",
        "        if not self._would(bookie_id, lengths, self._oracle.are_losses_knowable):\n",
        "        if False:\n",
        (f"{LOSSES}::test_what_cannot_be_known_is_not_lost[says nothing]",),
    ),
    Mutant(
        "what records say tells nobody anything",
        "_is_misled",
        "        if listens and record.last_add_confirmed > floor:\n",
        "        if False:\n",
        (f"{LOSSES}::test_what_cannot_be_known_is_not_lost[says that it had the first]",),
    ),
    Mutant(
        "a bookie loses its cookie with its files",
        "Disks._names",
        " if name != COOKIE)",
        ")",
        (f"{LOSSES}::test_a_file_is_lost_and_never_the_cookie",),
    ),
    Mutant(
        "the oracle is not told what a cut takes",
        "damage.damage",
        "    ledger.cut |= {(copy, *member) for copy in gone}\n",
        "",
        (f"{LOSSES}::test_a_file_keeps_any_start_of_it",),
    ),
    Mutant(
        "another bookie is hit than those that were",
        "Chance.may_hit",
        "bookie_id in self.hit or self.losses_left > 0",
        "bool(self.hit) or self.losses_left > 0",
        (f"{LOSSES}::test_no_other_bookie_is_hit_when_as_many_were_as_the_promise_allows",),
    ),
    Mutant(
        "what is seen is durable",
        "Oracle._count_durable",
        "        if name in place.disk.unsynced:\n            return\n",
        "",
        (f"{POWER}::test_a_copy_counts_once_it_is_durable",),
    ),
    Mutant(
        "who finds a file made leaves it in the page cache",
        "MemoryRoot.put_new",
        "            self._disk.sync(name)  # what was there already, too\n",
        "",
        (f"{POWER}::test_what_is_found_in_place_is_made_durable",),
    ),
    Mutant(
        "a second failure makes the first durable",
        "Disks.leave_unsynced",
        "durable = disk.unsynced.get(name, None if before is None else len(before.data))",
        "durable = None if before is None else len(before.data)",
        (f"{POWER}::test_what_fails_anew_is_no_more_durable_than_before",),
    ),
    Mutant(
        "files are lost without end",
        "Chance.draw",
        "sum(self.counts[one] for one in PARTIAL) >= _PARTIAL_MAX",
        "False",
        ("tests/simulation/test_losses.py::test_files_are_not_lost_without_end",),
    ),
)
