"""An audit looks at the table of each log that has one, by its metadata; it reads no rows."""

import errno
import json
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from bkspark.admin.auditing.audit import audit
from bkspark.admin.maintenance import Report
from bkspark.admin.offloading import tables
from bkspark.admin.offloading.freeing import FreeingDue, free_offloaded
from bkspark.admin.survey import Survey
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.log import truncation
from tests.integration.rig import LOG

from .scene import Scene
from .test_freeing import deleted, doubled, gone, lost_commit, replaced, unreadable, updated


def audited(scene: Scene, **which: tuple[object, ...]) -> Report:
    with Survey(scene.rig.uri) as cluster:
        return audit(cluster, **which)  # type: ignore[arg-type]


def overwritten(scene: Scene) -> None:
    """The table has other rows now, which say that none were removed."""
    rows = pq.read_table(scene.table.path / next(iter(scene.table.live))).slice(0, 9)
    scene.table.rewrite(rows, list(scene.table.live)[:1])


def without_column(scene: Scene) -> None:
    schema = json.loads(scene.table.settings["metaData"]["schemaString"])
    schema["fields"] = [one for one in schema["fields"] if one["name"] != "s"]
    action = {**scene.table.settings["metaData"], "schemaString": json.dumps(schema)}
    scene.table.commit({"metaData": action})


def of_another_log(scene: Scene) -> None:
    action = {**scene.table.settings["metaData"], "configuration": {"bkspark.log": "x/y/0/z"}}
    scene.table.commit({"metaData": action})


def with_a_feature(scene: Scene) -> None:
    features = {"readerFeatures": ["later"], "writerFeatures": ["later"]}
    scene.table.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}})


def test_an_audit_of_a_whole_table_finds_nothing(scene: Scene) -> None:
    report = audited(scene)
    assert (report.exit_status, report.counters[tables.CHECKED]) == (0, 1)
    [row] = report.details["tables"]
    assert (row["log"], row["first_offset"], row["end_offset"]) == (LOG, 0, 30)
    assert (row["is_dense"], row["problem"], row["version"]) == (True, "", scene.table.version)
    scene.table.rewrite(
        pq.read_table(scene.table.path / next(iter(scene.table.live))), list(scene.table.live)[:1]
    )
    assert audited(scene).exit_status == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lost_commit, "was verified"),
        (deleted, "may have been changed"),
        (updated, "may have been changed"),
        (doubled, "there twice"),
        (overwritten, "at least 1 of offsets 0 to 29"),
        (gone, "there is no Delta table"),
        (replaced, "is another table"),
        (unreadable, ""),
        (without_column, "column 's'"),
        (of_another_log, "belongs to another log"),
        (with_a_feature, "later"),
    ],
)
def test_a_table_that_is_not_as_it_was_is_a_finding(
    scene: Scene, change: Callable[[Scene], None], said: str
) -> None:
    if change is lost_commit:
        scene.table.path.joinpath("_delta_log", f"{scene.table.version:020d}.json").unlink()
    else:
        change(scene)
    report = audited(scene)
    assert report.exit_status == 1
    [left] = report.left
    assert left.subject == f"log {LOG}"
    assert said in left.reason
    assert report.counters[tables.WRONG] == 1
    assert report.counters[tables.UNKNOWN] == 0


def test_a_table_that_gives_no_answer_is_unknown(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise OSError(errno.EIO, "the disk does not answer")

    monkeypatch.setattr("bkspark.storage.folders._LocalFolder.sizes", silent)
    report = audited(scene)
    assert report.exit_status == 1
    assert (report.counters[tables.WRONG], report.counters[tables.UNKNOWN]) == (0, 1)


def test_a_log_that_changed_meanwhile_is_looked_at_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, acted = tables.look, list[int]()

    def look(cluster: Cluster, *given: object) -> tables.TableAnswer:
        answer = real(cluster, *given)  # type: ignore[arg-type]
        if not acted:
            acted.append(1)
            scene.append(3)
            scene.offload(table="")
            return tables.TableAnswer(LOG, "", 0, 30, problem="of the tier before")
        return answer

    monkeypatch.setattr(tables, "look", look)
    assert audited(scene).exit_status == 0
    [row] = audited(scene).details["tables"]
    assert row["end_offset"] == 40


def test_what_is_truncated_need_not_be_there(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        free_offloaded(cluster, FreeingDue(2**62, 2**62))
        truncation.truncate(cluster, LOG, 30)
    deleted(scene)
    assert audited(scene).exit_status == 0


def test_only_the_named_logs_are_looked_at(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    gone(scene)
    assert audited(scene, ledgers=(0,)).exit_status == 0
    assert audited(scene, logs=(LOG,)).exit_status == 1
    assert main(["--metadata", scene.rig.uri, "--json", "audit"]) == 1
    assert json.loads(capfd.readouterr().out)["tables"][0]["problem"].startswith(
        "there is no Delta table"
    )
    assert main(["--metadata", scene.rig.uri, "status"]) == 1
    assert "1 table without the rows of a log as they were written" in capfd.readouterr().out
