"""Encodes pages of a log's ledgers as metadata records, and their names within a record."""

from collections.abc import Iterable
from typing import Any

from bkspark.errors import CorruptDataError, InvalidRequestError
from bkspark.format import envelope, layout
from bkspark.format.strict_json import integers
from bkspark.protocol.log.ledger_list import LoggedLedger, LogPage, PageContents, Stretch

KIND = "logpage"
VERSION = 2
"""Of a page with places of compactions; other pages stay version 1."""


def encode(log_name: str, name: str, contents: PageContents) -> bytes:
    """Return the page's bytes, to be stored under ``layout.log_page_key``."""
    value = {
        "ledgers": [encode_place(ledger) for ledger in contents.ledgers],
        "pages": [encode_page(one) for one in contents.pages],
        "ids": list(contents.ids),
    }
    present = {kind: items for kind, items in value.items() if items}
    version = VERSION if is_merged(contents.stretches) else envelope.VERSION
    return envelope.encode(KIND, layout.log_page_key(log_name, name), present, version)


def is_merged(stretches: Iterable[Stretch]) -> bool:
    """Return whether software without compactions would misread some of these places."""
    return any(one.merged_count for one in stretches)


def decode(log_name: str, name: str, data: bytes) -> PageContents:
    """Decode the page in ``data``.

    Raises:
        CorruptDataError: damaged, another page, or impossible for a page.
    """
    fields = envelope.decode(KIND, layout.log_page_key(log_name, name), data, VERSION)
    try:
        return PageContents(
            ledgers=tuple(place(item) for item in fields.take_or_none("ledgers", list) or []),
            pages=tuple(page(item) for item in fields.take_or_none("pages", list) or []),
            ids=tuple(integers(fields.take_or_none("ids", list) or [])),
        )
    except (TypeError, ValueError, InvalidRequestError) as error:
        raise CorruptDataError(f"{fields.what} is malformed: {error}") from error


def encode_place(ledger: LoggedLedger) -> list[int]:
    place = [ledger.ledger_id, ledger.first_offset, ledger.entry_count, ledger.length_bytes]
    if ledger.merged_count:
        return [*place, ledger.closed_ms, ledger.merged_count]
    return [*place, ledger.closed_ms] if ledger.closed_ms else place


def place(item: list[Any]) -> LoggedLedger:
    return LoggedLedger(*_numbers(item, 5))


def encode_page(page: LogPage) -> list[Any]:
    merged = [page.merged_count] if page.merged_count else []
    return [
        page.name,
        page.height,
        page.first_offset,
        page.entry_count,
        page.length_bytes,
        page.ledger_count,
        page.least_id,
        page.greatest_id,
        *merged,
    ]


def page(item: list[Any]) -> LogPage:
    name, *numbers = item
    return LogPage(layout.log_page(name), *_numbers(numbers, 7))


def _numbers(items: list[Any], usual: int) -> list[int]:
    """Check the numbers of a place; a count of merged ledgers, above 0, may follow the
    ``usual``.
    """
    numbers = integers(items)
    if len(numbers) > usual and numbers[-1] < 1:
        raise ValueError("nothing was merged, and it is said")
    return numbers


def encode_stretch(one: Stretch) -> list[Any]:
    return encode_page(one) if isinstance(one, LogPage) else encode_place(one)


def stretch(item: list[Any]) -> Stretch:
    return page(item) if item and type(item[0]) is str else place(item)
