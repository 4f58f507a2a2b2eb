"""Mutants of ledgers that have let go of their beginning."""

from .change import Replace
from .mutant import Mutant

UNIT = "tests/unit/protocol/test_truncating.py"
JOURNALS = "tests/integration/upkeep/test_collect_old_journals.py"
TAIL = "tests/unit/protocol/test_log_tail.py"

MUTANTS = (
    Mutant(
        "a fragment goes though the entry lies in it",
        "without_front",
        Replace("first <= entry_id", "first <= entry_id + 1"),
        (f"{UNIT}::test_fragments_that_end_in_front_of_an_entry_go_but_for_the_last_two",),
    ),
    Mutant(
        "a closed tail is hidden as an open one was",
        "LogRecord._joined",
        Replace("log.dropped.with_tail(0)", "log.contents"),
        (f"{TAIL}::test_its_tail_is_closed_at_its_own_offsets",),
    ),
    Mutant(
        "old journals go of closed ledgers alone",
        "LeftoverFinder.found",
        Replace("self._old_journals(ledgers)", "self._old_journals(closed)"),
        (f"{JOURNALS}::test_journals_of_terms_that_own_nothing_go_and_no_others",),
    ),
    Mutant(
        "journals may go of a term that owns entries still",
        "oldest_owner",
        Replace("ledger.fragments[0]", "ledger.fragments[-1]"),
        (f"{UNIT}::test_only_journals_of_terms_that_own_nothing_any_more_may_go",),
    ),
)
