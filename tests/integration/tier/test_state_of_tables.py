"""``status``, ``metrics``, ``doctor`` and the view ``tier`` say which rows are in tables."""

import json
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bkspark import environment
from bkspark.admin import views
from bkspark.admin.collecting import collection
from bkspark.admin.survey import Survey
from bkspark.cli import doctor, health, main
from bkspark.cli.output import Finding, Level
from bkspark.cluster.cluster import Cluster
from bkspark.protocol.log import offloading
from bkspark.protocol.log.tier import Intent
from tests.integration.rig import LOG

from .interrupted import MemoryScene
from .scene import Scene
from .test_freeing import deleted

HOUR_MS = 3_600_000


def free(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        collection.collect(cluster, offload_grace=0.0)


def test_the_view_has_a_row_for_each_log_with_a_table(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        table = views.table("tier", cluster, None)
    [row] = table.to_pylist()
    tier = scene.log.tier
    assert tier is not None
    assert (row["log"], row["table"], row["table_id"]) == (LOG, scene.url, tier.table_id)
    assert (row["begin"], row["freed"], row["copied"], row["segments"]) == (0, 0, 30, 3)
    copied = scene.log.bytes_in(0, 30)
    assert (row["freed_bytes"], row["copied_bytes"]) == (0, copied)
    free(scene)
    with Cluster(scene.rig.uri) as cluster:
        [row] = views.table("tier", cluster, LOG).to_pylist()
    assert (row["freed"], row["freed_bytes"], row["copied_bytes"]) == (30, copied, copied)


def test_status_names_logs_with_tables(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    main(["--metadata", scene.rig.uri, "--json", "status"])
    document = json.loads(capfd.readouterr().out)
    [found] = [one for one in document["findings"] if one["subject"] == "tables"]
    assert found["level"] == "ok"
    assert found["message"].startswith(f"1 log ({LOG}) in tables: ")
    [row] = document["tables"]
    assert (row["log"], row["copied"]) == (LOG, 30)


def test_status_names_a_copy_that_has_begun(scene: Scene) -> None:
    scene.append(3)
    log = scene.log
    assert log.tier is not None
    begun = offloading.with_intent(log, log.tier.epoch, Intent(30, 40, "a" * 32, 1))
    [found] = health.table_findings([begun])
    assert f"a copy of 1 log ({LOG}) has begun" in found.message
    assert "`bkspark offload LOG`" in found.fix
    assert list(health.table_findings([log.with_tier(None)])) == []


def scraped(scene: Scene, capfd: pytest.CaptureFixture[str]) -> dict[str, float]:
    capfd.readouterr()
    assert main(["--metadata", scene.rig.uri, "metrics"]) == 0
    families = text_string_to_metric_families(capfd.readouterr().out)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_metrics_tell_what_the_last_audit_found(
    scene: Scene, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "bkspark_offload_copied_bytes" not in scraped(scene, capfd)
    now_ms = environment.now_ms
    with monkeypatch.context() as clock:  # what is copied is never behind
        clock.setattr(environment, "now_ms", lambda: now_ms() + HOUR_MS)
        main(["--metadata", scene.rig.uri, "audit"])
    found = scraped(scene, capfd)
    copied = scene.log.bytes_in(0, 30)
    assert found["bkspark_offload_copied_bytes"] == copied
    assert found["bkspark_offload_freed_bytes"] == 0
    assert found["bkspark_offload_lag_seconds"] == 0
    assert found["bkspark_offload_problems"] == 0
    assert not [name for name in found if "OFFLOAD" in name]
    free(scene)
    scene.append(3)
    deleted(scene)
    later = environment.now_ms() + HOUR_MS
    monkeypatch.setattr(environment, "now_ms", lambda: later)
    main(["--metadata", scene.rig.uri, "audit"])
    found = scraped(scene, capfd)
    assert found["bkspark_offload_freed_bytes"] == copied
    assert 3_500 < found["bkspark_offload_lag_seconds"] <= 3_600
    assert found["bkspark_offload_problems"] == 1


def findings_of(scene: Scene) -> list[Finding]:
    return [one for one in doctor.examine(scene.rig.uri) if one.subject in (f"log {LOG}", "delta")]


def test_doctor_looks_at_tables_and_their_writers(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = findings_of(scene)
    assert [(one.level, one.subject) for one in found] == [
        (Level.OK, f"log {LOG}"),
        (Level.OK, "delta"),
        (Level.WARN, "delta"),
    ]
    assert "io.delta:delta-spark" in found[1].message
    assert "tables on a disk" in found[2].message
    scene.table.path.rename(tmp_path / "away")
    [first, *_] = findings_of(scene)
    assert (first.level, first.subject) == (Level.FAIL, f"log {LOG}")
    assert "there is no Delta table" in first.message
    monkeypatch.setattr(doctor.metadata, "version", lambda _name: "4.3.0")
    assert [one.level for one in findings_of(scene)][1] is Level.WARN


@pytest.mark.parametrize("line", ["", "spark.delta.logStore.s3a.impl io.delta.S3DynamoDBLogStore"])
def test_doctor_warns_of_two_drivers_on_one_table_in_a_bucket(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    tier = scene.log.tier
    assert tier is not None
    moved = offloading.moved(scene.log, tier, "s3a://lake/events", tier.table.verified)
    (tmp_path / "spark-defaults.conf").write_text(f"spark.speculation false\n{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with Cluster(scene.rig.uri) as cluster:
        cluster.logs.update(LOG, lambda _: moved)
    monkeypatch.setattr("bkspark.admin.offloading.tables.look", _unknown)
    found = findings_of(scene)
    assert (found[0].level, found[0].subject) == (Level.WARN, f"log {LOG}")
    warned = [one.message for one in found if "tables in a bucket" in one.message]
    assert bool(warned) is not bool(line)


def _unknown(*_: object) -> object:
    from bkspark.admin.offloading.tables import TableAnswer

    return TableAnswer(LOG, "", 0, 30, problem="no answer", is_unknown=True)


def test_a_cluster_without_tables_hears_nothing_of_them(tmp_path: Path) -> None:
    scene = MemoryScene(tmp_path)
    assert findings_of(scene) == []
    with Survey(scene.rig.uri) as cluster:
        assert list(health.table_findings(cluster.read_all().logs)) == []
