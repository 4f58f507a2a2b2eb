"""Leases of verbs: bytes and back, and nothing else."""

import pytest

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.upkeep_records import LEASE_KIND, Lease, Process, decode_lease, encode_lease

HOLDER = Process("host-1", "boot pid:[1]", 42, "1234")
LEASE = Lease("repair", "ab" * 16, HOLDER, 5, 7, is_held=False)


def test_it_comes_back_as_it_went() -> None:
    assert decode_lease("repair", encode_lease(LEASE, "nonce")) == LEASE


def test_a_record_of_another_verb_is_refused() -> None:
    with pytest.raises(CorruptDataError):
        decode_lease("scrub", encode_lease(LEASE, "nonce"))
    other = strict_json.encode(LEASE_KIND, layout.lease_key("scrub"), fields())
    with pytest.raises(CorruptDataError, match="another verb"):
        decode_lease("scrub", other)


def fields() -> dict[str, object]:
    data = encode_lease(LEASE, "nonce")
    return dict(strict_json.decode(LEASE_KIND, layout.lease_key("repair"), data)._values)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("pid", 0), ("pid", -1), ("pid", 2**31), ("pid", True), ("pid", "1")),
        *(("host", "x" * 257), ("host", 5), ("machine", "x" * 257), ("started", None)),
        *(("token", "../x"), ("token", "AB" * 16), ("is_held", 1), ("began_ms", "now")),
    ],
)
def test_a_hostile_lease_is_refused(field: str, value: object) -> None:
    data = strict_json.encode(LEASE_KIND, layout.lease_key("repair"), {**fields(), field: value})
    with pytest.raises(CorruptDataError):
        decode_lease("repair", data)


def test_a_host_with_a_long_name_can_hold_one() -> None:
    long = Lease("repair", "ab" * 16, Process("x" * 999, "", 1, ""), 5)
    assert len(decode_lease("repair", encode_lease(long, "nonce")).holder.host) == 256


def test_a_verb_is_a_word() -> None:
    for verb in ("", "../x", "a/b", "Audit", "a" * 33):
        with pytest.raises(InvalidRequestError):
            layout.lease_key(verb)
