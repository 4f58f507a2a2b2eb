"""Every example runs, as its first lines say, and prints what it promises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.client.cluster import init_cluster

REPOSITORY = Path(__file__).parents[2]

EXPECTED = {
    "quickstart.py": "rows in the log: 1000",
    "idempotent_append.py": "rows in the log: 20",
    "stream_copy.py": "rows in the copy: 1100",
    "delta_changes.py": "in the table made again: 20",
    "tail_log.py": "[90, 91, 92, 93, 94, 95, 96, 97, 98, 99]",
    "write_ahead_log.py": '"entry": 9',
}


def test_all_of_them_are_run_here() -> None:
    assert {path.name for path in (REPOSITORY / "examples").glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_it_runs(name: str, tmp_path: Path) -> None:
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [(tmp_path / f"disk{number}").as_uri() for number in range(3)])
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "examples" / name), uri],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "TMPDIR": str(tmp_path),
            "PYSPARK_SUBMIT_ARGS": f"--conf spark.jars.ivy={tmp_path}/ivy pyspark-shell",
        },
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert EXPECTED[name] in done.stdout
