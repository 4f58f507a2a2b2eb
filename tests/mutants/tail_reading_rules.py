"""Mutants of reading a log that is written to, and of following it as a stream."""

from .mutant import Mutant

TAILS = "tests/integration/log/test_open_tails.py"
JOURNALS = "tests/integration/journals/test_journal_ends.py"
SOURCE = "tests/unit/spark/test_stream_reader.py"
LOSSES = "tests/unit/spark/test_stream_losses.py"
FRONT = "tests/unit/test_bookkeeper.py"
POSITION = "tests/unit/protocol/test_stream_position.py"
USES = "tests/unit/spark/test_option_uses.py"
PLANNING = "tests/unit/log/reading/test_planning.py"
BESIDE = "tests/unit/spark/test_readers_beside_retention.py"

MUTANTS = (
    # --- journals and the confirmed end ----------------------------------------------------------
    Mutant(
        "a journal that lacks records is good enough",
        "_chain",
        "        if record.last_entry_id + 1 >= end:\n",
        "        if record:\n",
        (f"{JOURNALS}::test_a_journal_that_lacks_records_is_not_all_there_is",),
    ),
    Mutant(
        "records of another writer of the same term count",
        "is_owned",
        "    is_by_a_writer = record.term != ledger.term or record.token == ledger.token\n",
        "    is_by_a_writer = True\n",
        (f"{JOURNALS}::test_records_of_another_writer_of_the_same_term_are_left_out",),
    ),
    Mutant(
        "a gap in a chain of records is passed over",
        "_chain",
        "        record = found.get(record.last_entry_id + 1)\n",
        "        last = record.last_entry_id\n"
        "        record = found.get(min((first for first in found if first > last), default=-1))\n",
        (f"{JOURNALS}::test_a_record_that_no_journal_has_is_no_end_and_no_gap",),
    ),
    Mutant(
        "a plan reads whole journals",
        "records_after",
        "_last_records(reader, begin) if begin > 0 else",
        "_last_records(reader, begin) if begin < 0 else",
        (f"{JOURNALS}::test_the_end_of_a_long_journal_is_planned_without_the_rest",),
    ),
    Mutant(
        "a look reads journals that have not grown",
        "JournalEnds.look",
        "        if size != known.end:\n",
        "        if size:\n",
        (
            f"{JOURNALS}::test_a_look_does_not_cost_more_in_a_long_ledger_and_costs_nothing_"
            "without_news",
        ),
    ),
    Mutant(
        "a torn journal says nothing",
        "journal_end._looked",
        "    return JournalEnd(found.record, found.end, is_whole)\n",
        "    return JournalEnd(known.record, found.end, is_whole)\n",
        (f"{JOURNALS}::test_a_torn_end_is_read_from_where_the_last_look_ended",),
    ),
    Mutant(
        "a lac is used with metadata from before it",
        "how_far.look",
        "        if is_current and (state.is_known",
        "        if (state.is_known",
        (f"{TAILS}::test_the_metadata_used_is_read_after_the_lac",),
    ),
    Mutant(
        "it is said that a recovery closes what an unbounded log goes on in",
        "_Look._recovering",
        "        if not self._ledger.goes_on:\n",
        "        if True:\n",
        (f"{TAILS}::test_where_the_end_is_not_known_it_says_what_a_recovery_does[True]",),
    ),
    Mutant(
        "entries in front of the last fragment wait for a record",
        "_Look._floor",
        "        return self._ledger.last_confirmed\n",
        "        return -1\n",
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
        "                if is_open:\n",
        "                if is_open and not count:\n",
        (f"{TAILS}::test_rb_44_nothing_of_the_second_ledger_is_seen_before_the_first_is_closed",),
    ),
    Mutant(
        "a tail that was deleted meanwhile is an error",
        "LogWatch.look",
        "            except NoSuchLedgerError:",
        "            except ZeroDivisionError:",
        (f"{TAILS}::test_a_tail_that_is_deleted_between_two_look_ups_is_looked_up_anew",),
    ),
    Mutant(
        "an end known from elsewhere reaches past a closed ledger",
        "LogView.confirmed_to",
        "        if end_offset <= self.end_offset or not self.has_open_end:\n",
        "        if end_offset <= self.end_offset:\n",
        (f"{TAILS}::test_an_end_that_is_known_from_elsewhere_reaches_only_into_the_open_ledger",),
    ),
    # --- positions of a query --------------------------------------------------------------------
    Mutant(
        "rows that are gone are stepped over in silence",
        "stream_position.resume",
        "    if fails_on_loss:\n",
        "    if not loss:\n",
        (
            f"{POSITION}::test_truncated_rows_are_an_error",
            f"{POSITION}::test_another_generation_is_an_error_whatever_the_offset[0]",
        ),
    ),
    Mutant(
        "an offset means the same in every generation",
        "stream_position.resume",
        "    if start >= first:\n",
        "    if start.offset >= first.offset:\n",
        (f"{POSITION}::test_another_generation_is_an_error_whatever_the_offset[30]",),
    ),
    Mutant(
        "an offset in the future waits",
        "_require_reached",
        "    if position > end and not is_perhaps_unseen:\n",
        "    if position > end and is_perhaps_unseen:\n",
        (f"{SOURCE}::test_an_offset_in_the_future[true-start0]",),
    ),
    Mutant(
        "a batch may end before its start",
        "require_order",
        "    if end < start:\n",
        "    if end < Position(0, 0):\n",
        (f"{SOURCE}::test_an_end_before_its_start",),
    ),
    # --- the source ------------------------------------------------------------------------------
    Mutant(
        "what is available now grows while it is read",
        "BookKeeperStreamReader._end_of_batch",
        "            end = min(end, target.offset)\n",
        "            end = max(end, target.offset)\n",
        (f"{SOURCE}::test_what_is_available_now_is_fixed_at_the_start",),
    ),
    Mutant(
        "available now goes on in a newer generation",
        "BookKeeperStreamReader._end_of_batch",
        "            if target.generation != begin.generation:\n",
        "            if target.generation > begin.generation:\n",
        (f"{SOURCE}::test_available_now_does_not_go_on_in_a_newer_generation",),
    ),
    Mutant(
        "the checkpoint's end is doubted",
        "BookKeeperStreamReader._planned",
        "        view = view.confirmed_to(past.offset)\n",
        "        view = view.confirmed_to(0)\n",
        (f"{SOURCE}::test_a_batch_of_the_checkpoint_is_read_though_its_last_lac_is_away",),
    ),
    Mutant(
        "latest moves between the two times it is asked for",
        "BookKeeperStreamReader.initialOffset",
        "        if progress.initial is None:\n",
        "        if progress:\n",
        (f"{SOURCE}::test_latest_is_asked_for_twice_and_is_the_same",),
    ),
    Mutant(
        "a loss is not reported",
        "BookKeeperStreamReader._resumed",
        "            progress.loss = found.loss\n",
        "",
        (f"{SOURCE}::test_or_a_skip_that_is_reported",),
    ),
    Mutant(
        "new columns under a running query are left out in silence",
        "require_same_columns",
        "    if changes:\n",
        "    if not names and changes == 0:\n",
        (f"{SOURCE}::test_new_columns_under_a_running_query_need_a_restart",),
    ),
    Mutant(
        "a limit is ignored",
        "BookKeeperStreamReader._end_of_batch",
        "                end = min(end, begin.offset + self._options.read.trigger_entries)\n",
        "                end = min(end, begin.offset + 10 * self._options.read.trigger_entries)\n",
        (f"{SOURCE}::test_entries_per_trigger",),
    ),
    # --- options ---------------------------------------------------------------------------------
    Mutant(
        "a limit that cannot hold is left aside in silence",
        "option_uses",
        '    "maxEntriesPerTrigger": (Use.STREAM_READ,),\n',
        "",
        (
            f"{USES}::test_an_option_is_taken_where_it_belongs_and_refused_elsewhere"
            "[BATCH_READ-maxEntriesPerTrigger]",
            f"{USES}::test_spark_asks_with_the_use_in_mind",
        ),
    ),
    Mutant(
        "a write that names a ledger goes to a log",
        "_may_be_given",
        "    return use in uses or (is_shared and name not in _ADDRESSES)\n",
        "    return use in uses or is_shared\n",
        (
            f"{USES}::test_an_option_is_taken_where_it_belongs_and_refused_elsewhere"
            "[BATCH_WRITE-ledgerId]",
        ),
    ),
    Mutant(
        "a session's default holds where it does not belong",
        "options.parse",
        "_Parser({**belonging(usual, use), **own}, ",
        "_Parser({**usual, **own}, ",
        (f"{USES}::test_defaults_of_a_session_hold_where_they_belong",),
    ),
    # --- planning --------------------------------------------------------------------------------
    Mutant(
        "ledgers are looked up one after the other",
        "_metadata",
        "at_once=LOOK_UPS_AT_ONCE",
        "at_once=1",
        (f"{PLANNING}::test_ledgers_are_looked_up_several_at_once_and_read_in_order",),
    ),
    # --- ledgers that are let go while they are read ---------------------------------------------
    Mutant(
        "a ledger whose metadata is lost is left out",
        "SliceReader._let_go",
        "            raise error\n",
        "            return\n",
        (f"{BESIDE}::test_a_ledger_that_is_listed_and_lost_is_never_left_out[Batch]",),
    ),
    Mutant(
        "rows that were let go of are left out unasked",
        "SliceReader._let_go",
        "if self.fails_on_loss or isinstance(gone, MovedError):",
        "if isinstance(gone, MovedError):",
        (
            f"{BESIDE}::test_rows_that_were_let_go_of_are_an_error_in_the_task[Batch]",
            f"{BESIDE}::test_rows_that_were_let_go_of_are_an_error_in_the_task[Stream]",
        ),
    ),
    Mutant(
        "a task does not know whose rows it reads",
        "BookKeeperStreamReader._planned",
        "TaskPartition(task, view.generation)",
        "TaskPartition(task)",
        (f"{BESIDE}::test_rows_that_were_let_go_of_are_an_error_in_the_task[Stream]",),
    ),
    Mutant(
        "a batch read is planned once",
        "_partitions",
        "            if cluster.logs.is_current(name, seen):\n",
        "            if True:\n",
        (
            f"{BESIDE}::test_a_plan_is_made_anew_where_that_leaves_nothing_out_unsaid[Batch-options0]",
        ),
    ),
    Mutant(
        "a micro-batch is planned once",
        "BookKeeperStreamReader.partitions",
        "if not self._has_changed(view):",
        "if True:",
        (
            f"{BESIDE}::test_a_plan_is_made_anew_where_that_leaves_nothing_out_unsaid[Stream-options3]",
        ),
    ),
    Mutant(
        "a batch read leaves out what is truncated unsaid",
        "_without_loss",
        'logger.warning("left out: %s", gone.args[0])',
        "del gone",
        (
            f"{BESIDE}::test_a_plan_is_made_anew_where_that_leaves_nothing_out_unsaid[Batch-options2]",
        ),
    ),
    Mutant(
        "a reader in order does not know the log",
        "OrderedRead.__iter__",
        "SliceReader(wanted, self.password, log=self.log)",
        "SliceReader(wanted, self.password)",
        (f"{BESIDE}::test_reading_in_order_says_what_was_let_go_of_since_the_plan",),
    ),
    # --- what is lost is counted -----------------------------------------------------------------
    Mutant(
        "what is left out is not counted",
        "BookKeeperStreamReader._resumed",
        "            progress.skipped[position] = count\n",
        "",
        (
            f"{LOSSES}::test_a_start_below_the_truncation_point_is_counted",
            f"{LOSSES}::test_a_batch_of_the_checkpoint_that_is_run_again_counts_what_it_lacks",
        ),
    ),
    Mutant(
        "what is left out is counted by two batches",
        "BookKeeperStreamReader._resumed",
        "count = min(count, past.offset - position.offset)",
        "count = max(count, past.offset - position.offset)",
        (f"{LOSSES}::test_what_is_gone_is_counted_once_by_whichever_batch_lacks_it",),
    ),
    Mutant(
        "what nobody knows is counted as none",
        "stream_position.resume",
        "        skipped = None\n",
        "        skipped = 0\n",
        (
            f"{POSITION}::test_or_a_restart_that_is_reported",
            f"{SOURCE}::test_or_its_new_rows_from_their_start",
        ),
    ),
    Mutant(
        "a number is said that nobody knows",
        "BookKeeperStreamReader.reportLatestOffset",
        "if len(counts) == len(progress.skipped):",
        "if True:",
        (f"{SOURCE}::test_or_its_new_rows_from_their_start",),
    ),
    # --- what a reader asks for ------------------------------------------------------------------
    Mutant(
        "a log is read from below 0",
        "log_handle._offset",
        "arguments.whole_number_or_none(what, given, least=0)",
        "arguments.whole_number_or_none(what, given)",
        (f"{FRONT}::test_what_is_below_0_is_refused",),
    ),
    Mutant(
        "a truth value is a number",
        "whole_number",
        "None if isinstance(given, bool) else given",
        "given",
        (
            f"{FRONT}::test_offsets_and_entry_ids_are_whole_numbers[True]",
            f"{FRONT}::test_a_ledger_id_is_a_whole_number[True]",
        ),
    ),
    Mutant(
        "a truth value is a time",
        "arguments._number",
        "if isinstance(given, bool) or not isinstance(given, Real):",
        "if not isinstance(given, Real):",
        (f"{FRONT}::test_times_are_numbers_of_seconds[True]",),
    ),
    Mutant(
        "what is no time is for ever",
        "seconds_or_none",
        "if not bounds.is_time(number)",
        "if number < 0",
        (
            f"{FRONT}::test_times_are_numbers_of_seconds[nan]",
            f"{FRONT}::test_times_are_numbers_of_seconds[a]",
        ),
    ),
    Mutant(
        "a time is below 0",
        "is_time",
        " and seconds >= 0",
        "",
        (f"{FRONT}::test_times_are_numbers_of_seconds[-1]",),
    ),
    Mutant(
        "a time of 0 is above 0",
        "seconds_or_none",
        " or (is_above_0 and number == 0)",
        "",
        (f"{FRONT}::test_a_limit_for_rolling_is_above_0",),
    ),
    Mutant(
        "a time may be too large for a number",
        "arguments._number",
        "    except OverflowError:\n",
        "    except ZeroDivisionError:\n",
        (f"{FRONT}::test_a_time_or_a_number_that_is_too_large_is_for_ever",),
    ),
)
