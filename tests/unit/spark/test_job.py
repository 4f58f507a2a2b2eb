"""What jobs have in common, without Spark."""

import runpy
from collections.abc import Callable, Sequence
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


@pytest.mark.parametrize("around", ["", "file:///a"])
def test_the_environment_names_the_cluster_where_the_call_does_not(
    around: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BKSPARK_METADATA_URI", around)
    assert job.parser_of("x").parse_args(["--metadata", "file:///b"]).metadata == "file:///b"
    if around:
        assert job.parser_of("x").parse_args([]).metadata == around
        return
    with pytest.raises(SystemExit, match="2"):
        job.parser_of("x").parse_args([])
    assert "--metadata" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(path.name for path in JOBS.glob("*.py")))
def test_every_job_takes_the_cluster_from_the_environment(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A call that lacks something else: the metadata store is not among what is lacking."""
    monkeypatch.setenv("BKSPARK_METADATA_URI", "file:///there/is/nothing")
    found = runpy.run_path(str(JOBS / name))
    with pytest.raises(SystemExit):
        found["main"](["--no-such-option"])
    assert "--metadata" not in capsys.readouterr().err.partition("error:")[2]


def test_jobs_take_sizes_and_times_with_units() -> None:
    parser = job.parser_of("x", job.RATE, job.OPEN_GRACE)
    given = parser.parse_args(["--metadata", "x", job.RATE, "50MB", job.OPEN_GRACE, "1h"])
    assert (given.max_bytes_per_second, given.open_grace) == (50 * 2**20, 3600)
