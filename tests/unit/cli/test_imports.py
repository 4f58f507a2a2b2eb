"""A command loads what it needs. Loading Arrow takes longer than most commands run."""

import gc
import json
import shlex
import subprocess
import sys
from enum import Enum
from typing import Annotated

import pytest
import typer

from bkspark.cli import main
from bkspark.cli.program import GARBAGE_THRESHOLDS, invoke

CODE = """\
import json, sys
from bkspark.cli import main
statuses = [main(words) for words in json.loads(sys.argv[1])]
print(json.dumps([statuses, sorted(sys.modules)]), file=sys.stderr)
"""
HEAVY = {"numpy", "pandas", "pyarrow", "pyspark", "rich.progress"}
CLUSTER = {"bkspark.cluster.cluster", "bkspark.admin.survey", "bkspark.format.digest"}

HELP_NEEDS = {
    *("_version", "environment", "errors", "quantities"),
    *("admin", "admin.maintenance", "verbs", "verbs.commands", "verbs.declaring"),
    *("cluster", "cluster.arguments", "format", "format.layout", "storage", "storage.address"),
    *("protocol", "protocol.bookies", "protocol.bounds", "protocol.ledger"),
    "protocol.ledger.quorum",
}
"""What options and addresses need, beside the modules of the command line."""

LISTS = ["logs", "ledgers", "log show rows", "log count rows", "bookies"]
WORK = {"admin.auditing.audit", "ledger.recovery.recover", "protocol.recovery.recovering"}

HELP = ["--help", "log --help", "log read --help", "bookie --help", "repair --help", "--version"]
OF_METADATA = [
    *("logs", "log count rows", "ledgers", "bookies"),
    *("status", "metrics --json", "metadata damaged", "bookie readonly bookie-1 --dry-run"),
    *("bookie sweep", "audit", "collect", "rebalance --dry-run", "repair", "recover --all --yes"),
]
CONVERTING = [
    *("log truncate rows --before 5 --dry-run", "bookie label bookie-1 a=b"),
    *("bookie decommission bookie-1 --dry-run", "log delete rows --yes"),
]
"""Some are given numbers or lists, which typer converts with pydantic."""


def loaded_by(commands, uri=""):
    """The modules that a process has loaded after it has run ``commands``, into a pipe."""
    common = ["--metadata", uri] if uri else []
    words = [[*shlex.split(command), *common] for command in commands]
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(words)], capture_output=True, text=True, check=True
    )
    statuses, modules = json.loads(done.stderr.splitlines()[-1])
    refused = [command for command, status in zip(commands, statuses) if status]
    assert not refused, done.stderr
    return {*modules}


def of_bkspark(modules):
    return {name.removeprefix("bkspark.") for name in modules if name.startswith("bkspark.")}


def test_help_loads_no_cluster():
    loaded = loaded_by(HELP)
    assert not loaded & {*HEAVY, *CLUSTER, "pydantic", "rich"}
    others = {name for name in of_bkspark(loaded) if name.partition(".")[0] != "cli"}
    assert others == HELP_NEEDS


@pytest.mark.thorough
def test_lists_load_no_audit_and_no_recovery(small_cluster, numbers):
    small_cluster.append("rows", [numbers(0, 10)])
    assert not of_bkspark(loaded_by(LISTS, small_cluster.uri)) & WORK


def test_commands_that_touch_no_rows_load_no_arrow(small_cluster, numbers):
    small_cluster.append("rows", [numbers(0, 10), numbers(10, 30)])
    assert not loaded_by(OF_METADATA, small_cluster.uri) & {*HEAVY, "pydantic"}
    assert not loaded_by(CONVERTING, small_cluster.uri) & HEAVY


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--text t --number 3 --size 0.5 --is-so --no-other --colour red --time 5 --word w",
        "--texts a --texts b --numbers 1 --numbers 2 c d",
        "--text é --time 0 --no-is-so --other",
        "--number x",
        "--size x",
        "--colour blue",
        "--numbers 1 --numbers x",
        "--time x",
    ],
)
def test_a_value_that_is_not_converted_is_what_typer_makes_of_it(words):
    app, seen = typer.Typer(rich_markup_mode=None), []

    @app.command()
    def command(
        names: Annotated[list[str] | None, typer.Argument()] = None,
        text: str = "",
        number: int = 2,
        size: float | None = None,
        is_so: bool = False,
        other: bool | None = None,
        colour: Colour = Colour.RED,
        texts: list[str] | None = None,
        numbers: list[int] | None = None,
        time: Annotated[float, typer.Option(parser=lambda given: float(given) * 1)] = 1.0,
        word: Annotated[str, typer.Option(parser=str.upper)] = "W",
    ):
        seen.append([names, text, number, size, is_so, other, colour, texts, numbers, time, word])

    refused = []
    for run in (
        lambda given: typer.main.get_command(app).main(given, "x", standalone_mode=False),
        lambda given: invoke(app, "x", given),
    ):
        try:
            run(words.split())
        except Exception as error:
            refused.append((type(error), str(error)))
    assert len(seen + refused) == 2
    assert len({repr(each) for each in seen + refused}) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["log", "truncate", "rows", "--before", "x"], "--before"),
        (["log", "truncate", "rows", "--before", "-1"], "--before"),
        (["log", "read", "rows", "--format", "xml"], "--format"),
        (["ledger", "show", "x"], "ID"),
        (["collect", "--offload-grace", "soon"], "offload-grace"),
        (["log", "show"], "NAME"),
    ],
)
def test_values_of_another_kind_are_refused(words, told, capsys):
    assert main(words) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert told in found.err
    assert "\n" not in found.err.strip()


def test_a_command_looks_for_garbage_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look goes through all records that a command has read. Callers of Python keep theirs."""
    before = gc.get_threshold()
    try:
        main(["--version"])
        assert gc.get_threshold() == before
        monkeypatch.setattr(sys, "argv", ["bkspark", "--version"])
        main()
        assert gc.get_threshold() == GARBAGE_THRESHOLDS
    finally:
        gc.set_threshold(*before)
