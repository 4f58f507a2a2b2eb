"""Converts tables for a ledger, and refuses bad tables before they get entry ids."""

import pyarrow as pa

from bkspark.format import arrow_schema, arrow_values
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.group_bounds import require_within_bounds


class TableIntake:
    """Converts each table appended to a ledger with ``schema`` into one batch."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._is_of_bytes = schema == VALUE_SCHEMA
        self._rules = arrow_values.ValueRules(schema)
        self._convertible = schema

    def rows_of(self, table: pa.Table, first_row: int = 0) -> pa.RecordBatch:
        """Return the rows of ``table`` as the ledger stores them.

        Args:
            first_row: the number of its first row, for messages.

        Raises:
            InvalidRequestError: the rows are too many, do not have the ledger's schema, or a reader
                could not decode them. The message names the column, and the row if a value is the
                cause.
        """
        require_within_bounds(table.num_rows, table.nbytes)
        if not table.schema.equals(self._convertible, check_metadata=True):
            arrow_values.require_convertible(self._schema, table.schema)
            self._convertible = table.schema
        rows = arrow_schema.relabel(pa.concat_batches(table.to_batches()), self._schema)
        require_within_bounds(rows.num_rows, rows.nbytes)
        arrow_schema.require_values(rows, everywhere=self._is_of_bytes)
        self._rules.require(rows, first_row=first_row)
        return rows
