"""Mutants of reading a log that is written to, and of following it as a stream."""

from .change import Drop, Replace
from .mutant import Mutant

TAILS = "tests/integration/log/test_open_tails.py"
JOURNALS = "tests/integration/journals/test_journal_ends.py"
SOURCE = "tests/unit/spark/test_stream_reader.py"
FRONT = "tests/unit/test_bookkeeper.py"
POSITION = "tests/unit/protocol/test_stream_position.py"
USES = "tests/unit/spark/test_option_uses.py"
PLANNING = "tests/unit/log/reading/test_planning.py"
BESIDE = "tests/unit/spark/test_readers_beside_retention.py"
HOW_FAR = "tests/unit/ledger/handles/test_how_far.py"
TOLD = "tests/unit/log/reading/test_told_changes.py"
QUIET = "tests/unit/log/reading/test_quiet_looks.py"
INLINE = "tests/unit/log/reading/test_inline_reads.py"
LEFT_OVER = "tests/integration/recovery/test_left_over_records.py"

MUTANTS = (
    # --- journals and the confirmed end ----------------------------------------------------------
    Mutant(
        "a journal that lacks records is good enough",
        "_chain",
        Replace("record.last_entry_id + 1 >= end", "record"),
        (f"{JOURNALS}::test_a_journal_that_lacks_records_is_not_all_there_is",),
    ),
    Mutant(
        "records of another writer of the same term count",
        "is_owned",
        Replace("record.term != ledger.term or record.token == ledger.token", "True"),
        (f"{JOURNALS}::test_records_of_another_writer_of_the_same_term_are_left_out",),
    ),
    Mutant(
        "a gap in a chain of records is passed over",
        "_chain",
        Replace(
            "record = found.get(record.last_entry_id + 1)",
            "last = record.last_entry_id\n"
            "record = found.get(min((first for first in found if first > last), "
            "default=-1))",
        ),
        (f"{JOURNALS}::test_a_record_that_no_journal_has_is_no_end_and_no_gap",),
    ),
    Mutant(
        "a plan reads whole journals",
        "records_after",
        Replace("begin > 0", "begin < 0"),
        (f"{JOURNALS}::test_the_end_of_a_long_journal_is_planned_without_the_rest",),
    ),
    Mutant(
        "a look reads journals that have not grown",
        "JournalEnds.look",
        Replace("size != known.end", "size"),
        (
            f"{JOURNALS}::test_a_look_does_not_cost_more_in_a_long_ledger_and_costs_nothing_"
            "without_news",
        ),
    ),
    Mutant(
        "a torn journal says nothing",
        "journal_pages._looked",
        Replace("found.record", "known.record"),
        (f"{JOURNALS}::test_a_torn_end_is_read_from_where_the_last_look_ended",),
    ),
    Mutant(
        "entries in front of the last fragment wait for a record",
        "_Look._floor",
        Replace("self._ledger.last_confirmed", "-1"),
        (
            f"{TAILS}::test_entries_in_front_of_the_last_fragment_are_confirmed_by_it",
            "tests/integration/ledger/test_read_handle.py::"
            "test_2_3_10_what_lies_in_front_of_the_last_fragment_is_confirmed",
        ),
    ),
    # --- the view of a log -----------------------------------------------------------------------
    Mutant(
        "a reader goes past an open ledger",
        "view_of",
        Replace("if is_open:\n    ...", "if is_open and (not count):\n    ..."),
        (f"{TAILS}::test_rb_44_nothing_of_the_second_ledger_is_seen_before_the_first_is_closed",),
    ),
    Mutant(
        "a tail that was deleted meanwhile is an error",
        "LogWatch._look",
        Replace("NoSuchLedgerError", "ZeroDivisionError", 0),
        (f"{TAILS}::test_a_tail_that_is_deleted_between_two_look_ups_is_looked_up_anew",),
    ),
    # --- positions of a query --------------------------------------------------------------------
    Mutant(
        "rows that are gone are stepped over in silence",
        "stream_run.resume",
        Replace("if fails_on_loss:\n    ...", "if not loss:\n    ..."),
        (
            f"{POSITION}::test_truncated_rows_are_an_error",
            f"{POSITION}::test_another_generation_is_an_error_whatever_the_offset[0]",
        ),
    ),
    Mutant(
        "an offset means the same in every generation",
        "stream_run.resume",
        Replace("start >= first", "start.offset >= first.offset"),
        (f"{POSITION}::test_another_generation_is_an_error_whatever_the_offset[30]",),
    ),
    Mutant(
        "a batch may end before its start",
        "require_order",
        Replace("end < start", "end < Position(0, 0)"),
        (f"{SOURCE}::test_an_end_before_its_start",),
    ),
    # --- the source ------------------------------------------------------------------------------
    Mutant(
        "available now goes on in a newer generation",
        "BookKeeperStreamReader._end_of_batch",
        Replace("target.generation != begin.generation", "target.generation > begin.generation"),
        (f"{SOURCE}::test_available_now_does_not_go_on_in_a_newer_generation",),
    ),
    Mutant(
        "the checkpoint's end is doubted",
        "BookKeeperStreamReader._planned",
        Replace("view.confirmed_to(past.offset)", "view.confirmed_to(0)"),
        (f"{SOURCE}::test_a_batch_of_the_checkpoint_is_read_though_its_last_lac_is_away",),
    ),
    Mutant(
        "latest moves between the two times it is asked for",
        "BookKeeperStreamReader.initialOffset",
        Replace("progress.initial is None", "progress"),
        (f"{SOURCE}::test_latest_is_asked_for_twice_and_is_the_same",),
    ),
    Mutant(
        "new columns under a running query are left out in silence",
        "require_same_columns",
        Replace("if changes:\n    ...", "if not names and changes == 0:\n    ..."),
        (f"{SOURCE}::test_new_columns_under_a_running_query_need_a_restart",),
    ),
    Mutant(
        "a limit is ignored",
        "BookKeeperStreamReader._end_of_batch",
        Replace(
            "begin.offset + self._options.read.trigger_entries",
            "begin.offset + 10 * self._options.read.trigger_entries",
        ),
        (f"{SOURCE}::test_entries_per_trigger",),
    ),
    # --- options ---------------------------------------------------------------------------------
    Mutant(
        "a session's default holds where it does not belong",
        "options.parse",
        Replace("belonging(usual, use)", "usual"),
        (f"{USES}::test_defaults_of_a_session_hold_where_they_belong",),
    ),
    # --- planning --------------------------------------------------------------------------------
    Mutant(
        "ledgers are looked up one after the other",
        "read_slices._metadata",
        Replace("LOOK_UPS_AT_ONCE", "1", at=1),
        (f"{PLANNING}::test_ledgers_are_looked_up_several_at_once_and_read_in_order",),
    ),
    # --- ledgers that are let go while they are read ---------------------------------------------
    Mutant(
        "a ledger whose metadata is lost is left out",
        "SliceReader._let_go",
        Replace("raise error", "return"),
        (f"{BESIDE}::test_a_ledger_that_is_listed_and_lost_is_never_left_out[Batch]",),
    ),
    Mutant(
        "a batch read leaves out what is truncated unsaid",
        "_without_loss",
        Replace("logger.warning('left out: %s', gone.args[0])", "del gone"),
        (
            f"{BESIDE}::test_a_plan_is_made_anew_where_that_leaves_nothing_out_unsaid[Batch-options2]",
        ),
    ),
    # --- what is lost is counted -----------------------------------------------------------------
    Mutant(
        "what nobody knows is counted as none",
        "stream_run.resume",
        Replace("skipped = None", "skipped = 0"),
        (
            f"{POSITION}::test_or_a_restart_that_is_reported",
            f"{SOURCE}::test_or_its_new_rows_from_their_start",
        ),
    ),
    # --- what a reader asks for ------------------------------------------------------------------
    Mutant(
        "what is no time is for ever",
        "seconds_or_none",
        Replace("not bounds.is_time(number)", "number < 0"),
        (
            f"{FRONT}::test_times_are_numbers_of_seconds[nan]",
            f"{FRONT}::test_times_are_numbers_of_seconds[a]",
        ),
    ),
    Mutant(
        "a time may be too large for a number",
        "arguments._number",
        Replace("OverflowError", "ZeroDivisionError"),
        (f"{FRONT}::test_a_time_or_a_number_that_is_too_large_is_for_ever",),
    ),
    # --- looks that are put off ------------------------------------------------------------------
    Mutant(
        "a waiting reader never looks at bookies that are quiet",
        "LogWatch._is_quiet",
        Replace("self._quiet_looks_left -= 1", "..."),
        (f"{QUIET}::test_whole_looks_are_rare_while_nothing_comes",),
    ),
    Mutant(
        "a waiting reader does not ask whether journals have grown",
        "LogWatch._is_quiet",
        Replace("is_quiet(bookies, ledger, self._ends)", "True"),
        (f"{QUIET}::test_an_entry_is_seen_at_once",),
    ),
    Mutant(
        "a waiting reader does not ask for the ledger's record",
        "LogWatch._is_quiet",
        Replace("self._is_unchanged(ledger_id, ledger)", "True"),
        (f"{QUIET}::test_the_end_of_the_ledger_is_seen_at_once",),
    ),
    Mutant(
        "a waiting reader does not ask for the log's record",
        "LogWatch._is_quiet",
        Replace("self._record() is shown.record", "True"),
        (f"{QUIET}::test_a_truncation_is_seen_at_once",),
    ),
    Mutant(
        "a journal that was read farther than what is shown is quiet",
        "LogWatch._look",
        Replace("self._quiet_looks_left = 0", "..."),
        (f"{QUIET}::test_a_look_for_something_else_hides_no_news",),
    ),
    Mutant(
        "a bookie without an answer is quiet",
        "OpenBookies.all_say",
        Replace("all((answer is True for answer in answers.values()))", "all(answers.values())"),
        (f"{QUIET}::test_a_bookie_that_cannot_answer_is_not_quiet",),
    ),
    # --- pauses that a change ends ---------------------------------------------------------------
    Mutant(
        "what has changed before a reader watches is not looked at",
        "Waiting.sleep",
        Replace(
            "waits_for != before and self._begins(view, ledger)", "self._begins(view, ledger) and 0"
        ),
        (f"{TOLD}::test_an_idle_reader_looks_rarely",),
    ),
    Mutant(
        "a reader is told of no new version of a record",
        "Waiting._begins",
        Replace("self._watched(journals, records)", "self._watched(journals, [])"),
        (f"{TOLD}::test_a_takeover_is_told",),
    ),
    Mutant(
        "a reader trusts the kernel where another host may change a file",
        "Changes.watch",
        Replace("not mount.is_local", "False"),
        (f"{TOLD}::test_it_looks_often_if_another_host_may_change_a_file",),
    ),
    Mutant(
        "a reader trusts the kernel although a bookie has no files",
        "Waiting._begins",
        Replace("len(files) == len(members) == len(journals)", "True"),
        (f"{TOLD}::test_it_looks_often_if_a_place_has_no_files",),
    ),
    Mutant(
        "after news a look comes before the record that lets the next entry be read",
        "Waiting.sleep",
        Replace("2 if has_news else 1", "1"),
        (f"{TOLD}::test_a_reader_waits_for_two_records_after_news_and_for_one_after_none",),
    ),
    Mutant(
        "a look waits as long as it may for a bookie that gets no record",
        "Waiting._settle_down",
        Replace("min(until, now + SETTLE_SECONDS)", "until"),
        (f"{TOLD}::test_a_look_waits_for_the_record_that_lets_an_entry_be_read",),
    ),
    Mutant(
        "a look at a changed record waits for the journals",
        "Waiting._settle_down",
        Replace("changed.keys() <= self._journals", "True"),
        (f"{TOLD}::test_a_look_waits_for_the_record_that_lets_an_entry_be_read",),
    ),
    Mutant(
        "each look of a reader reads the metadata again",
        "how_far.look",
        Replace("last_seen.take(ledger_id)", "None"),
        (f"{TAILS}::test_a_further_look_reads_no_metadata_that_it_knows",),
    ),
    Mutant(
        "each look asks the bookies of a ledger that was closed since",
        "LastSeen.take",
        Drop("self._kept = None"),
        (f"{TAILS}::test_a_ledger_that_was_closed_is_asked_about_once",),
    ),
    Mutant(
        "a look believes in metadata of long ago",
        "LastSeen.take",
        Replace("environment.monotonic() - kept[0] < LAST_SEEN_SECONDS", "True"),
        (f"{HOW_FAR}::test_metadata_of_long_ago_are_read_again",),
    ),
    # --- readers that go on in a ledger ----------------------------------------------------------
    Mutant(
        "a reader that goes on reads with older metadata",
        "InlinePlace.take",
        Replace("found.go_on(now)", "..."),
        (f"{LEFT_OVER}::test_h43_a_reader_that_goes_on_in_a_ledger_reads_what_counts_now",),
    ),
    Mutant(
        "a reader that cannot go on does not begin anew",
        "SliceReader._groups",
        Replace("suppress(CorruptDataError)", "suppress()"),
        (f"{INLINE}::test_if_it_cannot_go_on_it_looks_the_bookies_up_again",),
    ),
    Mutant(
        "a reader goes on with a handle that has met a fault",
        "SliceReader._groups",
        Replace("self.place is not None and not handle.faults", "self.place is not None"),
        (f"{INLINE}::test_it_does_not_go_on_after_a_fault",),
    ),
)
