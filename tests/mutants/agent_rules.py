"""Mutants of agents: what they free, and which of them works."""

from .change import Replace
from .mutant import Mutant

AGENTS = "tests/integration/upkeep/test_agents.py"

MUTANTS = (
    Mutant(
        "an agent is told of no deletion",
        "BookieRounds._free",
        Replace("self._watch_records(found)", "..."),
        (f"{AGENTS}::test_a_deleted_ledger_is_freed_between_two_rounds",),
    ),
    Mutant(
        "what is deleted during a look waits for the next round",
        "Agent._pause",
        Replace(
            "problem = _problem_of(one.rounds.news)",
            "problem = _problem_of(one.rounds.news); changes.forget()",
        ),
        (f"{AGENTS}::test_what_is_deleted_during_a_look_is_freed_too",),
    ),
    Mutant(
        "an agent looks for deletions all the time while records change",
        "Agent._pause",
        Replace(
            "max(NEWS_SECONDS, NEWS_SHARE * (environment.monotonic() - began))", "NEWS_SECONDS"
        ),
        (f"{AGENTS}::test_looks_for_deletions_take_a_small_part_of_the_time",),
    ),
    Mutant(
        "a change without a problem ends the problem of the last round",
        "Agent._pause",
        Replace("if problem: ...", "if True: ..."),
        (f"{AGENTS}::test_what_a_round_told_is_not_over_after_a_change",),
    ),
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
