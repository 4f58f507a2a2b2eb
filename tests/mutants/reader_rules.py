"""Mutants of the read handle, and of the write handle whose user chooses the ids."""

from .change import Drop, Replace
from .mutant import Mutant

HANDLE = "tests/integration/ledger/test_read_handle.py"
CHANGING = "tests/integration/ledger/test_readers_of_changing_ledgers.py"
PAGES = "tests/integration/journals/test_journal_pages.py"
GROWTH = "tests/integration/dataframe/test_read_growth.py"
ADV = "tests/integration/ledger/test_adv_handle.py"
LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
GROUP = "tests/unit/ledger/handles/test_record_replies.py"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"

STALE = "tests/integration/journals/test_stale_listings.py"
S3_KEYS = "tests/conformance/test_s3_keys.py"
S3_BOOKIE = "tests/conformance/test_s3_bookie.py::TestS3Bookie"

PLANNING = "tests/unit/log/reading/test_planning.py"

MUTANTS = (
    # --- plans -----------------------------------------------------------------------------------
    Mutant(
        "one task reads very many small ledgers",
        "read_slices._tasks",
        Replace("SLICE_BYTES if task_bytes is None else 0", "0"),
        (f"{PLANNING}::test_very_many_small_ledgers_are_read_by_several_tasks",),
    ),
    Mutant(
        "a plan asks a bookie for each ledger",
        "ledger_files.find_records",
        Replace("chain(_known(ledger, ahead), journals)", "journals"),
        (f"{PLANNING}::test_a_plan_asks_each_bookie_once_for_all_ledgers",),
    ),
    # --- whom to ask, and for how long -----------------------------------------------------------
    Mutant(
        "a last add confirmed needs the answer of everybody",
        "EntryReader.ends",
        Replace("is_enough(ends)", "False"),
        (f"{HANDLE}::test_2_3_2_the_last_add_confirmed_needs_no_answer_of_a_bookie_that_hangs",),
    ),
    Mutant(
        "a last add confirmed needs one answer",
        "EntryReader.ends",
        Replace("is_enough(ends)", "True"),
        (f"{HANDLE}::test_2_3_2_it_waits_for_enough_of_every_write_set",),
    ),
    Mutant(
        "a bookie that failed is asked first again",
        "EntryReader._order",
        Replace("sorted(order, key=self._fan_out.faults.__contains__)", "order"),
        (f"{HANDLE}::test_2_4_4_a_bookie_that_failed_is_asked_last",),
    ),
    Mutant(
        "one that is busy is not waited for although it is needed",
        "_Asked.__init__",
        Replace(
            "sorted(members, key=fan_out.under_way.__contains__)",
            "(m for m in members if m not in fan_out.under_way)",
        ),
        (f"{FAN_OUT}::test_all_wait_for_one_that_is_busy_if_it_is_needed",),
    ),
    # --- what to believe -------------------------------------------------------------------------
    Mutant(
        "a record of a term that is not open is read",
        "RecordReplies.take",
        Replace("page.counting(self.ledger, self.entry_id)", "page.record_of(self.entry_id)"),
        (
            f"{GROUP}::test_a_record_of_a_term_that_is_not_open_is_none",
            f"{GROUP}::test_of_two_records_the_owners_is_the_one_and_parts_are_not_mixed",
        ),
    ),
    Mutant(
        "a last add confirmed of a term that is not open is believed",
        "_believed",
        Replace("ledger.term", "ledger.term + 1"),
        (f"{CHANGING}::test_a_reader_across_a_change_of_term_believes_only_terms_that_are_open",),
    ),
    Mutant(
        "an error is taken for the absence of an entry",
        "ReadHandle._is_absent",
        Replace("end is not None or not self.faults", "True"),
        (f"{LEDGERS}::test_what_no_bookie_gives_may_be_there",),
    ),
    # --- journals by pages -----------------------------------------------------------------------
    Mutant(
        "a torn end is not looked at again",
        "JournalPages._walk",
        Replace("self._blocked_size != reader.size", "self._blocked_size is None"),
        (f"{PAGES}::test_a_record_that_is_being_appended_is_found_when_it_is_whole",),
    ),
    Mutant(
        "the next good record is looked for in the same window only",
        "JournalPages.first_after",
        Replace(
            "reader.frames(page.position if page else 0)",
            "list(reader.frames(page.position if page else 0))[:2]",
        ),
        (f"{PAGES}::test_a_gap_ends_at_the_next_good_record_however_far",),
    ),
    Mutant(
        "what lies in front of where a reader began is not found",
        "JournalPages._go_near",
        Replace("self._begin_at(None)", "return"),
        (f"{PAGES}::test_an_entry_near_the_end_of_a_long_journal_is_found_from_its_end",),
    ),
    Mutant(
        "large records are read to pass them",
        "JournalReader.frames",
        Replace(
            "length = self._length(self.end)",
            "length = self._length(self.end)\n"
            "length and self._bytes.read(self.end, self.end + length)",
        ),
        (f"{PAGES}::test_large_records_are_passed_without_being_read",),
    ),
    Mutant(
        "tasks that share a ledger begin at its start",
        "with_index",
        Replace("tuple(last.values())", "()"),
        (f"{GROWTH}::test_tasks_that_share_a_ledger_read_each_its_part",),
    ),
    Mutant(
        "the head of a journal is a folder of its records",
        "object_store.records_folder",
        Replace("f'{folder}{slash}.{last}'", "name"),
        (f"{S3_KEYS}::test_the_records_of_a_journal_lie_beside_it",),
    ),
    Mutant(
        "the records of a journal without its head are left out of a listing",
        "BucketBookieRoot.list",
        Replace(
            "{self._shown(folder, name, found) for name in found}",
            "{name for name in found if name[0] != '.'}",
        ),
        (f"{S3_BOOKIE}::test_records_without_their_head_are_no_absence",),
    ),
    Mutant(
        "a recovery takes what is not listed for absent",
        "Recoverer._located",
        Replace(
            "fencing.FenceAndRead(ledger.ledger_id, writer, index, *on_it, since, *known)",
            "fencing.FenceAndRead(ledger.ledger_id, writer, index, *on_it, since, *known[:1])",
        ),
        (
            f"{STALE}::test_a_recovery_finds_the_writers_journals[sizes0]",
            f"{STALE}::test_a_recovery_finds_the_writers_journals[sizes1]",
        ),
    ),
    Mutant(
        "a recovery takes a record that is not listed for lost",
        "Recoverer._located",
        Replace(
            "fencing.FindRecord(ledger.ledger_id, *on_it, entry_id, *known)",
            "fencing.FindRecord(ledger.ledger_id, *on_it, entry_id, *known[:1])",
        ),
        (f"{STALE}::test_a_recovery_finds_the_record_of_the_confirmed_entry",),
    ),
    Mutant(
        "an open end is as far as listed journals go",
        "member_journals.member_end",
        Replace("journals_of(ledger, member)", "()"),
        (
            f"{STALE}::test_a_reader_of_an_open_ledger_is_shown_no_less",
            f"{STALE}::test_an_open_tail_is_planned_and_read",
        ),
    ),
    Mutant(
        "entries are looked for in listed journals only",
        "MemberJournals._find_journals",
        Replace("journals_of(ledger, self._member)", "()"),
        (f"{STALE}::test_entries_of_a_closed_ledger_are_read[False]",),
    ),
    Mutant(
        "a plan goes by listed journals only",
        "_journal_names",
        Replace("journals_of(ledger, member)", "()"),
        (f"{STALE}::test_a_plan_finds_the_records_of_a_writer_who_did_not_close_it",),
    ),
    Mutant(
        "an audit goes by listed journals only",
        "look.show",
        Replace("journals_of(ledger, member)", "()"),
        (f"{STALE}::test_an_audit_finds_what_is_there",),
    ),
    # --- ids of the user's choice ----------------------------------------------------------------
    Mutant(
        "what waits for a missing entry has no bound",
        "WaitingEntries._admit",
        Replace("self._waiting_bytes + byte_count <= self._bytes_max", "byte_count >= 0"),
        (f"{ADV}::test_what_waits_is_bounded_and_the_missing_entry_always_passes",),
    ),
    Mutant(
        "the missing entry is held up by those that wait for it",
        "WaitingEntries._admit",
        Replace("entry_id == self.next", "False"),
        (f"{ADV}::test_what_waits_is_bounded_and_the_missing_entry_always_passes",),
    ),
    Mutant(
        "what waits behind a gap is never told",
        "WaitingEntries.fail",
        Replace("sorted(given_up.items())", "sorted(given_up.items())[:0]"),
        (f"{ADV}::test_close_ends_at_the_last_dense_entry_and_fails_what_waits",),
    ),
    Mutant(
        "what waits behind a gap does not hear of the writer's end",
        "WriterRunner._finish",
        Drop("self._teller.on_end"),
        (f"{ADV}::test_those_behind_a_gap_hear_of_the_end_of_the_writer",),
    ),
)
