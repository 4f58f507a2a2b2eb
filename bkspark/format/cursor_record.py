"""Encodes ``CursorRecord`` as bytes of a metadata record."""

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.protocol.log.cursor import CursorRecord

KIND = "cursor"


def encode(record: CursorRecord, nonce: str) -> bytes:
    """Return the record's bytes, to be stored under ``layout.cursor_key``."""
    value = {
        "nonce": nonce,
        "log": record.log_name,
        "name": record.name,
        "generation": record.generation,
        "offset": record.offset,
        "deleted": record.is_deleted,
    }
    return strict_json.encode(KIND, layout.cursor_key(record.log_name, record.name), value)


def decode(log_name: str, name: str, data: bytes) -> CursorRecord:
    """Decode the cursor in ``data``.

    Raises:
        CorruptDataError: damaged, of another cursor, or impossible for a cursor.
    """
    fields = strict_json.decode(KIND, layout.cursor_key(log_name, name), data)
    try:
        record = CursorRecord(
            fields.take("log", str),
            fields.take("name", str),
            fields.take("generation", int),
            fields.take("offset", int),
            fields.take("deleted", bool),
        )
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    if (record.log_name, record.name) != (log_name, name):
        raise CorruptDataError(f"{fields.what} names another cursor")
    return record
