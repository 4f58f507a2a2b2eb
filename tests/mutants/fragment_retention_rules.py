"""Mutants of what an unbounded log keeps, fragment by fragment."""

from .change import Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_fragment_retention.py"
LOGS = "tests/integration/log/test_truncated_unbounded_logs.py"
TAKEOVERS = f"{LOGS}::test_who_takes_over_says_when_and_behind_what_too"

MUTANTS = (
    Mutant(
        "retention does nothing in front of a tail whose record is damaged",
        "_kept_from",
        Replace("_readable_tail(cluster, log)", "_going_on(cluster, log)"),
        (
            f"{LOGS}::test_in_front_of_a_tail_whose_record_is_damaged_what_is_surely_not_wanted_goes",
        ),
    ),
    Mutant(
        "a ledger has what it had before something was given up",
        "known_bytes",
        Replace("next(said, 0)", "max(said, default=0)"),
        (f"{UNIT}::test_entries_that_were_given_up_do_not_count",),
    ),
    Mutant(
        "a writer whose log cannot be truncated fails to roll",
        "LogTail._retain",
        Replace("suppress(BookKeeperError)", "suppress()"),
        (f"{LOGS}::test_it_does_not_end_a_writer_that_this_fails",),
    ),
    Mutant(
        "a takeover does not say when it was",
        "Opener.open",
        Replace("replace(plan, now_ms=environment.now_ms())", "plan"),
        (TAKEOVERS,),
    ),
)
