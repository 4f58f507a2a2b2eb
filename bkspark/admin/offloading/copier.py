"""What an offload needs of Spark: it makes the table, and appends rows by one commit."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from bkspark.cluster.password import Password
from bkspark.format.arrow_schema import ENTRY_COLUMN, LEDGER_COLUMN, OFFSET_COLUMN, TIMESTAMP_COLUMN

if TYPE_CHECKING:  # a process that copies nothing loads no module of tables
    from bkspark.table.conversion import Located

TIME = pa.timestamp("us", "UTC")
PLACE_COLUMNS = pa.schema(
    [
        (OFFSET_COLUMN, pa.int64()),
        (LEDGER_COLUMN, pa.int64()),
        (ENTRY_COLUMN, pa.int64()),
        (TIMESTAMP_COLUMN, TIME),
    ]
)
"""The first columns of each table: Delta has statistics of the first columns only."""

FENCE_VERSION = 2**62
"""The transaction version of a fence: no offload of the epoch is committed after it."""


@dataclass(frozen=True, slots=True)
class CopyOrder:
    """Rows to append to a table by one commit.

    Attributes:
        begin, end: offsets of the rows.
        app_id: names the log and the epoch; with ``end`` as version, it is committed once.
        note: kept in the commit, for people.
        places: where columns of the log are in the table, whose owner may have renamed them. A
            column without a place is new there.
    """

    metadata_uri: str
    log_name: str
    password: Password
    table_url: str
    begin: int
    end: int
    app_id: str
    note: str
    places: Mapping[str, "Located"] = field(default_factory=dict)


class Copier(Protocol):
    """Writes to tables. No call proves anything: the rows are read back afterwards.

    Raises (every method):
        OutcomeUnknownError: it failed, and may have been done.
    """

    def create(self, order: CopyOrder, properties: dict[str, str]) -> None:
        """Make the table with the log's columns, unless a table is there."""
        ...

    def claim(self, table_url: str, properties: dict[str, str]) -> None:
        """Set properties of a table that is there."""
        ...

    def append(self, order: CopyOrder) -> None:
        """Append the rows, unless the table has this version of the application already."""
        ...

    def fence(self, table_url: str, app_id: str) -> None:
        """Let no append of the application be committed any more."""
        ...
