"""Mutants of leases: who is held up, and who is not."""

from .mutant import Mutant

LEASES = "tests/integration/upkeep/test_leases.py"
RENEWED = f"{LEASES}::test_a_lease_that_is_renewed_meanwhile_is_living_whatever_times_it_tells"
DEAD = f"{LEASES}::test_a_lease_of_another_system_is_dead_once_it_was_not_renewed_for_long_enough"
GONE = f"{LEASES}::test_a_process_of_this_system_that_is_gone_holds_nobody_up"
NAMED = f"{LEASES}::test_verbs_do_not_exclude_each_other_and_named_ledgers_are_nobodys"
UNREADABLE = f"{LEASES}::test_a_record_that_cannot_be_read_stops_nobody"

MUTANTS = (
    Mutant(
        "a lease that is there is living",
        "Leases._looked_at",
        "                return now.value\n        return None\n",
        "                return now.value\n        return seen.value\n",
        (f"{DEAD}[another]", f"{DEAD}[unknown]"),
    ),
    Mutant(
        "a renewal is no sign of life",
        "Leases._looked_at",
        "if now.stored.version != seen.stored.version:",
        "if False:",
        (RENEWED,),
    ),
    Mutant(
        "who is at work does not renew",
        "_Renewing._work",
        "                if not self._leases.renew(is_held=is_held):",
        "                if not is_held and not self._leases.renew(is_held=is_held):",
        (f"{LEASES}::test_a_store_that_is_away_for_a_while_costs_a_renewal_and_no_more",),
    ),
    Mutant(
        "a process that is gone is waited for",
        "_is_free",
        " or is_gone(lease.holder)",
        "",
        (
            f"{LEASES}::test_what_was_killed_is_run_again_at_once_on_its_host",
            f"{GONE}[another process]",
        ),
    ),
    Mutant(
        "another process with its id is taken for who is gone",
        "is_gone",
        "    return bool(process.started and now) and now != process.started\n",
        "    return now == _DEAD\n",
        (f"{GONE}[another start]",),
    ),
    Mutant(
        "process ids of another system are looked up on this one",
        "is_gone",
        "    if not process.machine or process.machine != _machine():\n",
        "    if False:\n",
        (f"{DEAD}[another]", f"{DEAD}[unknown]"),
    ),
    Mutant(
        "a lease that cannot be read holds everybody up",
        "Leases._seen",
        "            return None if stored is None else Versioned(None, stored)\n",
        "            raise\n",
        (f"{UNREADABLE}[what is this?]",),
    ),
    Mutant(
        "a lease that somebody else has is taken back",
        "Leases.renew",
        " or seen.value.token != self._mine.token:",
        ":",
        (f"{LEASES}::test_who_lost_the_lease_goes_on_and_does_not_take_it_back",),
    ),
    Mutant(
        "who loses the race for a lease has it too",
        "Leases.take",
        "                continue  # somebody else was faster, or is living\n",
        "                return None\n",
        (f"{LEASES}::test_two_that_come_at_once_are_told_apart",),
    ),
    Mutant(
        "who has ended goes on holding it",
        "_Renewing.end",
        "        self._end.put(None)\n",
        "        pass\n",
        (f"{LEASES}::test_a_lease_is_let_go_of_when_the_work_fails",),
    ),
    Mutant(
        "a repair of named ledgers waits for one of all",
        "Verb.run",
        "        is_narrow = any(values.get(name) for name in _NARROWING)\n",
        "        is_narrow = False\n",
        (NAMED,),
    ),
)
