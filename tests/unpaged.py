"""A log's record with everything in it that is on pages."""

from dataclasses import replace

from bkspark.format import layout, log_page
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.log.contents import DroppedLedgers
from bkspark.protocol.log.ledger_list import LogPage, PageContents
from bkspark.protocol.log.record import LogRecord


class StoredPages:
    """A ``PageSource`` that remembers nothing."""

    def __init__(self, store: MetadataStore, log_name: str) -> None:
        self._store = store
        self._log_name = log_name

    def contents(self, page: LogPage) -> PageContents:
        """Raises AssertionError if the page is not as it is said to be."""
        stored = self._store.get(layout.log_page_key(self._log_name, page.name))
        assert stored is not None, f"page {page} is not there"
        assert stored.version == 1, f"page {page} was changed"
        found = log_page.decode(self._log_name, page.name, stored.value)
        assert found.named(page.name) == page, f"page {page} has something else"
        return found


def unpaged(record: LogRecord) -> LogRecord:
    """What ``record`` says, as a record says it that never had a page."""
    return replace(
        record,
        listed=record.listed.with_stretches(tuple(record.every_ledger())),
        dropped=DroppedLedgers(
            tuple(record.every_dropped_id()), tuple(record.every_id_to_delete())
        ),
    )
