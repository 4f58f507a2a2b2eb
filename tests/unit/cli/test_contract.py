"""What scripts rely on: data on stdout, one line of error on stderr, exit status 0, 1 or 2."""

import importlib.util
import io
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pyarrow as pa
import pytest

from bkspark.admin.survey import Survey
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password

REPOSITORY = Path(__file__).parents[3]
VERBS = ["audit", "collect", "compact", "rebalance", "recover", "repair", "scrub"]


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv("BKSPARK_METADATA_URI", raising=False)


@pytest.fixture
def run(capfd):
    """``run(*words)`` -> (exit status, stdout, stderr)."""

    def run(*words):
        status = main([str(word) for word in words])
        out, err = capfd.readouterr()
        return status, out, err

    return run


@pytest.fixture
def written(small_cluster, numbers, monkeypatch):
    small_cluster.append("flights", [numbers(0, 30), numbers(30, 50)])
    monkeypatch.setenv("BKSPARK_METADATA_URI", small_cluster.uri)
    return small_cluster


@pytest.mark.parametrize(
    "words",
    [
        ["nope"],
        ["ledgers", "--jsn"],
        ["ledger"],
        ["ledger", "show"],
        ["ledger", "show", "x"],
        ["ledger", "show", "-1"],
        ["log", "read"],
        ["log", "read", "flights", "--format", "xml"],
        ["log", "read", "flights", "--limit", "-1"],
        ["init"],
        ["init", "/no/scheme"],
        ["init", "nope://x"],
        ["ledgers"],
        ["ledgers", "--metadata"],
        ["ledgers", "--metadata", "file:///there/is/nothing"],
        ["demo", "extra"],
    ],
)
def test_bad_usage_is_one_line_on_stderr_and_status_2(run, words):
    status, out, err = run(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("bkspark: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["ledger", "show", "7"],
        ["ledger", "read", "7"],
        ["ledger", "delete", "7", "--yes"],
        ["ledger", "delete", "0", "--yes"],
        ["log", "show", "nope"],
        ["log", "show", "../x"],
        ["log", "read", "nope"],
        ["log", "read", "flights", "--start", "51"],
        ["log", "read", "flights", "--start", "5", "--end", "3"],
        ["log", "read", "flights", "--password-file", "a", "--password-env", "b"],
        ["log", "delete", "flights"],
        ["log", "delete", "nope", "--yes"],
    ],
)
def test_bad_input_is_one_line_on_stderr_and_status_2(run, written, words):
    status, out, err = run(*words)
    assert status == 2
    assert out == ""
    assert err.startswith("bkspark: ")
    assert err.count("\n") == 1


def test_an_unexpected_error_is_one_line_and_debug_shows_more(run, written, monkeypatch):
    def fail(*_):
        raise RuntimeError("first\nsecond")

    monkeypatch.setattr(Survey, "ledger_ids", fail)
    status, out, err = run("ledgers")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert "--debug" in err
    status, _, err = run("ledgers", "--debug")
    assert status == 1
    assert "Traceback" in err


def test_init_prints_the_line_to_export_and_nothing_else(run, tmp_path):
    uri = (tmp_path / "meta data").as_uri()
    bookies = [f"--bookie={(tmp_path / f'b{n}').as_uri()}" for n in range(3)]
    status, out, err = run("init", uri, *bookies)
    assert status == 0
    assert out == f"export BKSPARK_METADATA_URI={uri}\n"
    assert err.count("share a failure domain") == 1
    assert run("bookies", "--metadata", uri)[0] == 0
    status, out, _ = run("init", uri, *bookies)
    assert (status, out) == (2, "")


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "1 bookie: with the default sizes 3/3/2 .* writes need at least 2$"),
        (2, "2 bookies: .* writes need them all, and any 1 may be lost .*; with 3 each entry gets"),
        (3, "3 bookies: .* writes continue while 1 of them is away, and any 1 may be lost"),
    ],
)
def test_init_says_how_many_bookies_may_be_away_and_lost(run, tmp_path, count, told):
    bookies = [f"--bookie={(tmp_path / f'b{n}').as_uri()}" for n in range(count)]
    _, _, err = run("init", (tmp_path / "m").as_uri(), *bookies)
    assert re.search(told, err, re.MULTILINE)


