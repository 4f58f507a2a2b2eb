"""Mutants of truncation: ledgers to delete, missing entries, cursors that it has passed."""

from .mutant import Mutant

TAIL = "tests/unit/protocol/test_log_tail.py"
RETENTION = "tests/unit/protocol/test_retention.py"
DATA_LOSS = "tests/unit/protocol/test_data_loss.py"
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
        "dropped=dropped.with_more_to_delete(ids, ledger_list",
        "dropped=dropped.with_more(ids, ledger_list",
        (f"{TAIL}::test_what_truncation_hides_is_to_be_deleted_until_it_is",),
    ),
    Mutant(
        "what a deleted log had is not noted",
        "DroppedLedgers.all_to_delete",
        "return DroppedLedgers(self.ids, self.ids, pages_to_delete=pages)",
        "return DroppedLedgers(self.ids, pages_to_delete=pages)",
        (f"{TAIL}::test_what_a_deleted_log_had_is_to_be_deleted_also_under_its_next_owner",),
    ),
    Mutant(
        "a roll deletes all that is left",
        "truncation._truncate",
        "log.dropped.to_delete[:delete_count_max]",
        "log.dropped.to_delete",
        (f"{DELETION}::test_a_roll_deletes_a_few_at_a_time",),
    ),
    Mutant(
        "a log that keeps everything leaves the rest for ever",
        "retain_after_roll",
        "if log.retention.is_limited or log.to_delete_count:",
        "if log.retention.is_limited:",
        (f"{DELETION}::test_what_could_not_be_deleted_is_deleted_by_whoever_comes_next[roll]",),
    ),
    Mutant(
        "a damaged record stops all deletions",
        "_deleted",
        "        except CorruptDataError:\n            continue\n",
        "        except CorruptDataError:\n            break\n",
        (f"{DELETION}::test_a_damaged_record_of_a_ledger_stops_only_its_own_deletion",),
    ),
    Mutant(
        "a ledger that is deleted stays noted",
        "truncation._truncate",
        "        if gone:\n            log =",
        "        if False:\n            log =",
        (f"{DELETION}::test_what_could_not_be_deleted_is_deleted_by_whoever_comes_next[retain]",),
    ),
    Mutant(
        "a deleted log remembers what is gone",
        "_forgotten",
        "(record or log).forgetting(deleted).with_more_to_delete()",
        "(record or log).with_more_to_delete()",
        (f"{DELETION}::test_a_deleted_log_remembers_no_ledger_that_is_gone",),
    ),
    Mutant(
        "a ledger that the log still has was let go of",
        "data_loss.data_loss",
        "if log.first_offset < end:",
        "if False:",
        (f"{DATA_LOSS}::test_what_the_log_still_has_was_not",),
    ),
    Mutant(
        "all generations are one",
        "data_loss.data_loss",
        "if log.is_tombstone or log.generation != wanted.generation:",
        "if log.is_tombstone:",
        (f"{DATA_LOSS}::test_all_of_an_earlier_generation_was_let_go_of",),
    ),
    Mutant(
        "a clock that is behind makes a ledger old",
        "LogRecord.stamped",
        "newest_ms = max(newest_ms, ledger.closed_ms or changed_ms)",
        "newest_ms = ledger.closed_ms or changed_ms",
        (f"{RETENTION}::test_a_clock_that_is_behind_makes_no_ledger_older_than_the_one_in_front",),
    ),
    Mutant(
        "a cursor at the first offset is behind",
        "CursorRecord.problem",
        "if self.offset < first_offset:",
        "if self.offset <= first_offset:",
        (f"{CURSOR}::test_a_cursor_tells_what_is_wrong_with_it",),
    ),
    Mutant(
        "a cursor is moved that nobody made",
        "existing_cursor",
        "    if seen is None or seen.value.is_deleted:\n        raise _no_cursor",
        "    if seen is None:\n        raise _no_cursor",
        (f"{UPKEEP}::test_a_cursor_that_was_deleted_is_not_moved",),
    ),
    Mutant(
        "retention compares each ledger with the whole log",
        "retained_from",
        "        rest -= ledger.length_bytes\n",
        "",
        (
            f"{RETENTION}::test_size_is_counted_ledger_by_ledger",
            f"{UPKEEP}::test_retention_by_size_keeps_what_it_says",
        ),
    ),
    Mutant(
        "retention takes what a cursor has to read",
        "retained_from",
        " or ledger.end_offset > unread",
        "",
        (
            f"{RETENTION}::test_what_a_cursor_has_not_read_stays",
            f"{UPKEEP}::test_retention_respects_cursors_if_asked",
        ),
    ),
    Mutant(
        "retention takes the last ledger",
        "retained_from",
        "count = log.ledger_count if log.tail else max(0, log.ledger_count - 1)",
        "count = log.ledger_count",
        (f"{RETENTION}::test_size_is_counted_ledger_by_ledger",),
    ),
    Mutant(
        "a ledger of unknown age is old",
        "_is_old",
        " and over_ms > 0",
        "",
        (f"{RETENTION}::test_a_ledger_of_unknown_age_is_not_old_and_ends_it",),
    ),
    Mutant(
        "a cursor goes back",
        "CursorRecord.advanced",
        "self.offset <= offset <= end_offset",
        "offset <= end_offset",
        (f"{CURSOR}::test_a_cursor_goes_neither_back_nor_past_the_end",),
    ),
    Mutant(
        "what goes wrong with retention is the writer's error",
        "retain_after_roll",
        "        with suppress(BookKeeperError):\n",
        "        with suppress(ZeroDivisionError):\n",
        (f"{KEPT}::test_a_writer_goes_on_when_nothing_can_be_let_go[memory]",),
    ),
    Mutant(
        "all old ledgers go at once",
        "retained_from",
        "count if ledger_count_max is None else min(count, ledger_count_max)",
        "count",
        (
            f"{RETENTION}::test_only_so_many_ledgers_go_at_a_time",
            f"{KEPT}::test_a_cursor_is_respected_and_a_few_ledgers_go_at_a_time[memory]",
        ),
    ),
    Mutant(
        "retention is not told of cursors",
        "_kept_from",
        "positions_of(cluster, log) if respects_cursors else []",
        "[]",
        (f"{UPKEEP}::test_retention_respects_cursors_if_asked",),
    ),
    Mutant(
        "a cursor of another generation holds a log back",
        "positions_of",
        " if cursor.generation == log.generation]",
        "]",
        (f"{UPKEEP}::test_a_cursor_of_another_generation_is_recognised",),
    ),
    Mutant(
        "a cursor reads another generation",
        "Cursor.offset",
        "if log.generation != record.generation:",
        "if False:",
        (f"{UPKEEP}::test_a_cursor_of_another_generation_is_recognised",),
    ),
    Mutant(
        "a ledger made for nothing is not noted",
        "opening._without",
        "log.dropped.with_more_to_delete([ledger_id])",
        "log.dropped.with_more([ledger_id])",
        (
            f"{DELETION}::test_a_ledger_made_for_nothing_is_noted_until_it_is_deleted",
            f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",
        ),
    ),
    Mutant(
        "a ledger made for nothing is remembered though it is gone",
        "drop_unlisted",
        "(record or log).forgetting([ledger_id])",
        "record or log",
        (f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",),
    ),
    Mutant(
        "a ledger made for nothing is forgotten and not deleted",
        "drop_unlisted",
        "            make_tombstone(cluster, ledger_id)\n",
        "",
        (
            f"{DELETION}::test_a_ledger_made_for_nothing_is_noted_until_it_is_deleted",
            f"{TAKEOVERS}::test_rb_20b_who_gives_up_leaves_no_orphan_either",
        ),
    ),
    Mutant(
        "who goes past the end is told to begin again",
        "CursorRecord.advanced",
        "hint=back if offset < self.offset else past",
        "hint=back",
        (f"{CURSOR}::test_a_cursor_that_cannot_go_there_says_where_it_can",),
    ),
    Mutant(
        "a ledger that is closed is let go of only behind the next writer",
        "truncation._shortened",
        "log = _with_what_is_closed(cluster, record)",
        "log = record",
        (
            f"{CLOSED}::test_a_ledger_that_is_closed_is_truncated_before_the_next_writer_comes"
            "[2-chained]",
            f"{CLOSED}::test_a_ledger_that_is_closed_is_truncated_before_the_next_writer_comes"
            "[3-chained]",
        ),
    ),
    Mutant(
        "one closed ledger at the end stands for both",
        "_with_what_is_closed",
        "if any(ledger.state is not LedgerState.CLOSED",
        "if all(ledger.state is not LedgerState.CLOSED",
        (f"{CLOSED}::test_of_two_ledgers_at_the_end_none_is_taken_for_closed_before_both_are",),
    ),
    Mutant(
        "what is hidden already is refused where less may be hidden by now",
        "LogRecord.truncated",
        "        if before_offset <= self.first_offset:\n            return self\n        end =",
        "        end =",
        (f"{CLOSED}::test_what_was_truncated_is_no_error_behind_the_close",),
    ),
    Mutant(
        "more goes than the operator agreed to",
        "truncation.retain",
        "        return min(kept_from(log), plan.before_offset)\n",
        "        return kept_from(log)\n",
        (f"{ASKS}::test_no_more_goes_than_was_named",),
    ),
    Mutant(
        "a log that was made anew loses what was agreed for the one before",
        "truncation.retain",
        "        log.still_of(plan.generation)\n",
        "",
        (f"{ASKS}::test_a_plan_of_another_generation_is_refused",),
    ),
    Mutant(
        "a truncation from the command line reaches a log made anew",
        "log_upkeep.truncate",
        ", generation=plan.generation)",
        ")",
        (f"{ASKS}::test_a_log_that_was_made_anew_meanwhile_stays[truncate]",),
    ),
    Mutant(
        "a limit is set without a question",
        "verbs.logs.retain",
        "        if run.ask is not None and (wanted.is_limited or plan.entry_count):\n",
        "        if run.ask is not None and plan.entry_count and not wanted.is_limited:\n",
        (f"{ASKS}::test_a_limit_is_asked_for_though_nothing_goes_now",),
    ),
    Mutant(
        "limits change before anybody agreed",
        "retaining.retain",
        "    consent(plan)\n    if wanted.changes_settings:\n",
        "    if wanted.changes_settings:\n        pass\n    if wanted.changes_settings:\n",
        (f"{ASKS}::test_who_says_no_keeps_all[retain]",),
    ),
)
