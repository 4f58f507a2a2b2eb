"""Records with right checksums that an enemy made: refused as corrupt, whatever they say."""

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import crc32c
from bkspark.format.journal import Tail, decode_journal

from .forging import (
    LEFT_OUT,
    changed_envelope,
    changed_record,
    fields_of,
    forged_frame,
    forged_json,
    forged_prefix,
    header_of,
)
from .material import LEDGER, PAGE_NAME, SMALL_RECORDS, add_record, digester, frame

Change = Callable[[dict[str, Any]], object]


def test_what_is_forged_without_a_lie_is_read() -> None:
    assert changed_record(lambda header: None).records == (add_record(),)


def refused(content: journal.JournalContent) -> None:
    assert (content.records, content.tail) == ((), Tail.CORRUPT)


LOG = ("attempts", 0, "logs", 0)


def put(*path: Any, value: Any) -> Change:
    def change(header: dict[str, Any]) -> None:
        place: Any = header
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    {
        "a path for an attempt": put(*LOG, 0, value="../../../../etc/passwd"),
        "a slash in an attempt": put(*LOG, 0, value="a" * 15 + "/" + "a" * 16),
        "upper case in an attempt": put(*LOG, 0, value="A" * 32),
        "a newline behind an attempt": put(*LOG, 0, value="a" * 32 + "\n"),
        "digits of another script": put(*LOG, 0, value="\u0661" * 32),
        "a number for an attempt": put(*LOG, 0, value=5),
        "a negative stripe": put(*LOG, 1, value=-1),
        "a stripe that is not there": put(*LOG, 1, value=3),
        "a stripe twice": put("attempts", 0, "logs", 1, 1, value=0),
        "a stripe that is true": put(*LOG, 1, value=False),
        "a length of 0": put(*LOG, 2, value=0),
        "an index behind the end": put(*LOG, 3, value=400),
        "an index at the start": put(*LOG, 3, value=0),
        "a fraction": put(*LOG, 2, value=400.5),
        "no digest": put(*LOG, 4, value=None),
        "a number for a digest": put(*LOG, 4, value=12345678),
        "half a character for a digest": put(*LOG, 4, value="\ud800"),
        "fields left out": put(*LOG, value=["a" * 32, 0]),
        "a text for a log": put(*LOG, value="hello"),
        "a log missing": lambda header: header["attempts"][0]["logs"].pop(),
        "logs in another order": lambda header: header["attempts"][0]["logs"].reverse(),
        "a gap between attempts": put("attempts", 1, "first", value=4),
        "attempts that overlap": put("attempts", 1, "first", value=2),
        "attempts in another order": lambda header: header["attempts"].reverse(),
        "an attempt twice": lambda header: header["attempts"].append(header["attempts"][0]),
        "an attempt less": lambda header: header["attempts"].pop(),
        "no attempts": put("attempts", value=[]),
        "attempts that are none": put("attempts", value=[1, None]),
        "more rows than entries": put("attempts", 1, "rows", value=2),
        "a bool for rows": put("attempts", 1, "rows", value=True),
        "a last entry before the first": put("last", value=-1),
        "a first entry below 0": put("first", value=-1),
        "a LAC of the record itself": put("lac", value=0),
        "a LAC below -1": put("lac", value=-2),
        "a last entry of 2^63": put("last", value=2**63),
        "a length of the ledger of 2^63": put("length", value=2**63),
        "a log of 2^62 bytes": put(*LOG, 2, value=2**62),
        "half a character in a name": put("transactions", 0, value=[["\ud800", 1]]),
        "another ledger": put("ledger", value=LEDGER + 1),
        "a bad token": put("token", value="../" + "c" * 29),
        "two quorum sizes": put("quorum", value=[3, 2]),
        "quorum sizes out of order": put("quorum", value=[2, 3, 2]),
        "an ack quorum of 0": put("quorum", value=[3, 2, 0]),
        "an ensemble of a million": put("quorum", value=[10**6, 2, 2]),
        "fractions of bookies": put("quorum", value=[3.0, 2.0, 2.0]),
        "texts for sizes": put("quorum", value=["3", "2", "2"]),
        "half a transaction": put("transactions", 0, value=["app"]),
        "a transaction of numbers": put("transactions", 0, value=[["app", "1"]]),
        "a transaction without a number": put("transactions", 0, value=[["app", True]]),
        "a transaction twice": put("transactions", 0, value=[["app", 1], ["app", 1]]),
        "a transaction of 2^63": put("transactions", 0, value=[["app", 2**63]]),
        "a digest among the names": put("transactions", 0, value=[["#0123456789abcdef", 1]]),
        "transactions without their digests": put("transactions", value=[[["app", 1]]]),
        "no term": lambda header: header.pop("term"),
        "parts and attempts": put("parts", value=[[0, 8, "00000000"]]),
        "a part of no bytes": put("parts", value=[[0, 0, "00000000"]]),
        "a part of true": put("parts", value=[[False, 8, "00000000"]]),
        "half a part": put("parts", value=[[0, 8]]),
        "a text for a part": put("parts", value=["abc"]),
    }.items(),
    ids=lambda case: case[0],
)
def test_a_record_that_cannot_be_is_refused(change: tuple[str, Change]) -> None:
    refused(changed_record(change[1]))


