"""Mutants of leases: who is held up, and who is not."""

from .change import Replace
from .mutant import Mutant

LEASES = "tests/integration/upkeep/test_leases.py"
DEAD = f"{LEASES}::test_a_lease_of_another_system_is_dead_once_it_was_not_renewed_for_long_enough"
GONE = f"{LEASES}::test_a_process_of_this_system_that_is_gone_holds_nobody_up"
UNREADABLE = f"{LEASES}::test_a_record_that_cannot_be_read_stops_nobody"

MUTANTS = (
    Mutant(
        "a lease that is there is living",
        "Leases._looked_at",
        Replace("return None", "return seen.value", at=1),
        (f"{DEAD}[another]", f"{DEAD}[unknown]"),
    ),
    Mutant(
        "who is at work does not renew",
        "_Renewing._work",
        Replace(
            "not self._leases.renew(is_held=is_held)",
            "not is_held and (not self._leases.renew(is_held=is_held))",
        ),
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
)
