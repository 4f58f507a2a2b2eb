"""Mutants of truncation: ledgers to delete, missing entries, cursors that it has passed."""

from .change import Drop, Replace
from .mutant import Mutant

TAIL = "tests/unit/protocol/test_log_tail.py"
CURSOR = "tests/unit/protocol/test_cursor.py"
TAKEOVERS = "tests/integration/log/test_log_takeovers.py"
DELETION = "tests/integration/log/test_log_deletion.py"
KEPT = "tests/integration/log/test_log_retention.py"
UPKEEP = "tests/integration/log/test_log_upkeep.py"
CLOSED = "tests/integration/log/test_truncated_unbounded_logs.py"
ASKS = "tests/unit/cli/test_deleting_asks.py"

MUTANTS = (
    Mutant(
        "what truncation hides is not noted",
        "LogRecord.truncated",
        Replace("dropped.with_more_to_delete", "dropped.with_more"),
        (f"{TAIL}::test_what_truncation_hides_is_to_be_deleted_until_it_is",),
    ),
    Mutant(
        "a deleted log remembers what is gone",
        "_forgotten",
        Replace("(record or log).forgetting(deleted)", "record or log"),
        (f"{DELETION}::test_a_deleted_log_remembers_no_ledger_that_is_gone",),
    ),
    Mutant(
        "a cursor goes back",
        "CursorRecord.advanced",
        Replace("self.offset <= offset <= end_offset", "offset <= end_offset"),
        (f"{CURSOR}::test_a_cursor_goes_neither_back_nor_past_the_end",),
    ),
    Mutant(
        "what goes wrong with retention is the writer's error",
        "retain_after_roll",
        Replace("suppress(BookKeeperError)", "suppress(ZeroDivisionError)"),
        (f"{KEPT}::test_a_writer_goes_on_when_nothing_can_be_let_go[memory]",),
    ),
    Mutant(
        "a cursor of another generation holds a log back",
        "positions_of",
        Replace(
            "[cursor.offset for cursor in found if cursor.generation == log.generation]",
            "[cursor.offset for cursor in found]",
        ),
        (f"{UPKEEP}::test_a_cursor_of_another_generation_is_recognised",),
    ),
    Mutant(
        "a ledger made for nothing is not noted",
        "creating._without",
        Replace("log.dropped.with_more_to_delete", "log.dropped.with_more"),
        (
            f"{DELETION}::test_a_ledger_made_for_nothing_is_noted_until_it_is_deleted",
            f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",
        ),
    ),
    Mutant(
        "a ledger made for nothing is remembered though it is gone",
        "drop_unlisted",
        Replace("(record or log).forgetting([ledger_id])", "record or log"),
        (f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",),
    ),
    Mutant(
        "a ledger that is closed is let go of only behind the next writer",
        "truncation._shortened",
        Replace("_with_what_is_closed(cluster, record)", "record"),
        (
            f"{CLOSED}::test_a_ledger_that_is_closed_is_truncated_before_the_next_writer_comes"
            "[2-chained]",
            f"{CLOSED}::test_a_ledger_that_is_closed_is_truncated_before_the_next_writer_comes"
            "[3-chained]",
        ),
    ),
    Mutant(
        "more goes than the operator agreed to",
        "truncation.retain",
        Replace("min(kept_from(log), plan.before_offset)", "kept_from(log)"),
        (f"{ASKS}::test_no_more_goes_than_was_named",),
    ),
    Mutant(
        "a log that was made anew loses what was agreed for the one before",
        "truncation.retain",
        Drop("log.still_of"),
        (f"{ASKS}::test_a_plan_of_another_generation_is_refused",),
    ),
    Mutant(
        "a truncation from the command line reaches a log made anew",
        "logs.truncate",
        Replace(
            "truncation.truncate(cluster, name, before, generation=plan.generation)",
            "truncation.truncate(cluster, name, before)",
        ),
        (f"{ASKS}::test_a_log_that_was_made_anew_meanwhile_stays[truncate]",),
    ),
    Mutant(
        "a limit is set without a question",
        "verbs.commands._ask_to_retain",
        Replace(
            "run.ask is not None and (wanted.is_limited or plan.entry_count)",
            "run.ask is not None and plan.entry_count and (not wanted.is_limited)",
        ),
        (f"{ASKS}::test_a_limit_is_asked_for_though_nothing_goes_now",),
    ),
    Mutant(
        "limits change before anybody agreed",
        "log_upkeep.retain",
        Replace("consent(plan)", "if wanted.changes_settings:\n    pass"),
        (f"{ASKS}::test_who_says_no_keeps_all[retain]",),
    ),
)
