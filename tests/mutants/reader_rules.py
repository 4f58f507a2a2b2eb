"""Mutants of the read handle, and of the write handle whose user chooses the ids."""

from .mutant import Mutant

HANDLE = "tests/integration/ledger/test_read_handle.py"
CHANGING = "tests/integration/ledger/test_readers_of_changing_ledgers.py"
PAGES = "tests/integration/journals/test_journal_pages.py"
GROWTH = "tests/integration/dataframe/test_read_growth.py"
ADV = "tests/integration/ledger/test_adv_handle.py"
HEADS = "tests/unit/format/test_journal_heads.py"
LEDGERS = "tests/unit/ledger/test_ledger_requests.py"
GROUP = "tests/unit/ledger/handles/test_record_replies.py"
FAN_OUT = "tests/unit/cluster/test_fan_out.py"

OWNERS = "tests/integration/journals/test_owners_journal.py"
OLD = "tests/integration/journals/test_journals_of_old_readers.py"
STALE = "tests/integration/journals/test_stale_listings.py"
S3_KEYS = "tests/conformance/test_s3_keys.py"
S3_BOOKIE = "tests/conformance/test_s3_bookie.py::TestS3Bookie"

MUTANTS = (
    # --- whom to ask, and for how long -----------------------------------------------------------
    Mutant(
        "a reader asks the next bookie only when the first has failed",
        "ReaderSettings.one_by_one",
        "after = min(self.read_timeout_seconds, later)",
        "after = self.read_timeout_seconds",
        (f"{HANDLE}::test_2_4_3_a_slow_bookie_is_not_waited_for",),
    ),
    Mutant(
        "a bookie that was slow has no answer",
        "_Asked.goes_on",
        "return bool(self._turn or self.waited)",
        "return bool(self._turn)",
        (f"{HANDLE}::test_2_4_3_a_slow_answer_counts_if_no_other_is_good",),
    ),
    Mutant(
        "a bookie that hangs is said to be good",
        "_Asked._stop_waiting",
        "        if not self._is_enough:\n            self._fan_out.faults[member] = str(error)\n",
        "",
        (f"{HANDLE}::test_a_bookie_that_hangs_is_stepped_over_and_named",),
    ),
    Mutant(
        "a last add confirmed needs the answer of everybody",
        "EntryReader.ends",
        "            return is_enough(ends)\n",
        "            return False\n",
        (f"{HANDLE}::test_2_3_2_the_last_add_confirmed_needs_no_answer_of_a_bookie_that_hangs",),
    ),
    Mutant(
        "a last add confirmed needs one answer",
        "EntryReader.ends",
        "            return is_enough(ends)\n",
        "            return True\n",
        (f"{HANDLE}::test_2_3_2_it_waits_for_enough_of_every_write_set",),
    ),
    Mutant(
        "a reader does not keep to a good bookie",
        "EntryReader._order",
        "            order.sort(key=lambda member: member != self._favourite)\n",
        "",
        (f"{HANDLE}::test_2_4_5_after_a_fault_the_next_good_one_is_kept",),
    ),
    Mutant(
        "a reader is sticky although it must not",
        "EntryReader._order",
        "if holds_all and self._settings.is_sticky:",
        "if holds_all:",
        (f"{HANDLE}::test_2_4_5_reads_may_be_spread_over_the_write_sets[sizes0]",),
    ),
    Mutant(
        "a bookie that failed is asked first again",
        "EntryReader._order",
        "return sorted(order, key=self._fan_out.faults.__contains__)",
        "return order",
        (f"{HANDLE}::test_2_4_4_a_bookie_that_failed_is_asked_last",),
    ),
    Mutant(
        "a bookie is asked several things at once",
        "_Asked.begin",
        "            if member not in self._fan_out.under_way:\n"
        "                self._ask(member)\n",
        "            self._ask(member)\n",
        (f"{FAN_OUT}::test_a_bookie_is_asked_one_thing_at_a_time",),
    ),
    Mutant(
        "a bookie that still gets on is given up",
        "_Asked.time_out",
        "0 if is_alive else waited.late + 1",
        "waited.late + 1",
        (
            f"{FAN_OUT}::test_one_that_gets_on_is_waited_for",
            "tests/integration/journals/test_journal_tails.py::test_one_that_is_long_at_work_is_waited_for_and_one_that_hangs_is_not",
        ),
    ),
    Mutant(
        "one that is busy is not waited for although it is needed",
        "_Asked.__init__",
        "deque(sorted(members, key=fan_out.under_way.__contains__))",
        "deque(m for m in members if m not in fan_out.under_way)",
        (f"{FAN_OUT}::test_all_wait_for_one_that_is_busy_if_it_is_needed",),
    ),
    # --- what to believe -------------------------------------------------------------------------
    Mutant(
        "parts of two records are put together",
        "RecordReplies.take",
        "if stored.record == self.record:",
        "if True:",
        (f"{GROUP}::test_parts_of_two_records_of_one_term_are_not_mixed",),
    ),
    Mutant(
        "a record of a term that is not open is read",
        "RecordReplies.take",
        "stored = page.counting(self.ledger, self.entry_id)",
        "stored = page.record_of(self.entry_id)",
        (
            f"{GROUP}::test_a_record_of_a_term_that_is_not_open_is_none",
            f"{GROUP}::test_of_two_records_the_owners_is_the_one_and_parts_are_not_mixed",
        ),
    ),
    Mutant(
        "a last add confirmed of a term that is not open is believed",
        "_believed",
        "    if end.record is not None and end.record.term > ledger.term:\n",
        "    if end.record is not None and end.record.term > ledger.term + 1:\n",
        (f"{CHANGING}::test_a_reader_across_a_change_of_term_believes_only_terms_that_are_open",),
    ),
    Mutant(
        "a reader does not look where an entry has moved to",
        "ReadHandle._rows_of",
        "self._found(entry_id) or self._found_elsewhere(entry_id)",
        "self._found(entry_id)",
        (
            f"{CHANGING}::test_rb_22_a_reader_follows_its_entries_to_bookies_that_joined",
            f"{CHANGING}::test_h33_a_reader_of_a_ledger_that_is_deleted_says_so_and_skips_nothing",
        ),
    ),
    Mutant(
        "rows are read as entries of bytes",
        "ReadHandle._entries",
        "if self._schema != VALUE_SCHEMA:",
        "if False:",
        (f"{LEDGERS}::test_rows_are_not_read_as_entries_of_bytes",),
    ),
    Mutant(
        "an error is taken for the absence of an entry",
        "ReadHandle._is_absent",
        "end is not None or not self.faults",
        "True",
        (f"{LEDGERS}::test_what_no_bookie_gives_may_be_there",),
    ),
    Mutant(
        "past the end somebody shall be brought back",
        "ReadHandle.read_unconfirmed",
        "            if not self._is_absent(at):\n                raise\n",
        "            if True:\n                raise\n",
        (
            f"{LEDGERS}::test_past_the_end_there_is_no_entry_to_bring_back",
            f"{HANDLE}::test_2_3_8_unconfirmed_entries_are_read_only_by_name",
        ),
    ),
    Mutant(
        "a prefix is believed unchecked",
        "frame_length",
        "    if not is_frame or data[body - 4 : body] != _checksum("
        "data[begin : body - 4], position):\n        return None\n",
        "    if not is_frame:\n        return None\n",
        (
            f"{HEADS}::test_no_flipped_bit_of_a_head_passes",
            f"{PAGES}::test_behind_a_damaged_prefix_nothing_is_believed",
        ),
    ),
    Mutant(
        "a header is believed unchecked",
        "decode_head",
        "        if not digester.matches(expected, _context(ledger_id, position), header):\n"
        "            return None\n",
        "",
        (f"{HEADS}::test_another_password_reads_no_head",),
    ),
    # --- journals by pages -----------------------------------------------------------------------
    Mutant(
        "a torn end is not looked at again",
        "JournalPages._walk",
        "while self._last < entry_id and self._blocked_size != reader.size:",
        "while self._last < entry_id and self._blocked_size is None:",
        (f"{PAGES}::test_a_record_that_is_being_appended_is_found_when_it_is_whole",),
    ),
    Mutant(
        "the next good record is looked for in the same window only",
        "JournalPages.first_after",
        "        for begin, _ in reader.frames(page.position if page else 0):\n",
        "        for begin, _ in list(reader.frames(page.position if page else 0))[:2]:\n",
        (f"{PAGES}::test_a_gap_ends_at_the_next_good_record_however_far",),
    ),
    Mutant(
        "what lies in front of where a reader began is not found",
        "JournalPages._go_near",
        "            self._begin_at(None)\n",
        "            return\n",
        (f"{PAGES}::test_an_entry_near_the_end_of_a_long_journal_is_found_from_its_end",),
    ),
    Mutant(
        "large records are read to pass them",
        "JournalReader.frames",
        "            length = self._length(self.end)\n            if length is None:\n",
        "            length = self._length(self.end)\n"
        "            length and self._bytes.read(self.end, self.end + length)\n"
        "            if length is None:\n",
        (f"{PAGES}::test_large_records_are_passed_without_being_read",),
    ),
    Mutant(
        "a reader keeps all it has read",
        "EntryReader._keep",
        "while len(self._pages) > 1 and (size > CACHE_BYTES or len(self._pages) > CACHE_PAGES):",
        "while False:",
        (f"{GROWTH}::test_a_ledger_of_200_megabytes_needs_no_more_memory_than_one_of_10",),
    ),
    Mutant(
        "tasks that share a ledger begin at its start",
        "with_index",
        "return replace(item, index=tuple(last.values()))",
        "return replace(item, index=())",
        (f"{GROWTH}::test_tasks_that_share_a_ledger_read_each_its_part",),
    ),
    Mutant(
        "a hole in a journal of objects is passed over",
        "object_journal.read_range",
        "if not (is_dense and fits) or",
        "if not fits or",
        (
            "tests/conformance/test_s3_ranges.py::"
            "test_a_record_that_is_missing_anywhere_is_in_doubt[2]",
        ),
    ),
    Mutant(
        "a journal of objects is as long as its listing, holes or not",
        "object_journal.size",
        "if records != [_record(number) for number in range(len(records))]:",
        "if False:",
        (
            "tests/conformance/test_s3_ranges.py::"
            "test_a_record_that_is_missing_anywhere_is_in_doubt[2]",
        ),
    ),
    Mutant(
        "a journal of objects ends where its listing ends",
        "object_journal.size",
        "*_behind(objects.look, name, len(records))]",
        "]",
        ("tests/conformance/test_s3_listings.py::test_a_recovery_and_readers_lose_nothing",),
    ),
    Mutant(
        "the head of a journal is a folder of its records",
        "object_journal.records_folder",
        'return f"{folder}{slash}.{last}"',
        "return name",
        (f"{S3_KEYS}::test_the_records_of_a_journal_lie_beside_it",),
    ),
    Mutant(
        "the records of a journal without its head are left out of a listing",
        "S3Root.list",
        "            names = {self._shown(folder, name, found) for name in found}\n",
        '            names = {name for name in found if name[0] != "."}\n',
        (f"{S3_BOOKIE}::test_records_without_their_head_are_no_absence",),
    ),
    Mutant(
        "a recovery takes what is not listed for absent",
        "Recoverer._located",
        "*on_it, since, *known)",
        "*on_it, since, *known[:1])",
        (
            f"{STALE}::test_a_recovery_finds_the_writers_journals[sizes0]",
            f"{STALE}::test_a_recovery_finds_the_writers_journals[sizes1]",
        ),
    ),
    Mutant(
        "a recovery takes a record that is not listed for lost",
        "Recoverer._located",
        "*on_it, entry_id, *known)",
        "*on_it, entry_id, *known[:1])",
        (f"{STALE}::test_a_recovery_finds_the_record_of_the_confirmed_entry",),
    ),
    Mutant(
        "an open end is as far as listed journals go",
        "member_end.member_end",
        "    known_names = journals_of(ledger, member)\n",
        "    known_names = ()\n",
        (
            f"{STALE}::test_a_reader_of_an_open_ledger_is_shown_no_less",
            f"{STALE}::test_an_open_tail_is_planned_and_read",
        ),
    ),
    Mutant(
        "entries are looked for in listed journals only",
        "MemberJournals._find_journals",
        "        known = journals_of(ledger, self._member)\n",
        "        known = ()\n",
        (f"{STALE}::test_entries_of_a_closed_ledger_are_read[False]",),
    ),
    Mutant(
        "what is missing of a record is lost, whatever journals have come since",
        "EntryReader.find",
        "        if showed and not replies.is_whole:\n",
        "        if False:\n",
        (
            f"{OLD}::test_a_reader_finds_the_part_that_a_bookie_got_with_another_place",
            f"{OWNERS}::test_where_the_record_is_refused_that_is_known_it_looks_for_new_journals",
        ),
    ),
    Mutant(
        "who looks for new journals stops at those that are known",
        "MemberJournals.pages_of",
        "            known = () if only_new else self._journals.values()\n",
        "            known = self._journals.values()\n",
        (f"{OLD}::test_a_reader_finds_the_part_that_a_bookie_got_with_another_place",),
    ),
    Mutant(
        "a journal that was gone once is said to be gone for ever",
        "MemberJournals._asked",
        "        self._problems.clear()\n",
        "",
        (f"{OLD}::test_an_error_names_no_journal_that_is_back",),
    ),
    Mutant(
        "a plan goes by listed journals only",
        "_journal_names",
        "    known = journals_of(ledger, member)\n",
        "    known = ()\n",
        (f"{STALE}::test_a_plan_finds_the_records_of_a_writer_who_did_not_close_it",),
    ),
    Mutant(
        "an audit goes by listed journals only",
        "journals_shown.show",
        "    known = journals_of(ledger, member)\n",
        "    known = ()\n",
        (f"{STALE}::test_an_audit_finds_what_is_there",),
    ),
    Mutant(
        "a listing is more than a hint where a journal is just made",
        "S3Root._shown",
        'is_there = head in listed or self._objects.look(f"{folder}/{head}") is not None',
        "is_there = head in listed",
        (f"{S3_BOOKIE}::test_a_journal_that_is_made_during_a_listing_has_its_head",),
    ),
    # --- ids of the user's choice ----------------------------------------------------------------
    Mutant(
        "an id may be anything",
        "AdvWriteHandle.append_async",
        "if type(entry_id) is not int or not 0 <= entry_id <= NUMBER_MAX:",
        "if False:",
        (f"{LEDGERS}::test_a_chosen_id_is_a_whole_number",),
    ),
    Mutant(
        "an id that was handed over is taken again",
        "AdvWriteHandle._is_refused",
        "entry_id < self._next or entry_id in self._waiting",
        "entry_id in self._waiting",
        (f"{ADV}::test_2_1_4_an_id_is_given_once",),
    ),
    Mutant(
        "an id that waits is taken again",
        "AdvWriteHandle._is_refused",
        "entry_id < self._next or entry_id in self._waiting",
        "entry_id < self._next",
        (f"{ADV}::test_2_1_4_an_id_is_given_once",),
    ),
    Mutant(
        "what waits for a missing entry has no bound",
        "AdvWriteHandle._admit",
        "has_room = self._waiting_bytes + byte_count <= self._limits.waiting_bytes",
        "has_room = byte_count >= 0",
        (f"{ADV}::test_what_waits_is_bounded_and_the_missing_entry_always_passes",),
    ),
    Mutant(
        "the missing entry is held up by those that wait for it",
        "AdvWriteHandle._admit",
        "is_next = entry_id == self._next",
        "is_next = False",
        (f"{ADV}::test_what_waits_is_bounded_and_the_missing_entry_always_passes",),
    ),
    Mutant(
        "what waits behind a gap is never told",
        "AdvWriteHandle._fail",
        "for entry_id, (_, future) in sorted(given_up.items()):",
        "for entry_id, (_, future) in sorted(given_up.items())[:0]:",
        (f"{ADV}::test_close_ends_at_the_last_dense_entry_and_fails_what_waits",),
    ),
    Mutant(
        "two threads hand over at once",
        "AdvWriteHandle._hand_over",
        "            if self._is_handing_over:\n                return\n",
        "",
        (f"{ADV}::test_while_one_thread_hands_over_no_other_does",),
    ),
)
