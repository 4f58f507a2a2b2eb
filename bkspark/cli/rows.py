"""Print entries: as JSON lines, as one JSON document, or as a table."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from bkspark.bookie.contract import on_bookie
from bkspark.cli.output import Column, json_line, note, print_table
from bkspark.log.reading.ordered_read import InlineRead, OrderedRead

TABLE_ROWS_DEFAULT = 20


class Format(StrEnum):
    JSON = "json"
    TABLE = "table"


FormatOption = Annotated[
    Format,
    typer.Option(
        "--format",
        help="json: one line per row; table: the first 20 rows, or --limit rows. Bytes are "
        "shown in base64 in both.",
    ),
]
LimitOption = Annotated[int | None, typer.Option(min=0, help="Print at most this many rows.")]
PasswordFileOption = Annotated[
    str, typer.Option(metavar="FILE", help="File that holds the password.")
]
PasswordEnvOption = Annotated[
    str, typer.Option(metavar="NAME", help="Environment variable that holds the password.")
]


def limited_end(start: int, end: int | None, limit: int | None) -> int | None:
    """Return the end of a range from ``start`` with at most ``limit`` rows."""
    if limit is None:
        return end
    return start + limit if end is None else min(end, start + limit)


def print_entries(
    found: OrderedRead | InlineRead, shape: Format, limit: int | None, *, as_json: bool
) -> None:
    """Print the rows of ``found``; name skipped replicas on stderr."""
    rows = _rows(found)
    if as_json:
        _print_document(rows)
    elif shape is Format.TABLE:
        names = [found.position_column, *found.schema.names]
        shown = list(islice(rows, TABLE_ROWS_DEFAULT if limit is None else limit))
        print_table(shown, [Column(name, name) for name in names])
    else:
        for row in rows:
            print(json_line(row))
    for fault in found.faults:
        note(f"skipped a copy {on_bookie(fault.bookie_id, fault.reason)}")


def _rows(found: OrderedRead | InlineRead) -> Iterator[dict[str, Any]]:
    for table in found:
        yield from table.to_pylist()


def _print_document(rows: Iterator[dict[str, Any]]) -> None:
    """Print a JSON array while the rows arrive."""
    before = "["
    for row in rows:
        print(before)
        print(json_line(row), end="")
        before = ","
    print("[]" if before == "[" else "\n]")
