"""The small records come back as they were, names obey their rules, digests their definition."""

import hashlib
import hmac
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bkspark.errors import CorruptDataError, InvalidRequestError, UnauthorizedError
from bkspark.format import (
    cluster,
    journal,
    layout,
    ledger_metadata,
    log_page,
    log_record,
    strict_json,
    upkeep_records,
)
from bkspark.format import cluster as cluster_format
from bkspark.format.digest import CRC32C, MAC, Digester, canonical_json, crc32c, new_spec
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, InlinePart, confirmation
from bkspark.protocol.log.ledger_list import PageContents
from tests.log_with import log_with

from .material import (
    BOOKIE,
    CLUSTER,
    COOKIE,
    CURSOR,
    FULL_BOOKIE,
    LEAVING_BOOKIE,
    LEDGER,
    PAGE_NAME,
    PAGE_OF_IDS,
    PAGE_OF_LEDGERS,
    PAGE_OF_PAGES,
    PASSWORD,
    REMOVED_BOOKIE,
    TOKEN,
    add_record,
    digester,
    frame,
    guaranteeing,
    inline_record,
    log,
    metadata,
    open_ledger,
    open_log,
    paged_log,
    spec,
    tiered_log,
)

UNBOUNDED = replace(log().settings, is_unbounded=True, guarantees_write_quorum=True)
QUICK = settings(max_examples=80, derandomize=True, database=None, deadline=None)


@pytest.mark.parametrize("contents", [PAGE_OF_LEDGERS, PAGE_OF_PAGES, PAGE_OF_IDS])
def test_pages_come_back(contents: PageContents) -> None:
    data = log_page.encode("events", PAGE_NAME, contents)
    assert log_page.decode("events", PAGE_NAME, data) == contents
    for name, of in (("events", f"{4:08x}-{'a' * 32}"), ("others", PAGE_NAME)):
        with pytest.raises(CorruptDataError, match="checksum"):
            log_page.decode(name, of, data)


@pytest.mark.parametrize("name", ["", "x", "../00000003-" + "a" * 32, "00000003-" + "A" * 32])
def test_a_page_has_a_name_that_can_be_one(name: str) -> None:
    with pytest.raises(InvalidRequestError):
        layout.log_page_key("events", name)


def test_a_bookie_that_is_going_is_stored_as_read_only() -> None:
    for going in ("leaving", "removed"):
        record = replace(BOOKIE, is_read_only=False, **{f"is_{going}": True})
        assert b'"read_only":true' in cluster.encode_bookie(record, "n")


@pytest.mark.parametrize("marks", [(900, 950), (0, 0), (1001, 1)])
def test_marks_that_are_none_are_damage(marks: tuple[int, int]) -> None:
    _, payload = cluster.encode_bookie(FULL_BOOKIE, "n").split(b"\n")
    fields = json.loads(payload)
    fields |= {"high_permille": marks[0], "low_permille": marks[1]}
    forged = strict_json.encode("bookie", "bookies/bookie-1", fields)
    with pytest.raises(CorruptDataError, match="marks are malformed"):
        cluster.decode_bookie("bookie-1", forged)


@pytest.mark.parametrize("labels", [None, [], {"A": "x"}, {"a": 1}, {"a": "x\n"}, {"a": "x" * 256}])
def test_labels_that_are_none_are_damage(labels: object) -> None:
    payload = cluster.encode_bookie(FULL_BOOKIE, "n").partition(b"\n")[2]
    forged = strict_json.encode(
        "bookie", "bookies/bookie-1", json.loads(payload) | {"labels": labels}
    )
    with pytest.raises(CorruptDataError, match=r"label|field 'a'"):
        cluster.decode_bookie("bookie-1", forged)


@pytest.mark.parametrize("store", [None, 1, "East", "a b", "-a", "a\n", "a" * 64, "http://h"])
def test_a_store_that_has_no_name_is_damage(store: object) -> None:
    payload = cluster.encode_bookie(FULL_BOOKIE, "n").partition(b"\n")[2]
    forged = strict_json.encode(
        "bookie", "bookies/bookie-1", json.loads(payload) | {"store": store}
    )
    with pytest.raises(CorruptDataError, match=r"store"):
        cluster.decode_bookie("bookie-1", forged)


