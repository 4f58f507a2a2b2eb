"""Encodes pages of digests as metadata records: what the rows of one segment of a tier were.

A page never changes, as a page of ledgers does not. It has the schema that the digests were made
with: columns that a log or a table gets later change no digest of older rows.
"""

from dataclasses import dataclass

from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import integers

KIND = "tierdigests"

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


def encode(log_name: str, name: str, page: DigestsPage) -> bytes:
    """Return the page's bytes, to be stored under ``layout.tier_page_key``."""
    value = {
        "begin": page.begin,
        "schema": page.schema.hex(),
        "ends": list(page.ends),
        "digests": list(page.digests),
    }
    return strict_json.encode(KIND, layout.tier_page_key(log_name, name), value)


def decode(log_name: str, name: str, data: bytes) -> DigestsPage:
    """Decode the page in ``data``.

    Raises:
        CorruptDataError: damaged, another page, or impossible for a page.
    """
    fields = strict_json.decode(KIND, layout.tier_page_key(log_name, name), data)
    try:
        return DigestsPage(
            fields.take("begin", int),
            bytes.fromhex(fields.take("schema", str)),
            tuple(integers(fields.take("ends", list))),
            tuple(integers(fields.take("digests", list))),
        )
    except ValueError as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error