def test_h39_two_names_of_one_directory_are_one_bookie_and_nothing_is_made(run, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    bookies = [f"--bookie={(tmp_path / name).as_uri()}" for name in ("disk", "link")]
    status, out, err = run("init", (tmp_path / "m").as_uri(), *bookies)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "is given twice" in err
    assert list((tmp_path / "disk").iterdir()) == []
    assert not (tmp_path / "m").exists()


def test_init_as_json(run, tmp_path):
    status, out, _ = run(
        "init", (tmp_path / "m").as_uri(), "--bookie", (tmp_path / "b").as_uri(), "--json"
    )
    assert status == 0
    assert [row["bookie_id"] for row in json.loads(out)["bookies"]] == ["bookie-1"]


@pytest.mark.parametrize("words", [["bookies"], ["logs"], ["ledgers"]])
def test_tables_are_tab_separated_lines_in_a_pipe_and_one_document_as_json(run, written, words):
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    head, *lines = out.splitlines()
    assert lines
    assert {line.count("\t") for line in lines} == {head.count("\t")}
    status, out, err = run(*words, "--json")
    assert (status, err) == (0, "")
    assert len(json.loads(out)) == len(lines)
    assert len(json.loads(run("--json", *words)[1])) == len(lines)


@pytest.mark.parametrize("words", [["ledger", "show", "0"], ["log", "show", "flights"]])
def test_show(run, written, words):
    status, out, _ = run(*words)
    assert status == 0
    assert "entries\t50" in out.splitlines()
    assert json.loads(run(*words, "--json")[1])["entries"] == 50


def test_read_prints_entries_in_order(run, written):
    status, out, err = run("log", "read", "flights", "--start", "28", "--limit", "4")
    assert (status, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"_offset": n, "n": n, "name": f"row {n}"} for n in range(28, 32)
    ]
    assert len(json.loads(run("log", "read", "flights", "--json")[1])) == 50
    assert json.loads(run("log", "read", "flights", "--limit", "0", "--json")[1]) == []


def test_read_as_a_table(run, written):
    _, out, _ = run("ledger", "read", "0", "--format", "table")
    lines = out.splitlines()
    assert lines[0] == "_entry_id\tn\tname"
    assert len(lines) == 21
    assert lines[1] == "0\t0\trow 0"


def test_replicas_stepped_over_are_told_on_stderr_only(run, written):
    with Cluster(written.uri) as cluster:
        lost = cluster.ledger(0).value.last_fragment.ensemble[1].bookie_id
    shutil.rmtree(written.bookie(lost))
    status, out, err = run("log", "read", "flights")
    assert status == 0
    assert len(out.splitlines()) == 50
    assert err.count("\n") == 1
    assert lost in err


def test_status_tells_by_its_exit_status(run, written):
    status, out, _ = run("status", "--json")
    assert (status, json.loads(out)["ok"]) == (0, True)
    with Cluster(written.uri) as cluster:
        lost = cluster.ledger(0).value.last_fragment.ensemble[0].bookie_id
    shutil.rmtree(written.bookie(lost))
    status, out, err = run("status", "--json")
    document = json.loads(out)
    assert (status, err, document["ok"]) == (1, "", False)
    shown = [found for found in document["findings"] if found["message"].startswith("lacks ")]
    assert [found["message"] for found in shown] == [f"lacks copies on {lost}"]
    assert run("status")[0] == 1


def test_status_asks_only_for_bookies_that_are_away_and_may_come_back(run, written):
    with Cluster(written.uri) as cluster:
        member = cluster.ledger(0).value.last_fragment.ensemble[0].bookie_id
    shutil.rmtree(written.bookie(member) / "ledgers")
    assert run("audit")[0] == 1
    status, out, _ = run("status")
    assert (status, "bring back" in out) == (1, False)
    assert "1 ledger with fewer copies than the write quorum" in out
    shutil.rmtree(written.bookie(member))
    assert "bring back the bookies that are away" in " ".join(run("status")[1].split())
    run("bookie", "lost", member, "--yes")
    status, out, _ = run("status")
    assert (status, "bring back" in out, "are missing" in out) == (1, False, True)