@pytest.mark.parametrize("strange", ["", "-", "c" * 31, "C" * 32, "../" + "c" * 29])
def test_a_cluster_has_an_id_that_can_be_one(strange: str) -> None:
    data = cluster.encode_cluster(replace(CLUSTER, cluster_id=strange), "n")
    with pytest.raises(CorruptDataError, match="its id is malformed"):
        cluster.decode_cluster(data)


def test_a_bookie_with_labels_is_a_key() -> None:
    assert FULL_BOOKIE.labels
    assert {FULL_BOOKIE: 1}[replace(FULL_BOOKIE)] == 1


def test_round_trips() -> None:
    assert cluster_format.decode_cookie(cluster_format.encode_cookie(COOKIE)) == COOKIE
    assert cluster.decode_cluster(cluster.encode_cluster(CLUSTER, "n")) == CLUSTER
    for bookie in (BOOKIE, FULL_BOOKIE, LEAVING_BOOKIE, REMOVED_BOOKIE):
        assert cluster.decode_bookie("bookie-1", cluster.encode_bookie(bookie, "n")) == bookie
    assert cluster.decode_counter("counters/x", cluster.encode_counter("counters/x", 5, "n")) == 5
    truncated = log_with(log(), first_version=7, truncated_ms=1234)
    inside = log_with(log(), ledgers=(), tail=(6,), settings=replace(UNBOUNDED, is_strict=True))
    begun_inside = replace(inside, dropped=replace(inside.dropped, of_tail=5))
    sealed = replace(log(), is_sealed=True)
    logs = (log(), open_log(), paged_log(), tiered_log())
    for stored_log in (*logs, sealed, truncated, inside, begun_inside):
        encoded = log_record.encode(stored_log, "n")
        assert log_record.decode("events", encoded) == stored_log
    assert (
        upkeep_records.decode_cursor("events", "mail", upkeep_records.encode_cursor(CURSOR, "n"))
        == CURSOR
    )
    assert guaranteeing().last_confirmed == guaranteeing().last_fragment.first_entry_id + 2
    for stored in (metadata(), metadata(digest_type=MAC), open_ledger(), guaranteeing()):
        assert ledger_metadata.decode(LEDGER, ledger_metadata.encode(stored, "n")) == stored


def test_the_queries_of_a_log_keep_their_order() -> None:
    for names in (["other", "query"], ["query", "other"]):
        stored = log_with(log(), streams=dict.fromkeys(names, ("run",)))
        found = log_record.decode("events", log_record.encode(stored, "n"))
        assert list(found.committed.streams) == names


def test_a_record_says_whose_journals_were_begun() -> None:
    first, last = metadata().fragments
    stored = replace(metadata(), fragments=(first, replace(last, token=TOKEN, has_headers=True)))
    assert ledger_metadata.decode(LEDGER, ledger_metadata.encode(stored, "n")) == stored


def test_every_encoding_differs_by_its_nonce() -> None:
    assert ledger_metadata.encode(metadata(), "a") != ledger_metadata.encode(metadata(), "b")
    assert log_record.encode(log(), "a") != log_record.encode(log(), "b")


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (3, 3, 2), (3, 2, 2), (5, 3, 2), (256, 2, 1)])
def test_add_records_come_back(sizes: tuple[int, int, int], digest_type: str) -> None:
    data, records = b"", []
    for rows in ((1,), (2, 7), (300, 1, 4)):
        first = records[-1].last_entry_id + 1 if records else 0
        records.append(add_record(rows, first=first, sizes=sizes))
        data += frame(records[-1], digest_type, position=len(data))
    content = journal.decode_journal(data, digester(digest_type), ledger_id=LEDGER)
    assert (content.records, content.tail) == (tuple(records), journal.Tail.CLEAN)


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_a_record_is_written_back_byte_for_byte(digest_type: str) -> None:
    record = replace(add_record((2, 3), first=4), stored=(3, 0, -1))
    data = frame(record, digest_type)
    (found,) = journal.decode_journal(data, digester(digest_type), ledger_id=LEDGER).records
    assert found == record
    assert frame(found, digest_type) == data


