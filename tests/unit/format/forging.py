"""Files as an enemy writes them: every checksum is right, what they protect is not.

Written from the description of the formats, not with the encoders.
"""

import json
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from bkspark.format.arrow_message import MALFORMED, BatchHeader, BatchLayout
from bkspark.format.digest import crc32c
from bkspark.format.journal import decode_journal
from bkspark.protocol.ledger.record import AddRecord, EntryLog

from .material import ATTEMPT, LEDGER, SCHEMA, StoredLog, add_record, digester, frame

HEAD = b"ARROW1\0\0" + SCHEMA.serialize().to_pybytes()
LEFT_OUT = object()
INDEX_MAGIC = b"\xff\xff\xff\xff\0\0\0\0BKINDEX1"


def forged_log(
    *blocks: tuple[bytes, int],
    schema: pa.Schema = SCHEMA,
    head: bytes = HEAD,
    index_head: bytes | None = None,
    lengths: list[int] | None = None,
    sections: list[int] | None = None,
    row_count: int | None = None,
) -> StoredLog:
    """An entry log of any bytes as blocks, each with its claimed rows; all digests are right.

    Args:
        lengths: what the index says of the length of each block.
        sections: what it says of the length of each section of the blocks.
    """
    key, names = digester(), f"{LEDGER} {ATTEMPT} 0"
    values = (INDEX_MAGIC, 1, len(blocks), len(schema), len(head))
    index = index_head or struct.pack("<16sIIIQ", *values)
    for ordinal, (data, rows) in enumerate(blocks):
        cut = sections or section_lengths(data, schema)
        claims = [lengths[ordinal], *(0 for _ in schema)] if lengths else cut
        index += struct.pack("<I", rows)
        begin = 0
        for number, (length, claim) in enumerate(zip(cut, claims, strict=True)):
            context = f"entry log section 1 {names} {ordinal} {number}"
            digest = key.digest(context, data[begin : begin + length])
            index += struct.pack("<Q", claim) + bytes.fromhex(digest)
            begin += length
    body = b"".join([head, *(data for data, _ in blocks)])
    claimed = sum(rows for _, rows in blocks) if row_count is None else row_count
    length = len(body) + len(index)
    digest = key.digest(f"entry log frame 1 {names} {claimed} {length}", head, index)
    log = EntryLog(ATTEMPT, 0, claimed, length, len(body), digest)
    return StoredLog(body + index, log, schema=schema)


def section_lengths(data: bytes, schema: pa.Schema) -> list[int]:
    """The bytes of the metadata and of each column; the metadata is all of what is no message."""
    found = []
    with suppress(*MALFORMED):
        found = BatchLayout(schema).section_lengths(BatchHeader(data))
    return found if sum(found) == len(data) else [len(data), *(0 for _ in schema)]


def message(batch: pa.RecordBatch, compression: str | None = None) -> bytes:
    """``batch`` as one Arrow message."""
    options = pa.ipc.IpcWriteOptions(compression=compression, allow_64bit=True)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    stream = pa.py_buffer(sink.getvalue())
    reader = pa.BufferReader(stream)
    pa.ipc.read_message(reader)
    begin = reader.tell()
    pa.ipc.read_message(reader)
    return stream.to_pybytes()[begin : reader.tell()]


def forged_frame(header: bytes, ledger_id: int = LEDGER) -> bytes:
    """A journal's record with any header."""
    signed = header + digester().digest(f"add record 1 {ledger_id} 0", header).encode()
    prefix = forged_prefix(b"BKAR", 1, 0, 0, len(signed), 0)
    return prefix + signed + forged_trailer(len(signed))


def forged_prefix(*values: object) -> bytes:
    """A frame's prefix at the start of a journal, with a right checksum."""
    prefix = struct.pack("<4sBBHIQ", *values)
    return prefix + struct.pack("<I", crc32c(prefix, crc32c(bytes(8), 0)))


def forged_trailer(header_length: int) -> bytes:
    length = 24 + header_length + 12
    return struct.pack("<QI", length, crc32c(struct.pack("<QQ", length, 0), 0))


def forged_json(value: Any) -> bytes:
    """With whatever is in ``value``, half characters too."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def header_of(record: AddRecord) -> dict[str, Any]:
    data = frame(record)
    header: dict[str, Any] = json.loads(data[24:-20])
    return header


def changed_record(change: Callable[[dict[str, Any]], object], record: AddRecord | None = None):
    """What a journal with one record says after ``change`` of the record's JSON."""
    record = record or add_record()
    header = header_of(record)
    change(header)
    return decode_journal(forged_frame(forged_json(header)), digester(), ledger_id=LEDGER)


def changed_envelope(kind: str, key: str, data: bytes, path: tuple[Any, ...], value: Any) -> bytes:
    """The record in ``data`` with ``value`` at ``path``; without a field there, if LEFT_OUT."""
    payload = json.loads(data.partition(b"\n")[2])
    place = payload
    for step in path[:-1]:
        place = place[step]
    if value is LEFT_OUT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    text = forged_json(payload)
    checksum = crc32c(text, crc32c(f"{kind} 1 - {key}\n".encode(), 0))
    return f"bkspark {kind} v1 - {checksum:08x} {len(text)}\n".encode() + text


def fields_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field at any depth of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in inner:
        yield (*path, name)
        if isinstance(item, dict | list):
            yield from fields_of(item, (*path, name))
