"""Encodes a log's tier within the log's record, and pages of the tier's older segments."""

from dataclasses import dataclass
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, log_page, strict_json
from bkspark.format.strict_json import Fields, integers
from bkspark.protocol import bounds
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

# --- tier digests --------------------------------------------------------------------------------
# Encodes pages of digests as metadata records: what the rows of one segment of a tier were.
#
# A page never changes, as a page of ledgers does not. It has the schema that the digests were made
# with: columns that a log or a table gets later change no digest of older rows.


DIGESTS_KIND = "tierdigests"

WINDOW_OFFSETS_MAX = 65_536
"""Most offsets with one digest."""

_DIGEST_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True)
class DigestsPage:
    """The digests of the rows ``[begin, ends[-1])``, window by window.

    Attributes:
        schema: Arrow schema of the log's own columns, as an IPC schema message.
        ends: the offset after each window; the first window begins at ``begin``.
        digests: ``canonical_rows.digest_of`` the rows of each window, in the order of offsets.

    Raises:
        ValueError: there is no window, a window is empty or too long, or a digest is none.
    """

    begin: int
    schema: bytes
    ends: tuple[int, ...]
    digests: tuple[int, ...]

    def __post_init__(self) -> None:
        lengths = [end - begin for begin, end in self.windows]
        if not lengths or len(lengths) != len(self.digests):
            raise ValueError("each window has one digest")
        if min(lengths) < 1 or max(lengths) > WINDOW_OFFSETS_MAX:
            raise ValueError(f"a window has 1 to {WINDOW_OFFSETS_MAX} offsets")
        if not 0 <= min(self.digests) <= max(self.digests) <= _DIGEST_MAX:
            raise ValueError("a digest has 32 bits")

    @property
    def windows(self) -> tuple[tuple[int, int], ...]:
        """The offsets ``[begin, end)`` of each window."""
        return tuple(zip((self.begin, *self.ends), self.ends, strict=False))

    @property
    def end(self) -> int:
        return self.ends[-1]


def encode_digests(log_name: str, name: str, page: DigestsPage) -> bytes:
    """Return the page's bytes, to be stored under ``layout.tier_page_key``."""
    value = {
        "begin": page.begin,
        "schema": page.schema.hex(),
        "ends": list(page.ends),
        "digests": list(page.digests),
    }
    return strict_json.encode(DIGESTS_KIND, layout.tier_page_key(log_name, name), value)


def decode_digests(log_name: str, name: str, data: bytes) -> DigestsPage:
    """Decode the page in ``data``.

    Raises:
        CorruptDataError: damaged, another page, or impossible for a page.
    """
    fields = strict_json.decode(DIGESTS_KIND, layout.tier_page_key(log_name, name), data)
    try:
        return DigestsPage(
            fields.take("begin", int),
            bytes.fromhex(fields.take("schema", str)),
            tuple(integers(fields.take("ends", list))),
            tuple(integers(fields.take("digests", list))),
        )
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error


# --- tier record ---------------------------------------------------------------------------------


KIND = "tiersegments"

_NUMBERS_OF_SEGMENT = 7


def encode(tier: Tier | None) -> dict[str, Any] | None:
    """Return the tier's part of a log's record."""
    if tier is None:
        return None
    intent, of_freed = tier.intent, tier.of_freed
    return {
        "table_url": tier.table_url,
        "table_id": tier.table_id,
        "epoch": tier.epoch,
        "begin": tier.begin,
        "freed": tier.freed,
        "copied": tier.copied,
        "verified_version": tier.table.verified.number,
        "verified_commit": tier.table.verified.commit,
        "length_bytes": tier.length_bytes,
        "columns": [[one.name, one.physical_name, one.type_text] for one in tier.columns],
        "segments": [_segment(one) for one in tier.segments],
        "older": tier.older,
        "intent": intent and [intent.begin, intent.end, intent.attempt, intent.since_version],
        "missing": [list(one) for one in tier.missing],
        "released": of_freed.released,
        "freed_ms": of_freed.ms,
        "waiting": [log_page.encode_stretch(one) for one in of_freed.waiting],
        "last_ms": of_freed.last_ms,
    }


