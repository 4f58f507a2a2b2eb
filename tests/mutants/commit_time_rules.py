"""Mutants of when entries were committed."""

from .change import Drop, DropArgument, Replace
from .mutant import Mutant

TIMES = "tests/unit/protocol/test_commit_times.py"
LOG = "tests/integration/log/test_commit_times.py"
HEADERS = "tests/unit/format/test_headers.py"
STORED = "tests/unit/format/test_stored_is_read.py"

STEPS = "bool(record.attempts) and is_within and is_rising and is_timed"
SET_BACK = f"{TIMES}::test_a_clock_that_is_set_back_does_not_set_back_the_ledger"
ROLLS = f"{LOG}::test_a_writer_that_rolls_and_the_next_writer_are_not_before_earlier_ledgers"
TAKES_OVER = f"{LOG}::test_a_writer_that_takes_over_is_not_before_what_was_recovered"
FOUND = f"{LOG}::test_the_first_offset_since_a_time_in_a_log_of_handles"
TRUNCATED = f"{LOG}::test_a_truncated_unbounded_log"
ENDED = f"{LOG}::test_a_writer_that_follows_one_that_ended_is_not_before_it"

SHOWN = "tests/integration/log/test_timestamps.py"

MUTANTS = (
    # --- reads -------------------------------------------------------------------------------
    Mutant(
        "rows of a tail are shown with a time before the ledgers before it",
        "_least_times",
        Replace("max(last_ms, place.last_ms)", "last_ms"),
        (f"{SHOWN}::test_rows_of_a_tail_are_not_before_those_of_the_ledgers_before_it",),
    ),
    Mutant(
        "rows are shown with the time of their record, although the log has a later one",
        "times_of_rows",
        Replace("max(step.ms, ledger.least_ms)", "step.ms"),
        (f"{SHOWN}::test_writes_that_overtake_one_another_and_their_compaction",),
    ),
    Mutant(
        "rows of each stripe are shown with the times of the first stripe",
        "times_of_rows",
        Replace("-(-(step.first_entry_id - first) // stride)", "step.first_entry_id - first"),
        (f"{SHOWN}::test_steps_of_a_record_are_found_in_each_stripe[3]",),
    ),
    # --- a ledger ----------------------------------------------------------------------------
    Mutant(
        "a clock that is set back sets back the ledger",
        "CommitTimes.then",
        Replace("later.not_before(self.last_ms)", "later"),
        (SET_BACK, f"{LOG}::test_a_writer_whose_clock_is_set_back_repeats_its_last_time"),
    ),
    Mutant(
        "each record begins the ledger's times anew",
        "CommitTimes.then",
        Replace("is_first", "True", at=0),
        (SET_BACK, f"{LOG}::test_a_writer_whose_clock_is_set_back_repeats_its_last_time"),
    ),
    Mutant(
        "a time out of bounds is kept",
        "CommitTimes.at",
        Replace("min(max(now_ms, 0), TIME_MAX)", "now_ms"),
        (f"{TIMES}::test_a_clock_out_of_bounds_counts_as_the_bound",),
    ),
    Mutant(
        "a record may be older than those on their way",
        "PendingAdds.push",
        Replace("self._pending[-1].times if self._pending else self.times", "self.times"),
        (SET_BACK,),
    ),
    Mutant(
        "a writer forgets when its last entry was committed",
        "PendingAdds.acknowledge",
        Drop("self.times = done[-1].times"),
        (
            f"{TIMES}::test_only_what_is_acknowledged_has_the_ledger_s_times",
            f"{TIMES}::test_a_closed_ledger_has_the_times_of_its_first_and_its_last_entry",
        ),
    ),
    Mutant(
        "a writer closes its ledger without times",
        "LedgerWriter.closed",
        DropArgument("times"),
        (
            f"{TIMES}::test_a_closed_ledger_has_the_times_of_its_first_and_its_last_entry",
            ROLLS,
        ),
    ),
    Mutant(
        "a recovery closes the ledger without times",
        "recovery.steps.Close.applied_to",
        DropArgument("times"),
        (
            f"{TIMES}::test_a_recovery_takes_them_from_the_last_record[True]",
            f"{LOG}::test_a_recovery_says_the_times_of_a_writer_that_died",
        ),
    ),
    Mutant(
        "a confirmation does not repeat the times",
        "RecordEncoder.confirm",
        Replace("Made(fragment_first_entry_id, pending.times)", "Made(fragment_first_entry_id)"),
        (ENDED,),
    ),
    Mutant(
        "the next writer of a ledger does not know its times",
        "recover._standing",
        Replace("end.last.times", "FIRST.times"),
        (f"{TAKES_OVER}[True]", ENDED),
    ),
    # --- a log -------------------------------------------------------------------------------
    Mutant(
        "a writer does not know the times of the ledgers before its own",
        "OpenTail.began",
        Replace("self.standing.not_before(self.log.value.last_ms)", "self.standing"),
        (ROLLS, f"{TAKES_OVER}[False]"),
    ),
    Mutant(
        "a writer that rolls forgets when it committed",
        "LogWriter._switch",
        Replace("FIRST.not_before(old.handle.last_ms)", "FIRST"),
        (ROLLS,),
    ),
    Mutant(
        "a write does not know the times of its log",
        "log.batch.commit._committed",
        DropArgument("standing"),
        (f"{LOG}::test_a_write_of_rows_is_committed_at_one_time_and_not_before_the_log",),
    ),
    Mutant(
        "the list goes back with a ledger that was overtaken",
        "LogRecord._joined",
        Replace("ledger.times.not_before(self.last_ms)", "ledger.times"),
        (
            f"{TIMES}::test_the_list_never_goes_back_though_a_ledger_s_writer_did_not_know_the_one_"
            "before",
            f"{LOG}::test_a_write_that_another_one_overtakes_is_listed_behind_it",
        ),
    ),
    Mutant(
        "a lost ledger has no times",
        "with_lost",
        DropArgument("last_ms"),
        (f"{TIMES}::test_a_ledger_that_is_lost_stands_where_the_log_was",),
    ),
    Mutant(
        "a compacted ledger's place ends with its first part",
        "log.compaction.times_of",
        Replace("max((place.last_ms for place in run))", "run[0].last_ms"),
        (
            f"{TIMES}::test_a_compacted_ledger_keeps_the_times_of_what_it_replaces",
            f"{LOG}::test_a_compacted_ledger_has_the_times_of_the_ledgers_before_it",
        ),
    ),
    Mutant(
        "compacted rows are committed at the time of the compaction",
        "_Rewriting._write",
        DropArgument("times"),
        (f"{LOG}::test_a_compacted_ledger_has_the_times_of_the_ledgers_before_it",),
    ),
    Mutant(
        "a compacted ledger forgets when the ledgers in it were committed",
        "_Rewriting._write",
        DropArgument("time_steps"),
        (f"{LOG}::test_a_compaction_changes_no_offset_of_a_time",),
    ),
    Mutant(
        "a compacted ledger's part has the time of its first entry",
        "time_steps_of",
        Replace(
            "TimeStep(place.first_offset - run[0].first_offset, place.last_ms)",
            "TimeStep(place.first_offset - run[0].first_offset, place.first_ms)",
        ),
        (f"{TIMES}::test_each_ledger_with_later_entries_makes_a_step",),
    ),
    Mutant(
        "a part of a record at the time is passed over",
        "AddRecord.first_entry_since",
        Replace("step.ms >= ms", "step.ms > ms"),
        (
            f"{TIMES}::test_the_first_entry_of_a_record_since_then[10-4]",
            f"{LOG}::test_a_compaction_changes_no_offset_of_a_time",
        ),
    ),
    Mutant(
        "steps that contradict the record are stored and read",
        "add_record._are_steps_coherent",
        Replace(STEPS, "bool(record.attempts)"),
        (f"{STORED}::test_steps_that_contradict_their_record_are_not_stored[steps0]",),
    ),
    Mutant(
        "a record without entry logs has steps",
        "add_record._are_steps_coherent",
        Replace(STEPS, "is_within and is_rising and is_timed"),
        (f"{STORED}::test_a_record_with_inline_rows_has_no_steps",),
    ),
    Mutant(
        "a record has any number of steps",
        "commit_times.decode_steps",
        Replace("len(steps) > STEPS_MAX", "False"),
        (f"{STORED}::test_a_record_has_a_bounded_number_of_steps",),
    ),
    Mutant(
        "a page says the times of its first ledger alone",
        "PageContents.named",
        Replace("parts[-1].last_ms", "parts[0].last_ms"),
        (f"{TIMES}::test_a_page_has_the_times_of_its_first_and_its_last_ledger",),
    ),
    # --- the offset at a time ----------------------------------------------------------------
    Mutant(
        "a ledger that ends at the time is passed over",
        "ledger_list.first_since",
        Replace("bisect_left(...)", "len([one for one in stretches if one.last_ms <= ms])"),
        (f"{TIMES}::test_the_first_ledger_with_an_entry_since_then[20-0]", FOUND),
    ),
    Mutant(
        "an entry of the time is passed over",
        "offset_by_time.first_entry_since",
        Replace("record.times.last_ms < ms", "record.times.last_ms <= ms"),
        (f"{TIMES}::test_the_first_entry_since_then_is_found_by_halving", FOUND),
    ),
    Mutant(
        "a record of entry logs at the time is passed over",
        "offset_by_time._entry_since",
        Replace("record.times.last_ms >= ms", "record.times.last_ms > ms"),
        (f"{LOG}::test_micro_batches_are_found_by_their_records",),
    ),
    Mutant(
        "rows of a write are looked for in the ledger",
        "offset_by_time._entry_since",
        Replace("place.first_ms >= ms", "False"),
        (f"{LOG}::test_rows_of_writes_are_found_by_the_list_alone",),
    ),
    Mutant(
        "a ledger whose times were not read is passed over",
        "offset_by_time._entry_since",
        Replace("0 < place.last_ms < ms", "place.last_ms < ms"),
        (TRUNCATED,),
    ),
    Mutant(
        "a record says when entries after it were committed",
        "how_far._Look.readable",
        Replace("record.last_add_confirmed >= last", "record.quorum"),
        (f"{TIMES}::test_a_record_says_nothing_of_entries_after_those_that_it_confirms[True]",),
    ),
    Mutant(
        "the open end is not looked at",
        "offset_by_time.offset_since",
        Replace("place is None and log.tail", "False"),
        (f"{FOUND}[True-False]", f"{LOG}::test_micro_batches_are_found_by_their_records"),
    ),
    Mutant(
        "an offset that was truncated is found",
        "offset_by_time.offset_since",
        Replace("max(offset, log.first_offset)", "offset"),
        (f"{LOG}::test_it_is_never_before_the_log",),
    ),
    Mutant(
        "a part of a millisecond is cut off",
        "milliseconds_since_1970",
        Replace("-(-microseconds // 1_000)", "microseconds // 1_000"),
        (f"{LOG}::test_a_datetime_is_rounded_up_to_milliseconds",),
    ),
    Mutant(
        "a time without a zone is that of the host",
        "milliseconds_since_1970",
        Replace("given.utcoffset() is None", "False"),
        (f"{LOG}::test_what_is_no_time_is_refused[time0]",),
    ),
    # --- how they are stored -----------------------------------------------------------------
    Mutant(
        "times out of order are read",
        "commit_times.in_order",
        Replace("0 <= first_ms <= last_ms", "0 <= first_ms"),
        (
            f"{STORED}::test_times_that_no_reader_takes_are_not_stored[6-5]",
            "tests/unit/format/test_ledger_records.py::test_times_in_a_record_are_in_order[times0]",
        ),
    ),
    Mutant(
        "times that no reader would read are stored",
        "add_record._is_within_bounds",
        Drop("if not commit_times.are_readable(record.times): ..."),
        (f"{STORED}::test_times_that_no_reader_takes_are_not_stored",),
    ),
    Mutant(
        "a header like the one before it has the same times",
        "Headers._like_the_model",
        Replace("commit_times.in_order(int(began), int(made))", "model.times"),
        (f"{HEADERS}::test_those_that_are_alike_are_decoded_without_their_json",),
    ),
)
