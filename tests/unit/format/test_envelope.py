"""A record that differs from what was written, in any bit or in length, is not read."""

import pytest

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import cluster as cluster_format
from bkspark.format import strict_json
from bkspark.format.cluster import Cookie
from bkspark.format.digest import crc32c

KEY = "logs/orders"
VALUE = {"a": [1, {"b": None}], "name": "déjà", "n": -5}
DATA = strict_json.encode("log", KEY, VALUE)
COOKIE = Cookie("c" * 32, "b1", "1" * 32, 1_700_000_000_000)


def refused(data: bytes, kind: str = "log", key: str = KEY) -> str:
    with pytest.raises(CorruptDataError) as refusal:
        strict_json.decode(kind, key, data)
    return str(refusal.value)


def with_payload(payload: bytes, version: int = 1) -> bytes:
    """A record whose checksum is right, by a writer who can compute it."""
    value = crc32c(payload, crc32c(f"log {version} - {KEY}\n".encode(), 0))
    return f"bkspark log v{version} - {value:08x} {len(payload)}\n".encode() + payload


def test_round_trip() -> None:
    fields = strict_json.decode("log", KEY, DATA)
    assert fields.take("n", int) == -5
    assert fields.take("name", str) == "déjà"
    assert fields.take("a", list) == VALUE["a"]


def test_same_value_same_bytes() -> None:
    assert strict_json.encode("log", KEY, dict(reversed(VALUE.items()))) == DATA


def test_first_line_is_for_people() -> None:
    first, _, payload = DATA.partition(b"\n")
    words = first.split(b" ")
    assert words[:4] == [b"bkspark", b"log", b"v1", b"-"]
    assert words[5] == str(len(payload)).encode()


def test_every_flipped_bit_is_found() -> None:
    for position in range(len(DATA) * 8):
        flipped = bytearray(DATA)
        flipped[position // 8] ^= 1 << position % 8
        assert KEY in refused(bytes(flipped))


def test_record_says_its_cluster() -> None:
    own = strict_json.of_cluster("ab" * 16, KEY, DATA)
    assert own.split(b" ")[3] == b"ab" * 16
    assert strict_json.decode("log", KEY, own).take("n", int) == -5
    strict_json.require_own("ab" * 16, KEY, own)


def test_cluster_of_a_record_is_covered_by_its_checksum() -> None:
    own = strict_json.of_cluster("ab" * 16, KEY, DATA)
    assert "damaged" in refused(own.replace(b"ab" * 16, b"cd" * 16))
    assert "damaged" in refused(own.replace(b"ab" * 16, b"-"))
    for strange in (b"ab" * 15, b"AB" * 16, b"ab" * 17, b"", b"--"):
        refused(own.replace(b"ab" * 16, strange))


@pytest.mark.parametrize(
    ("data", "whose"),
    [(strict_json.of_cluster("ab" * 16, KEY, DATA), f"cluster {'ab' * 16}"), (DATA, "no cluster")],
)
def test_record_of_another_cluster_is_refused_with_both_ids(data: bytes, whose: str) -> None:
    with pytest.raises(CorruptDataError) as refusal:
        strict_json.require_own("cd" * 16, KEY, data)
    assert str(refusal.value) == (
        f"log record 'logs/orders' is not of this cluster: it is of {whose}, "
        f"and this is cluster {'cd' * 16}"
    )


def test_every_cut_and_every_tail_is_found() -> None:
    for length in range(len(DATA)):
        refused(DATA[:length])
    for tail in (b"\0", b" ", b"\n", DATA):
        refused(DATA + tail)


def test_record_under_another_name_or_kind_is_found() -> None:
    assert "logs/other" in refused(DATA, key="logs/other")
    refused(DATA, kind="ledger")


@pytest.mark.parametrize(
    "payload",
    [
        b"", b"[]", b"1", b"null", b"{", b"{}{}", b'{"a":1,"a":1}', b'{"x":{"a":1,"a":2}}',
        b'{"a":NaN}', b'{"a":-Infinity}', b'{"a":"\xff"}', b"\xef\xbb\xbf{}",
        b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", b'{"a":' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    ],
)  # fmt: skip
def test_strange_payload_with_a_right_checksum(payload: bytes) -> None:
    refused(with_payload(payload))


def test_right_checksum_is_what_this_test_computes() -> None:
    assert strict_json.decode("log", KEY, with_payload(b'{"n":1}')).take("n", int) == 1


def test_another_version_says_what_reads_it() -> None:
    assert "read it with the bkspark that wrote it" in refused(with_payload(b"{}", version=2))
    refused(with_payload(b"{}", version=0))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"bkspark log v1 ", b"bkspark log v01 "), (b"bkspark ", b"bkspark  "), (b"\n", b"\r\n")],
)
def test_head_is_strict(before: bytes, after: bytes) -> None:
    refused(DATA.replace(before, after, 1))


def test_upper_case_checksum_is_refused() -> None:
    head, _, payload = DATA.partition(b"\n")
    words = head.split(b" ")
    while words[4].upper() == words[4]:
        raise AssertionError("this record's checksum has no letter: choose another value")
    words[4] = words[4].upper()
    refused(b" ".join(words) + b"\n" + payload)


def test_size_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict_json, "RECORD_BYTES_MAX", len(DATA) - 1)
    refused(DATA)


def test_cookie_round_trip() -> None:
    data = cluster_format.encode_cookie(COOKIE)
    assert cluster_format.decode_cookie(data) == COOKIE
    assert data.startswith(b"bkspark cookie v1 ")


def test_every_flip_and_cut_of_a_cookie_is_found() -> None:
    data = cluster_format.encode_cookie(COOKIE)
    for position in range(len(data) * 8):
        flipped = bytearray(data)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(CorruptDataError):
            cluster_format.decode_cookie(bytes(flipped))
    for length in range(len(data)):
        with pytest.raises(CorruptDataError):
            cluster_format.decode_cookie(data[:length])


@pytest.mark.parametrize(
    "strange",
    [
        Cookie("c" * 31, "b1", "1" * 32),
        Cookie("c" * 32, "../b", "1" * 32),
        Cookie("C" * 32, "b", "1" * 32),
    ],
)
def test_strange_identity_with_a_right_checksum(strange: Cookie) -> None:
    with pytest.raises(CorruptDataError):
        cluster_format.decode_cookie(cluster_format.encode_cookie(strange))


@pytest.mark.parametrize("strange", [{"a": "\ud800"}, {"\udfff": 1}, {"a": ["b\udbffc"]}])
def test_what_could_not_be_read_back_is_not_written(strange: dict[str, object]) -> None:
    with pytest.raises(InvalidRequestError, match="half a character"):
        strict_json.encode("thing", "key", strange)


def test_characters_of_every_length_are_read_back() -> None:
    value = {"a": "é 汉 🦜 \\ud800"}
    data = strict_json.encode("thing", "key", value)
    assert strict_json.decode("thing", "key", data).take("a", str) == value["a"]
