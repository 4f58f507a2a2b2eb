"""Mutants of what the simulator leaves out, because it is the same but for names."""

from .mutant import Mutant

SYMMETRY = "tests/simulation/test_symmetry.py"

MUTANTS = (
    Mutant(
        "bookies that are alike answer in any order",
        "testing/simulation/symmetry.py",
        "                self._scheduler.pause(lambda: self._answered == rank)\n",
        "",
        (f"{SYMMETRY}::test_bookies_that_are_alike_answer_the_writer_in_their_order",),
    ),
    Mutant(
        "every answer has a turn",
        "testing/simulation/symmetry.py",
        "        if rank >= self._answered:\n",
        "        if True:\n",
        (f"{SYMMETRY}::test_the_second_answer_has_no_turn",),
    ),
    Mutant(
        "other processes wait for the writer's bookies",
        "testing/simulation/symmetry.py",
        "if task is None or task.process.name != self._writer:",
        "if task is None:",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "whatever is written is an answer",
        "testing/simulation/symmetry.py",
        ' and thing.startswith("inbox of ") and "," not in thing',
        "",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "whoever reads its inbox answers",
        "testing/simulation/symmetry.py",
        "is_answer = access is Access.WRITE and thing",
        "is_answer = thing",
        (f"{SYMMETRY}::test_nobody_else_waits_and_nothing_else_is_waited_for",),
    ),
    Mutant(
        "recoverers that are alike take over in any order",
        "testing/simulation/symmetry.py",
        "rank > takeovers",
        "False",
        (f"{SYMMETRY}::test_recoverers_that_are_alike_take_over_in_their_order",),
    ),
    Mutant(
        "who comes second waits for a takeover that never comes",
        "testing/simulation/symmetry.py",
        "    return ledger.state is not LedgerState.CLOSED and rank",
        "    return rank",
        (f"{SYMMETRY}::test_a_recoverer_waits_with_a_takeover_only",),
    ),
    Mutant(
        "a recoverer that only looks has to wait",
        "testing/simulation/symmetry.py",
        '    if pending is None or pending[:2] != (METADATA, "put"):\n',
        "    if pending is None:\n",
        (f"{SYMMETRY}::test_a_recoverer_waits_with_a_takeover_only",),
    ),
)
