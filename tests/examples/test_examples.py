"""Every example runs, as its first lines say, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.cluster.cluster import init_cluster

from ..quick_starts import ARCHIVING  # noqa: TID252
from ..thorough import always  # noqa: TID252

REPOSITORY = Path(__file__).parents[2]

FIRST = "stream_copy.py"
"""Its driver leaves the classes that it loaded to all drivers after it.

It writes them when it ends, which takes minutes on a busy machine; until then its output is open.
"""
EXPECTED = {
    FIRST: "rows in the copy: 1100",
    "quickstart.py": "rows in the log: 1000",
    "idempotent_append.py": "rows in the log: 20",
    "tail_log.py": "[90, 91, 92, 93, 94, 95, 96, 97, 98, 99]",
    "write_ahead_log.py": '"entry": 9',
    "elected_writer.py": '"row": 19}',
}
DELTA = "delta_changes.py"
DELTA_SAYS = ["captured: 20", "differences: 0", "in the table made again: 20"]


def test_all_of_them_are_run_here() -> None:
    assert {path.name for path in (REPOSITORY / "examples").glob("*.py")} == {*EXPECTED, DELTA}


@pytest.mark.parametrize("name", always(["write_ahead_log.py"], EXPECTED))
def test_it_runs_and_leaves_nothing_where_it_was_started(name: str, tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    assert EXPECTED[name] in printed(tmp_path, name, uri)
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.thorough
def test_who_watches_a_log_may_come_again(tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    assert "seen up to 100 in" in printed(tmp_path, "tail_log.py", uri)
    assert "seen up to 200 in" in printed(tmp_path, "tail_log.py", uri)


@pytest.mark.thorough
def test_a_copy_goes_on_with_the_checkpoint_that_it_names(tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    [checkpoint] = [
        line.partition("checkpoint: ")[2]
        for line in printed(tmp_path, "stream_copy.py", uri).splitlines()
        if line.startswith("checkpoint: ")
    ]
    assert Path(checkpoint).parent == tmp_path
    assert "rows in the copy: 2200" in printed(tmp_path, "stream_copy.py", uri, checkpoint)


@pytest.mark.thorough
@pytest.mark.download
@pytest.mark.timeout(1500)
def test_changes_of_a_delta_table_come_out_as_they_went_in(tmp_path: Path) -> None:
    """Spark gets Delta from the internet, into a home that is new and asked by nobody else.

    Whatever a home of the user has of it, whole or half, is not looked at.
    """
    home = tmp_path / "home"
    home.mkdir()
    options = f"--conf spark.jars.ivy={home}/ivy --driver-java-options -Duser.home={home}"
    said = printed(
        tmp_path,
        DELTA,
        new_cluster(tmp_path),
        patience_seconds=1400,
        HOME=str(home),
        PYSPARK_SUBMIT_ARGS=f"{options} pyspark-shell",
    ).splitlines()
    assert [line for line in said if line in DELTA_SAYS] == DELTA_SAYS
    assert list((tmp_path / "work").iterdir()) == []


def new_cluster(folder: Path) -> str:
    uri = (folder / "metadata").as_uri()
    init_cluster(uri, [(folder / f"disk{number}").as_uri() for number in range(3)])
    return uri


def printed(
    folder: Path, name: str, *arguments: str, patience_seconds: float = 840, **environment: str
) -> str:
    """What an example prints that is started in ``folder``/work."""
    (folder / "work").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / name), *arguments],
        cwd=folder / "work",
        env={
            **os.environ,
            **(ARCHIVING if name == FIRST else {}),
            "PYTHONPATH": str(REPOSITORY),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(folder),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=patience_seconds,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
