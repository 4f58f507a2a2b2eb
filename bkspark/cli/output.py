"""Print tables for people on a terminal, tab-separated lines in a pipe, JSON on request.

A pipe gets one line per row, tab-separated, after one line of column names, so no value is ever cut
to a width. Only stdout carries data; notes go to stderr.

Names, values and errors come from storage, and their author may try to control the terminal of the
reader, even through a pipe. To prevent such control, ``ForPeople`` wraps both outputs and prints an
escape for each control character; JSON has escapes of its own.
"""

import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, TextIO, cast
from unicodedata import category

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]


def visible(text: str, keep: str = "") -> str:
    """Return ``text`` with an escape for each character able to control a terminal.

    Such characters are controls (ESC, C0, C1, new lines and tabs), characters without visible form
    or changing the direction of writing, line separators and lone surrogates. Characters in
    ``keep`` stay.
    """
    return _escaped(text, lambda char: char.encode("unicode_escape").decode("ascii"), keep)


def _escaped(text: str, escape: Callable[[str], str], keep: str) -> str:
    if text.isprintable():
        return text
    return "".join(escape(c) if _steers(c) and c not in keep else c for c in text)


def _steers(char: str) -> bool:
    return not char.isprintable() and category(char) != "Zs"


class ForPeople:
    """A stream whose text cannot control a terminal; new lines and tabs stay.

    Tables and colours bypass the stream: rich writes to ``rich_proxied_file`` text made visible
    cell by cell.

    Attributes:
        has_text: whether text was printed, except tables.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream
        self.has_text = False

    def write(self, text: str) -> int:
        self.has_text = True
        self.rich_proxied_file.write(visible(text, keep="\n\t"))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


@contextmanager
def outputs_for_people() -> Iterator[None]:
    """Wrap stdout and stderr in ``ForPeople`` during the block."""
    out, err = (cast(TextIO, ForPeople(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table for people.

    Attributes:
        get: a key of the row, or a function of the row.
        is_size: a number of bytes, shown in a readable unit on a terminal.
    """

    title: str
    get: str | Callable[[Row], Any]
    is_size: bool = False

    def value(self, row: Row) -> Any:
        return row[self.get] if isinstance(self.get, str) else self.get(row)


def print_table(rows: Sequence[Row], columns: Sequence[Column]) -> None:
    """Print ``rows`` on stdout, as a table or tab-separated."""
    values = [[column.value(row) for column in columns] for row in rows]
    if not sys.stdout.isatty():
        _print_tabs([column.title for column in columns], values)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, column in enumerate(columns):
        numeric = bool(values) and all(_is_number(row[number]) for row in values)
        title = Text(visible(column.title))
        table.add_column(title, justify="right" if numeric else "left", overflow="fold")
    for row in values:
        table.add_row(*(Text(_shown(v, column.is_size)) for v, column in zip(row, columns)))
    Console().print(table)


def print_rows(rows: Sequence[Row], columns: Sequence[Column], *, as_json: bool) -> None:
    """Print ``rows`` on stdout: whole rows as JSON, or ``columns`` as a table."""
    if as_json:
        print_json(rows)
    else:
        print_table(rows, columns)


def print_done(facts: Row, text: str, *, as_json: bool) -> None:
    """Print the outcome: as JSON on stdout, or in one line for people on stderr."""
    if as_json:
        print_json(facts)
    else:
        note(text)


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Print one line per name and value."""
    if not sys.stdout.isatty():
        _print_tabs(None, [[name, value] for name, value in pairs.items()])
        return
    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(Text(visible(name), style="bold"), Text(_shown(value)))
    Console().print(table)


def print_styled(*pieces: tuple[str, str]) -> None:
    """Print one line of styled texts on a terminal, never cut to the terminal's width."""
    shown = ((visible(text), style) for text, style in pieces)
    Console().print(Text.assemble(*shown), soft_wrap=True)


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    print(_dumps(plain(value), indent=2))


def json_line(row: Row) -> str:
    """Return ``row`` as JSON in one line."""
    return _dumps(plain(row))


class Bar:
    """A progress bar on a terminal's stderr; invisible in a pipe, or without a name.

    Call the bar with (done, total).
    """

    def __init__(self, what: str) -> None:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        console, is_off = Console(file=stderr), not (what and stderr.isatty())
        self._bar = Progress(*columns, console=console, transient=True, disable=is_off)
        self._task = self._bar.add_task(what, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def start(self) -> None:
        self._bar.start()

    def stop(self) -> None:
        """Remove the bar from the screen, to make room for other output."""
        if not self._bar.disable:
            self._bar.stop()

    def __enter__(self) -> "Bar":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def note(text: str) -> None:
    """Print one line for people on stderr."""
    print(visible(" ".join(text.split())), file=sys.stderr)


def plain(value: Any) -> Any:
    """Convert ``value`` to JSON types.

    Times become ISO 8601, bytes base64, and numbers without a JSON form exact text.
    """
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date() | time():
            return value.isoformat()
        case Decimal() | timedelta():
            return str(value)
        case bytes():
            return b64encode(value).decode("ascii")
        case float() if not isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value


def _print_tabs(titles: Sequence[str] | None, rows: Iterable[Sequence[Any]]) -> None:
    if titles is not None:
        print("\t".join(" ".join(title.split()) for title in titles))
    for row in rows:
        print("\t".join(" ".join(_text(value).split()) for value in row))


def _shown(value: Any, is_size: bool = False) -> str:
    """Format ``value`` for a cell on a terminal."""
    if is_size and _is_number(value):
        return decimal(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    if _is_number(value):
        return f"{value:,}"
    return visible(_text(value))


def _text(value: Any) -> str:
    found = plain(value)
    if found is None:
        return ""
    if isinstance(found, bool):
        return "yes" if found else "no"
    if isinstance(found, list) and all(isinstance(item, str) for item in found):
        return ", ".join(found)
    return _dumps(found) if isinstance(found, list | dict) else str(found)


def _dumps(value: Any, indent: int | None = None) -> str:
    is_unicode = "utf" in (sys.stdout.encoding or "").lower()
    text = json.dumps(value, indent=indent, ensure_ascii=not is_unicode)
    # json escapes only ASCII controls; other control characters can stand only inside strings.
    return _escaped(text, lambda char: json.dumps(char)[1:-1], keep="\n")


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
