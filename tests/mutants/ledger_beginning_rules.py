"""Mutants of ledgers that have let go of their beginning."""

from .mutant import Mutant

UNIT = "tests/unit/protocol/test_truncating.py"
RECORDS = "tests/unit/format/test_records_of_ledgers_that_go_on.py"
LEDGERS = "tests/integration/ledger/test_truncated_ledgers.py"
JOURNALS = "tests/integration/upkeep/test_collect_old_journals.py"
TRUNCATING = "protocol/ledger/truncating.py"

MUTANTS = (
    Mutant(
        "what lies in front of the first fragment is the last one's",
        "protocol/ledger/ownership.py",
        "    if at < 0:\n        return range(0)\n",
        "",
        (f"{UNIT}::test_behind_its_beginning_the_same_counts_and_in_front_nothing",),
    ),
    Mutant(
        "only the last fragment of an open ledger stays",
        TRUNCATING,
        "stay = 1 if ledger.state is LedgerState.CLOSED else 2",
        "stay = 1",
        (f"{LEDGERS}::test_behind_a_fragment_without_entries_its_length_is_known_still",),
    ),
    Mutant(
        "a fragment goes though the entry lies in it",
        TRUNCATING,
        "if first <= entry_id), default",
        "if first <= entry_id + 1), default",
        (f"{UNIT}::test_fragments_that_end_in_front_of_an_entry_go_but_for_the_last_two",),
    ),
    Mutant(
        "what is gone comes back",
        TRUNCATING,
        "default=ledger.first_available)\n",
        "default=0)\n",
        (f"{UNIT}::test_nothing_comes_back_and_nothing_goes_of_one_that_is_deleted",),
    ),
    Mutant(
        "a ledger with one writer is truncated",
        TRUNCATING,
        "    if not ledger.goes_on:\n",
        "    if False:\n",
        (f"{LEDGERS}::test_what_does_not_go_on_is_not_truncated",),
    ),
    Mutant(
        "an entry in front is looked for in the last fragment",
        "protocol/ledger/metadata.py",
        "if entry_id < self.first_available:",
        "if False:",
        (
            f"{LEDGERS}::test_readers_are_refused_what_lies_in_front",
            f"{UNIT}::test_what_lies_in_front_is_in_no_fragment_and_says_so",
        ),
    ),
    Mutant(
        "older versions read a record whose beginning is gone",
        "format/ledger_metadata.py",
        "    if metadata.first_available:\n        return LAST_VERSION\n",
        "",
        (f"{RECORDS}::test_who_does_not_know_that_the_beginning_is_gone_refuses_it",),
    ),
    Mutant(
        "journals go of the oldest term that owns entries still",
        "admin/collecting/old_journals.py",
        "if 0 < layout.journal_term(one) < term)",
        "if 0 < layout.journal_term(one) <= term)",
        (f"{JOURNALS}::test_journals_of_terms_that_own_nothing_go_and_no_others",),
    ),
    Mutant(
        "old journals go of closed ledgers alone",
        "admin/collecting/garbage.py",
        "old_journals(run, present, stays)",
        "old_journals(run, present, closed)",
        (f"{JOURNALS}::test_journals_of_terms_that_own_nothing_go_and_no_others",),
    ),
    Mutant(
        "journals may go of a term that owns entries still",
        TRUNCATING,
        "ledger.fragments[0].owner if",
        "ledger.fragments[-1].owner if",
        (f"{UNIT}::test_only_journals_of_terms_that_own_nothing_any_more_may_go",),
    ),
)
