"""Mutants of the search through the states of a small world."""

from .change import Replace
from .mutant import Mutant

TESTS = "tests/simulation/test_states.py"

MUTANTS = (
    Mutant(
        "nobody counts copies",
        "world.require",
        Replace("len(holders) < quorum.ack_quorum_size", "not ledger.quorum"),
        (f"{TESTS}::test_a_change_that_is_not_stored_is_noticed",),
    ),
    Mutant(
        "no answer is ever lost",
        "Steps._of_copy",
        Replace("if world.failures:\n    ...", "if not self.members:\n    ..."),
        (f"{TESTS}::test_a_change_that_is_not_stored_is_noticed",),
    ),
    Mutant(
        "the second recoverer never begins",
        "steps.Steps.after",
        Replace("not isinstance(self._states[recovery.state], Looking)", "False"),
        (f"{TESTS}::test_recoverers_take_over_one_behind_the_other",),
    ),
    Mutant(
        "a writer's state is no value once somebody failed",
        "EnsembleChanges.exclude",
        Replace("frozenset(failures)", "failures.keys()"),
        ("tests/protocol/test_writer.py::test_a_plain_loop_can_run_it",),
    ),
)