STORED = replace(add_record((2,), first=3), stored=(0, 1, -1))


def test_what_members_had_stored_is_read_where_nobody_lies() -> None:
    assert changed_record(lambda header: None, STORED).records == (STORED,)


@pytest.mark.parametrize(
    "change",
    {
        "a member less": put("stored", value=[0, 1]),
        "a member more": put("stored", value=[0, 1, 2, 2]),
        "the record itself": put("stored", 0, value=3),
        "less than nothing": put("stored", 0, value=-2),
        "an entry that is true": put("stored", 0, value=True),
        "a text for an entry": put("stored", 0, value="1"),
        "one number for all": put("stored", value=1),
        "no member": put("stored", value=[]),
        "nothing": lambda header: header.pop("stored"),
    }.items(),
    ids=lambda case: case[0],
)
def test_what_members_cannot_have_stored_is_refused(change: tuple[str, Change]) -> None:
    refused(changed_record(change[1], STORED))


def test_rows_below_zero_do_not_make_room_for_others_twice() -> None:
    """Entries 3 and 4 would be there twice: 0-4, then 5 down to 2, then 3 and 4."""

    def change(header: dict[str, Any]) -> None:
        more = header_of(add_record((2,), first=3))["attempts"][0]
        header["attempts"] += [{"first": 5, "rows": -2, "logs": []}, more]

    refused(changed_record(change, add_record((5,))))


def test_an_attempt_without_rows_is_refused() -> None:
    refused(changed_record(lambda h: h["attempts"].insert(0, {"first": 0, "rows": 0, "logs": []})))


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff",
        b'{"ledger":7,"ledger":7}',
        b'{"ledger":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"ledger":' + b"9" * 5000 + b"}",
        b'{"ledger":1e400}',
        b'{"ledger":NaN}',
    ],
)
def test_a_header_that_is_no_record_is_refused(header: bytes) -> None:
    refused(decode_journal(forged_frame(header), digester(), ledger_id=LEDGER))


@pytest.mark.parametrize(
    ("begin", "size", "lie"),
    [(4, 1, 2), (4, 1, 0), (8, 4, 2**32 - 1), (8, 4, 7)],
    ids=["later version", "no version", "header length", "no header"],
)
def test_a_prefix_with_a_right_checksum_is_not_believed_either(
    begin: int, size: int, lie: int
) -> None:
    data = forged_frame(forged_json(header_of(add_record())))
    values = data[:begin] + lie.to_bytes(size, "little") + data[begin + size : 20]
    forged = forged_prefix(*struct.unpack("<4sBBHIQ", values)) + data[24:] + bytes(8)
    refused(decode_journal(forged, digester(), ledger_id=LEDGER))


def test_a_length_past_the_end_is_a_cut_record() -> None:
    data = forged_prefix(b"BKAR", 1, 0, 0, 100, 2**63) + bytes(200)
    assert decode_journal(data, digester(), ledger_id=LEDGER).tail is Tail.INCOMPLETE


def test_bytes_that_no_part_names_are_not_accepted() -> None:
    data = forged_frame(forged_json(header_of(add_record())))
    header_length = int.from_bytes(data[8:12], "little")
    length = len(data) + 8
    trailer = struct.pack("<QI", length, crc32c(struct.pack("<QQ", length, 0), 0))
    forged = forged_prefix(b"BKAR", 1, 0, 0, header_length, 8) + data[24:-12] + bytes(8) + trailer
    assert decode_journal(forged, digester(), ledger_id=LEDGER).records == ()


@pytest.mark.parametrize("length", [0, 12, 36, 2**63, 2**64 - 1])
def test_a_trailer_with_a_right_checksum_is_not_believed_either(length: int) -> None:
    """A reader that walks back by this length must get ahead, and stay inside."""
    claimed = struct.pack("<QQ", length, (1000 - length) % 2**64)
    trailer = struct.pack("<QI", length, crc32c(claimed, 0))
    assert journal.last_frame_length(bytes(988) + trailer, 1000) is None


