"""Single rules of pages of logs, broken in the real code."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bkspark.cluster.log_records import LogPages, LogRecords, PageMemory, with_source
from bkspark.cluster.records import Records
from bkspark.environment import the_one, token
from bkspark.errors import LedgerExistsError
from bkspark.format import layout
from bkspark.protocol.log.record import LogRecord, paged

from .mutants import Change


def stored_before_its_pages(self: LogRecords, name: str, value: LogRecord, expected: Any) -> Any:
    """Whoever dies in between leaves a record that names pages which nobody has made."""
    length = the_one(PageMemory).page_length
    log = with_source(self._store, self._cluster_id, value)
    short = paged(log, lambda: layout.log_page_name(1, token()), length)
    stored = Records._put(self, name, short.record, expected)
    for made in short.pages:
        LogPages(self._store, self._cluster_id, name).make(made)
    return stored


def made_or_taken_as_it_is(real: Callable[..., None]) -> Callable[..., None]:
    def make(self: LogPages, made: Any) -> None:
        with suppress(LedgerExistsError):
            real(self, made)

    return make


def the_same_name(generation: int, _token: str) -> str:
    return f"{generation:08x}-{0:032x}"


def listed_at_hand(self: LogRecord, ledger_id: int) -> bool:
    return ledger_id in self.ids_at_hand


def dropped_at_hand(self: LogRecord, ledger_id: int) -> bool:
    return ledger_id in self.dropped.ids


def truncated_by_what_is_at_hand(
    self: LogRecord, before_offset: int, confirmed: int = 0
) -> LogRecord:
    """Pages that a truncation hides are let go of, and nothing remembers what was on them."""
    after = REAL_TRUNCATED(self, before_offset, confirmed)
    dropped = replace(after.dropped, pages_to_delete=())
    return replace(after, dropped=dropped)


REAL_TRUNCATED = LogRecord.truncated

PAGE_MUTANTS: dict[str, tuple[Change, ...]] = {
    "a record is stored before its pages": ((LogRecords, "_put", stored_before_its_pages),),
    "a page is taken for the one that a loser made": (
        (layout, "log_page_name", the_same_name),
        (LogPages, "make", made_or_taken_as_it_is(LogPages.make)),
    ),
    "pages are not looked at for what is dropped": ((LogRecord, "has_dropped", dropped_at_hand),),
    "pages are not looked at for what has joined": ((LogRecord, "lists", listed_at_hand),),
    "what is on hidden pages is forgotten": (
        (LogRecord, "truncated", truncated_by_what_is_at_hand),
    ),
}
