"""Mutants of pages of logs that nothing names: freed too early, not at all, or taken for lost."""

from .change import Replace
from .mutant import Mutant

PAGES = "tests/integration/upkeep/test_collect_pages.py"

MUTANTS = (
    Mutant(
        "pages of ledgers that stay are collected",
        "SpentPages._spent",
        Replace("own <= gone", "own or gone"),
        (f"{PAGES}::test_the_page_of_one_who_lost_a_race_stays_as_long_as_its_ledgers",),
    ),
    Mutant(
        "a page goes though one of its ledgers stays",
        "SpentPages._spent",
        Replace("own <= gone", "own & gone"),
        (f"{PAGES}::test_a_page_goes_with_the_last_of_its_ledgers",),
    ),
    Mutant(
        "pages of pages never go",
        "_with_those_above",
        Replace("found |= more", "return found"),
        (f"{PAGES}::test_a_log_that_is_deleted_leaves_no_page",),
    ),
    Mutant(
        "a page of a page is taken for one that nothing names",
        "ledger_list.every_page",
        Replace("page.may_have_pages", "page.height > 99"),
        (f"{PAGES}::test_what_is_named_by_then_is_not_removed",),
    ),
    Mutant(
        "what is no page ends a collection",
        "SpentPages._looked_at",
        Replace("UNREAD", "MetadataVersionError"),
        (f"{PAGES}::test_what_is_no_page_stops_nothing_else",),
    ),
    Mutant(
        "a store that fails while pages go ends a collection",
        "SpentPages.free",
        Replace("UNREAD", "MetadataVersionError"),
        (f"{PAGES}::test_a_store_that_fails_while_pages_go_is_told_and_the_next_run_goes_on",),
    ),
)
