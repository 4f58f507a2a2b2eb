"""Two offloads of one log do not do the same work; offloads of two logs do not wait."""

from pathlib import Path

import pytest

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.cli import main
from bkspark.cluster import lease
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.lease import Keeping, Leases
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from tests.integration.rig import LOG

from .scene import Scene


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    scene = Scene(tmp_path)
    monkeypatch.setattr("bkspark.spark.offload.copier_of", lambda _spark, _urls: scene.copier)
    monkeypatch.setattr(lease, "RENEW_SECONDS", 0.02)
    monkeypatch.setattr(lease, "LOOK_SECONDS", 0.01)
    return scene


def offload(scene: Scene, **given: object) -> Report:
    wanted = {"log": LOG, "table": scene.url, "accept_single_copy": True, **given}
    return verbs.offload(scene.rig.uri, **wanted)  # type: ignore[arg-type]


def test_a_second_offload_of_the_log_does_nothing(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    with Cluster(scene.rig.uri) as cluster:
        renewing = Keeping(_taken(cluster, f"offload.{LOG}"), lambda: None)
        try:
            report = offload(scene)
            [left] = report.left
            assert (report.exit_status, left.subject) == (1, "offload")
            assert "another run is active" in left.reason
            assert scene.log.tier is None
            words = ["--metadata", scene.rig.uri, "offload", LOG, "--accept-single-copy"]
            assert main([*words, "--table", scene.url]) == 1
            assert "another run is active" in capfd.readouterr().err
            assert offload(scene, dry_run=True).exit_status == 0
            assert offload(scene, no_lease=True).done["entries"] == 30
        finally:
            renewing.end()
    assert offload(scene).exit_status == 0


def test_an_operator_ends_an_offload_that_is_running(scene: Scene) -> None:
    offload(scene)
    with Cluster(scene.rig.uri) as cluster:
        renewing = Keeping(_taken(cluster, f"offload.{LOG}"), lambda: None)
        try:
            assert offload(scene, table="", stop=True).done == {"stopped": 1}
        finally:
            renewing.end()
    assert scene.log.tier is None


def test_the_lease_is_of_one_log(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        for other in ("offload.other", "offload"):
            _taken(cluster, other)
        assert offload(scene).done["entries"] == 30
        assert cluster.store.get(layout.lease_key(f"offload.{LOG}")) is not None


@pytest.mark.parametrize("name", ["offload.", "offload./x", "offload...", "Offload.x", ".x"])
def test_a_lease_is_of_a_verb_and_a_log(name: str) -> None:
    with pytest.raises(InvalidRequestError):
        layout.lease_key(name)


def _taken(cluster: Cluster, name: str) -> Leases:
    leases = Leases(cluster, name)
    assert leases.take(None) is None
    return leases
