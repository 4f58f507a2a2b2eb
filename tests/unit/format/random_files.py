"""Reads random and mutated files of every kind, in a process with little memory.

    python -m tests.unit.format.random_files SECONDS

Prints one JSON line: how many files of each kind were read, and what came of them. Anything but a
clear error or a value ends the process.
"""

import json
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from bkspark.errors import BookKeeperError
from bkspark.format import arrow_schema, journal

from .forging import forged_frame, forged_log, message
from .material import (
    LEDGER,
    SMALL_RECORDS,
    add_record,
    digester,
    entry_log,
    frame,
    inline_record,
    read_entry_log,
)

MEMORY_MAX = 2 * 2**30
NESTED = pa.record_batch(
    [
        pa.array([[1, None], None, []], pa.list_(pa.int32())),
        pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.string())])),
        pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int8())),
        pa.array([True, None, False]),
        pa.nulls(3),
    ],
    names=list("abcde"),
)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """``data`` with a few bytes changed, a part moved, cut or repeated, or numbers made huge."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(changed) + 1)
        match chance.randrange(6):
            case 0:
                changed[at : at + 1] = chance.randbytes(1)
            case 1:
                changed[at : at + 8] = chance.randbytes(8)
            case 2:
                huge = chance.choice([2**31 - 1, 2**40, 2**63 - 1, 2**64 - 1, 0])
                changed[at : at + 8] = huge.to_bytes(8, "little")
            case 3:
                del changed[at : at + chance.randint(1, 16)]
            case 4:
                changed[at:at] = changed[at : at + chance.randint(1, 64)]
            case 5:
                changed[at : at + 4] = chance.choice([0, 2**31 - 1, 2**32 - 1]).to_bytes(
                    4, "little"
                )
    return bytes(changed)


def readers() -> dict[str, tuple[bytes, Callable[[bytes], object]]]:
    """Kind -> a good file of it, and how it is read. ``forged`` ones get right digests."""

    def records(data: bytes) -> object:
        return journal.decode_journal(data, digester(), ledger_id=LEDGER)

    found: dict[str, tuple[bytes, Callable[[bytes], object]]] = dict(SMALL_RECORDS)
    record, parts = inline_record()
    header = frame(add_record())[24:-20]
    found["journal"] = (frame(add_record()), records)
    found["journal with rows"] = (frame(record, parts=parts), records)
    found["forged journal"] = (header, lambda data: records(forged_frame(data)))
    found["schema"] = (arrow_schema.encode(NESTED.schema), arrow_schema.decode)
    for compression in ("none", "lz4", "zstd"):
        stored = entry_log(NESTED, NESTED, compression=compression)
        found[f"entry log, {compression}"] = (
            stored.data,
            lambda data, stored=stored: read_entry_log(stored, data),
        )
        found[f"forged entry log, {compression}"] = (
            message(NESTED, None if compression == "none" else compression),
            lambda data: read_entry_log(forged_log((data, 3), schema=NESTED.schema)),
        )
    return found


def main(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    chance = random.Random(4242)
    kinds = readers()
    results: Counter[str] = Counter()
    longest, end = 0.0, time.process_time() + seconds
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while time.process_time() < end:
        for kind, (good, read) in kinds.items():
            data = mutated(good, chance) if chance.random() < 0.9 else chance.randbytes(300)
            began = time.process_time()
            try:
                read(data)
                results["read"] += 1
            except BookKeeperError:
                results["refused"] += 1
            longest = max(longest, time.process_time() - began)
            results[kind] += 1
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(json.dumps({**results, "longest": longest, "grown_kb": grown}))


if __name__ == "__main__":
    main(float(sys.argv[1]))
