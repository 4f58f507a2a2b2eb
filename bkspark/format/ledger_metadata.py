"""Encodes ``LedgerMetadata`` as bytes of a metadata record.

The ``nonce`` differs in every change, so that a client whose answer was lost recognises its own
change (R8).
"""

from base64 import b64decode, b64encode
from functools import lru_cache
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import commit_times, layout, strict_json, transactions
from bkspark.format.digest import checked_spec, encode_spec
from bkspark.format.strict_json import Fields, integers
from bkspark.protocol.apart import Distinct, require_distinct
from bkspark.protocol.ledger.metadata import (
    Beginning,
    DigestSpec,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    MadeSmaller,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum

KIND = "ledger"

MIN_DISTINCT = "min_distinct"

_WITHOUT_WRITER = (LedgerState.CLOSED, LedgerState.DELETING)


def encode(metadata: LedgerMetadata, nonce: str) -> bytes:
    """Return the record's bytes, to be stored under ``layout.ledger_key``."""
    value: dict[str, Any] = {
        "nonce": nonce,
        "id": metadata.ledger_id,
        "quorum": encode_quorum(metadata.quorum),
        "state": metadata.state.value,
        "term": metadata.term,
        "token": metadata.token,
        "last": metadata.last_entry_id,
        "length": metadata.length_bytes,
        commit_times.NAME: commit_times.encode(metadata.times),
        "fragments": [_encode_fragment(fragment) for fragment in metadata.fragments],
        "schema": encode_bytes(metadata.settings.schema),
        "digest": encode_spec(metadata.settings.digest),
        "custom": dict(metadata.settings.custom_metadata),
        transactions.NAME: transactions.encode(metadata.transactions),
        "created_ms": metadata.settings.created_ms,
        "left": sorted([one.bookie_id, one.incarnation] for one in metadata.left),
        "guarantees_write_quorum": metadata.settings.guarantees_write_quorum,
        "smaller": _encode_smaller(metadata.settings.smaller),
        "strict": metadata.settings.is_strict,
        MIN_DISTINCT: dict(metadata.settings.min_distinct),
        "first_available": metadata.first_available,
    }
    return strict_json.encode(KIND, layout.ledger_key(metadata.ledger_id), value)


def decode(ledger_id: int, data: bytes) -> LedgerMetadata:
    """Decode the metadata in ``data``.

    Raises:
        CorruptDataError: damaged, of another ledger, or impossible for a ledger.
    """
    fields = strict_json.decode(KIND, layout.ledger_key(ledger_id), data)
    try:
        metadata = LedgerMetadata(
            ledger_id=fields.take("id", int),
            quorum=decode_quorum(fields),
            state=LedgerState(fields.take("state", str)),
            term=fields.take("term", int),
            token=layout.token(fields.take("token", str)),
            fragments=tuple(_decode_fragment(item) for item in fields.objects("fragments")),
            settings=_decode_settings(fields),
            last_entry_id=fields.take_or_none("last", int),
            length_bytes=fields.take_or_none("length", int),
            transactions=transactions.decode(fields),
            left=_decode_left(fields),
            times=commit_times.decode(fields),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    begins_there = fields.take("first_available", int) == metadata.first_available
    has_writer = metadata.state in _WITHOUT_WRITER or bool(metadata.last_fragment.token)
    is_coherent = begins_there and has_writer and (metadata.length_bytes or 0) >= 0
    if metadata.ledger_id != ledger_id or not is_coherent:
        raise CorruptDataError(f"{fields.what} contradicts its name or itself")
    return metadata


def encode_quorum(quorum: Quorum) -> list[int]:
    return [quorum.ensemble_size, quorum.write_quorum_size, quorum.ack_quorum_size]


def decode_quorum(fields: Fields, name: str = "quorum") -> Quorum:
    sizes = fields.take(name, list)
    if len(sizes) != 3 or any(type(size) is not int for size in sizes):
        raise CorruptDataError(f"{fields.what}: quorum is malformed")
    return Quorum(*sizes)


def encode_bytes(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def decode_bytes(fields: Fields, name: str) -> bytes:
    return b64decode(fields.take(name, str), validate=True)


def decode_spec(fields: Fields) -> DigestSpec:
    spec = fields.object("digest")
    return checked_spec(
        DigestSpec(spec.take("type", str), spec.take("salt", str), spec.take("check", str))
    )


def _encode_fragment(fragment: Fragment) -> dict[str, Any]:
    beginning = fragment.beginning
    return {
        "first": fragment.first_entry_id,
        "term": fragment.term,
        "ensemble": [[member.bookie_id, member.incarnation] for member in fragment.ensemble],
        "token": fragment.token,
        "headers": fragment.has_headers,
        "confirmed": fragment.confirmed,
        "owner": fragment.owner,
        "beginning": None if beginning is None else [beginning.began_ms, beginning.length_bytes],
    }


def _encode_smaller(smaller: MadeSmaller | None) -> dict[str, list[int]] | None:
    if smaller is None:
        return None
    return {"made": encode_quorum(smaller.made), "wanted": encode_quorum(smaller.wanted)}


def _decode_left(fields: Fields) -> frozenset[Member]:
    return frozenset(map(_decode_member, fields.take("left", list)))


def _decode_member(value: Any) -> Member:
    bookie_id, incarnation = value
    return _member(bookie_id, incarnation)


@lru_cache(maxsize=4096)
def _member(bookie_id: str, incarnation: str) -> Member:
    """Return the member; many records name the same few."""
    return Member(layout.bookie_id(bookie_id), layout.token(incarnation))


def _decode_settings(fields: Fields) -> LedgerSettings:
    return LedgerSettings(
        schema=decode_bytes(fields, "schema"),
        digest=decode_spec(fields),
        custom_metadata=fields.mapping("custom", str),
        created_ms=fields.take("created_ms", int),
        guarantees_write_quorum=fields.take("guarantees_write_quorum", bool),
        smaller=_decode_smaller(fields),
        is_strict=fields.take("strict", bool),
        min_distinct=decode_distinct(fields),
    )


def decode_distinct(fields: Fields) -> Distinct:
    return require_distinct(fields.mapping(MIN_DISTINCT, int))


def _decode_smaller(fields: Fields) -> MadeSmaller | None:
    if fields.take_or_none("smaller", dict) is None:
        return None
    found = fields.object("smaller")
    return MadeSmaller(decode_quorum(found, "made"), decode_quorum(found, "wanted"))


def _decode_fragment(fields: Fields) -> Fragment:
    token = fields.take("token", str)
    return Fragment(
        fields.take("first", int),
        fields.take("term", int),
        tuple(_decode_member(value) for value in fields.take("ensemble", list)),
        token and layout.token(token),
        fields.take("headers", bool),
        fields.take("confirmed", int),
        fields.take("owner", int),
        _decode_beginning(fields),
    )


def _decode_beginning(fields: Fields) -> Beginning | None:
    found = fields.take_or_none("beginning", list)
    if found is None:
        return None
    began_ms, length_bytes = integers(found)
    return Beginning(began_ms, length_bytes)