STRANGE = [None, True, -1, 2**70, 0.5, "", "../x", "\ud800", "é", [], [[]], {}, {"a": 1}, [None]]
KEYS = {
    "ledger metadata": ("ledger", f"ledgers/{LEDGER:016x}"),
    "open ledger": ("ledger", f"ledgers/{LEDGER:016x}"),
    "log record": ("log", "logs/events"),
    "open log record": ("log", "logs/events"),
    "log record with a tier": ("log", "logs/events"),
    "page of segments": ("tiersegments", layout.tier_page_key("events", PAGE_NAME)),
    "cursor": ("cursor", "cursors/events/mail"),
    "cluster record": ("cluster", "cluster"),
    "bookie record": ("bookie", "bookies/bookie-1"),
    "counter": ("counter", "counters/ledger"),
    "cookie": ("cookie", "COOKIE"),
}
FURTHER_KEYS = {
    "ledger guaranteeing": ("ledger", f"ledgers/{LEDGER:016x}"),
    "log record with pages": ("log", "logs/events"),
    "page of ledgers": ("logpage", layout.log_page_key("events", PAGE_NAME)),
    "page of pages": ("logpage", layout.log_page_key("events", PAGE_NAME)),
    "page of ids": ("logpage", layout.log_page_key("events", PAGE_NAME)),
    "stuck recovery": ("stuck", layout.recovery_key(LEDGER)),
    "lost bookie": ("lost", layout.lost_key("bookie-1")),
    "full bookie": ("bookie", "bookies/bookie-1"),
}


@pytest.mark.parametrize("name", SMALL_RECORDS)
def test_a_record_without_one_of_its_fields_is_refused(name: str) -> None:
    data, read = SMALL_RECORDS[name]
    key = (KEYS | FURTHER_KEYS)[name]
    for path in fields_of(json.loads(data.partition(b"\n")[2])):
        is_of_user = path[0] in ("custom", "labels") and len(path) > 1
        if type(path[-1]) is str and path != ("nonce",) and not is_of_user:
            with pytest.raises(CorruptDataError, match=path[-1]):
                read(changed_envelope(*key, data, path, LEFT_OUT))


@pytest.mark.parametrize("name", header_of(add_record()))
def test_an_add_record_without_one_of_its_fields_is_refused(name: str) -> None:
    refused(changed_record(lambda header: header.pop(name)))


@pytest.mark.parametrize("name", KEYS)
def test_any_strange_value_in_any_field_is_refused_or_harmless(name: str) -> None:
    """Every field at any depth, replaced by every strange value: our error, or a record."""
    data, read = SMALL_RECORDS[name]
    paths = list(fields_of(json.loads(data.partition(b"\n")[2])))
    tried = refusals = 0
    for path in paths:
        for value in STRANGE:
            tried += 1
            try:
                read(changed_envelope(*KEYS[name], data, path, value))
            except CorruptDataError:
                refusals += 1
    print(f"{name}: {tried} strange records, {refusals} refused")
    assert tried >= 5 * len(paths)
    assert refusals >= tried // 3, f"{refusals} of {tried}"


