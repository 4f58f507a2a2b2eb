"""A log goes to a table in a bucket of a store by name: by the command, Delta and Hadoop's client.

The client comes from Maven Central once: some 690 MB.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bkspark.storage import stores
from tests.integration.rig import Rig, partitions_of
from tests.kit import s3
from tests.kit.delta_session import ready_for_delta
from tests.spark.local_session import worker_environment

DRIVER = Path(__file__).with_name("s3_driver.py")
ROWS = 30


@pytest.mark.soak  # for what it downloads
def test_the_command_makes_its_own_session_for_a_store_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig(tmp_path / "cluster", kind="posix", bookie_count=3)
    rig.write(partitions_of(20, 10), (3, 2, 2))
    with s3.s3_server() as server:
        file = tmp_path / "stores.toml"
        file.write_text(f'[east]\nendpoint_url = "{server.endpoint}"\n')
        monkeypatch.setenv(stores.VARIABLE, str(file))
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # the store says another
        environment = {**os.environ, **worker_environment()}
        with ready_for_delta(environment):
            done = subprocess.run(
                [sys.executable, str(DRIVER), rig.uri, f"{server.url('events')}?store=east"],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        assert done.returncode == 0, done.stderr[-4000:]
        found = json.loads(done.stdout.splitlines()[-1])
        assert "PreparedDeltaFileIndex" in found.pop("plan")
        numbers = list(range(ROWS))
        assert found == {"native": numbers, "log": numbers, "table": numbers}
        assert rig.names("bookie-1") == []
        assert len(rig.rows()) == ROWS
