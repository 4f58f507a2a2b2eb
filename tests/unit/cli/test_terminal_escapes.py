"""Nothing that comes from storage steers the terminal that shows it."""

import io
import json
import logging
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from unicodedata import category

import pyarrow as pa
import pytest
from typer import Exit

from bkspark import demo
from bkspark.bookkeeper import BookKeeper
from bkspark.cli import cluster, main, output
from bkspark.cli.output import (
    Column,
    Finding,
    Level,
    note,
    print_json,
    print_pairs,
    print_table,
    visible,
)
from bkspark.cli.session import require_consent
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from tests.thorough import always

EVIL = "\x1b]0;owned\x07\x9b2J\x7f\r\b\u202e\u2066\u200b\u2028\u061c\U000e0001end"
SHOWN = r"\x1b]0;owned\x07\x9b2J\x7f\r\x08\u202e\u2066\u200b\u2028\u061c\U000e0001end"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Pipe(io.StringIO):
    encoding = "utf-8"


class Terminal(Pipe):
    """A terminal that shows colours."""

    def isatty(self):
        return True


@pytest.fixture(params=[Terminal, Pipe], ids=["terminal", "pipe"])
def told(request, monkeypatch):
    """``told(show)`` -> what ``show()`` has written to stdout and to stderr."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def tell(show, stdin=""):
        out, err = request.param(), request.param()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdin", request.param(stdin))
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            show()
        return out.getvalue(), err.getvalue()

    return tell


def shown(show):
    """``show`` as a command runs it."""

    def run():
        with output.outputs_for_people():
            show()

    return run


def steering(text):
    """What of ``text`` steers: everything but new lines, tabs and the colours of tables."""
    return [c for c in COLOURS.sub("", text) if category(c)[0] == "C" and c not in "\n\t"] + [
        c for c in text if category(c) in ("Zl", "Zp")
    ]


def test_each_character_that_steers_has_an_escape():
    assert visible(EVIL) == SHOWN
    assert visible("a\tb\nc", keep="\n\t") == "a\tb\nc"
    assert visible("a\tb\nc") == r"a\tb\nc"
    assert visible("\ud800") == r"\ud800"
    plain = "Größe 10\N{NO-BREAK SPACE}€ — 東京\N{IDEOGRAPHIC SPACE}\N{GRINNING FACE}"
    assert visible(plain) == plain


@pytest.mark.parametrize(
    "show",
    [
        lambda: print_table([{"a": EVIL}], [Column("a", "a")]),
        lambda: print_table([{"a": [EVIL]}], [Column("a", "a")]),
        lambda: print_table([{"a": {EVIL: EVIL}}], [Column("a", "a")]),
        lambda: print_table([{"a": 1}], [Column(EVIL, "a")]),
        lambda: print_pairs({"a": EVIL}),
        lambda: print_pairs({EVIL: "a"}),
        lambda: output.print_findings([Finding(Level.OK, EVIL, "a", "b")], as_json=False),
        lambda: output.print_findings([Finding(Level.OK, "a", EVIL, "b")], as_json=False),
        lambda: output.print_findings([Finding(Level.OK, "a", "b", EVIL)], as_json=False),
        lambda: print(EVIL),
        lambda: print(EVIL, file=sys.stderr),
        lambda: logging.StreamHandler(sys.stderr).handle(
            logging.makeLogRecord({"msg": EVIL, "levelno": logging.WARNING})
        ),
    ],
    ids=[
        "value",
        "list",
        "mapping",
        "title",
        "pair",
        "name",
        "subject",
        "message",
        "fix",
        "stdout",
        "stderr",
        "logged",
    ],
)
def test_text_is_shown_by_escapes(told, show):
    text = "".join(told(shown(show)))
    assert not steering(text)
    assert "owned" in text
    assert r"\x1b" in text or r"\u001b" in text


def test_a_title_is_no_markup(told):
    columns = [Column("[red]x[/nothing]", "a")]
    assert "[red]x[/nothing]" in told(shown(lambda: print_table([{"a": 1}], columns)))[0]


def test_a_note_steers_nothing_whoever_has_the_stream(told):
    out, err = told(lambda: note(f"first\n{EVIL}"))
    assert err.startswith(r"first \x1b]0;owned\x07")
    assert (out, steering(err)) == ("", [])


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_escapes_and_means_the_same(told, encoding, monkeypatch):
    value = {EVIL: [EVIL, "Größe\u200d\ud800"]}

    monkeypatch.setattr(Pipe, "encoding", encoding)
    document, _ = told(shown(lambda: print_json(value)))
    assert not steering(document)
    assert json.loads(document) == json.loads(output.json_line(value)) == value
    assert not steering(output.json_line(value))
    assert document.isascii() == (encoding == "ascii")


def test_colours_pass(told):
    finding = Finding(Level.FAIL, "a", "b")
    out, _ = told(shown(lambda: output.print_findings([finding], as_json=False)))
    assert bool(COLOURS.search(out)) != out.startswith("level\tsubject")


def test_nobody_else_draws_on_the_terminal():
    """What is printed passes ``output``; only the demo has a console of its own."""
    folder = Path(output.__file__).parent
    drawing = {
        path.name
        for path in folder.glob("*.py")
        if re.search(
            r"rich\.(console|text|table)|sys\.std(out|err)\.write|echo\(", path.read_text()
        )
    }
    assert drawing == {"output.py", "cluster.py"}


# --- whole commands ----------------------------------------------------------------------------


@pytest.fixture
def hostile(small_cluster, monkeypatch):
    """A cluster with hostile columns, values, metadata, addresses and files; a ledger's id."""
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
    schema = pa.schema([pa.field(EVIL, pa.string()), pa.field("n", pa.int64())])
    small_cluster.append("a", [pa.table({EVIL: [EVIL, "b"], "n": [1, 2]}, schema=schema)])
    with (
        BookKeeper(small_cluster.uri) as keeper,
        keeper.create_ledger(custom_metadata={EVIL: EVIL}) as ledger,
    ):
        ledger.append(EVIL.encode())
    with Cluster(small_cluster.uri) as cluster:
        cluster.registrations.update(
            "bookie-6", lambda record: replace(record, url=f"file:///{EVIL}", domain=EVIL)
        )
    for folder in small_cluster.folder.glob("bookie-*/ledgers/*/*/journal"):
        (folder / f"stray{EVIL.replace(chr(0), '')}").write_bytes(b"")
    return ledger.ledger_id


