"""The output of commands: tables for people, tab-separated lines in a pipe, JSON on request."""

import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, TextIO, cast
from unicodedata import category

import typer

from bkspark.errors import USERS_MISTAKES, BookKeeperError
from bkspark.quantities import plural

# rich is imported by the functions that draw: in a pipe, most commands draw nothing.
if TYPE_CHECKING:
    from rich.progress import Progress

    from bkspark.admin.maintenance import Facts, Report
    from bkspark.log.reading.ordered_read import InlineRead, OrderedRead
    from bkspark.verbs.declaring import Table, Verb

# --- output --------------------------------------------------------------------------------------
# Print tables for people on a terminal, tab-separated lines in a pipe, JSON on request.
#
# A pipe gets one line per row, tab-separated, after one line of column names, so no value is ever
# cut to a width. Only stdout carries data; notes go to stderr.
#
# Names, values and errors come from storage, and their author may try to control the terminal of
# the reader, even through a pipe. To prevent such control, ``ForPeople`` wraps both outputs and
# prints an escape for each control character; JSON has escapes of its own.


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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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


def quorum_sizes(row: Row) -> str:
    """The quorum sizes of a log or ledger, as ``E/Qw/Qa``; empty if unknown."""
    if row["ensemble_size"] is None:
        return ""
    return f"{row['ensemble_size']}/{row['write_quorum_size']}/{row['ack_quorum_size']}"


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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in pairs.items():
        table.add_row(Text(visible(name), style="bold"), Text(_shown(value)))
    Console().print(table)


def print_styled(*pieces: tuple[str, str]) -> None:
    """Print one line of styled texts on a terminal, never cut to the terminal's width."""
    from rich.console import Console
    from rich.text import Text

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
        stderr = getattr(sys.stderr, "rich_proxied_file", sys.stderr)
        self._bar = _progress_bar(what, stderr) if what and stderr.isatty() else None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done, total=total)

    def start(self) -> None:
        if self._bar is not None:
            self._bar.start()

    def stop(self) -> None:
        """Remove the bar from the screen, to make room for other output."""
        if self._bar is not None:
            self._bar.stop()

    def __enter__(self) -> "Bar":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _progress_bar(what: str, stderr: TextIO) -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(file=stderr), transient=True)
    bar.add_task(what, total=None)
    return bar


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
        from rich.filesize import decimal

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


# --- findings ------------------------------------------------------------------------------------
# Findings of the commands that check a cluster.


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


