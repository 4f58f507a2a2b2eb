"""Encodes ``LedgerMetadata`` as bytes of a metadata record.

The ``nonce`` differs in every change, so that a client whose answer was lost recognises its own
change (R8).
"""

from base64 import b64decode, b64encode
from typing import Any

from bkspark.errors import CorruptDataError
from bkspark.format import envelope, layout, transactions
from bkspark.format.digest import checked_spec, encode_spec
from bkspark.format.strict_json import Fields
from bkspark.protocol.ledger.beginning import Beginning
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    Fragment,
    LedgerMetadata,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.settings import DigestSpec, LedgerSettings, MadeSmaller
from bkspark.protocol.ledger.standing import ConfirmedEnd

KIND = "ledger"

HEADERS_VERSION, LEFT_VERSION, QUORUM_VERSION, OWNERS_VERSION, TRUNCATED_VERSION = 2, 3, 4, 5, 6
LAST_VERSION = 7
"""Each version adds facts that older software must not drop:

- 2: members began their journals;
- 3: bookies have left the ledger;
- 4: the write quorum is guaranteed;
- 5: fragments have owners;
- 6: first fragments were truncated;
- 7: when fragments began; or the ledger is smaller than wanted, or strict.

A record without these facts is version 1.
"""


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
        "fragments": [_encode_fragment(fragment) for fragment in metadata.fragments],
        "schema": encode_bytes(metadata.settings.schema),
        "digest": encode_spec(metadata.settings.digest),
        "custom": dict(metadata.settings.custom_metadata),
        **transactions.fields_of(metadata.transactions),
        "created_ms": metadata.settings.created_ms,
    }
    if metadata.laid_down is not None:  # by an older version; kept as found
        value["laid_down"] = _encode_standing(metadata.laid_down)
    if metadata.left:
        value["left"] = sorted([one.bookie_id, one.incarnation] for one in metadata.left)
    if metadata.settings.guarantees_write_quorum:
        value["guarantees_write_quorum"] = True
    if (smaller := metadata.settings.smaller) is not None:
        value["made"], value["wanted"] = map(encode_quorum, (smaller.made, smaller.wanted))
    if metadata.settings.is_strict:
        value["strict"] = True
    if metadata.first_available:
        value["first_available"] = metadata.first_available
    version = _version_of(metadata)
    return envelope.encode(KIND, layout.ledger_key(metadata.ledger_id), value, version=version)


def _version_of(metadata: LedgerMetadata) -> int:
    if metadata.settings.smaller is not None or metadata.settings.is_strict:
        return LAST_VERSION
    if any(fragment.beginning for fragment in metadata.fragments):
        return LAST_VERSION
    if metadata.first_available:
        return TRUNCATED_VERSION
    if any(fragment.owner for fragment in metadata.fragments):
        return OWNERS_VERSION
    if metadata.settings.guarantees_write_quorum:
        return QUORUM_VERSION
    if metadata.left:
        return LEFT_VERSION
    has_headers = any(fragment.has_headers for fragment in metadata.fragments)
    return HEADERS_VERSION if has_headers else envelope.VERSION


def decode(ledger_id: int, data: bytes) -> LedgerMetadata:
    """Decode the metadata in ``data``.

    Raises:
        CorruptDataError: damaged, of another ledger, or impossible for a ledger.
    """
    key = layout.ledger_key(ledger_id)
    fields = envelope.decode(KIND, key, data, newest=LAST_VERSION)
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
            laid_down=_decode_standing(fields),
            left=_decode_left(fields),
        )
    except (TypeError, ValueError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
    begins_there = (fields.take_or_none("first_available", int) or 0) == metadata.first_available
    if metadata.ledger_id != ledger_id or (metadata.length_bytes or 0) < 0 or not begins_there:
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


def _encode_standing(standing: ConfirmedEnd) -> dict[str, Any]:
    return {
        "last": standing.last_entry_id,
        "length": standing.length_bytes,
        "records": standing.record_count,
        "transactions": dict(standing.transactions),
    }


def _decode_standing(fields: Fields) -> ConfirmedEnd | None:
    if fields.take_or_none("laid_down", dict) is None:
        return None
    found = fields.object("laid_down")
    last, length, records = (found.take(name, int) for name in ("last", "length", "records"))
    if last < INVALID_ENTRY_ID or min(length, records) < 0:
        raise ValueError("the ledger cannot stand there")
    return ConfirmedEnd(last, length, records, found.mapping("transactions", int))


def _encode_fragment(fragment: Fragment) -> dict[str, Any]:
    members = [[member.bookie_id, member.incarnation] for member in fragment.ensemble]
    first, term = fragment.first_entry_id, fragment.term
    value: dict[str, Any] = {"first": first, "term": term, "ensemble": members}
    if fragment.token:  # added later: other records stay as they are
        value["token"] = fragment.token
    if fragment.has_headers:  # added later still: software without it must not drop it
        value["headers"] = True
    if fragment.confirmed > INVALID_ENTRY_ID:  # if write quorums are guaranteed, or laid down
        value["confirmed"] = fragment.confirmed
    if fragment.owner:  # only of a ledger that continues in later terms
        value["owner"] = fragment.owner
    if fragment.beginning is not None:
        value["began_ms"] = fragment.beginning.began_ms
        value["bytes_before"] = fragment.beginning.length_bytes
    return value


def _decode_left(fields: Fields) -> frozenset[Member]:
    found = fields.take_or_none("left", list)
    return frozenset(map(_decode_member, found or ()))


def _decode_member(value: Any) -> Member:
    bookie_id, incarnation = value
    return Member(layout.bookie_id(bookie_id), layout.token(incarnation))


def _decode_settings(fields: Fields) -> LedgerSettings:
    return LedgerSettings(
        schema=decode_bytes(fields, "schema"),
        digest=decode_spec(fields),
        custom_metadata=fields.mapping("custom", str),
        created_ms=fields.take("created_ms", int),
        guarantees_write_quorum=bool(fields.take_or_none("guarantees_write_quorum", bool)),
        smaller=_decode_smaller(fields),
        is_strict=bool(fields.take_or_none("strict", bool)),
    )


def _decode_smaller(fields: Fields) -> MadeSmaller | None:
    if fields.take_or_none("made", list) is None and fields.take_or_none("wanted", list) is None:
        return None
    return MadeSmaller(decode_quorum(fields, "made"), decode_quorum(fields, "wanted"))


def _decode_fragment(fields: Fields) -> Fragment:
    members = [_decode_member(value) for value in fields.take("ensemble", list)]
    token = fields.take_or_none("token", str)
    confirmed = fields.take_or_none("confirmed", int)
    return Fragment(
        fields.take("first", int),
        fields.take("term", int),
        tuple(members),
        "" if token is None else layout.token(token),
        bool(fields.take_or_none("headers", bool)),
        INVALID_ENTRY_ID if confirmed is None else confirmed,
        fields.take_or_none("owner", int) or 0,
        _decode_beginning(fields),
    )


def _decode_beginning(fields: Fields) -> Beginning | None:
    began_ms = fields.take_or_none("began_ms", int)
    length_bytes = fields.take_or_none("bytes_before", int)
    if (began_ms is None) != (length_bytes is None):
        raise ValueError("a fragment says when it was begun and what lies in front, or neither")
    return Beginning.known(began_ms, length_bytes)
