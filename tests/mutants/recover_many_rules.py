"""Mutants of recovering many ledgers: whose writers are left alone, and what holds up whom."""

from .change import Replace
from .mutant import Mutant

MANY = "tests/integration/upkeep/test_recover_many.py"
IDLE = "tests/unit/protocol/test_idleness.py"
LATER = (
    f"{MANY}::test_an_open_ledger_is_recovered_once_it_was_seen_unchanged_for_long_enough[memory]"
)
AT_WORK = f"{MANY}::test_a_writer_that_was_at_work_meanwhile_is_left_alone[memory]"
CHANGE = f"{IDLE}::test_any_change_begins_it_anew"
DRY = f"{MANY}::test_a_dry_run_recovers_and_remembers_nothing[memory]"
NAMED = f"{MANY}::test_ledgers_that_are_named_are_recovered_at_once[memory]"

RESTING = "tests/integration/log/test_resting_ledgers.py"
ENDS = "tests/integration/log/test_unbounded_upkeep.py"
RESTS = f"{RESTING}::test_one_that_rests_is_left_alone_until_something_is_written"
SHOWS = f"{RESTING}::test_one_that_rests_is_recovered_where_a_member_does_not_show_what_it_took"
TRUNCATED = f"{RESTING}::test_who_is_gone_for_good_and_had_only_what_is_truncated_closes_nothing"

MUTANTS = (
    Mutant(
        "an unbounded log goes on in a ledger of which a bookie is gone for good",
        "admin.recovering.plan_of",
        Replace("not Locations(one).names_only(there or ())", "False"),
        (f"{ENDS}::test_one_whose_bookie_is_gone_for_good_is_closed_and_repaired",),
    ),
    Mutant(
        "what somebody has written to is left alone",
        "Taken.is_bare_in",
        Replace(
            "_behind_the_first(root, self.journal) == 0",
            "_behind_the_first(root, self.journal) >= 0",
        ),
        (RESTS,),
    ),
    Mutant(
        "what rests is well where a member shows no journal, or says nothing",
        "OpenLedgers.look",
        Replace("bare.issuperset(last.members)", "bare"),
        (f"{SHOWS}[permission]", f"{SHOWS}[journal]", f"{SHOWS}[bookie]"),
    ),
    Mutant(
        "a ledger is closed for copies of what its log has let go of",
        "_as_its_log_wants_it",
        Replace("without_front(ledger, seen.value.dropped.of_tail)", "ledger"),
        (f"{TRUNCATED}[2-False]",),
    ),
    Mutant(
        "a ledger is not closed for copies of what its log has still",
        "_as_its_log_wants_it",
        Replace("seen.value.dropped.of_tail", "ledger.last_confirmed + 1"),
        (f"{TRUNCATED}[0-True]",),
    ),
    Mutant(
        "a ledger is left alone that no log goes on in",
        "recovering._planned",
        Replace(
            "[x.ledger_id for x in unwritten if is_gone_on_with(cluster, x)]",
            "[x.ledger_id for x in unwritten]",
        ),
        (f"{RESTING}::test_one_that_rests_and_that_no_log_goes_on_in_is_closed",),
    ),
    Mutant(
        "an open ledger is recovered at first sight",
        "admin.recovering.plan_of",
        Replace("not is_idle(sighting, now_ms, open_grace)", "False"),
        (LATER, AT_WORK),
    ),
    Mutant(
        "what was written meanwhile is no sign of life",
        "seen_again",
        Replace("return now", "return before", at=1),
        (AT_WORK, CHANGE),
    ),
    Mutant(
        "a dry run remembers what it saw",
        "recover_many",
        Replace("not how.dry_run", "True"),
        (DRY,),
    ),
    Mutant(
        "a ledger that is stuck holds up the others",
        "RecoverLedger.run",
        Replace("return Recovered(self.ledger_id, problem=str(error))", "raise"),
        (f"{MANY}::test_a_ledger_whose_password_was_not_given_is_left[memory]",),
    ),
    Mutant(
        "a ledger that was named waits for its writer",
        "recovering._planned",
        Replace(
            "return (plan_of(unclosed, {}, now_ms, wanted.open_grace), '')",
            "seen = OpenLedgers(cluster).look(unclosed, run, now_ms).seen\n"
            "return (plan_of(unclosed, seen, now_ms, wanted.open_grace), '')",
        ),
        (NAMED,),
    ),
)