def said(confirmed: int, **changes: object) -> AddRecord:
    values = {
        "token": TOKEN,
        "length_bytes": 9,
        "quorum": Quorum(3, 2, 2),
        "transactions": {"a": 1},
    }
    made = confirmation(ledger_id=LEDGER, term=1, last_add_confirmed=confirmed, **values)
    return replace(made, **changes)


@pytest.mark.parametrize("confirmed", [-1, 0, 41])
def test_a_confirmation_comes_back_and_is_no_group(confirmed: int) -> None:
    record = add_record((confirmed + 1,)) if confirmed >= 0 else None
    data = frame(record) if record else b""
    data += frame(said(confirmed), position=len(data))
    content = journal.decode_journal(data, digester(), ledger_id=LEDGER)
    assert content.tail is journal.Tail.CLEAN
    assert content.frames[-1].record == said(confirmed)
    assert content.records == ((record,) if record else ())
    assert content.last_add_confirmed == confirmed


@pytest.mark.parametrize(
    "changes",
    [
        {"last_add_confirmed": 4},
        {"last_add_confirmed": 6},
        {"last_add_confirmed": 4, "last_entry_id": 4},
        {"last_add_confirmed": -2, "last_entry_id": -2, "first_entry_id": -1},
        {"rows": add_record((3,), first=6).attempts},
        {"rows": (InlinePart(0, 8, "0" * 8),)},
    ],
    ids=str,
)
def test_a_confirmation_says_its_lac_and_nothing_else(changes: dict[str, object]) -> None:
    data = frame(said(5, **changes), parts={0: b"01234567"})
    content = journal.decode_journal(data, digester(), ledger_id=LEDGER)
    assert (content.frames, content.tail) == ((), journal.Tail.CORRUPT)


def test_a_bookie_has_the_parts_of_its_own_write_sets() -> None:
    record, parts = inline_record()
    for index in range(3):
        data = frame(record, index=index, parts=parts)
        (found,) = journal.decode_journal(data, digester(), ledger_id=LEDGER).frames
        own = {stripe for stripe in parts if index in record.quorum.write_set(stripe)}
        assert {s: data[at : at + n] for s, (at, n) in found.parts.items()} == {
            stripe: parts[stripe] for stripe in own
        }
        assert len(own) == 2


def test_the_check_value_of_crc32c() -> None:
    assert crc32c(b"123456789", 0) == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345", 0)) == 0xE3069283


def test_a_mac_is_hmac_sha256_under_a_key_from_password_and_salt() -> None:
    key = hashlib.scrypt(
        PASSWORD.encode(), salt=bytes.fromhex(spec(MAC).salt), n=2**14, r=8, p=1, dklen=32
    )
    expected = hmac.new(key, b"3:abc:de", hashlib.sha256).hexdigest()
    assert digester(MAC).digest("abc", b"d", b"e") == expected
    assert digester(CRC32C).digest("abc", b"d", b"e") == f"{crc32c(b'3:abc:de', 0):08x}"


@pytest.mark.parametrize("digest_type", [CRC32C, MAC])
def test_context_and_bytes_cannot_be_traded(digest_type: str) -> None:
    key = digester(digest_type)
    assert key.digest("ab", b"c") != key.digest("a", b"bc")
    assert key.digest("a:", b"b") != key.digest("a", b":b")
    assert key.digest("a", b"bc") == key.digest("a", b"b", b"", b"c")
    assert key.matches(key.digest("a", b"b"), "a", b"b")
    for wrong in ("", "0", "é", key.digest("a", b"b").upper() + "x"):
        assert not key.matches(wrong, "a", b"b")


@pytest.mark.parametrize("password", [None, "", "battery staple", PASSWORD + " "])
def test_a_wrong_password_is_unauthorized(password: str | None) -> None:
    with pytest.raises(UnauthorizedError):
        Digester(spec(MAC), password)


