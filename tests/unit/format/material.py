"""Small instances of every kind of stored file, and ways to damage them."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pyarrow as pa

from bkspark.format import add_record as add_record_format
from bkspark.format import (
    arrow_schema,
    cluster,
    journal,
    ledger_metadata,
    log_page,
    log_record,
    recovery,
    tier_record,
    upkeep_records,
)
from bkspark.format import cluster as cluster_format
from bkspark.format.arrow_message import BatchLayout
from bkspark.format.cluster import BookieRecord, ClusterRecord, Cookie
from bkspark.format.digest import CRC32C, MAC, Digester, canonical_json, new_spec
from bkspark.format.entry_log import (
    Block,
    EntryLogEncoder,
    check_block,
    decode_block,
    decode_index,
    head_length,
    ranges_to_read,
    sparse_block,
)
from bkspark.format.recovery import LostBookie, StuckRecovery
from bkspark.protocol.bookies import Marks
from bkspark.protocol.ledger.metadata import (
    DigestSpec,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import (
    AddRecord,
    AttemptLogs,
    EntryLog,
    InlinePart,
    stripe_row_count,
    stripes_of_range,
)
from bkspark.protocol.log.contents import DroppedLedgers, LogSettings
from bkspark.protocol.log.cursor import CursorRecord
from bkspark.protocol.log.ledger_list import LoggedLedger, PageContents
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import (
    FreedLedgers,
    Intent,
    SegmentsPage,
    TableVersion,
    Tier,
    TierColumn,
    TierSegment,
    TierTable,
)
from tests.log_with import log_with

PASSWORD = "correct horse"
ATTEMPT, OTHER_ATTEMPT = "a" * 32, "b" * 32
TOKEN, OTHER_TOKEN = "c" * 32, "d" * 32
LEDGER, OTHER_LEDGER = 7, 8

SCHEMA = pa.schema([pa.field("n", pa.int32()), pa.field("s", pa.string())])
ROWS = pa.record_batch([pa.array([1, None], pa.int32()), pa.array(["xy", None])], schema=SCHEMA)
MORE_ROWS = pa.record_batch([pa.array([3], pa.int32()), pa.array(["z"])], schema=SCHEMA)


@cache
def spec(digest_type: str) -> DigestSpec:
    return new_spec(digest_type, PASSWORD if digest_type == MAC else None)


@cache
def digester(digest_type: str = CRC32C) -> Digester:
    return Digester(spec(digest_type), PASSWORD if digest_type == MAC else None)


@dataclass(frozen=True)
class StoredLog:
    """An entry log as bytes, with what its add record says of it."""

    data: bytes
    log: EntryLog
    digest_type: str = CRC32C
    ledger_id: int = LEDGER
    schema: pa.Schema = SCHEMA


def entry_log(
    *batches: pa.RecordBatch,
    compression: str = "none",
    digest_type: str = CRC32C,
    ledger_id: int = LEDGER,
    attempt_id: str = ATTEMPT,
    stripe: int = 0,
) -> StoredLog:
    """An entry log with one block for each batch."""
    rows = batches or (ROWS, MORE_ROWS)
    encoder = EntryLogEncoder(
        rows[0].schema,
        digester(digest_type),
        ledger_id=ledger_id,
        attempt_id=attempt_id,
        stripe=stripe,
        compression=compression,
    )
    parts = [bytes(part) for batch in rows for part in encoder.encode(batch)]
    end, log = encoder.finish()
    return StoredLog(b"".join([*parts, end]), log, digest_type, ledger_id, rows[0].schema)


def read_entry_log(
    stored: StoredLog, data: bytes | None = None, columns: list[int] | None = None
) -> list[pa.RecordBatch]:
    """All blocks of the log, read from ``data`` in the way of a reader."""
    data = stored.data if data is None else data
    log, names = stored.log, {"ledger_id": stored.ledger_id}
    key = digester(stored.digest_type)
    end = data[log.index_offset : log.length_bytes]
    head = data[: head_length(end)]
    layout, batches = BatchLayout(stored.schema), []
    for block in decode_index(head, end, key, log, **names):
        body = data[block.offset : block.offset + block.length]
        if columns is not None:
            body = only(columns, body, block)
        check_block(body, block, key, log, columns=columns, **names)
        batches.append(decode_block(body, block, layout, log, columns=columns, **names))
    return batches


def only(columns: list[int], data: bytes, block: Block) -> memoryview:
    """What a reader of ``columns`` reads of a block where each request costs nothing."""
    read = sparse_block(block.length)
    for begin, end in ranges_to_read(block, columns, 0):
        read[begin:end] = data[begin:end]
    return read


def add_record(
    rows_of_attempts: tuple[int, ...] = (3, 1),
    *,
    first: int = 0,
    ledger_id: int = LEDGER,
    sizes: tuple[int, int, int] = (3, 2, 2),
) -> AddRecord:
    quorum = Quorum(*sizes)
    attempts, expected = [], first
    for number, rows in enumerate(rows_of_attempts):
        logs = tuple(
            EntryLog(
                f"{number:032x}",
                stripe,
                stripe_row_count(rows, stripe, quorum.stripe_count),
                400 + stripe,
                300,
                f"{number:08x}",
            )
            for stripe in range(min(rows, quorum.stripe_count))
        )
        attempts.append(AttemptLogs(expected, rows, logs))
        expected += rows
    return AddRecord(
        ledger_id=ledger_id,
        term=1,
        token=TOKEN,
        first_entry_id=first,
        last_entry_id=expected - 1,
        last_add_confirmed=first - 1,
        length_bytes=10 * expected,
        quorum=quorum,
        stored=(-1,) * quorum.ensemble_size,
        transactions={"app": 4},
        rows=tuple(attempts),
    )


def inline_record(
    batches: tuple[pa.RecordBatch, ...] = (ROWS, MORE_ROWS),
    *,
    first: int = 0,
    digest_type: str = CRC32C,
) -> tuple[AddRecord, dict[int, bytes]]:
    """A record with rows inside, 3/2/2: the record, and the Arrow message of each stripe."""
    count = sum(batch.num_rows for batch in batches)
    rows = pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    messages = {
        stripe: rows.take(pa.array(range((stripe - first) % 3, count, 3))).serialize().to_pybytes()
        for stripe in stripes_of_range(first, first + count - 1, 3)
    }
    place = {"ledger_id": LEDGER, "first_entry_id": first}
    parts = tuple(
        InlinePart(
            stripe,
            len(message),
            journal.part_digest(digester(digest_type), message, stripe=stripe, **place),
        )
        for stripe, message in messages.items()
    )
    return replace(add_record((count,), first=first), rows=parts), messages


def frame(
    record: AddRecord,
    digest_type: str = CRC32C,
    *,
    index: int = 0,
    position: int = 0,
    parts: dict[int, bytes] | None = None,
) -> bytes:
    """What the bookie at ``index`` has of ``record`` at byte ``position`` of its journal."""
    header = canonical_json(add_record_format.to_json(record))  # also of what no writer would store
    encoded = journal.encode(record, digester(digest_type), parts or {}, header)
    return b"".join(bytes(piece) for piece in encoded.frame(index, position))


def metadata(ledger_id: int = LEDGER, digest_type: str = CRC32C) -> LedgerMetadata:
    members = tuple(Member(f"bookie-{n}", f"{n}" * 32) for n in (1, 2, 3))
    return LedgerMetadata(
        ledger_id=ledger_id,
        quorum=Quorum(3, 3, 2),
        state=LedgerState.CLOSED,
        term=2,
        token=TOKEN,
        fragments=(Fragment(0, 1, members), Fragment(4, 2, members[::-1])),
        settings=LedgerSettings(
            schema=arrow_schema.encode(SCHEMA),
            digest=spec(digest_type),
            custom_metadata={"log": "events", "é": "ü"},
            created_ms=1_700_000_000_000,
        ),
        last_entry_id=9,
        length_bytes=123,
        transactions={"app": 4},
    )


def log() -> LogRecord:
    return log_with(
        LogRecord(
            "events", LogSettings(Quorum(3, 3, 2), spec(CRC32C)), arrow_schema.encode(SCHEMA)
        ),
        generation=3,
        ledgers=(LoggedLedger(2, 10, 5, 50), LoggedLedger(5, 15, 1, 8)),
        first_offset=12,
        transactions={"app": 4},
        dropped=DroppedLedgers((1, 9)),
        created_ms=5,
        changed_ms=6,
    )


def open_log() -> LogRecord:
    """With a tail, streams, limits, and ledgers to delete."""
    return log_with(
        log(),
        ledgers=(LoggedLedger(2, 10, 5, 50, 77), LoggedLedger(5, 15, 1, 8)),
        tail=(6, 7),
        streams={"query": ("run 1", "run 2"), "other": ("run 9",)},
        retention_bytes=10**9,
        retention_ms=0,
        dropped=DroppedLedgers((1, 9), (9,)),
        orphaned_queries=("gone", "query 0"),
    )


PAGE_NAME = f"{3:08x}-{'a' * 32}"
PAGE_OF_LEDGERS = PageContents(
    ledgers=(LoggedLedger(0, 0, 4, 40, 7), LoggedLedger(3, 4, 3, 2), LoggedLedger(1, 7, 3, 9, 8))
)
PAGE_OF_IDS = PageContents(ids=(11, 14, 12))
PAGE_OF_PAGES = PageContents(pages=(PAGE_OF_LEDGERS.named(PAGE_NAME), PAGE_OF_IDS.named(PAGE_NAME)))


def paged_log() -> LogRecord:
    """With pages of each kind."""
    return log_with(
        open_log(),
        older=(PAGE_OF_LEDGERS.named(PAGE_NAME),),
        dropped=DroppedLedgers(
            *((1, 9), (9,)),
            (PAGE_OF_PAGES.named(PAGE_NAME),),
            (PAGE_OF_IDS.named(PAGE_NAME),),
        ),
    )


SEGMENTS = (
    TierSegment(5, 8, 30, 40, PAGE_NAME, 39, 20, 21),
    TierSegment(9, 10, 10, 41, PAGE_NAME),
    TierSegment(10, 15, 50, 42, PAGE_NAME, 41, 22, 23),
)
PAGE_OF_SEGMENTS = SegmentsPage(SEGMENTS, PAGE_NAME)
TIER = Tier(
    TierTable(
        *("s3://bucket/table", "an-id", TableVersion(7, "a-commit")),
        (TierColumn("n", "col-1", "integer"), TierColumn("s", "s", "string")),
    ),
    TOKEN,
    begin=4,
    freed=10,
    copied=15,
    length_bytes=90,
    segments=SEGMENTS,
    older=PAGE_NAME,
    intent=Intent(15, 16, OTHER_TOKEN, 7),
    missing=((6, 7), (9, 10)),
    of_freed=FreedLedgers(8, 50, (LoggedLedger(1, 8, 1, 9), LoggedLedger(3, 9, 1, 8)), 19),
)


def tiered_log() -> LogRecord:
    """Of which the table has the first offsets, and is getting more."""
    return log_with(open_log(), first_offset=7, dropped=DroppedLedgers((4,)), tier=TIER)


CURSOR = CursorRecord("events", "mail", 3, 15)


def open_ledger() -> LedgerMetadata:
    fragments = [replace(fragment, token=TOKEN) for fragment in metadata().fragments]
    return replace(
        metadata(),
        fragments=tuple(fragments),
        state=LedgerState.OPEN,
        last_entry_id=None,
        length_bytes=None,
        transactions={},
    )


def guaranteeing() -> LedgerMetadata:
    """A ledger whose last fragment begins in front of entries that were acknowledged."""
    first, last = open_ledger().fragments
    settings = replace(metadata().settings, guarantees_write_quorum=True)
    last = replace(last, has_headers=True, confirmed=last.first_entry_id + 2)
    return replace(open_ledger(), settings=settings, fragments=(first, last))


COOKIE = Cookie("c" * 32, "bookie-1", "1" * 32, 1_700_000_000_000)
CLUSTER = ClusterRecord("c" * 32, 1_700_000_000_000)
BOOKIE = BookieRecord("bookie-1", "1" * 32, "file:///disk1/bk", "disk-8:1", is_read_only=True)
FULL_BOOKIE = replace(
    BOOKIE, is_full=True, marks=Marks(980, 700), labels={"zone": "eu-1"}, store="east"
)
LEAVING_BOOKIE = replace(BOOKIE, is_leaving=True)
REMOVED_BOOKIE = replace(BOOKIE, is_removed=True)
STUCK = StuckRecovery(LEDGER, 3, 12, ("bookie-1",), "entry 12 is in doubt", "wait", 1_700_000)
LOST_BOOKIE = LostBookie("bookie-1", ("1" * 32, "2" * 32))

SMALL_RECORDS = {
    "cookie": (cluster_format.encode_cookie(COOKIE), cluster_format.decode_cookie),
    "ledger metadata": (
        ledger_metadata.encode(metadata(), "nonce"),
        lambda data: ledger_metadata.decode(LEDGER, data),
    ),
    "open ledger": (
        ledger_metadata.encode(open_ledger(), "nonce"),
        lambda data: ledger_metadata.decode(LEDGER, data),
    ),
    "ledger guaranteeing": (
        ledger_metadata.encode(guaranteeing(), "nonce"),
        lambda data: ledger_metadata.decode(LEDGER, data),
    ),
    "log record": (
        log_record.encode(log(), "nonce"),
        lambda data: log_record.decode("events", data),
    ),
    "open log record": (
        log_record.encode(open_log(), "nonce"),
        lambda data: log_record.decode("events", data),
    ),
    "log record with pages": (
        log_record.encode(paged_log(), "nonce"),
        lambda data: log_record.decode("events", data),
    ),
    "log record with a tier": (
        log_record.encode(tiered_log(), "nonce"),
        lambda data: log_record.decode("events", data),
    ),
    "page of segments": (
        tier_record.encode_page("events", PAGE_NAME, PAGE_OF_SEGMENTS),
        lambda data: tier_record.decode_page("events", PAGE_NAME, data),
    ),
    **{
        f"page of {kind}": (
            log_page.encode("events", PAGE_NAME, contents),
            lambda data: log_page.decode("events", PAGE_NAME, data),
        )
        for kind, contents in (
            ("ledgers", PAGE_OF_LEDGERS),
            ("pages", PAGE_OF_PAGES),
            ("ids", PAGE_OF_IDS),
        )
    },
    "cursor": (
        upkeep_records.encode_cursor(CURSOR, "nonce"),
        lambda data: upkeep_records.decode_cursor("events", "mail", data),
    ),
    "stuck recovery": (
        recovery.encode_stuck(STUCK, "nonce"),
        lambda data: recovery.decode_stuck(LEDGER, data),
    ),
    "lost bookie": (
        recovery.encode_lost(LOST_BOOKIE, "nonce"),
        lambda data: recovery.decode_lost("bookie-1", data),
    ),
    "cluster record": (cluster.encode_cluster(CLUSTER, "nonce"), cluster.decode_cluster),
    "bookie record": (
        cluster.encode_bookie(BOOKIE, "nonce"),
        lambda data: cluster.decode_bookie("bookie-1", data),
    ),
    "full bookie": (
        cluster.encode_bookie(FULL_BOOKIE, "nonce"),
        lambda data: cluster.decode_bookie("bookie-1", data),
    ),
    "counter": (
        cluster.encode_counter("counters/ledger", 5, "nonce"),
        lambda data: cluster.decode_counter("counters/ledger", data),
    ),
}
"""Kind -> its bytes and how they are read."""


def flips(data: bytes) -> Iterator[bytes]:
    """``data`` with each of its bits turned over, one at a time."""
    damaged = bytearray(data)
    for position in range(len(data) * 8):
        damaged[position // 8] ^= 1 << position % 8
        yield bytes(damaged)
        damaged[position // 8] ^= 1 << position % 8


def cuts(data: bytes) -> Iterator[bytes]:
    """``data`` cut to every shorter length, and with something behind it."""
    for length in range(len(data)):
        yield data[:length]
    yield data + b"\0"
    yield data + data


def zeroed(data: bytes, page: int = 64) -> Iterator[bytes]:
    """``data`` with each page that is not all zeros overwritten with zeros; and all of it."""
    for begin in range(0, len(data), page):
        size = min(page, len(data) - begin)
        if any(data[begin : begin + size]):
            yield data[:begin] + bytes(size) + data[begin + size :]
    yield bytes(len(data))
