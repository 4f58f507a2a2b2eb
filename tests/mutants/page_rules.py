"""Mutants of pages: named too early, looked up wrongly, believed too soon, forgotten."""

from .mutant import Mutant

PAGING = "tests/unit/protocol/test_paging.py"
PAGES = "tests/integration/log/test_log_pages.py"
APPENDS = "tests/integration/log/test_log_page_appends.py"
COSTS = "tests/integration/log/test_log_page_costs.py"


MUTANTS = (
    Mutant(
        "a record is stored before its pages",
        "LogRecords._put",
        "        for made in short.pages:\n            pages.make(made)\n"
        "        return super()._put(name, short.record, expected)\n",
        "        stored = super()._put(name, short.record, expected)\n"
        "        for made in short.pages:\n            pages.make(made)\n"
        "        return stored\n",
        (f"{APPENDS}::test_pages_are_stored_before_the_record_that_names_them",),
    ),
    Mutant(
        "pages of a loser and of a winner have one name",
        "log_page_name",
        'f"{generation:08x}-{token(page_token)}"',
        'f"{generation:08x}-{0:032x}"',
        (f"{APPENDS}::test_the_page_of_who_lost_is_never_named",),
    ),
    Mutant(
        "a page is believed whatever it holds",
        "LogPages._known",
        "if known[0] != page:",
        "if False:",
        (f"{PAGES}::test_a_page_that_says_something_else_than_is_said_of_it_is_damaged",),
    ),
    Mutant(
        "a page that is missing is empty",
        "LogPages.contents",
        "        if known is not None:\n            return known\n",
        "        if known is None:\n            return PageContents.__new__(PageContents)\n"
        "        if known:\n            return known\n",
        (f"{PAGES}::test_a_missing_page_is_no_end_of_the_log",),
    ),
    Mutant(
        "the last offset of a page is looked for behind it",
        "ledger_list.ledgers_in",
        "if min(end, one.end_offset) <= max(begin, one.first_offset):",
        "if min(end, one.end_offset - 1) <= max(begin, one.first_offset):",
        (
            f"{PAGING}::test_a_log_with_pages_is_a_plain_list",
            f"{PAGES}::test_a_log_is_read_from_everywhere_to_everywhere",
        ),
    ),
    Mutant(
        "the first offset behind a range is in it",
        "ledger_list.ledgers_in",
        "if min(end, one.end_offset) <= max(begin, one.first_offset):",
        "if min(end, one.end_offset) < max(begin, one.first_offset):",
        (f"{PAGING}::test_a_log_with_pages_is_a_plain_list",),
    ),
    Mutant(
        "a page counts whole where it lies partly within",
        "ledger_list.bytes_in",
        "if isinstance(one, Page) and past - first < one.entry_count:",
        "if False:",
        (
            "tests/unit/protocol/test_page_lengths.py::test_bytes_within_a_page_are_those_of_its_ledgers",
        ),
    ),
    Mutant(
        "a page is opened at its end",
        "opened_at",
        "one.first_offset < offset < one.end_offset",
        "one.first_offset < offset <= one.end_offset",
        (f"{PAGING}::test_at_its_border_a_page_is_not_looked_at",),
    ),
    Mutant(
        "a page is not opened where a truncation begins",
        "opened_at",
        "one.first_offset < offset < one.end_offset",
        "one.first_offset < offset < one.first_offset",
        (f"{PAGES}::test_a_truncation_deletes_every_ledger_that_it_hides",),
    ),
    Mutant(
        "the least id of a page is on no page",
        "Page.may_have",
        "self.least_id <= ledger_id <= self.greatest_id",
        "self.least_id < ledger_id <= self.greatest_id",
        (f"{PAGING}::test_a_ledger_that_is_on_a_page_joins_no_second_time",),
    ),
    Mutant(
        "the greatest id of a page is on no page",
        "Page.may_have",
        "self.least_id <= ledger_id <= self.greatest_id",
        "self.least_id <= ledger_id < self.greatest_id",
        (f"{PAGING}::test_a_ledger_that_is_on_a_page_joins_no_second_time",),
    ),
    Mutant(
        "an id between those of a page is on it",
        "have",
        "            found = source.contents(page)\n"
        "            if ledger_id in found.ids or ledger_id in ids_of(found.ledgers):\n",
        "            found = source.contents(page)\n            if not found.pages:\n",
        (f"{PAGING}::test_a_late_ledger_is_told_from_those_on_pages",),
    ),
    Mutant(
        "pages of pages are not looked at for a ledger",
        "have",
        "if have(found.pages, ledger_id, source):",
        "if False:",
        (f"{PAGING}::test_a_ledger_that_is_on_a_page_joins_no_second_time",),
    ),
    Mutant(
        "pages are not looked at for who has joined",
        "LogContents.lists",
        "return ledger_id in self.ids_at_hand or ledger_list.have(pages, ledger_id, self.source)",
        "return ledger_id in self.ids_at_hand",
        (
            f"{APPENDS}::test_a_commit_that_is_repeated_when_its_ledger_is_on_a_page_changes_nothing",
            f"{PAGES}::test_a_ledger_on_a_page_is_part_of_its_log",
        ),
    ),
    Mutant(
        "pages are not looked at for who was dropped",
        "DroppedLedgers.has",
        "return ledger_id in self.ids or ledger_list.have(self.all_pages, ledger_id, source)",
        "return ledger_id in self.ids",
        (
            f"{APPENDS}::"
            "test_a_commit_that_wakes_up_after_its_ledger_was_dropped_onto_a_page_is_refused",
        ),
    ),
    Mutant(
        "an overwrite forgets what is on pages",
        "LogRecord._emptied",
        "self.dropped.with_more(self.ids_at_hand, ledger_list.pages_of(self.older))",
        "self.dropped.with_more(self.ids_at_hand)",
        (f"{PAGING}::test_what_was_dropped_and_is_on_a_page_never_joins",),
    ),
    Mutant(
        "a truncation forgets the pages that it hides",
        "LogRecord.truncated",
        "dropped=dropped.with_more_to_delete(ids, ledger_list.pages_of(gone))",
        "dropped=dropped.with_more_to_delete(ids)",
        (f"{PAGES}::test_a_truncation_deletes_every_ledger_that_it_hides",),
    ),
    Mutant(
        "a deletion forgets pages of dropped ledgers",
        "DroppedLedgers.all_to_delete",
        "pages = (*self.pages_to_delete, *self.pages)",
        "pages = self.pages_to_delete",
        (f"{PAGES}::test_what_an_overwrite_dropped_is_deleted_with_the_log",),
    ),
    Mutant(
        "rolls leave hidden pages",
        "truncation._truncate",
        "if log.dropped.pages_to_delete and len(log.dropped.to_delete) < LEDGERS_PER_ROLL_MAX:",
        "if delete_count_max is None and log.dropped.pages_to_delete:",
        (f"{PAGES}::test_hidden_pages_are_worked_off_by_rolls_too",),
    ),
    Mutant(
        "a truncation deletes one page of what it hides",
        "truncation._truncate",
        "if not (gone and log.dropped.pages_to_delete) or delete_count_max is not None:",
        "if True:",
        (f"{PAGES}::test_a_truncation_deletes_every_ledger_that_it_hides",),
    ),
    Mutant(
        "pages that are many lie in the record side by side",
        "_with_taller",
        "        while end - begin > result.kept_max:\n",
        "        while False:\n",
        (
            f"{PAGING}::test_a_log_grows_by_levels",
            f"{COSTS}::test_a_log_of_100_000_ledgers_costs_what_one_of_a_hundred_does",
        ),
    ),
    Mutant(
        "dropped ids stay in the record",
        "_with_pages_of_ids",
        "    while len(ids) > result.kept_max:\n",
        "    while False:\n",
        (f"{PAGING}::test_a_record_stays_short",),
    ),
    Mutant(
        "a ledger without a time goes to a page without one",
        "_page_ledgers",
        "record = record.stamped(record.times.changed_ms)",
        "record = replace(record)",
        (f"{PAGING}::test_ledgers_without_a_time_get_that_of_the_last_change_when_they_are_paged",),
    ),
    Mutant(
        "who does not know pages takes a record for one without",
        "log_record._version",
        "return _WITH_PAGES if record.has_pages else envelope.VERSION",
        "return envelope.VERSION",
        (f"{PAGING}::test_a_record_without_many_ledgers_has_no_pages_and_is_as_it_always_was",),
    ),
    Mutant(
        "rows are written for a record that will not fit",
        "resolve_settings",
        "        cluster.logs.require_room(seen, arrow_schema.encode(request.schema))\n",
        "        pass\n",
        (f"{APPENDS}::test_what_will_not_fit_into_the_record_is_refused_before_a_row_is_written",),
    ),
    Mutant(
        "a record that will be short is refused for what it was",
        "LogRecords.require_room",
        '            data = log_record.encode(short.record, "")\n',
        "            pass\n",
        (f"{APPENDS}::test_a_long_record_from_before_there_were_pages_is_written_to",),
    ),
    Mutant(
        "a process remembers every page",
        "PageMemory.note",
        "while len(self._pages) > REMEMBERED_MAX:",
        "while False:",
        (f"{PAGES}::test_a_process_remembers_so_many_pages",),
    ),
)
