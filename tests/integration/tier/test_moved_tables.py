"""The table of a log moves to another address only if all rows are found there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bkspark.admin.maintenance import Report
from bkspark.admin.offloading import moving
from bkspark.admin.offloading import offload as offloads
from bkspark.admin.offloading.freeing import FreeingDue, free_offloaded
from bkspark.admin.offloading.offload import OffloadRequest
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    MetadataVersionError,
    NoSuchTableError,
)
from tests.integration.rig import LOG
from tests.kit.delta import HandTable

from .hand_copier import KilledError
from .interrupted import MemoryScene
from .scene import Scene


def free(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        free_offloaded(cluster, FreeingDue(2**62, 2**62))


def move(scene: Scene, url: str, *, dry_run: bool = False) -> Report:
    with Cluster(scene.rig.uri) as cluster:
        wanted = OffloadRequest(url, accepts_single_copy=True)
        assert moving.is_move(cluster, LOG, wanted)
        return moving.move(cluster, LOG, wanted, dry_run=dry_run)


def test_reads_and_offloads_go_on_at_the_new_place(scene: MemoryScene) -> None:
    free(scene)
    before = scene.rig.rows()
    url = scene.copy_table()
    old = scene.table.path
    assert move(scene, url, dry_run=True).plan["table"] == url
    assert scene.log.tier is not None
    assert scene.log.tier.table_url == scene.url
    report = move(scene, url)
    assert (report.exit_status, report.done["entries"]) == (0, 30)
    shutil.rmtree(old)
    scene.url = url
    assert scene.rig.rows() == before
    scene.append(3)
    assert scene.offload(table="").done["entries"] == 10
    assert len(scene.rig.rows()) == 40


def test_the_command_says_what_it_did(
    scene: MemoryScene, capfd: pytest.CaptureFixture[str]
) -> None:
    url = scene.copy_table()
    words = ["--metadata", scene.rig.uri, "offload", LOG, "--table", url]
    assert main([*words, "--accept-single-copy", "--dry-run"]) == 0
    assert f"would look for all rows of log {LOG} in the table at {url}" in capfd.readouterr().err
    assert main(words) == 2
    assert main([*words, "--accept-single-copy"]) == 0
    assert f"found 30 rows of log {LOG} in the table at {url}" in capfd.readouterr().err


# --- copies that are refused -----------------------------------------------------------------


def copy_of(scene: MemoryScene, url: str) -> HandTable:
    return scene.copier.tables[url]


def older(table: HandTable) -> None:
    table.commit_file(table.version).unlink()


def without_a_file(table: HandTable) -> None:
    (table.path / next(iter(table.live))).unlink()


def with_another_value(table: HandTable) -> None:
    name = next(iter(table.live))
    rows = pq.read_table(table.path / name)
    index = rows.schema.get_field_index("s")
    rows = rows.set_column(index, "s", pa.array(["other", *rows["s"].to_pylist()[1:]]))
    table.rewrite(rows, [name])


def with_another_id(table: HandTable) -> None:
    table.commit({"metaData": {**table.settings["metaData"], "id": "0" * 32}})


def without_the_property(table: HandTable) -> None:
    table.commit({"metaData": {**table.settings["metaData"], "configuration": {}}})


def of_another_log(table: HandTable) -> None:
    other = {"bkspark.log": "cluster/other/0/epoch"}
    table.commit({"metaData": {**table.settings["metaData"], "configuration": other}})


def doubled(table: HandTable) -> None:
    table.append(pq.read_table(table.path / next(iter(table.live))).slice(0, 1))


def damaged(table: HandTable) -> None:
    table.commit_file(table.version).write_text("{")


def empty(table: HandTable) -> None:
    shutil.rmtree(table.path)


@pytest.mark.parametrize("is_freed", [False, pytest.param(True, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "change",
    [
        *(older, without_a_file, with_another_value, with_another_id, without_the_property),
        *(of_another_log, doubled, damaged, empty),
    ],
)
def test_a_wrong_copy_is_refused_and_nothing_changes(
    scene: MemoryScene, change: Callable[[HandTable], None], *, is_freed: bool
) -> None:
    if is_freed:
        free(scene)
    before, rows = scene.log, scene.rig.rows()
    url = scene.copy_table()
    change(copy_of(scene, url))
    with pytest.raises(BookKeeperError):
        move(scene, url)
    assert scene.log == before
    assert scene.rig.rows() == rows


def test_a_place_without_a_table_is_refused(scene: MemoryScene, tmp_path: Path) -> None:
    with pytest.raises(NoSuchTableError, match=r"copy its folder .* another table: --restart"):
        move(scene, (tmp_path / "nothing").as_uri())
    with Cluster(scene.rig.uri) as cluster, pytest.raises(InvalidRequestError, match="one copy"):
        moving.move(cluster, LOG, OffloadRequest((tmp_path / "nothing").as_uri()))


def test_a_copy_is_good_after_maintenance_there(scene: MemoryScene) -> None:
    """Rows count, and not versions or files."""
    url = scene.copy_table()
    table = copy_of(scene, url)
    rows = pa.concat_tables(pq.read_table(table.path / name) for name in table.live)
    table.rewrite(rows, list(table.live))
    table.vacuum()
    move(scene, url)
    tier = scene.log.tier
    assert tier is not None
    assert (tier.table_url, tier.verified_version) == (url, table.version)


# --- other commands --------------------------------------------------------------------------


def test_an_intent_is_finished_at_the_new_place(scene: MemoryScene) -> None:
    """Its rows are appended there once, whether the copy of the folder has them or not."""

    def kill(name: str) -> None:
        if name == "append":
            raise KilledError

    for number, moment in ((3, "before"), (4, "after")):
        scene.append(number)
        setattr(scene.copier, moment, kill)
        with pytest.raises(KilledError):
            scene.offload(table="")
        setattr(scene.copier, moment, lambda _name: None)
        url = scene.copy_table()
        move(scene, url)
        scene.url = url
        scene.offload(table="")
        assert scene.segments[-1] == (10 * number, 10 * number + 10)
    assert scene.file_count == 5
    free(scene)
    assert len(scene.rig.rows()) == 50


def test_an_offload_records_nothing_that_it_found_at_the_old_place(scene: MemoryScene) -> None:
    scene.append(3)
    urls = list[str]()

    def moved(name: str) -> None:
        if name == "append" and not urls:
            urls.append(scene.copy_table())
            move(scene, urls[0])

    scene.copier.before = moved
    with pytest.raises(MetadataVersionError, match="was moved by another command"):
        scene.offload(table="")
    assert scene.segments == [(0, 10), (10, 20), (20, 30)]
    scene.url = urls[0]
    scene.offload(table="")
    assert scene.segments[-1] == (30, 40)
    found = [pq.read_table(scene.table.path / name)["_offset"] for name in scene.table.live]
    assert sorted(offset for one in found for offset in one.to_pylist()) == list(range(40))


def test_a_move_inside_of_an_offload_does_not_lead_its_append_astray(
    scene: MemoryScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.append(3)
    real, acted = offloads.own_table, list[str]()

    def own_table(*given: object) -> object:
        if not acted:
            acted.append(scene.copy_table())
            move(scene, acted[0])
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(offloads, "own_table", own_table)
    scene.offload(table="")
    assert scene.segments[-1] == (30, 40)
    assert [len(scene.copier.tables[url].live) for url in (scene.url, acted[0])] == [3, 4]


def test_a_segment_that_is_recorded_meanwhile_is_looked_at(
    scene: MemoryScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, real, acted = scene.copy_table(), moving.require_segments, list[int]()

    def require_segments(*given: object) -> None:
        real(*given)  # type: ignore[arg-type]
        if not acted:
            acted.append(1)
            scene.append(3)
            scene.offload(table="")

    monkeypatch.setattr(moving, "require_segments", require_segments)
    with pytest.raises(BookKeeperError, match="10 offsets are not in the table"):
        move(scene, url)
    tier = scene.log.tier
    assert tier is not None
    assert (tier.table_url, tier.copied) == (scene.url, 40)


def test_the_files_of_the_copy_are_durable_before_the_record(
    scene: MemoryScene, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[str]()

    def sync_files(url: str, names: list[str]) -> None:
        synced.extend([url, *names])
        assert scene.log.tier is not None
        assert scene.log.tier.table_url == scene.url

    monkeypatch.setattr("bkspark.admin.offloading.offload.sync_files", sync_files)
    url = scene.copy_table()
    move(scene, url)
    commits = [f"_delta_log/{version:020d}.json" for version in range(scene.table.version + 1)]
    assert {url, *scene.table.live, *commits} <= set(synced)


def test_the_report_is_one_document(scene: MemoryScene, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--metadata", scene.rig.uri, "--json", "offload", LOG, "--accept-single-copy"]
    old, url = scene.url, scene.copy_table()
    assert main([*words, "--table", url]) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["plan"] == {"log": LOG, "moved_from": old, "table": url}
