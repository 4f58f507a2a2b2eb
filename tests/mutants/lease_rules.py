"""Mutants of leases: who is held up, and who is not."""

from .change import Replace
from .mutant import Mutant

LEASES = "tests/integration/upkeep/test_leases.py"
DEAD = f"{LEASES}::test_a_lease_of_another_system_is_dead_once_it_was_not_renewed_for_long_enough"
GONE = f"{LEASES}::test_a_process_of_this_system_that_is_gone_holds_nobody_up"
UNREADABLE = f"{LEASES}::test_a_record_that_cannot_be_read_stops_nobody"

ELECTIONS = "tests/integration/log/test_elections.py"
ASKS = f"{ELECTIONS}::test_each_change_of_a_takeover_asks_before"
PAUSED = f"{ELECTIONS}::test_who_was_paused_does_not_take_the_log_back"

MUTANTS = (
    Mutant(
        "a lease that is there is living",
        "Leases._looked_at",
        Replace("return None", "return seen.value", at=1),
        (f"{DEAD}[another]", f"{DEAD}[unknown]"),
    ),
    Mutant(
        "who is at work does not renew",
        "Keeping._renew",
        Replace("self._claim.renew()", "True"),
        (f"{LEASES}::test_a_store_that_is_away_for_a_while_costs_a_renewal_and_no_more",),
    ),
    Mutant(
        "another process with its id is taken for who is gone",
        "is_gone",
        Replace("bool(process.started and now) and now != process.started", "now == _DEAD"),
        (f"{GONE}[another start]",),
    ),
    Mutant(
        "a lease that cannot be read holds everybody up",
        "Leases._seen",
        Replace("return None if stored is None else Versioned(None, stored)", "raise"),
        (f"{UNREADABLE}[what is this?]",),
    ),
    Mutant(
        "who loses the race for a lease has it too",
        "Leases.take",
        Replace("continue", "return None"),
        (f"{LEASES}::test_two_that_come_at_once_are_told_apart",),
    ),
    Mutant(
        "a change of a takeover is made by who leads no longer",
        "TimedStore.put",
        Replace("before_change()", "pass"),
        (f"{ASKS}[False]", f"{ASKS}[True]"),
    ),
    Mutant(
        "who leads no longer believes itself",
        "Election.require_leader",
        Replace("self.is_leader and self._claim.is_mine()", "self.is_leader"),
        (f"{PAUSED}[False]", f"{PAUSED}[True]"),
    ),
    Mutant(
        "who cannot renew its lease leads for ever",
        "Keeping.is_held",
        Replace("environment.monotonic() < self._renewed_at + self._claim.dead_seconds", "True"),
        (f"{ELECTIONS}::test_a_leader_that_cannot_renew_knows_by_its_own_clock",),
    ),
    Mutant(
        "a leader that cannot renew is not told",
        "Keeping._renew",
        Replace("return self.is_held", "return True"),
        (f"{ELECTIONS}::test_a_leader_that_cannot_renew_knows_by_its_own_clock",),
    ),
    Mutant(
        "the lease of another process is taken for one's own",
        "Leases._names_me",
        Replace("lease.token == self._mine.token", "True"),
        (f"{PAUSED}[False]", f"{ELECTIONS}::test_who_lost_the_leadership_is_told_once"),
    ),
    Mutant(
        "a lease counts from the answer on",
        "Keeping.__init__",
        Replace("claim.held_at", "environment.monotonic()"),
        (f"{ELECTIONS}::test_a_lease_counts_from_before_it_was_stored",),
    ),
)
