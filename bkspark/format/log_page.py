"""Encodes pages of a log's ledgers as metadata records, and their names within a record."""

from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import layout, strict_json
from bkspark.format.strict_json import integers
from bkspark.protocol.log.ledger_list import LoggedLedger, LogPage, PageContents, Stretch

KIND = "logpage"

_NUMBERS_OF_PLACE, _NUMBERS_OF_PAGE = 8, 10


def encode(log_name: str, name: str, contents: PageContents) -> bytes:
    """Return the page's bytes, to be stored under ``layout.log_page_key``."""
    value = {
        "ledgers": [encode_place(ledger) for ledger in contents.ledgers],
        "pages": [encode_page(one) for one in contents.pages],
        "ids": list(contents.ids),
    }
    return strict_json.encode(KIND, layout.log_page_key(log_name, name), value)


def decode(log_name: str, name: str, data: bytes) -> PageContents:
    """Decode the page in ``data``.

    Raises:
        CorruptDataError: damaged, another page, or impossible for a page.
    """
    fields = strict_json.decode(KIND, layout.log_page_key(log_name, name), data)
    try:
        return PageContents(
            ledgers=tuple(place(item) for item in fields.take("ledgers", list)),
            pages=tuple(page(item) for item in fields.take("pages", list)),
            ids=tuple(integers(fields.take("ids", list))),
        )
    except (TypeError, ValueError, InvalidRequestError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error


def encode_place(ledger: LoggedLedger) -> list[int]:
    return [
        ledger.ledger_id,
        ledger.first_offset,
        ledger.entry_count,
        ledger.length_bytes,
        ledger.closed_ms,
        ledger.merged_count,
        ledger.first_ms,
        ledger.last_ms,
    ]


def place(item: list[Any]) -> LoggedLedger:
    return LoggedLedger(*_numbers(item, _NUMBERS_OF_PLACE))


def encode_page(page: LogPage) -> list[Any]:
    return [
        page.name,
        page.height,
        page.first_offset,
        page.entry_count,
        page.length_bytes,
        page.ledger_count,
        page.least_id,
        page.greatest_id,
        page.merged_count,
        page.first_ms,
        page.last_ms,
    ]


def page(item: list[Any]) -> LogPage:
    name, *numbers = item
    return LogPage(layout.log_page(name), *_numbers(numbers, _NUMBERS_OF_PAGE))


def _numbers(items: list[Any], count: int) -> list[int]:
    if len(items) != count:
        raise ValueError(f"it has {len(items)} numbers, not {count}")
    return integers(items)


def encode_stretch(one: Stretch) -> list[Any]:
    return encode_page(one) if isinstance(one, LogPage) else encode_place(one)


def stretch(item: list[Any]) -> Stretch:
    has_name = type(item) is list and item and type(item[0]) is str
    return page(item) if has_name else place(item)
