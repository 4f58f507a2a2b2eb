"""What the maintenance commands take and answer is what the files in ``golden`` say.

A file has a command's usage, its options on a shell, those of its job and of its Python call, and
the exit status and JSON document of a few calls. What differs from run to run is left out.
``WRITE_GOLDEN=1 pytest -n 0 tests/unit/cli/test_golden.py`` writes the files anew.
"""

import importlib.util
import inspect
import io
import json
import os
import re
import shutil
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest

import bkspark
from bkspark.cli import main
from bkspark.cluster.cluster import init_cluster
from bkspark.ledger.handles.settings import WriterSettings

SILENT = WriterSettings(explicit_lac_ms=0)  # so that the bytes are always the same

FOLDER = Path(__file__).parent / "golden"
JOBS = Path(__file__).parents[3] / "jobs"
COLUMNS = ("--log events", "--ledger 0", "--ledger 9", "--max-bytes-per-second -1")
SECRET = ("--password-file /not/there", "--password-env NOT_THERE")

CALLS = {
    "audit": ["--dry-run", "", *COLUMNS[:3], "--yes", "--nope"],
    "collect": ["--dry-run --abandoned-after 1h", "--no-lease", "", "--abandoned-after soon"],
    "compact": ["", "events --dry-run", "events --target-bytes 1MB -y", "nope", *SECRET],
    "bookie decommission": ["bookie-1 --dry-run", "bookie-1", "bookie-1 --yes", "bookie-9 --yes"],
    "rebalance": ["--dry-run --threshold 0.2", "--threshold 0", "--threshold 0.2 --yes", SECRET[0]],
    "recover": ["", "--all 3", "--all --dry-run", "--all --yes", "--all --open-grace 0", "3", "9"],
    "repair": ["--dry-run", "--open-grace 0 --yes", *COLUMNS, "--lost-after -1", "--watch 0"],
    "log retain": [
        *("events --dry-run --max-bytes 1", "events --max-bytes 1", "nope"),
        *("events --forever --max-bytes 1", "events --max-seconds 0 --yes --ignore-cursors"),
    ],
    "scrub": ["--dry-run", "--sample 2", "--sample 1 --yes", *COLUMNS, SECRET[1]],
    "bookie readonly": ["bookie-1 --dry-run", "bookie-1", "bookie-1 --off", "bookie-9", ""],
    "bookie marks": ["bookie-1 --dry-run", "bookie-1 --high 0.5 --low 0.4", "bookie-1 --high 2"],
    "bookie label": [
        "bookie-1 rack=r7 --dry-run",
        "bookie-1 rack=r7 zone=a",
        "bookie-1 rack",
        "bookie-9 a=b",
    ],
    "bookie move": ["bookie-1 --dry-run", "bookie-1 file:///not/there", "bookie-9 file:///a"],
    "bookie reinit": ["bookie-1", "bookie-1 --yes", "bookie-2 --dry-run", "bookie-2 --yes"],
    "bookie remove": ["bookie-1 --yes", "bookie-4 --dry-run", "bookie-4", "bookie-4 --yes"],
}
VARIES = re.compile("bytes|^takes$|BYTES|^files$")
BOOKIE = re.compile(r"bookie-[1-4]")
SAID_ONCE = re.compile(r" |^[0-9a-f]{32}$")
"""Prose, and what is drawn by chance."""

PROSE = "…"


def changeless(value, name=""):
    """``value`` without prose, and what differs from run to run; equal items of a list are one."""
    if isinstance(value, dict):
        return {changeless(str(key)): changeless(item, key) for key, item in value.items()}
    if isinstance(value, list):
        texts = {json.dumps(changeless(item, name), ensure_ascii=False) for item in value}
        return [json.loads(text) for text in sorted(texts)]
    if isinstance(value, int | float) and VARIES.search(name):
        return type(value).__name__
    if not isinstance(value, str):
        return value
    return PROSE if SAID_ONCE.search(value) else BOOKIE.sub("bookie-N", value)