def test_any_strange_value_in_any_field_of_an_add_record_is_refused_or_harmless() -> None:
    header = header_of(add_record())
    tried = 0
    for path in list(fields_of(header)):
        for value in STRANGE:
            content = changed_record(put(*path, value=value))
            assert content.tail in (Tail.CLEAN, Tail.CORRUPT)
            tried += 1
    assert tried > 500


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("ledger metadata", ("id",), LEDGER + 1),
        ("ledger metadata", ("token",), "c" * 31),
        ("ledger metadata", ("length",), -1),
        ("ledger metadata", ("last",), None),
        ("ledger metadata", ("state",), "HALF OPEN"),
        ("ledger metadata", ("quorum",), [3.0, 3, 2]),
        ("ledger metadata", ("quorum",), [3, 3, 4]),
        ("ledger metadata", ("schema",), "not base64!"),
        ("ledger metadata", ("digest", "salt"), "zz"),
        ("ledger metadata", ("digest", "check"), "é"),
        ("ledger metadata", ("fragments", 0, "first"), 1),
        ("ledger metadata", ("fragments", 1, "first"), 0),
        ("ledger metadata", ("fragments", 1, "term"), 3),
        ("ledger metadata", ("fragments", 0, "ensemble", 0, 0), "../../x"),
        ("ledger metadata", ("fragments", 0, "ensemble", 0, 0), "bookie-2"),
        ("ledger metadata", ("fragments", 0, "ensemble", 0, 1), "1" * 31),
        ("ledger metadata", ("fragments", 0, "ensemble"), []),
        ("ledger metadata", ("fragments",), []),
        ("open ledger", ("fragments", 0, "token"), "c" * 31),
        ("open ledger", ("fragments", 0, "token"), 1),
        ("open ledger", ("fragments", 1, "token"), ""),
        ("open ledger", ("transactions", 0), [["app", "4"]]),
        ("log record", ("name",), "others"),
        ("log record", ("ledgers", 1, 1), 14),
        ("log record", ("ledgers", 1, 1), 16),
        ("log record", ("ledgers", 0), [2, 10, 5]),
        ("log record", ("dropped",), [5]),
        ("log record", ("first_offset",), 17),
        ("log record", ("first_offset",), 9),
        ("open log record", ("tail",), [6, 7, 8]),
        ("open log record", ("tail",), [5]),
        ("open log record", ("tail",), [-1]),
        ("open log record", ("sealed",), True),
        ("open log record", ("streams", 0, 1), ["run 1", 2]),
        ("open log record", ("streams", 0, 1), "run 1"),
        ("open log record", ("streams", 0, 0), "other"),
        ("open log record", ("streams", 0, 0), 2),
        ("open log record", ("retention_ms",), -1),
        ("open log record", ("to_delete",), [2]),
        ("open log record", ("to_delete",), [-1]),
        ("open log record", ("bereft",), [7]),
        ("open log record", ("ledgers", 0), [2, 10, 5, 50, 77]),
        ("open log record", ("ledgers", 0), [2, 10, 5, 50, 77, 0, 0]),
        ("log record with pages", ("older", 0), [PAGE_NAME, 1, 0, 10, 51, 3, 0, 3]),
        ("log record with pages", ("older", 0), [PAGE_NAME, 1, 0, 10, 51, 3, 0, 3, 0, 0]),
        ("log record with a tier", ("tier", "epoch"), "c" * 31),
        ("log record with a tier", ("tier", "freed"), 9),
        ("log record with a tier", ("tier", "copied"), 17),
        ("log record with a tier", ("tier", "begin"), 8),
        ("log record with a tier", ("tier", "released"), 7),
        ("log record with a tier", ("tier", "older"), "../x"),
        ("log record with a tier", ("tier", "waiting", 0, 0), 2),
        ("log record with a tier", ("tier", "segments", 0, 0), "../x"),
        ("log record with a tier", ("tier", "segments", 0), [PAGE_NAME, 5, 8, 30, 40]),
        ("log record with a tier", ("tier", "segments", 1, 1), 7),
        ("log record with a tier", ("tier", "intent"), [15, 16, "d" * 32]),
        ("log record with a tier", ("tier", "intent", 1), 17),
        ("log record with a tier", ("tier", "columns", 0), ["n", "n"]),
        ("log record with a tier", ("tier", "columns", 0, 0), "s"),
        ("log record with a tier", ("tier", "missing", 0), [6, 6]),
        ("log record with a tier", ("tier", "table_url"), "x" * 4097),
        ("log record with a tier", ("first_offset",), 3),
        ("log record with a tier", ("vacant",), True),
        ("page of segments", ("segments",), []),
        ("page of segments", ("segments", 1, 1), 7),
        ("page of segments", ("older",), "x"),
        ("cursor", ("log",), "others"),
        ("cursor", ("name",), "post"),
        ("cursor", ("offset",), -1),
        ("bookie record", ("id",), "bookie-2"),
        ("cookie", ("bookie",), "../b"),
    ],
)
def test_a_record_that_contradicts_itself_or_its_name_is_refused(
    name: str, path: tuple[Any, ...], value: Any
) -> None:
    data, read = SMALL_RECORDS[name]
    with pytest.raises(CorruptDataError):
        read(changed_envelope(*(KEYS | FURTHER_KEYS)[name], data, path, value))


def test_a_record_of_another_ledger_fails_its_digest_before_it_is_parsed() -> None:
    """Not CORRUPT, which the record's own ledger id would give: the digest binds the ledger."""
    other = frame(add_record(ledger_id=LEDGER + 1))
    content = decode_journal(other, digester(), ledger_id=LEDGER)
    assert (content.records, content.tail) == ((), Tail.INCOMPLETE)
    header = forged_json(header_of(add_record(ledger_id=LEDGER + 1)))
    refused(decode_journal(forged_frame(header), digester(), ledger_id=LEDGER))


def test_errors_of_hostile_records_are_ours() -> None:
    with pytest.raises(BookKeeperError):
        SMALL_RECORDS["log record"][1](b"bkspark log v1 00000000 0\n")
