"""Mutants of ledgers that have let go of their beginning."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_truncating.py"
RECORDS = "tests/unit/format/test_records_of_ledgers_that_go_on.py"
LEDGERS = "tests/integration/ledger/test_truncated_ledgers.py"
JOURNALS = "tests/integration/upkeep/test_collect_old_journals.py"
TAIL = "tests/unit/protocol/test_log_tail.py"
LOGS = "tests/integration/log/test_truncated_unbounded_logs.py"
LOG_RECORDS = "tests/unit/format/test_unbounded_records.py"

MUTANTS = (
    Mutant(
        "what lies in front of the first fragment is the last one's",
        "owners",
        "    if at < 0:\n        return range(0)\n",
        "",
        (f"{UNIT}::test_behind_its_beginning_the_same_counts_and_in_front_nothing",),
    ),
    Mutant(
        "only the last fragment of an open ledger stays",
        "without_front",
        "stay = 1 if ledger.state is LedgerState.CLOSED else 2",
        "stay = 1",
        (f"{LEDGERS}::test_behind_a_fragment_without_entries_its_length_is_known_still",),
    ),
    Mutant(
        "a fragment goes though the entry lies in it",
        "without_front",
        "if first <= entry_id), default",
        "if first <= entry_id + 1), default",
        (f"{UNIT}::test_fragments_that_end_in_front_of_an_entry_go_but_for_the_last_two",),
    ),
    Mutant(
        "a ledger with one writer is truncated",
        "without_front",
        "    if not ledger.goes_on:\n",
        "    if False:\n",
        (f"{LEDGERS}::test_what_does_not_go_on_is_not_truncated",),
    ),
    Mutant(
        "an entry in front is looked for in the last fragment",
        "LedgerMetadata.fragment_of",
        "if entry_id < self.first_available:",
        "if False:",
        (
            f"{LEDGERS}::test_readers_are_refused_what_lies_in_front",
            f"{UNIT}::test_what_lies_in_front_is_in_no_fragment_and_says_so",
        ),
    ),
    Mutant(
        "older versions read a record whose beginning is gone",
        "_version_of",
        "    if metadata.first_available:\n        return TRUNCATED_VERSION\n",
        "",
        (f"{RECORDS}::test_who_does_not_know_that_the_beginning_is_gone_refuses_it",),
    ),
    Mutant(
        "where the tail begins is forgotten when its beginning is hidden",
        "LogRecord.truncated",
        "dropped = self.dropped.with_tail(max(0, before_offset - self.end_offset))",
        "dropped = self.dropped.with_tail(0)",
        (f"{TAIL}::test_what_is_confirmed_of_a_tail_that_goes_on_can_be_hidden",),
    ),
    Mutant(
        "a closed tail is hidden as an open one was",
        "LogRecord._joined",
        "dropped=log.dropped.with_tail(0))",
        "dropped=log.dropped)",
        (f"{TAIL}::test_its_tail_is_closed_at_its_own_offsets",),
    ),
    Mutant(
        "a log is truncated past what is confirmed by metadata",
        "truncation._confirmed",
        "    return log.end_offset + last + 1\n",
        "    return log.end_offset + last + 2\n",
        (f"{LOGS}::test_what_is_written_to_stays",),
    ),
    Mutant(
        "fragments that are hidden stay",
        "truncation._truncate",
        "    _truncate_tail(cluster, log)\n    all_gone",
        "    all_gone",
        (
            f"{LOGS}::test_its_first_offset_may_lie_inside_and_whole_fragments_go",
            f"{LOGS}::test_a_truncation_that_died_between_is_finished_by_the_next",
        ),
    ),
    Mutant(
        "older versions read a log that begins inside of its tail",
        "log_record._version",
        "    if record.dropped.of_tail:\n        return VERSION\n",
        "",
        (f"{LOG_RECORDS}::test_one_that_begins_inside_of_its_tail_comes_back_as_it_went",),
    ),
    Mutant(
        "journals go of the oldest term that owns entries still",
        "FindOldJournals.run",
        "if 0 < layout.journal_term(one) < term)",
        "if 0 < layout.journal_term(one) <= term)",
        (f"{JOURNALS}::test_journals_of_terms_that_own_nothing_go_and_no_others",),
    ),
    Mutant(
        "a journal that its bookie cannot forget is removed",
        "FreeFiles.run",
        "root.forget_journal if one.is_journals else root.delete",
        "root.delete",
        (f"{JOURNALS}::test_they_stay_where_a_bookie_cannot_forget_them_for_good",),
    ),
    Mutant(
        "old journals go of closed ledgers alone",
        "plan_collection",
        "old_journals(run, present, stays)",
        "old_journals(run, present, closed)",
        (f"{JOURNALS}::test_journals_of_terms_that_own_nothing_go_and_no_others",),
    ),
    Mutant(
        "journals may go of a term that owns entries still",
        "oldest_owner",
        "ledger.fragments[0].owner if",
        "ledger.fragments[-1].owner if",
        (f"{UNIT}::test_only_journals_of_terms_that_own_nothing_any_more_may_go",),
    ),
)
