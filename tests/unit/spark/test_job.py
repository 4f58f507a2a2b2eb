"""What jobs have in common, without Spark."""

import runpy
from collections.abc import Callable, Sequence
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from bkspark import errors
from bkspark.cli.output import note
from bkspark.spark import job

JOBS = Path(__file__).parents[3] / "jobs"


@pytest.fixture(autouse=True)
def is_not_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


def failing(error: Exception) -> Callable[[Sequence[str]], None]:
    def fail(arguments: Sequence[str]) -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (errors.OutcomeUnknownError("a", hint="b"), 1, "bkspark: a; b\n"),
        (errors.InvalidRequestError("two\nlines"), 2, "bkspark: two lines\n"),
        (PySparkException(" bkspark.errors.NoSuchLedgerError: no log\n y"), 2, "bkspark: no log\n"),
        (PySparkException("bkspark.errors.CorruptDataError: bad\n"), 1, "bkspark: bad\n"),
    ],
)
def test_what_went_wrong_is_told_in_one_line(
    error: Exception, status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job.run_job(failing(error), [], note) == status
    assert capsys.readouterr() == ("", said)


def test_what_is_not_ours_is_raised_on() -> None:
    with pytest.raises(PySparkException, match="no such column"):
        job.run_job(failing(PySparkException("no such column")), [], note)


def test_where_spark_has_turned_stderr_away_it_is_turned_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = StringIO()
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr(job, "_SparksStderr", lambda: real)
    assert job.run_job(failing(errors.CorruptDataError("bad")), [], note) == 1
    assert (real.getvalue(), *capsys.readouterr()) == ("bkspark: bad\n", "", "")


@pytest.mark.parametrize("name", ["append", "audit", "bookie", "recover", "retain"])
def test_a_job_takes_the_cluster_from_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A call that lacks something else: the cluster is not among what is lacking."""
    monkeypatch.setenv("BKSPARK_METADATA_URI", "file:///there/is/nothing")
    found = runpy.run_path(str(JOBS / f"{name}.py"))
    with suppress(SystemExit):
        assert found["main"](["--no-such-option"]) == 2
    assert "--metadata" not in capsys.readouterr().err.partition("error:")[2]


@pytest.mark.parametrize("around", ["", "file:///there/is/nothing"])
def test_a_declared_job_says_which_cluster_is_missing(
    around: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BKSPARK_METADATA_URI", around)
    assert runpy.run_path(str(JOBS / "retain.py"))["main"](["wal", "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert ("no cluster is named" in said) is (not around)
    assert "file:///there/is/nothing" in said or not around
