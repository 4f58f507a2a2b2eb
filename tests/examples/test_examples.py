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
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert EXPECTED[name] in done.stdout
