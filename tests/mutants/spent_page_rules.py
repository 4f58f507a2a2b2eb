"""Mutants of pages of logs that nothing names: freed too early, not at all, or taken for lost."""

from .mutant import Mutant

PAGES = "tests/integration/upkeep/test_collect_pages.py"

MUTANTS = (
    Mutant(
        "pages of ledgers that stay are collected",
        "SpentPages._spent",
        "if own <= gone)",
        "if own or gone)",
        (f"{PAGES}::test_the_page_of_one_who_lost_a_race_stays_as_long_as_its_ledgers",),
    ),
    Mutant(
        "a page goes though one of its ledgers stays",
        "SpentPages._spent",
        "if own <= gone)",
        "if own & gone)",
        (f"{PAGES}::test_a_page_goes_with_the_last_of_its_ledgers",),
    ),
    Mutant(
        "a page of pages goes before them",
        "_with_those_above",
        "and all(one in found or went(one) for one in below)",
        "and any(one in found or went(one) for one in below)",
        (f"{PAGES}::test_a_page_of_pages_goes_with_the_last_of_them",),
    ),
    Mutant(
        "pages of pages never go",
        "_with_those_above",
        "        found |= more\n",
        "        return found\n",
        (f"{PAGES}::test_a_log_that_is_deleted_leaves_no_page",),
    ),
    Mutant(
        "a listing tells that a page went before",
        "_went",
        "return name not in names and pages.found(name) is None",
        "return name not in names",
        (f"{PAGES}::test_a_listing_that_shows_too_little_frees_no_page_of_pages",),
    ),
    Mutant(
        "pages that a plan names are removed without a look",
        "SpentPages._free",
        "spent = set(names) - _named(seen.value)",
        "spent = set(names)",
        (f"{PAGES}::test_what_is_named_by_then_is_not_removed",),
    ),
    Mutant(
        "pages are removed while a record may name them still",
        "SpentPages._free",
        "                logs.replace(log_name, seen.value, seen)\n",
        "",
        (f"{PAGES}::test_whoever_has_made_a_page_meanwhile_loses_or_keeps_it",),
    ),
    Mutant(
        "a page of a page is taken for one that nothing names",
        "ledger_list.every_page",
        "        if page.may_have_pages:\n            yield from every_page",
        "        if page.height > 99:\n            yield from every_page",
        (f"{PAGES}::test_what_is_named_by_then_is_not_removed",),
    ),
    Mutant(
        "pages of ids are not looked for on a page of them",
        "Page.may_have_pages",
        "self.height > 1 or (self.height == 1 and not self.entry_count)",
        "self.height > 1",
        (
            "tests/unit/protocol/test_paging.py"
            "::test_a_record_names_every_page_that_was_made_and_is_still_of_use",
        ),
    ),
    Mutant(
        "a page that was collected looks lost",
        "LogPages.contents",
        "        if self._has_let_go_of(page):\n",
        "        if False:\n",
        (f"{PAGES}::test_who_holds_an_older_record_is_told_so",),
    ),
    Mutant(
        "a page that is lost looks collected",
        "LogPages.contents",
        "        if self._has_let_go_of(page):\n",
        "        if True:\n",
        (f"{PAGES}::test_a_page_that_is_lost_is_still_told_from_one_that_was_collected",),
    ),
    Mutant(
        "what is no page ends a collection",
        "SpentPages._looked_at",
        "            except UNSURE as error:\n                key",
        "            except CorruptDataError as error:\n                key",
        (f"{PAGES}::test_what_is_no_page_stops_nothing_else",),
    ),
    Mutant(
        "a store that fails while pages go ends a collection",
        "SpentPages.free",
        "            return self._free(log_name, names)\n        except UNSURE as error:",
        "            return self._free(log_name, names)\n        except CorruptDataError as error:",
        (f"{PAGES}::test_a_store_that_fails_while_pages_go_is_told_and_the_next_run_goes_on",),
    ),
)
