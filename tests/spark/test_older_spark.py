"""Spark 4.1, which is declared too: everything but reading a log as a stream.

It downloads some 400 MB, so it has a command of its own: ``pytest -m soak`` with this file.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from local_session import worker_environment
from places import make_place
from submitted import run


@pytest.mark.soak
def test_spark_4_1_writes_and_reads_and_does_not_follow(tmp_path: Path):
    packages = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps"]
    done = subprocess.run(
        [*pip, "--target", str(packages), "pyspark==4.1.*"],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"it cannot be downloaded: {done.stderr.strip()[-300:]}")
    place = make_place(None, tmp_path)
    program = Path(__file__).with_name("older_spark.py")
    found = run(
        [sys.executable, str(program), place.uri, str(tmp_path)],
        tmp_path,
        {**worker_environment(packages), "SPARK_HOME": str(packages / "pyspark")},
    )
    assert found["version"].startswith("4.1.")
    assert found["batch"] == [0, 1, 2, 3, 4]
    assert found["stream"]
    assert "reading a log as a stream needs Spark 4.2, and this is 4.1." in found["followed"]
