"""Every example runs, as its first lines say, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.client.cluster import init_cluster

from ..quick_starts import ARCHIVING  # noqa: TID252

REPOSITORY = Path(__file__).parents[2]

FIRST = "stream_copy.py"
"""Its driver leaves the classes that it loaded to all drivers after it."""
EXPECTED = {
    FIRST: "rows in the copy: 1100",
    "quickstart.py": "rows in the log: 1000",
    "idempotent_append.py": "rows in the log: 20",
    "delta_changes.py": "in the table made again: 20",
    "tail_log.py": "[90, 91, 92, 93, 94, 95, 96, 97, 98, 99]",
    "write_ahead_log.py": '"entry": 9',
}


def test_all_of_them_are_run_here() -> None:
    assert {path.name for path in (REPOSITORY / "examples").glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_it_runs_and_leaves_nothing_where_it_was_started(name: str, tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    assert EXPECTED[name] in printed(tmp_path, name, uri)
    assert list((tmp_path / "work").iterdir()) == []


def test_who_watches_a_log_may_come_again(tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    assert "seen up to 100 in" in printed(tmp_path, "tail_log.py", uri)
    assert "seen up to 200 in" in printed(tmp_path, "tail_log.py", uri)


def test_a_copy_goes_on_with_the_checkpoint_that_it_names(tmp_path: Path) -> None:
    uri = new_cluster(tmp_path)
    [checkpoint] = [
        line.partition("checkpoint: ")[2]
        for line in printed(tmp_path, "stream_copy.py", uri).splitlines()
        if line.startswith("checkpoint: ")
    ]
    assert Path(checkpoint).parent == tmp_path
    assert "rows in the copy: 2200" in printed(tmp_path, "stream_copy.py", uri, checkpoint)


def new_cluster(folder: Path) -> str:
    uri = (folder / "metadata").as_uri()
    init_cluster(uri, [(folder / f"disk{number}").as_uri() for number in range(3)])
    return uri


def printed(folder: Path, name: str, *arguments: str) -> str:
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
            "PYSPARK_SUBMIT_ARGS": f"--conf spark.jars.ivy={folder}/ivy pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
