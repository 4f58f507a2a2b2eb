"""A DataFrame of two million rows to S3 and back: the requests and the bytes are bounded."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bkspark.cluster.cluster import init_cluster
from bkspark.storage.objects import PART_BYTES
from tests.kit.s3 import S3Proxy, S3Server

from .volume_driver import ROWS, TASKS

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
COPIES = 3
ROW_BYTES = 8 + 64 + 4
"""An id, a text of 64 bytes and its length."""
LEAST = ROWS * ROW_BYTES


def run(uri: str, what: str) -> Any:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.volume_driver", uri, what],
        capture_output=True,
        text=True,
        check=False,
        timeout=1000,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def asked(proxy: S3Proxy) -> Counter[str]:
    return Counter(method for method, _, _ in proxy.seen)


def test_requests_and_bytes_follow_from_the_rows(server: S3Server, proxy: S3Proxy) -> None:
    uri = server.url("metadata")
    init_cluster(uri, [server.url(f"b{number}") for number in range(COPIES)])
    proxy.heal()
    run(uri, "write")
    parts = sum("partNumber" in path for method, path, _ in proxy.seen if method == "PUT")
    whole = COPIES * LEAST // PART_BYTES
    assert whole <= parts <= whole * 1.1 + COPIES * TASKS * 2
    written, requests = proxy.moved["PUT"], asked(proxy)
    assert COPIES * LEAST <= written <= COPIES * LEAST * 1.05
    assert proxy.moved["GET"] < LEAST // 100  # nothing large is read back
    # Beside parts: begins and ends of files, the records, and what the driver and tasks look up.
    assert requests["PUT"] - parts <= 20 + 2 * COPIES * TASKS
    assert requests["POST"] <= 2 * COPIES * TASKS
    assert requests["GET"] <= 60 + 20 * TASKS
    proxy.heal()
    found = run(uri, "read")
    assert found == [ROWS, ROWS * (ROWS - 1) // 2, ROWS]
    assert proxy.moved["GET"] <= LEAST * 1.05  # of one copy
    assert asked(proxy)["GET"] <= LEAST // PART_BYTES * 4 + 100
    assert (asked(proxy)["PUT"], asked(proxy)["POST"]) == (0, 0)
