"""Mutants of pages: named too early, looked up wrongly, believed too soon, forgotten."""

from .change import Replace
from .mutant import Mutant

PAGING = "tests/unit/protocol/test_paging.py"
PAGES = "tests/integration/log/test_log_pages.py"
APPENDS = "tests/integration/log/test_log_page_appends.py"


MUTANTS = (
    Mutant(
        "a record is stored before its pages",
        "LogRecords._put",
        Replace(
            "for made in short.pages:\n"
            "    pages.make(made)\n"
            "for page_name, segments in short.segments:\n"
            "    self.tier_pages(name).make_segments(page_name, segments)\n"
            "return super()._put(name, short.record, expected)",
            "stored = super()._put(name, short.record, expected)\n"
            "for made in short.pages:\n"
            "    pages.make(made)\n"
            "return stored",
        ),
        (f"{APPENDS}::test_pages_are_stored_before_the_record_that_names_them",),
    ),
    Mutant(
        "pages of a loser and of a winner have one name",
        "log_page_name",
        Replace("f'{generation:08x}-{token(page_token)}'", "f'{generation:08x}-{0:032x}'"),
        (f"{APPENDS}::test_the_page_of_who_lost_is_never_named",),
    ),
    Mutant(
        "a page that is missing is empty",
        "LogPages.contents",
        Replace(
            "if known is not None:\n    ...",
            "if known is None:\n"
            "    return PageContents.__new__(PageContents)\n"
            "if known:\n"
            "    return known",
        ),
        (f"{PAGES}::test_a_missing_page_is_no_end_of_the_log",),
    ),
    Mutant(
        "the last offset of a page is looked for behind it",
        "ledger_list.ledgers_in",
        Replace("one.end_offset", "one.end_offset - 1"),
        (
            f"{PAGING}::test_a_log_with_pages_is_a_plain_list",
            f"{PAGES}::test_a_log_is_read_from_everywhere_to_everywhere",
        ),
    ),
    Mutant(
        "a page is not opened where a truncation begins",
        "opened_at",
        Replace("one.end_offset", "one.first_offset"),
        (f"{PAGES}::test_a_truncation_deletes_every_ledger_that_it_hides",),
    ),
    Mutant(
        "an id between those of a page is on it",
        "ledger_list.have",
        Replace("ledger_id in found.ids or ledger_id in ids_of(found.ledgers)", "not found.pages"),
        (f"{PAGING}::test_a_late_ledger_is_told_from_those_on_pages",),
    ),
    Mutant(
        "a deletion forgets pages of dropped ledgers",
        "DroppedLedgers.all_to_delete",
        Replace("(*self.pages_to_delete, *self.pages)", "self.pages_to_delete"),
        (f"{PAGES}::test_what_an_overwrite_dropped_is_deleted_with_the_log",),
    ),
    Mutant(
        "rolls leave hidden pages",
        "truncation._truncate",
        Replace(
            "log.dropped.pages_to_delete and len(log.dropped.to_delete) < LEDGERS_PER_ROLL_MAX",
            "delete_count_max is None and log.dropped.pages_to_delete",
        ),
        (f"{PAGES}::test_hidden_pages_are_worked_off_by_rolls_too",),
    ),
    Mutant(
        "a ledger without a time goes to a page without one",
        "_page_ledgers",
        Replace("record.stamped(record.times.changed_ms)", "replace(record)"),
        (f"{PAGING}::test_ledgers_without_a_time_get_that_of_the_last_change_when_they_are_paged",),
    ),
)