COMMANDS = {
    "status": ["status"],
    "doctor": ["doctor"],
    "bookies": ["bookies"],
    "logs": ["logs"],
    "log show": ["log", "show", "a"],
    "log read": ["log", "read", "a"],
    "log read as a table": ["log", "read", "a", "--format", "table"],
    "ledgers": ["ledgers"],
    "ledger show": ["ledger", "show", "ID"],
    "ledger read": ["ledger", "read", "ID"],
    "ledger read as a table": ["ledger", "read", "ID", "--format", "table"],
    "recover": ["ledger", "recover", "ID"],
    "sweep": ["bookie", "sweep"],
    "no such log": ["log", "show", f"x{EVIL}"],
    "no such command": [f"x{EVIL}"],
    "no such option": ["logs", f"--x{EVIL}"],
    "bad value": ["ledger", "show", EVIL],
    "no cluster": ["status", "--metadata", f"file:///nowhere{EVIL}"],
    "no bookie": ["bookie", "lost", f"x{EVIL}", "--yes"],
    "nobody to ask": ["bookie", "lost", f"x{EVIL}"],
    "demo": ["demo", "--dir", f"/nowhere/x{EVIL}"],
    "debug": ["log", "show", f"x{EVIL}", "--debug"],
}


@pytest.mark.parametrize("is_json", always([False], [False, True]), ids=["text", "json"])
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_lets_anything_steer(told, hostile, name, is_json):
    words = [str(hostile) if word == "ID" else word for word in COMMANDS[name]]
    out, err = told(lambda: main([*words, *(["--json"] if is_json else [])]), stdin="n\n")
    assert out or err
    assert not steering(out + err)


def test_the_demo_draws_no_name_that_steers(told, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("it has begun"))
    monkeypatch.setattr(cluster, "gettempdir", lambda: f"/nowhere/x{EVIL}")
    for words in (["demo"], ["demo", "--dir", f"/nowhere/x{EVIL}"]):
        _, err = told(partial(main, words))
        assert r"has control characters: /nowhere/x\x1b]0;owned" in err


def test_a_question_steers_nothing(told):
    def ask():
        with pytest.raises((InvalidRequestError, Exit)) as caught:
            require_consent(f"Delete {EVIL}?", yes=False)
        note(str(caught.value))

    text = "".join(told(shown(ask), stdin="n\n"))
    assert "owned" in text
    assert not steering(text)


@pytest.mark.parametrize("flags", [[], ["--debug"]], ids=["usual", "debug"])
def test_an_error_that_nobody_foresaw_steers_nothing(told, small_cluster, monkeypatch, flags):
    def fail(*_):
        raise RuntimeError(EVIL) from NoSuchLedgerError(EVIL)

    monkeypatch.setattr(Cluster, "__init__", fail)
    _, err = told(lambda: main(["status", "--metadata", small_cluster.uri, *flags]))
    assert "owned" in err
    assert not steering(err)
