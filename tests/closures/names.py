"""Names in the scene."""

from bkspark.ledger.handles.settings import WriterSettings

SILENT = WriterSettings(explicit_lac_ms=0)
CHAINED, UNBOUNDED, ROWS, GONE = "chained", "unbounded", "rows", "new"
LOGS = (CHAINED, UNBOUNDED, ROWS)
BOOKIES = 6
IDLE, CLOSED_ONE = "bookie-6", "bookie-5"
"""The one has nothing and is closed to new ledgers; the other has copies, and may go."""
