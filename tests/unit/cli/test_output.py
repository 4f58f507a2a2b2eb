"""Values as JSON and as text."""

import io
import json
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from bkspark.cli.output import Bar, Column, json_line, note, outputs_for_people, plain, print_table
from bkspark.quantities import plural


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2013, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2013-01-02T03:04:05.000006Z"),
        (date(2013, 1, 2), "2013-01-02"),
        (Decimal("1.10"), "1.10"),
        (timedelta(seconds=1), "0:00:01"),
        (b"\x00\xff", "AP8="),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (1.5, 1.5),
        (2**63 - 1, 2**63 - 1),
        (None, None),
        ({"a": [b"x", (1, None)]}, {"a": ["eA==", [1, None]]}),
    ],
)
def test_plain(value, expected):
    assert plain(value) == expected
    json.loads(json_line({"value": value}))


def test_a_cell_never_breaks_its_line(capsys):
    print_table([{"a": "x\ty\nz", "b": None}], [Column("a", "a"), Column("b", "b")])
    assert capsys.readouterr().out == "a\tb\nx y z\t\n"


def test_a_note_is_one_line(capsys):
    note("first\nsecond")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "first second\n")


def test_plural():
    assert [plural(n, "ledger") for n in (0, 1, 1200)] == ["0 ledgers", "1 ledger", "1,200 ledgers"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_bar_moves_on_a_terminal_and_shows_no_escapes(monkeypatch):
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    with outputs_for_people(), Bar("copies") as bar:
        bar(1, 2)
        bar.stop()
        print("a question", file=sys.stderr)
        bar.start()
        bar(2, 2)
    shown = terminal.getvalue()
    assert "copies" in shown
    assert "a question\n" in shown
    assert r"\x1b" not in shown