def decode(fields: Fields) -> Tier | None:
    """Decode the field ``tier`` of a log's record.

    Raises:
        CorruptDataError: a field is missing or of another type.
        InvalidRequestError, TypeError, ValueError: impossible for a tier.
    """
    if fields.take_or_none("tier", dict) is None:
        return None
    found = fields.object("tier")
    return Tier(
        TierTable(
            _bounded(found.take("table_url", str)),
            _bounded(found.take("table_id", str)),
            TableVersion(
                found.take("verified_version", int), _bounded(found.take("verified_commit", str))
            ),
            tuple(_column(item) for item in found.take("columns", list)),
        ),
        epoch=layout.token(found.take("epoch", str)),
        begin=found.take("begin", int),
        freed=found.take("freed", int),
        copied=found.take("copied", int),
        length_bytes=found.take("length_bytes", int),
        segments=tuple(_decoded_segment(item) for item in found.take("segments", list)),
        older=_page_or_none(found.take("older", str)),
        intent=_intent(found.take_or_none("intent", list)),
        missing=tuple(_range(item) for item in found.take("missing", list)),
        of_freed=FreedLedgers(
            found.take("released", int),
            found.take("freed_ms", int),
            tuple(log_page.stretch(item) for item in found.take("waiting", list)),
            found.take("last_ms", int),
        ),
    )


def encode_page(log_name: str, name: str, page: SegmentsPage) -> bytes:
    """Return the page's bytes, to be stored under ``layout.tier_page_key``."""
    value = {"segments": [_segment(one) for one in page.segments], "older": page.older}
    return strict_json.encode(KIND, layout.tier_page_key(log_name, name), value)


def decode_page(log_name: str, name: str, data: bytes) -> SegmentsPage:
    """Decode the page in ``data``.

    Raises:
        CorruptDataError: damaged, another page, or impossible for a page.
    """
    fields = strict_json.decode(KIND, layout.tier_page_key(log_name, name), data)
    try:
        return SegmentsPage(
            tuple(_decoded_segment(item) for item in fields.take("segments", list)),
            _page_or_none(fields.take("older", str)),
        )
    except (TypeError, ValueError, InvalidRequestError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error


def decode_any_page(log_name: str, name: str, data: bytes) -> SegmentsPage | DigestsPage:
    """Decode a page of segments, or a page of digests.

    Raises:
        CorruptDataError: it is neither.
    """
    if data.startswith(b"bkspark %b " % DIGESTS_KIND.encode()):
        return decode_digests(log_name, name, data)
    return decode_page(log_name, name, data)


def _segment(one: TierSegment) -> list[Any]:
    times = (one.copied_ms, one.closed_ms, one.first_ms, one.last_ms)
    return [one.digests, one.begin, one.end, one.length_bytes, *times]


def _decoded_segment(item: list[Any]) -> TierSegment:
    digests, *numbers = item
    if len(numbers) != _NUMBERS_OF_SEGMENT:
        raise ValueError("not a segment")
    begin, end, length_bytes, copied_ms, *times = integers(numbers)
    return TierSegment(begin, end, length_bytes, copied_ms, layout.log_page(digests), *times)


def _column(item: list[Any]) -> TierColumn:
    name, physical_name, type_text = (_text(one) for one in item)
    return TierColumn(name, physical_name, type_text)


def _intent(item: list[Any] | None) -> Intent | None:
    if item is None:
        return None
    begin, end, attempt, since_version = item
    if type(attempt) is not str or not bounds.is_stored_number(since_version):
        raise ValueError("not an intent")
    begin, end = integers([begin, end])
    return Intent(begin, end, layout.token(attempt), since_version)


def _range(item: list[Any]) -> tuple[int, int]:
    begin, end = integers(item)
    return begin, end


def _page_or_none(name: str) -> str:
    return layout.log_page(name) if name else ""


def _bounded(text: str) -> str:
    if len(text) > bounds.TABLE_URL_LENGTH_MAX:
        raise ValueError("a text of a tier is too long")
    return text


def _text(value: object) -> str:
    if type(value) is not str:
        raise ValueError("not a text")
    return value
