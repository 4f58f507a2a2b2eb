"""Copies of an enemy whose digests are right, on one bookie: readers go on with the others."""

from dataclasses import replace

import pyarrow as pa
import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import CorruptDataError
from bkspark.format import journal
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.record import AddRecord, InlinePart
from tests.integration.rig import Rig

VALUES = [b"%d" % number for number in range(3)]
OTHER_ROWS = pa.record_batch({"n": pa.array([1])})


def packed(values: list[bytes]) -> bytes:
    """As no writer of ours does it: a small message may claim to become any size."""
    batch = pa.record_batch([pa.array(values)], VALUE_SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, VALUE_SCHEMA, options=options) as stream:
        stream.write_batch(batch)
    data = sink.getvalue().to_pybytes()
    reader = pa.BufferReader(data)
    pa.ipc.read_message(reader)
    return data[reader.tell() :]


MESSAGES = {
    "no message": b"?" * 64,
    "nothing but an end": b"\xff\xff\xff\xff\0\0\0\0",
    "a schema": VALUE_SCHEMA.serialize().to_pybytes(),
    "too few rows": pa.record_batch([pa.array(VALUES[:2])], VALUE_SCHEMA).serialize().to_pybytes(),
    "rows of another schema": OTHER_ROWS.serialize().to_pybytes(),
    "packed rows": packed(VALUES),
}


def forge(rig: Rig, handle: WriteHandle, ensemble_index: int, message: bytes) -> str:
    """Put a record with ``message`` for its rows on one bookie; returns which."""
    ledger = handle.metadata
    digester = make_digester(ledger.settings.digest, Password())
    bookie_id = ledger.last_fragment.ensemble[ensemble_index].bookie_id
    [name] = [name for name in rig.names(bookie_id) if "/journal/" in name]
    content = journal.decode_journal(
        rig.file_bytes(bookie_id, name), digester, ledger_id=ledger.ledger_id
    )
    data = b""
    for record in content.records:
        forged, parts = record, {}
        if record.parts:
            forged, parts = with_message(record, message, ledger.ledger_id, digester)
        frame = journal.encode(forged, digester, parts).frame(ensemble_index, len(data))
        data += b"".join(bytes(piece) for piece in frame)
    rig.replace_file(bookie_id, name, data)
    return bookie_id


def with_message(
    record: AddRecord, message: bytes, ledger_id: int, digester: Digester
) -> tuple[AddRecord, dict[int, bytes]]:
    digest = journal.part_digest(
        digester, message, ledger_id=ledger_id, first_entry_id=record.first_entry_id, stripe=0
    )
    return replace(record, rows=(InlinePart(0, len(message), digest),)), {0: message}


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_what_holds_no_rows_of_the_ledger_is_stepped_over(memory_rig: Rig, message: bytes) -> None:
    with BookKeeper(memory_rig.uri) as keeper:
        with keeper.create_ledger() as handle:
            handle.append_many(VALUES)
        first_asked = handle.ledger_id % 3
        liar = forge(memory_rig, handle, first_asked, message)
        reader = keeper.open_ledger(handle.ledger_id)
        assert [entry.value for entry in reader.read(0, 2)] == VALUES
        assert "no rows of this ledger" in reader.faults[liar]


def test_if_no_copy_holds_rows_the_error_says_so(memory_rig: Rig) -> None:
    with BookKeeper(memory_rig.uri) as keeper:
        with keeper.create_ledger() as handle:
            handle.append_many(VALUES)
        for index in range(3):
            forge(memory_rig, handle, index, MESSAGES["no message"])
        reader = keeper.open_ledger(handle.ledger_id)
        with pytest.raises(CorruptDataError, match="no rows of this ledger"):
            list(reader.read(0, 2))
