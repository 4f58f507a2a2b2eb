"""Mutants of agents: what they free, and which of them works."""

from .change import Replace
from .mutant import Mutant

AGENTS = "tests/integration/upkeep/test_agents.py"

MUTANTS = (
    Mutant(
        "an agent frees what is not deleted",
        "BookieRounds._deleted",
        Replace("seen.value.state is LedgerState.DELETING", "True"),
        (f"{AGENTS}::test_a_deleted_ledger_is_freed_on_the_agents_own_bookie",),
    ),
    Mutant(
        "a bookie that gives other bytes passes its test",
        "TryBookie.run",
        Replace("root.read(name) == data", "root.read(name) is not None"),
        (f"{AGENTS}::test_a_bookie_that_does_not_keep_what_it_is_given_is_told_of_once",),
    ),
    Mutant(
        "a command is run again although it ran lately",
        "UpkeepRounds.round",
        Replace("self._ran_lately(name)", "False"),
        (f"{AGENTS}::test_upkeep_runs_what_is_due_and_was_not_run_lately",),
    ),
    Mutant(
        "a lease that nobody renews is alive",
        "_renewed",
        Replace("now.get(key) != lease", "True"),
        (f"{AGENTS}::test_a_leader_is_alive_if_it_renews_between_two_looks",),
    ),
    Mutant(
        "an agent serves a bookie that it leads no longer",
        "Agent._lead",
        Replace("election.is_leader and (not self._is_over)", "not self._is_over"),
        (f"{AGENTS}::test_an_agent_serves_until_it_is_stopped_or_another_one_is_elected",),
    ),
)
