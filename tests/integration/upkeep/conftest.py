"""Writers of these tests tell of their last entry only if a test sets a time for it.

Tests damage the last record of a journal, or lose a bookie of an open ledger. They mean the record
of an entry, so no confirmation may come behind it.
"""

import math

import pytest

from bkspark.ledger.handles.settings import WriterSettings


@pytest.fixture(autouse=True)
def silent_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    real = WriterSettings.idle_seconds

    def idle_seconds(settings: WriterSettings, store_seconds: float, *, is_busy: bool) -> float:
        if settings.explicit_lac_ms is None:
            return math.inf
        return real(settings, store_seconds, is_busy=is_busy)

    monkeypatch.setattr(WriterSettings, "idle_seconds", idle_seconds)