def test_nothing_shows_a_password_or_key() -> None:
    key = digester(MAC)
    assert repr(key) == "Digester(MAC)"
    with pytest.raises(TypeError):
        pickle.dumps(key)
    stored = ledger_metadata.encode(metadata(digest_type=MAC), "n")
    assert PASSWORD.encode() not in stored
    assert new_spec(MAC, PASSWORD).salt != new_spec(MAC, PASSWORD).salt


def test_an_unknown_digest_type_is_refused() -> None:
    for make in (lambda: new_spec("MD5", None), lambda: Digester(DigestSpec("MD5"))):
        with pytest.raises(InvalidRequestError):
            make()
    with pytest.raises(UnauthorizedError):
        new_spec(MAC, None)


def test_names() -> None:
    assert layout.entry_log(0x1234, "a" * 32, 7) == (
        f"ledgers/34/0000000000001234/entries/{'a' * 32}-7.arrow"
    )
    assert layout.term_marker(1, 2) == "ledgers/01/0000000000000001/terms/00000002"
    assert layout.journal(1, 2, "b" * 32) == (
        f"ledgers/01/0000000000000001/journal/00000002-{'b' * 32}"
    )
    assert layout.parse_ledger_key(layout.ledger_key(77).rpartition("/")[2]) == 77


BAD_PARTS = ("", ".", "..", "../x", "a/b", "/a", "a\n", "a\0", "é", "a" * 200, " a", "-a", "a..b")


@pytest.mark.parametrize("name", BAD_PARTS)
def test_names_that_could_lead_elsewhere_are_refused(name: str) -> None:
    for check in (layout.log_name, layout.bookie_id, layout.token, layout.parse_ledger_key):
        with pytest.raises(InvalidRequestError):
            check(name)
    with pytest.raises(InvalidRequestError):
        layout.journal(1, 1, name)
    with pytest.raises(InvalidRequestError):
        layout.entry_log(1, name, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: layout.ledger_key(-1),
        lambda: layout.ledger_key(2**63),
        lambda: layout.term_marker(1, 0),
        lambda: layout.term_marker(1, 2**32),
        lambda: layout.entry_log(1, "a" * 32, 256),
        lambda: layout.entry_log(1, "a" * 32, -1),
    ],
)
def test_numbers_out_of_range_make_no_names(make: object) -> None:
    assert callable(make)
    with pytest.raises(InvalidRequestError):
        make()


@QUICK
@given(st.text(max_size=140))
def test_a_name_that_is_allowed_is_one_part_of_a_path(name: str) -> None:
    try:
        allowed = layout.log_name(name)
    except InvalidRequestError:
        return
    assert allowed == name
    assert "/" not in name
    assert name not in (".", "..")
    assert name.isascii()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@QUICK
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4))
def test_json_comes_back_and_has_one_spelling(value: dict[str, object]) -> None:
    data = canonical_json(value)
    assert canonical_json(dict(reversed(value.items()))) == data
    fields = strict_json.loads(data, "it")
    assert canonical_json(dict(fields._values)) == data


@pytest.mark.parametrize(
    ("value", "kind"), [(True, int), (1, bool), ("1", int), (1.0, int), (None, str), ([], dict)]
)
def test_a_field_of_another_type_is_refused(value: object, kind: type) -> None:
    fields = strict_json.loads(canonical_json({"x": value}), "it")
    with pytest.raises(CorruptDataError, match="'x'"):
        fields.take("x", kind)
    with pytest.raises(CorruptDataError, match="'y'"):
        fields.take("y", kind)
    with pytest.raises(CorruptDataError, match="'y'"):
        fields.take_or_none("y", kind)
    assert strict_json.loads(b'{"x":null}', "it").take_or_none("x", kind) is None


def test_json_is_read_to_a_bounded_depth() -> None:
    for depth, is_fine in ((31, True), (32, False), (500, False), (200_000, False)):
        data = b'{"x":' + b"[" * depth + b"]" * depth + b"}"
        if is_fine:
            strict_json.loads(data, "it")
        else:
            with pytest.raises(CorruptDataError):
                strict_json.loads(data, "it")
