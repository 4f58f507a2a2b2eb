"""A scrub compares all rows of tables with the digests of their offload."""

import errno
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bkspark.admin.maintenance import Report
from bkspark.admin.offloading import checking
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.scrubbing.scrub import ScrubRequest, scrub
from bkspark.admin.survey import Survey
from bkspark.cli import main
from tests.integration.rig import LOG

from .scene import Scene
from .test_freeing import deleted, doubled, gone, lied, replaced, updated


def scrubbed(scene: Scene, sample: float = 1.0, **which: tuple[object, ...]) -> Report:
    with Survey(scene.rig.uri) as cluster:
        return scrub(cluster, ScrubRequest(sample=sample), **which)  # type: ignore[arg-type]


def test_a_table_as_it_was_written_is_good(scene: Scene) -> None:
    report = scrubbed(scene)
    assert (report.exit_status, report.done["windows"]) == (0, 3)
    assert "all that was read is good" in report.summary


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (deleted, "10 offsets are not in the table"),
        (updated, "are others in its table"),
        (lied, "are others in its table"),
        (doubled, "offset 0 is there twice"),
    ],
)
def test_a_changed_window_is_named_with_its_version(
    scene: Scene, change: Callable[[Scene], None], said: str
) -> None:
    change(scene)
    report = scrubbed(scene)
    assert report.exit_status == 1
    [left] = report.left
    assert left.subject == f"log {LOG}"
    version = scene.table.version
    assert left.reason.startswith(f"offsets 0 to 9, version {version} of its table: ")
    assert said in left.reason
    [row] = report.details["tables"]
    assert (row["first_offset"], row["end_offset"], row["version"]) == (0, 10, version)
    assert report.counters[scrubbing.CHANGED_WINDOWS] == 1
    assert report.done["windows"] == 3
    assert scrubbed(scene, ledgers=(0,)).exit_status == 0
    assert scrubbed(scene, logs=(LOG,)).exit_status == 1


def test_status_says_what_the_last_scrub_found(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    lied(scene)
    assert main(["--metadata", scene.rig.uri, "scrub"]) == 1
    assert "1 range of offsets is missing or changed in a table" in capfd.readouterr().err
    main(["--metadata", scene.rig.uri, "status"])
    assert "1 range of offsets is missing or changed in a table" in capfd.readouterr().out


@pytest.mark.parametrize("change", [gone, replaced])
def test_a_table_that_is_not_there_is_not_read(
    scene: Scene, change: Callable[[Scene], None]
) -> None:
    change(scene)
    report = scrubbed(scene)
    [left] = report.left
    assert "its table was not read" in left.reason
    assert report.counters[scrubbing.UNREAD_TABLES] == 1
    assert report.counters[scrubbing.CHANGED_WINDOWS] == 0


def test_a_table_that_does_not_answer_is_not_changed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise OSError(errno.EIO, "the disk does not answer")

    monkeypatch.setattr("bkspark.storage.folders._LocalFolder.sizes", silent)
    assert scrubbed(scene).counters[scrubbing.UNREAD_TABLES] == 1


def test_a_sample_reads_a_part_of_the_windows(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lied(scene)
    drawn = iter([0.9, 0.1, 0.9])
    monkeypatch.setattr("bkspark.environment.draw", lambda: next(drawn))
    monkeypatch.setattr(scrubbing.Scrub, "carry_out", lambda *_: None)
    report = scrubbed(scene, sample=0.5)
    assert (report.exit_status, report.done["windows"]) == (0, 1)


def test_what_another_command_accepted_meanwhile_is_no_finding(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    lied(scene)
    real, acted = checking.require_window, list[int]()

    def require_window(*given: object) -> int:
        if not acted:
            acted.append(1)
            assert main(["--metadata", scene.rig.uri, "offload", LOG, "--accept-changes"]) == 0
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(checking, "require_window", require_window)
    assert scrubbed(scene).exit_status == 0
    assert acted
    assert scrubbed(scene).exit_status == 0


def test_only_the_first_changed_windows_are_listed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bkspark.admin.scrubbing.tables.SHOWN_MAX", 1)
    for name in list(scene.table.live):
        rows = pq.read_table(scene.table.path / name)
        index = rows.schema.get_field_index("s")
        rows = rows.set_column(index, "s", pa.array(["other"] * len(rows)))
        scene.table.rewrite(rows, [name])
    report = scrubbed(scene)
    assert len(report.details["tables"]) == 1
    assert [left.reason for left in report.left][1:] == [
        "2 more ranges of offsets in its table, too"
    ]
