"""Encodes rows for a journal and decodes them: Arrow messages by stripe."""

from collections.abc import Mapping, Sized

import pyarrow as pa
import pyarrow.compute as pc

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import arrow_message, arrow_schema, journal, plain_arrays
from bkspark.format.digest import Buffer, Digester
from bkspark.ledger.striping import stripes_of
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import InlinePart

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
    rows: pa.RecordBatch,
    digester: Digester,
    *,
    ledger_id: int,
    first_entry_id: int,
    quorum: Quorum,
    is_of_any_type: bool = True,
) -> tuple[tuple[InlinePart, ...], dict[int, Buffer]]:
    """Encode ``rows`` as entries from ``first_entry_id`` on: the parts and their messages, by
    stripe.

    Each message is decoded as by a reader before use, without a copy.

    Args:
        is_of_any_type: False for entries of bytes, which need no check: an append saves 7 us.

    Raises:
        InvalidRequestError: a reader would refuse the rows.
    """
    parts: list[InlinePart] = []
    messages: dict[int, Buffer] = {}
    for stripe, piece in stripes_of(
        rows, first_row=first_entry_id, stripe_count=quorum.stripe_count
    ):
        message = memoryview(piece.serialize())
        if is_of_any_type:
            _require_decodable(message, piece)
        digest = journal.part_digest(
            digester,
            message,
            ledger_id=ledger_id,
            first_entry_id=first_entry_id,
            stripe=stripe,
        )
        parts.append(InlinePart(stripe, message.nbytes, digest))
        messages[stripe] = message
    return tuple(parts), messages


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
    entries = (entry for stripe in stripes for entry in ids[stripe])
    order = pc.sort_indices(plain_arrays.of_integers(entries))
    return pa.concat_batches(batches).take(order)
