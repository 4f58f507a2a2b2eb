"""Rows on their way into a journal and out of it: Arrow messages by stripe."""

from collections.abc import Mapping, Sized

import pyarrow as pa
import pyarrow.compute as pc

from bkspark.client.striping import stripes_of
from bkspark.errors import InvalidRequestError
from bkspark.format import arrow_message, journal
from bkspark.format.digest import Buffer, Digester
from bkspark.protocol.quorum import Quorum
from bkspark.protocol.record import InlinePart

VALUE_SCHEMA = pa.schema([pa.field("value", pa.binary())])
"""What a ledger of bytes holds."""

MESSAGE_BYTES_MAX = 2**31 - 1


def count_of(entries: object) -> int:
    """How many there are.

    Raises:
        InvalidRequestError: that cannot be known before they are taken.
    """
    if isinstance(entries, Sized):
        return len(entries)
    raise InvalidRequestError(
        f"entries must be a list of bytes or a pyarrow.Table, not {type(entries).__name__}",
        hint="list() makes one of what can be gone through",
    )


def encode_parts(
    rows: pa.RecordBatch,
    digester: Digester,
    *,
    ledger_id: int,
    first_entry_id: int,
    quorum: Quorum,
) -> tuple[tuple[InlinePart, ...], dict[int, Buffer]]:
    """``rows`` as entries from ``first_entry_id`` on: the parts and their messages, by stripe."""
    parts: list[InlinePart] = []
    messages: dict[int, Buffer] = {}
    for stripe, piece in stripes_of(
        rows, first_row=first_entry_id, stripe_count=quorum.stripe_count
    ):
        message = memoryview(piece.serialize())
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


def decode_parts(
    messages: Mapping[int, bytes],
    schema: pa.Schema,
    *,
    first_entry_id: int,
    last_entry_id: int,
    quorum: Quorum,
) -> pa.RecordBatch:
    """The rows of a whole group, in entry order, from the messages of all its stripes.

    Raises:
        ValueError, pyarrow.ArrowException: malformed.
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
    batches = [
        arrow_message.decode_batch(
            messages[stripe],
            schema,
            row_count=len(ids[stripe]),
            unpacked_bytes_max=MESSAGE_BYTES_MAX,
        )
        for stripe in stripes
    ]
    if len(batches) == 1:
        return batches[0]
    order = pc.sort_indices(pa.array([entry for stripe in stripes for entry in ids[stripe]]))
    return pa.concat_batches(batches).take(order)
