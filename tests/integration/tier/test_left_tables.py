"""A table stays when its log is deleted or overwritten, and the operator hears where it is."""

import json
import logging
from pathlib import Path

import pytest

from bkspark import BookKeeper
from bkspark.admin.offloading import ending
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError
from tests.integration.rig import LOG, partitions_of

from .interrupted import MemoryScene
from .scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = MemoryScene(tmp_path)
    scene.offload()
    return scene


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_an_overwrite_leaves_the_table(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.rig.write(partitions_of(6, first=100), is_overwrite=True)
    [said] = [line for line in warnings(caplog) if scene.url in line]
    assert said.startswith(f"the table of log {LOG!r} at {scene.url} stays")
    assert scene.file_count == 1
    with pytest.raises(InvalidRequestError, match="older contents"):
        scene.offload()


def test_a_deletion_leaves_the_table(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    with BookKeeper(scene.rig.uri) as keeper:
        keeper.delete_log(LOG)
    assert [line for line in warnings(caplog) if scene.url in line]
    assert scene.table.path.exists()


def test_the_command_names_the_table(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--metadata", scene.rig.uri, "log", "delete", LOG]
    assert main([*words, "--dry-run"]) == 0
    assert f"; its table at {scene.url} stays" in capfd.readouterr().err
    assert main(["--json", *words, "--yes"]) == 0
    assert json.loads(capfd.readouterr().out)["table"] == scene.url


def test_other_changes_leave_nothing_behind(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.append(3)
    scene.offload()
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=False)
    assert scene.log.tier is None
    assert not [line for line in warnings(caplog) if "stays" in line]
