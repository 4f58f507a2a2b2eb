"""Mutants of the header that a writer's journal begins with."""

from .mutant import Mutant

CHANGES = "tests/integration/recovery/test_begun_journals.py"
JOURNALS = "tests/integration/recovery/test_lost_journals.py"
LANE = "tests/unit/ledger/handles/test_lane.py"
LEDGER = "tests/unit/protocol/test_ledger.py"
RECORDS = "tests/unit/format/test_small_records.py"

BEGUN = "root.open_journal(self.journal, self.header.frame(ensemble_index, 0))"
LOST = f"{JOURNALS}::test_a_lost_journal_is_no_absence"

MUTANTS = (
    # --- what is there before the metadata names a bookie ----------------------------------------
    Mutant(
        "no header is written",
        "Joining.taken_by",
        BEGUN,
        "root.open_journal(self.journal)",
        (
            f"{JOURNALS}::test_a_journal_that_was_begun_and_holds_no_entry_proves_that_there_is_none"
            "[memory]",
            f"{JOURNALS}::test_journals_are_durable_before_the_metadata_names_their_bookies",
        ),
    ),
    Mutant(
        "a journal is opened without its first record",
        "MemoryRoot.open_journal",
        "        if first:\n            journal.append(first)\n",
        "",
        (
            "tests/conformance/test_memory_bookie.py::TestMemoryBookie::test_a_journal_may_begin_with_a_record",
        ),
    ),
    Mutant(
        "a journal in a directory is opened without its first record",
        "PosixRoot.open_journal",
        "                if first:\n                    journal.append(first)\n",
        "",
        (
            "tests/conformance/test_posix_bookie.py::TestPosixBookie::test_a_journal_may_begin_with_a_record",
        ),
    ),
    Mutant(
        "a journal in a bucket is opened without its first record",
        "S3Root.open_journal",
        "        if first:\n            journal.append(first)\n",
        "",
        (
            "tests/conformance/test_s3_bookie.py::TestS3Bookie::test_a_journal_may_begin_with_a_record",
        ),
    ),
    Mutant(
        "the metadata names bookies before they begin their journals",
        "creating.create_ledger",
        "ensembles.choose(cluster, ledger_id, quorum, digester, is_strict=strict)",
        "ensembles.choose(cluster, ledger_id, quorum, is_strict=strict)",
        (f"{JOURNALS}::test_journals_are_durable_before_the_metadata_names_their_bookies",),
    ),
    Mutant(
        "who takes a place begins no journal",
        "Membership.enlist",
        "        joining = Joining.last_writer(mine, self._digester)",
        "        joining = Joining.of(mine.ledger_id, mine.quorum, term=mine.term, "
        "token=mine.token, digester=None)",
        (f"{CHANGES}::test_who_takes_a_place_has_begun_its_journal",),
    ),
    Mutant(
        "another ensemble forgets that its members began their journals",
        "LedgerMetadata.with_ensemble",
        "        has_headers = self.last_fragment.has_headers\n",
        "        has_headers = False\n",
        (
            f"{LEDGER}::test_members_that_stay_have_begun_no_more_than_before[True]",
            f"{CHANGES}::test_who_takes_a_place_has_begun_its_journal",
        ),
    ),
    Mutant(
        "members that stay are said to have begun journals",
        "LedgerMetadata.with_ensemble",
        "        has_headers = self.last_fragment.has_headers\n",
        "        has_headers = bool(token)\n",
        (
            f"{LEDGER}::test_members_that_stay_have_begun_no_more_than_before[False]",
            f"{CHANGES}::test_members_that_stay_have_begun_no_more_than_before",
        ),
    ),
    Mutant(
        "a record does not say whose journals were begun",
        "_encode_fragment",
        "    if fragment.has_headers:  # came later still",
        "    if False:  # came later still",
        (f"{RECORDS}::test_a_record_says_whose_journals_were_begun",),
    ),
    Mutant(
        "an older version may drop whose journals were begun",
        "_version_of",
        "return HEADERS_VERSION if has_headers else envelope.VERSION",
        "return envelope.VERSION",
        (f"{RECORDS}::test_a_record_says_whose_journals_were_begun",),
    ),
    Mutant(
        "all records are of the new version",
        "_version_of",
        "return HEADERS_VERSION if has_headers else envelope.VERSION",
        "return HEADERS_VERSION",
        (f"{RECORDS}::test_a_record_that_says_nothing_of_journals_is_of_the_first_version",),
    ),
    # --- who misses it -------------------------------------------------------------------------
    Mutant(
        "nobody misses a journal that was begun",
        "Taken.of",
        'begun = layout.journal(*who) if fragment.has_headers else ""',
        'begun = ""',
        (f"{LOST}[memory-sizes0-gone]", f"{LOST}[file-sizes1-gone]"),
    ),
    Mutant(
        "a journal that holds nothing is there",
        "_behind_the_first",
        "    return -1 if length is None else (root.size(name) or 0) - length\n",
        "    return -1 if prefix is None else 0\n",
        (f"{LOST}[memory-sizes0-empty]", f"{LOST}[memory-sizes1-never written]"),
    ),
    Mutant(
        "a header that is cut off is there",
        "_behind_the_first",
        "    return -1 if length is None else (root.size(name) or 0) - length\n",
        "    return -1 if length is None else 0\n",
        (f"{LOST}[memory-sizes0-cut in the header]",),
    ),
    Mutant(
        "a recovery does not miss it",
        "FenceAndRead._judged",
        "is_begun=tail.is_begun",
        "is_begun=True",
        (f"{LOST}[memory-sizes0-gone]",),
    ),
    Mutant(
        "a recovery takes what others have copied there for it",
        "FenceAndRead._together",
        "begun = tails.get(self.writer.taken.journal)",
        "begun = next((tail for tail in each if tail.has_records), None)",
        (f"{JOURNALS}::test_copies_that_a_recovery_gives_do_not_make_it_whole",),
    ),
    Mutant(
        "a reader does not miss it",
        "member_end._lost",
        "is_begun=own is not None and own.record is not None",
        "is_begun=True",
        (f"{JOURNALS}::test_a_reader_takes_no_bookie_without_its_journal_for_whole[memory-gone]",),
    ),
    Mutant(
        "it is missed where nobody began one",
        "Taken.of",
        'begun = layout.journal(*who) if fragment.has_headers else ""',
        "begun = layout.journal(*who)",
        (f"{CHANGES}::test_a_ledger_whose_commit_never_came_is_closed_as_an_empty_one[memory]",),
    ),
    Mutant(
        "a header is the record of what was confirmed",
        "newest_record",
        "is_in_front = record.last_entry_id <= entry_id and not record.is_header",
        "is_in_front = record.last_entry_id <= entry_id",
        (f"{JOURNALS}::test_a_header_is_no_record_of_what_was_confirmed",),
    ),
    Mutant(
        "a ledger that becomes a stream's tail has no headers",
        "TailWriter._record_writer",
        "            tail = self._with_journals(tail, token, ensemble, digester)\n",
        "            pass\n",
        (f"{CHANGES}::test_who_adopts_a_batchs_ledger_begins_its_journals[memory]",),
    ),
    Mutant(
        "who adopts a ledger asks for its permission again",
        "TailWriter._with_journals",
        'replace(Joining.last_writer(after, digester), permission="")',
        "Joining.last_writer(after, digester)",
        (f"{CHANGES}::test_a_permission_is_not_asked_for_again_by_who_adopts_a_ledger",),
    ),
    Mutant(
        "headers are said to be where a bookie began none",
        "TailWriter._with_journals",
        "        if begun.bookie_ids == members:\n",
        "        if members:\n",
        (f"{CHANGES}::test_a_tail_is_adopted_without_a_bookie_that_begins_no_journal",),
    ),
    Mutant(
        "one answer that is lost fails a new ledger",
        "ensembles.choose",
        "        if not refused:\n            raise\n    # What",
        "        raise\n    # What",
        (
            f"{CHANGES}::test_an_answer_that_is_lost_fails_no_ledger_where_there_are_no_other_bookies"
            "[put_new]",
        ),
    ),
    # --- who makes it ----------------------------------------------------------------------------
    Mutant(
        "a sink makes a journal that is not there",
        "enlisting.journal_on",
        "    if file is None and fragment.has_headers:\n",
        "    if file is None and not fragment:\n",
        (f"{JOURNALS}::test_a_sink_never_makes_a_journal_that_was_begun",),
    ),
    Mutant(
        "a journal is handed over again and again",
        "Begun.hand_over",
        "return self._journals.pop(bookie_id, None)",
        "return self._journals.get(bookie_id)",
        (f"{JOURNALS}::test_a_journal_is_handed_over_once",),
    ),
    Mutant(
        "what comes first is framed as if there was no header",
        "Lane.__init__",
        "self._framed_bytes = appender.end",
        "self._framed_bytes = 0",
        (f"{LANE}::test_what_comes_first_comes_behind_the_header",),
    ),
    Mutant(
        "the first record of a journal is asked for again and again",
        "S3Journal._store",
        "once=is_first",
        "once=False",
        ("tests/conformance/test_s3_once.py::test_the_first_record_of_a_journal_is_sent_once",),
    ),
)
