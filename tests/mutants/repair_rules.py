"""Mutants of the repair: what is copied where, who is named when, and what is left alone."""

from .change import Replace
from .mutant import Mutant

REPAIR = "tests/integration/upkeep/test_repair.py"
ANEW = "tests/integration/bookies/test_reinitialised_bookies.py"
BETWEEN = "tests/integration/upkeep/test_repairs_between.py"
CUT = f"{REPAIR}::test_only_the_records_that_are_missing_are_copied"
STRIPED = f"{REPAIR}::test_what_was_stored_for_another_place_is_not_what_is_missing"
AWAY = f"{REPAIR}::test_a_silent_bookie_is_replaced_when_it_was_so_for_as_long_as_was_said"

COPIED = "tests/integration/upkeep/test_copied_journal.py"

MUTANTS = (
    Mutant(
        "records are appended behind an append that failed",
        "CopiedJournal._flush",
        Replace("self._settle()", "if self._under_way:\n    self._client._last = None", at=0),
        (f"{COPIED}::test_nothing_is_put_behind_what_failed",),
    ),
    Mutant(
        "a bookie that was initialised anew never gets its place back",
        "Repair._target",
        Replace("set() if here is None else {place.member.bookie_id}", "{place.member.bookie_id}"),
        (f"{ANEW}::test_it_gets_its_place_back_where_no_other_bookie_is_free",),
    ),
    Mutant(
        "a ledger that is not closed is repaired",
        "repairing.repair.plan_of",
        Replace("ledger.state is not LedgerState.CLOSED", "ledger.state is LedgerState.DELETING"),
        (f"{REPAIR}::test_a_ledger_that_is_not_closed_is_left_as_it_is",),
    ),
    Mutant(
        "the order is that of ledgers",
        "repairing.repair.plan_of",
        Replace("need.urgency", "need.urgency[1:]"),
        (f"{REPAIR}::test_the_plan_names_the_worst_first_and_changes_nothing",),
    ),
    Mutant(
        "records for another place are the place's own",
        "JournalsShown.held_at",
        Replace("place == index", "place != index + 9"),
        (STRIPED,),
    ),
    Mutant(
        "all records are copied, also those that are there",
        "_FillWork._look",
        Replace("list(lacking(role, shown, planned))", "[role.entries]"),
        (CUT,),
    ),
    Mutant(
        "a place goes to a bookie that does not show the copies",
        "fill._FillWork._judged",
        Replace("if problem:\n    ...", "if problem == 0:\n    ..."),
        (f"{BETWEEN}::test_a_bookie_that_forgets_what_it_took_is_not_named",),
    ),
    Mutant(
        "what was found in place is counted before it is durable",
        "_FillWork._look",
        Replace("root.sync", "root.size"),
        (f"{BETWEEN}::test_what_a_killed_repair_left_is_made_durable_before_it_counts",),
    ),
    Mutant(
        "a bookie that is being removed gets the place",
        "Repair._swap",
        Replace("self._cluster.is_going(target.member)", "not target.member"),
        (f"{BETWEEN}::test_a_bookie_that_is_being_removed_does_not_get_the_place",),
    ),
    Mutant(
        "a lost race is a change that was made",
        "Repair._swap",
        Replace(
            "one.task.with_copies(target, 'another client changed the record of the ledger')",
            "None",
        ),
        (f"{BETWEEN}::test_a_record_that_changed_meanwhile_is_looked_at_anew",),
    ),
    Mutant(
        "copies are made again after a lost race",
        "Repair._target",
        Replace("task.kept", "None"),
        (f"{BETWEEN}::test_a_record_that_changed_meanwhile_is_looked_at_anew",),
    ),
    Mutant(
        "a lost bookie whose record cannot be read is none",
        "ids_in",
        Replace("prefix in _OF_BOOKIES", "prefix == layout.BOOKIES_PREFIX"),
        (
            f"{BETWEEN}"
            "::test_an_unreadable_record_of_a_lost_bookie_stops_repairs_of_its_own_ledgers_only",
        ),
    ),
    Mutant(
        "a bookie that has come back is replaced all the same",
        "Repair._target",
        Replace(
            "need.standing is MemberState.GONE and here is not None and (not is_lost)",
            "need.standing is MemberState.GONE and here is None and is_lost",
        ),
        (f"{BETWEEN}::test_a_bookie_that_comes_back_before_its_turn_keeps_its_place",),
    ),
    Mutant(
        "a silent bookie is given up at once",
        "_is_since",
        Replace("0 < away.since_ms <= then_ms", "0 < away.since_ms"),
        (AWAY,),
    ),
)