@pytest.fixture
def scene(tmp_path, monkeypatch, capfd):
    """``run(words)`` on a cluster: three ledgers of a log, one open, and copies that are missing.

    bookie-2's place is empty; bookie-4 was added last.
    """
    uri = (tmp_path / "metadata").as_uri()
    monkeypatch.setenv("BKSPARK_METADATA_URI", uri)
    init_cluster(uri, [(tmp_path / f"bookie-{n}").as_uri() for n in range(1, 4)])
    with bkspark.BookKeeper(uri) as keeper:
        with keeper.create_log("events").writer(settings=SILENT) as writer:
            for number in range(3):
                writer.append(b"%d" % number)
                writer.roll()
        handle = keeper.create_ledger(settings=SILENT)
        handle.append(b"open")
        handle.release()
    assert main(["bookie", "add", (tmp_path / "bookie-4").as_uri(), "--id", "bookie-4"]) == 0
    shutil.rmtree(tmp_path / "bookie-2")
    (tmp_path / "bookie-2").mkdir()
    capfd.readouterr()

    def run(words):
        status = main([*words.split(), "--json"])
        return status, capfd.readouterr().out

    return run


def usage(command, capfd):
    """The usage line, and the options with their values, defaults and whether they must be."""
    assert main([*command.split(), "--help"]) == 0
    out = capfd.readouterr().out
    head, _, rest = out.partition("Options:\n")
    options = re.split(r"\n  (?=-)", "\n" + rest.partition("\n\n")[0])
    return head.split("\n")[0], sorted(filter(None, map(_option, options)))


def _option(text):
    left = re.split(r"\s{2,}|\n", text.strip())[0]
    facts = re.findall(r"\[(?:default|required)[^]]*\]", " ".join(text.split()))
    return " ".join([left, *facts])


def job_options(name):
    """The options that a job has, as its help shows them."""
    words = [["--help"], *([["--ledger", "0", "--help"]] if name == "recover" else [])]
    path = JOBS / f"{name.split()[-1]}.py"
    if not path.exists():
        path, words = JOBS / "bookie.py", [[name.split()[-1], "--help"]]
    spec = importlib.util.spec_from_file_location("job_x", path)
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    with redirect_stdout(io.StringIO()) as shown:
        for call in words:
            with suppress(SystemExit):
                job.main(call)
    options = "\n".join(re.findall(r"(?is)\noptions:\n(.*?)(?:\n\n|\Z)", shown.getvalue()))
    listed = re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]+)", options, re.MULTILINE)
    return sorted(set(listed) - {"--help"})


def python_options(name):
    """The parameters of the Python call, by name; Python's defaults."""
    place = bkspark.admin
    if name.startswith("bookie ") and not hasattr(place, name.split()[-1]):
        place = bkspark.admin.bookies
    found = inspect.signature(getattr(place, name.split()[-1])).parameters.values()
    by_keyword = sorted(
        (one for one in found if one.kind is one.KEYWORD_ONLY), key=lambda p: p.name
    )
    found = [*(one for one in found if one not in by_keyword), *by_keyword]
    return [
        f"{one.kind.name} {one.name}"
        + ("" if one.default is one.empty or callable(one.default) else f"={one.default!r}")
        for one in found
    ]


def require_golden(name, **found):
    """Compare with a part of the file of a command, or write it."""
    path = FOLDER / f"{name.split()[-1]}.json"
    golden = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if os.environ.get("WRITE_GOLDEN"):
        golden |= found
        text = json.dumps(golden, ensure_ascii=False, separators=(",", ":"))
        path.write_text(text.replace('],"', '],\n"') + "\n", encoding="utf-8")
    assert found == {part: golden[part] for part in found}


@pytest.mark.parametrize("name", CALLS)
def test_a_command_takes_what_it_did(name, capfd):
    line, shell = usage(name, capfd)
    require_golden(
        name, usage=line, shell=shell, job=job_options(name), python=python_options(name)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("name", CALLS)
def test_a_command_answers_what_it_did(name, scene):
    calls = {}
    for words in CALLS[name]:
        status, out = scene(f"{name} {words}")
        calls[words] = [status, changeless(json.loads(out)) if out else ""]
    require_golden(name, calls=calls)
