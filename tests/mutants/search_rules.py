"""Mutants of the search through the states of a small world."""

from .mutant import Mutant

TESTS = "tests/simulation/test_states.py"
BOTH = f"{TESTS}::test_states_end_where_schedules_of_the_real_clients_end"
RUNNER = f"{TESTS}::test_a_runner_that_breaks_a_rule_is_noticed"

MUTANTS = (
    Mutant(
        "nobody looks where a closed ledger ends",
        "world.require",
        "    if end < world.acked:\n",
        "    if False:\n",
        (RUNNER,),
    ),
    Mutant(
        "nobody counts copies",
        "world.require",
        "        if len(holders) < quorum.ack_quorum_size:\n",
        "        if not ledger.quorum:\n",
        (f"{TESTS}::test_a_change_that_is_not_stored_is_noticed",),
    ),
    Mutant(
        "no answer is ever lost",
        "Steps._of_copy",
        "        if world.failures:\n            for arrived in (without, there):\n",
        "        if not self.members:\n            for arrived in (without, there):\n",
        (f"{TESTS}::test_a_change_that_is_not_stored_is_noticed",),
    ),
    Mutant(
        "the second recoverer never begins",
        "steps.Steps.after",
        "            begun = not isinstance(self._states[recovery.state], Looking)\n",
        "            begun = False\n",
        (f"{TESTS}::test_recoverers_take_over_one_behind_the_other",),
    ),
    Mutant(
        "a recovery that fences leaves no fence",
        "Steps._fence",
        "            first = fenced if rules.fences_before_reading else world\n",
        "            first = world\n",
        (f"{BOTH}[2/2/2, one entry, 1 recoverer]",),
    ),
    Mutant(
        "a writer's state is no value once somebody failed",
        "EnsembleChanges.exclude",
        "        self._excluded |= frozenset(failures)\n",
        "        self._excluded |= failures.keys()\n",
        ("tests/protocol/test_writer.py::test_a_plain_loop_can_run_it",),
    ),
)
