"""``jobs/append.py``: rows are appended once, however often it is submitted."""

import importlib.util
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from local_session import REPOSITORY
from pyspark.sql import SparkSession

import bkspark


@pytest.fixture
def registered(spark):
    """The session that the job gets, without the defaults that it leaves there."""
    yield spark
    bkspark.register(spark)


@pytest.fixture
def append():
    spec = importlib.util.spec_from_file_location("job_append", REPOSITORY / "jobs/append.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


@pytest.mark.thorough
def test_it_appends_once(registered, place, append, tmp_path, capsys):
    registered.range(5).write.parquet(str(tmp_path / "landing"))
    words = ["--metadata", place.uri, "--log", "events", "--path", str(tmp_path / "landing")]
    once = ["--app-id", "load", "--version", "7"]
    for more, end in (([], 5), (once, 10), (once, 10)):
        assert append([*words, *more]) == 0
        assert json.loads(capsys.readouterr().out) == {"log": "events", "end_offset": end}


def test_rows_that_do_not_fit_are_an_error_in_one_line(registered, place, append, tmp_path, capsys):
    place.write(registered.range(5))
    landing = tmp_path / "landing.parquet"
    pq.write_table(pa.table({"id": ["0", "1"]}), landing)
    words = ["--metadata", place.uri, "--log", "events", "--path", str(landing)]
    assert append(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("bkspark: ")
    assert err.count("bkspark: ") == 1


@pytest.mark.parametrize(
    "half", [["--version", "7"], ["--app-id", "load"], ["--app-id", "", "--version", "7"]]
)
def test_half_of_what_makes_it_happen_once_is_refused(append, half, capsys, monkeypatch):
    monkeypatch.setattr(SparkSession, "builder", None)  # before anything is started
    words = ["--metadata", "file:///nowhere", "--log", "events", "--path", "/nowhere"]
    assert append([*words, *half]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("bkspark: --app-id and --version belong together; ")