_MARKS = {
    Level.OK: ("\N{CHECK MARK}", "green"),
    Level.WARN: ("!", "yellow"),
    Level.FAIL: ("\N{BALLOT X}", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check.

    Attributes:
        fix: what to do; may be empty.
    """

    level: Level
    subject: str
    message: str
    fix: str = ""


def print_findings(
    findings: Sequence[Finding], *, as_json: bool, details: Mapping[str, object] | None = None
) -> int:
    """Print ``findings``; return 1 if any finding is a failure, else 0.

    Args:
        details: further members of the JSON document.
    """
    is_ok = all(finding.level is not Level.FAIL for finding in findings)
    if as_json:
        listed = [asdict(finding) for finding in findings]
        print_json({"ok": is_ok, "findings": listed, **(details or {})})
    elif sys.stdout.isatty():
        _print_marked(findings)
    else:
        names = ("level", "subject", "message", "fix")
        print_table([asdict(f) for f in findings], [Column(name, name) for name in names])
    return 0 if is_ok else 1


def _print_marked(findings: Sequence[Finding]) -> None:
    width = max((len(finding.subject) for finding in findings), default=0)
    for finding in findings:
        mark, style = _MARKS[finding.level]
        subject = finding.subject.ljust(width + 2)
        print_styled((f"{mark} ", style), (subject, "bold"), (finding.message, ""))
        if finding.fix:
            print_styled((f"{'':{width + 4}}{finding.fix}", "dim"))


# --- reports -------------------------------------------------------------------------------------
# Print reports of maintenance commands, as JSON or for people.


_LEFT_MAX = 5


def print_report(verb: "Verb", report: "Report", *, as_json: bool, is_planned: bool) -> None:
    """Print the whole report as JSON, or its table and a few lines about remaining problems."""
    shown = verb.shown
    if as_json:
        print_json(report.document if shown.document is None else shown.document(report))
    elif shown.said is not None:
        note(shown.said(report))
    elif is_planned and shown.plans:
        for table in shown.plans:
            _print_columns(table, report.plan[table.name])
        for line in shown.notes(report.plan):
            note(line)
    elif not report.done:
        print_pairs(report.plan)
        for line in shown.notes_done(report):
            note(line)
        for left in report.left:  # why the work was not begun
            note(f"{left.subject}: {left.reason}; {left.hint}")
    else:
        _show_done(verb, report)


def _show_done(verb: "Verb", report: "Report") -> None:
    if verb.shown.table is not None:
        rows = report.details[verb.shown.table.name]
        if rows or not sys.stdout.isatty():
            _print_columns(verb.shown.table, rows)
    for line in verb.shown.notes_done(report):
        note(line)
    for left in report.left[:_LEFT_MAX]:
        hint = f" ({left.hint})" if left.hint and verb.destroys else ""
        note(f"{left.subject}: {left.reason}{hint}")
    if len(report.left) > _LEFT_MAX:
        note(f"and {len(report.left) - _LEFT_MAX:,} more; --json lists them all")
    note(outcome(report))


def outcome(report: "Report") -> str:
    """Return one line for people about the work done and the findings."""
    done = ", ".join(plural(count, what.removesuffix("s")) for what, count in report.done.items())
    return f"{report.verb}: {done}: {report.verdict}"


def _print_columns(table: "Table", rows: "Sequence[Facts]") -> None:
    print_table(rows, [Column(title, get) for title, get in table.columns.items()])


# --- rows ----------------------------------------------------------------------------------------
# Print entries: as JSON lines, as one JSON document, or as a table.


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
    found: "OrderedRead | InlineRead", shape: Format, limit: int | None, *, as_json: bool
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
    from bkspark.bookie.contract import on_bookie

    for fault in found.faults:
        note(f"skipped a copy {on_bookie(fault.bookie_id, fault.reason)}")


def _rows(found: "OrderedRead | InlineRead") -> Iterator[dict[str, Any]]:
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


# --- failures ------------------------------------------------------------------------------------
# Report why a command failed: in one line for people, and with --json as the document.
#
# A command already printing its document cannot take the document back: the printed part stays cut,
# and only the line on stderr and the exit status report the failure.


USAGE = 2

_OF_PARSERS = "Value error, "
"""Typer's prefix to messages of an option's own parser."""


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """Why a command failed.

    Attributes:
        type: name of the error's class; ``UsageError`` for words that form no command.
        hint: the next step; may be empty.
        exit_status: 2 for the user's mistakes, else 1.
    """

    type: str
    message: str
    hint: str
    exit_status: int


def report_failure(error: Exception, *, as_json: bool) -> int:
    """Report ``error``; return the exit status."""
    failure = _failure(error)
    hint = f"; {failure.hint}" if failure.hint else ""
    note(f"bkspark: {failure.message}{hint}")
    has_begun = isinstance(sys.stdout, ForPeople) and sys.stdout.has_text
    if as_json and not has_begun:
        print_json({"error": asdict(failure)})
    return failure.exit_status


def is_usage(error: Exception) -> bool:
    """Return whether the error is about words that form no command."""
    return hasattr(error, "format_message")


def _failure(error: Exception) -> CommandFailure:
    name = type(error).__name__
    if isinstance(error, BookKeeperError):
        status = USAGE if isinstance(error, USERS_MISTAKES) else 1
        return CommandFailure(name, str(error.args[0]), error.hint, status)
    if is_usage(error):  # the class is private to typer or click
        context = getattr(error, "ctx", None)
        path = "bkspark" if context is None else context.command_path
        message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        message = message.replace(_OF_PARSERS, "")
        return CommandFailure("UsageError", message, f"see `{path} --help`", USAGE)
    first_line = (str(error).splitlines() or [""])[0]
    return CommandFailure(
        name, f"{name}: {first_line}", "run again with --debug for the traceback", 1
    )