def test_status_counts_unfinished_and_dropped_ledgers(run, written, numbers):
    written.prepare("flights", numbers(0, 1).schema)
    status, out, _ = run("status")
    assert status == 0
    assert "1 ledger in no log: 1" in out
    assert run("ledger", "delete", "1", "--yes")[0] == 0
    assert "in no log" not in run("status")[1]


def test_delete_log(run, written):
    status, out, err = run("log", "delete", "flights", "--yes")
    assert (status, out) == (0, "")
    assert "deleted log flights with 1 ledger" in err
    assert run("log", "read", "flights")[0] == 2
    assert run("logs", "--json")[1].strip() == "[]"


def test_a_password_is_given_by_reference(run, small_cluster, numbers, tmp_path, monkeypatch):
    small_cluster.append("s", [numbers(0, 3)], password=Password(literal="very secret"))
    here = ("--metadata", small_cluster.uri)
    status, _, err = run("log", "read", "s", *here)
    assert status == 2
    assert "password" in err
    (tmp_path / "pw").write_text("very secret\n")
    assert run("log", "read", "s", *here, "--password-file", tmp_path / "pw")[0] == 0
    monkeypatch.setenv("PW", "wrong")
    status, out, err = run("log", "read", "s", *here, "--password-env", "PW")
    assert (status, out) == (2, "")
    assert "secret" not in err


@pytest.mark.parametrize("words", [["--help"], ["log", "--help"], ["log", "read", "-h"], []])
def test_help_goes_to_stdout(run, words):
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert out.startswith("Usage: bkspark")


@pytest.mark.parametrize("group", [[], ["bookie"], ["log"], ["ledger"]])
def test_the_table_of_commands_has_whole_sentences(run, group):
    out = run(*group, "--help")[1]
    table = out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert len(table.splitlines()) >= 3
    assert "..." not in table


@pytest.mark.parametrize("command", [["log", "read"], ["ledger", "read"]])
def test_the_help_says_how_bytes_are_shown(run, command):
    assert "Bytes are shown in base64" in " ".join(run(*command, "--help")[1].split())


@pytest.mark.parametrize("command", [["init"], ["bookie", "add"]])
def test_the_help_names_every_kind_of_place(run, command):
    assert "s3://bucket/prefix" in run(*command, "--help")[1]


@pytest.mark.parametrize("verb", [*VERBS, "bookie decommission"])
def test_each_maintenance_verb_and_its_job_say_what_they_would_do_and_ask_nobody(run, verb):
    _, out, _ = run(*verb.split(), "--help")
    name = verb.split()[-1]
    spec = importlib.util.spec_from_file_location("job_x", REPOSITORY / f"jobs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    with redirect_stdout(io.StringIO()) as shown, suppress(SystemExit):
        job.main(["--help"])
    for option in ("--dry-run", "--yes"):
        assert option in out
        assert option in shown.getvalue()


def test_a_cluster_without_bookies_and_one_that_is_there_both_name_bookie_add(run, tmp_path):
    uri = (tmp_path / "m").as_uri()
    bookie = f"--bookie={(tmp_path / 'b').as_uri()}"
    status, _, err = run("init", uri)
    assert status == 0
    assert f"`bkspark bookie add URL --metadata {uri}`" in err
    status, _, err = run("init", uri)
    assert status == 2
    assert "`bkspark bookie add URL` adds a bookie" in err
    assert "bookie add" not in run("init", (tmp_path / "m2").as_uri(), bookie)[2]


def test_version(run):
    status, out, _ = run("--version")
    assert status == 0
    assert out.strip()


def command(*words):
    return [sys.executable, "-m", "bkspark", *words]


def test_a_reader_that_goes_away_is_no_error(written, numbers):
    written.append("long", [numbers(0, 20_000)])
    process = subprocess.Popen(
        command("log", "read", "long"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 0


def test_json_stays_json_where_the_encoding_has_no_such_character(written):
    written.append("words", [pa.table({"word": ["naïve ✓"]})])
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        command("log", "read", "words"), env=environment, capture_output=True, check=True
    )
    assert json.loads(done.stdout) == {"_offset": 0, "word": "naïve ✓"}


def test_the_command_starts_without_spark():
    code = "import sys, bkspark.cli; print({name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'bkspark'" in done.stdout
    assert "'pyspark'" not in done.stdout
    assert "'pandas'" not in done.stdout
