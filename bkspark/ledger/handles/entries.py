"""Encodes rows and records for a journal, and decodes rows: Arrow messages by stripe."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from types import MappingProxyType

import pyarrow as pa

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import arrow_message, arrow_schema, arrow_values, journal
from bkspark.format.arrow_message import stripes_of
from bkspark.format.bytes_message import message_of
from bkspark.format.digest import Buffer, Digester
from bkspark.ledger.handles.group_bounds import require_within_bounds
from bkspark.ledger.handles.grouping import Submission, rows_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, TimeStep
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    InlinePart,
    Made,
    Rows,
    confirmation,
)
from bkspark.protocol.writer.adding import PendingAdd, PendingAdds

# --- entries -------------------------------------------------------------------------------------
# Encodes rows for a journal and decodes them: Arrow messages by stripe.


VALUE_SCHEMA = arrow_schema.BYTES_SCHEMA
"""Schema of a ledger of bytes."""


def count_of(entries: object) -> int:
    """Return the number of ``entries``.

    Raises:
        InvalidRequestError: the entries have no length.
    """
    if isinstance(entries, Sized):
        return len(entries)
    raise InvalidRequestError(
        f"entries must be a list of bytes or a pyarrow.Table, not {type(entries).__name__}",
        hint="list() makes a list of an iterable",
    )


def encode_parts(
    rows: pa.RecordBatch | Sequence[bytes],
    digester: Digester,
    *,
    ledger_id: int,
    first_entry_id: int,
    quorum: Quorum,
) -> tuple[tuple[InlinePart, ...], dict[int, Buffer]]:
    """Encode ``rows`` as entries from ``first_entry_id`` on: the parts and their messages, by
    stripe.

    Raises:
        InvalidRequestError: a reader would refuse the rows.
    """
    parts: list[InlinePart] = []
    messages: dict[int, Buffer] = {}
    encode = _messages_of_rows if isinstance(rows, pa.RecordBatch) else _messages_of_values
    for stripe, message in encode(rows, first_entry_id, quorum.stripe_count):
        length = len(message)
        digest = journal.part_digest(
            digester,
            message,
            ledger_id=ledger_id,
            first_entry_id=first_entry_id,
            stripe=stripe,
        )
        parts.append(InlinePart(stripe, length, digest))
        messages[stripe] = message
    return tuple(parts), messages


def _messages_of_rows(
    rows: pa.RecordBatch, first_row: int, stripe_count: int
) -> Iterator[tuple[int, memoryview]]:
    """Each message is decoded as by a reader before use, without a copy."""
    for stripe, piece in stripes_of(rows, first_row=first_row, stripe_count=stripe_count):
        message = memoryview(piece.serialize())
        _require_decodable(message, piece)
        yield stripe, message


def _messages_of_values(
    values: Sequence[bytes], first_row: int, stripe_count: int
) -> Iterator[tuple[int, bytes]]:
    """Any bytes can be read back: these messages need no check."""
    for stripe in range(stripe_count):
        mine = values[(stripe - first_row) % stripe_count :: stripe_count]
        if mine:
            yield stripe, message_of(mine)


def _require_decodable(message: memoryview, rows: pa.RecordBatch) -> None:
    try:
        arrow_message.decode_batch(
            message, rows.schema, row_count=rows.num_rows, unpacked_bytes_max=0
        )
    except arrow_message.MALFORMED as error:
        raise InvalidRequestError(
            f"{rows.num_rows} rows could not be read back: {str(error).splitlines()[0]}",
            hint="nothing was written; correct the rows",
        ) from error


def decode_parts(
    messages: Mapping[int, bytes],
    schema: pa.Schema,
    *,
    first_entry_id: int,
    last_entry_id: int,
    quorum: Quorum,
) -> pa.RecordBatch:
    """Decode the rows of a whole group, in entry order, from the messages of all its stripes.

    Raises:
        CorruptDataError: malformed, or compressed, which bkspark's writers never do.
    """
    stripes = sorted(messages)
    ids = {
        stripe: range(
            first_entry_id + (stripe - first_entry_id) % quorum.stripe_count,
            last_entry_id + 1,
            quorum.stripe_count,
        )
        for stripe in stripes
    }
    try:
        batches = [
            arrow_message.decode_batch(
                messages[stripe], schema, row_count=len(ids[stripe]), unpacked_bytes_max=0
            )
            for stripe in stripes
        ]
    except arrow_message.MALFORMED as error:
        raise CorruptDataError(
            f"entries {first_entry_id} to {last_entry_id} are no rows of this ledger"
        ) from error
    if len(batches) == 1:
        return batches[0]
    import pyarrow.compute as pc  # most ledgers have one stripe, and need no order

    entries = (entry for stripe in stripes for entry in ids[stripe])
    order = pc.sort_indices(arrow_message.of_integers(entries))
    return pa.concat_batches(batches).take(order)


# --- table intake --------------------------------------------------------------------------------
# Converts tables for a ledger, and refuses bad tables before they get entry ids.


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


# --- record encoder ------------------------------------------------------------------------------
# Encodes a writer's records from the machine's values and the submitted rows.


class RecordEncoder:
    """Encodes the records of one writer; their bytes never change afterwards (R9).

    Args:
        transactions: the last version of each application committed by earlier writers. Records of
            rows repeat it, because the last record speaks for all (``record``).
    """

    def __init__(
        self,
        ledger: LedgerMetadata,
        digester: Digester,
        transactions: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self._ledger = ledger
        self._digester = digester
        self._transactions = transactions

    def encode(self, add: PendingAdd, taken: Sequence[Submission]) -> journal.EncodedRecord:
        """Encode the record of ``add`` with the submitted rows."""
        parts, messages = encode_parts(
            rows_of(taken),
            self._digester,
            ledger_id=self._ledger.ledger_id,
            first_entry_id=add.first_entry_id,
            quorum=self._ledger.quorum,
        )
        record = self._record(add, parts, self._transactions)
        return journal.encode(record, self._digester, messages)

    def name(
        self,
        add: PendingAdd,
        attempts: tuple[AttemptLogs, ...],
        transactions: Mapping[str, int],
        steps: tuple[TimeStep, ...] = (),
    ) -> journal.EncodedRecord:
        """Encode the record of ``add`` that names entry logs.

        Args:
            transactions: the last version of each application up to there.
            steps: when parts of the entries were committed, if they were committed before.
        """
        record = self._record(add, attempts, transactions)
        record = replace(record, made=record.made._replace(steps=steps)) if steps else record
        return journal.encode(record, self._digester)

    def _record(self, add: PendingAdd, rows: Rows, transactions: Mapping[str, int]) -> AddRecord:
        return AddRecord(
            ledger_id=self._ledger.ledger_id,
            term=self._ledger.term,
            token=self._ledger.token,
            first_entry_id=add.first_entry_id,
            last_entry_id=add.last_entry_id,
            last_add_confirmed=add.last_add_confirmed,
            length_bytes=add.length_bytes,
            quorum=self._ledger.quorum,
            made=Made(add.fragment_first_entry_id, add.times),
            transactions=transactions,
            rows=rows,
            stored=add.stored,
        )

    def confirm(
        self,
        pending: PendingAdds,
        *,
        fragment_first_entry_id: int,
        transactions: Mapping[str, int] | None = None,
    ) -> journal.EncodedRecord:
        """Encode a confirmation of all acknowledged entries.

        Args:
            transactions: as in ``name``; None if this writer commits none.
        """
        record = confirmation(
            ledger_id=self._ledger.ledger_id,
            term=self._ledger.term,
            token=self._ledger.token,
            last_add_confirmed=pending.last_add_confirmed,
            length_bytes=pending.length_bytes,
            quorum=self._ledger.quorum,
            made=Made(fragment_first_entry_id, pending.times),
            transactions=self._transactions if transactions is None else transactions,
            stored=pending.stored,
        )
        return journal.encode(record, self._digester)
