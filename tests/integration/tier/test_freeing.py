"""Ledgers are deleted only after two looks have found each of their rows in the newest table."""

import errno
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bkspark import environment
from bkspark.admin.collecting import collection
from bkspark.admin.maintenance import Execution, Report
from bkspark.admin.offloading import ending
from bkspark.admin.offloading.freeing import FreeingDue, TierOutcome, free_offloaded
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    BookKeeperError,
    MetadataVersionError,
    NoSuchLedgerError,
    TableUnavailableError,
)
from bkspark.log import truncation
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log import offloading
from bkspark.protocol.log.tier import TableVersion
from tests.integration.rig import LOG, flat, partitions_of

from .scene import Scene

NOW = FreeingDue(2**62, 2**62)
FIRST_LOOK = FreeingDue(2**62, -1)
NEVER = FreeingDue(-1, -1)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """All three ledgers of a log, of 10 rows each, are copied in three segments."""
    scene = Scene(tmp_path)
    scene.offload(segment_bytes=1)
    return scene


def free(scene: Scene, due: FreeingDue = NOW) -> TierOutcome:
    with Cluster(scene.rig.uri) as cluster:
        return free_offloaded(cluster, due)


def collect(scene: Scene, *, dry_run: bool = False, grace: float = 0.0) -> Report:
    with Cluster(scene.rig.uri) as cluster:
        how = Execution(dry_run=dry_run)
        return collection.collect(cluster, how, abandoned_after=grace, offload_grace=grace)


def borders(scene: Scene) -> tuple[int, int, int]:
    tier = scene.log.tier
    assert tier is not None
    return tier.released, tier.freed, tier.copied


def states(scene: Scene, ledger_ids: tuple[int, ...]) -> list[LedgerState | None]:
    found: list[LedgerState | None] = []
    for ledger_id in ledger_ids:
        try:
            found.append(scene.rig.ledger(ledger_id).state)
        except NoSuchLedgerError:
            found.append(None)
    return found


class TestTwoLooks:
    def test_a_collection_without_grace_frees_all_and_reads_go_on(self, scene: Scene) -> None:
        ledgers = scene.log.listed_ids
        before = scene.rig.rows()
        plan = collect(scene, dry_run=True)
        assert [row["step"] for row in plan.details["tables"]] == ["free"]
        assert borders(scene) == (0, 0, 30)
        for step in ("free", "delete"):
            report = collect(scene)
            assert report.exit_status == 0
            assert [row["step"] for row in report.details["tables"]] == [step]
            assert scene.rig.rows() == before
        assert borders(scene) == (30, 30, 30)
        assert states(scene, ledgers) == [None] * 3
        assert not any(scene.rig.names(bookie_id) for bookie_id in scene.rig.urls)
        assert scene.rig.rows() == before == flat(partitions_of(30))
        scene.append(3)
        assert len(scene.rig.rows()) == 40

    def test_ledgers_wait_between_the_looks(self, scene: Scene) -> None:
        ledgers = scene.log.listed_ids
        assert free(scene, NEVER).steps == []
        assert borders(scene) == (0, 0, 30)
        assert [step.is_release for step in free(scene, FIRST_LOOK).steps] == [False]
        assert borders(scene) == (0, 30, 30)
        assert scene.log.listed_ids == ()
        assert free(scene, FIRST_LOOK).steps == []
        assert collect(scene, grace=3600.0).details.get("tables") is None
        assert states(scene, ledgers) == [LedgerState.CLOSED] * 3
        assert [step.is_release for step in free(scene).steps] == [True]
        assert borders(scene) == (30, 30, 30)
        assert set(scene.log.dropped.to_delete) == set(ledgers)

    def test_each_run_says_what_it_freed_and_what_waits(
        self, scene: Scene, capfd: pytest.CaptureFixture[str]
    ) -> None:
        def said(*words: str) -> str:
            assert main(["--metadata", scene.rig.uri, "collect", *words]) == 0
            return capfd.readouterr().err

        what, at_once = f"log {LOG}, offsets 0 to 29", ("--offload-grace", "0")
        assert f"{what}: the first look at the table is due at 2" in said()
        assert f"{what}: the first look at the table is due at 2" in said("--dry-run")
        planned = f"{what}: found in the table; their ledgers would be kept until a second look"
        assert planned in said(*at_once, "--dry-run")
        first = said(*at_once)
        assert f"{what}: found in the table; their ledgers are kept until a second look" in first
        assert f"{what}: the second look at the table is due at 2" in first
        last = said(*at_once, "--abandoned-after", "0")
        assert f"{what}: found in the table; their ledgers are deleted" in last
        assert "offsets" not in said(*at_once)

    def test_a_day_passes_before_each_look(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now, day = environment.now_ms(), 86_400_000
        for passed, found in ((0, 0), (day - 1000, 0), (day + 1000, 30)):
            monkeypatch.setattr(environment, "now_ms", lambda at=now + passed: at)
            collect(scene, grace=86_400.0)
            assert borders(scene) == (0, found, 30)
        for passed, found in ((2 * day, 0), (2 * day + 2000, 30)):
            monkeypatch.setattr(environment, "now_ms", lambda at=now + passed: at)
            collect(scene, grace=86_400.0)
            assert borders(scene) == (found, 30, 30)

    def test_only_old_segments_are_freed(self, scene: Scene) -> None:
        tier = scene.log.tier
        assert tier is not None
        oldest = tier.segments[0].copied_ms

        segments = [
            replace(one, copied_ms=oldest + number) for number, one in enumerate(tier.segments)
        ]
        aged = scene.log.with_tier(replace(tier, segments=tuple(segments)))
        with Cluster(scene.rig.uri) as cluster:
            cluster.logs.update(LOG, lambda _: aged)
        free(scene, FreeingDue(oldest, -1))
        assert borders(scene) == (0, 10, 30)
        assert len(scene.log.listed_ids) == 2
        free(scene, FreeingDue(oldest + 1, 2**62))
        assert borders(scene) == (20, 20, 30)
        assert len(scene.rig.rows()) == 30


def lost_commit(scene: Scene) -> None:
    """The last commit was overwritten by another driver's, which added nothing."""
    table = scene.table
    [*_, last] = table.live
    action = {"commitInfo": {"operation": "OPTIMIZE"}}
    table.commit_file(table.version).write_text(json.dumps(action) + "\n")
    del table.live[last]


def deleted(scene: Scene) -> None:
    name = next(iter(scene.table.live))
    scene.table.commit(scene.table.remove(name), operation="DELETE")


def updated(scene: Scene, *, data_change: bool = True) -> None:
    """One value is another; the file keeps its place, its name and its statistics."""
    path = scene.table.path / next(iter(scene.table.live))
    rows = pq.read_table(path)
    texts = ["other", *rows.column("s").to_pylist()[1:]]
    index = rows.schema.get_field_index("s")
    rows = rows.set_column(index, "s", pa.array(texts))
    name = next(iter(scene.table.live))
    if data_change:
        scene.table.commit(scene.table.remove(name), scene.table.write(rows), operation="UPDATE")
    else:
        scene.table.rewrite(rows, [name])


def lied(scene: Scene) -> None:
    """Another engine changed a value, and says that it changed none."""
    updated(scene, data_change=False)


def doubled(scene: Scene) -> None:
    path = scene.table.path / next(iter(scene.table.live))
    scene.table.append(pq.read_table(path).slice(0, 1))


def gone(scene: Scene) -> None:
    scene.table.path.rename(scene.table.path.with_name("away"))


def replaced(scene: Scene) -> None:
    settings = scene.table.settings["metaData"]
    scene.table.commit({"metaData": {**settings, "id": "0" * 32}})


def unreadable(scene: Scene) -> None:
    scene.table.commit_file(scene.table.version).write_text("{")


CHANGES = (lost_commit, deleted, updated, lied, doubled, gone, replaced, unreadable)


class TestNothingIsFreedWithoutItsRows:
    @pytest.mark.parametrize("change", CHANGES)
    def test_at_the_first_look(self, scene: Scene, change: Callable[[Scene], None]) -> None:
        rows, ledgers = scene.rig.rows(), scene.log.listed_ids
        change(scene)
        report = collect(scene)
        assert report.exit_status == 1
        [left] = report.left
        assert left.subject == f"log {LOG}"
        assert "nothing was freed" in left.reason
        assert borders(scene) == (0, 0, 30)
        assert scene.log.listed_ids == ledgers
        assert scene.rig.rows() == rows

    @pytest.mark.parametrize("change", CHANGES)
    def test_at_the_second_look_and_an_operator_brings_them_back(
        self, scene: Scene, change: Callable[[Scene], None]
    ) -> None:
        rows, ledgers = scene.rig.rows(), scene.log.listed_ids
        free(scene, FIRST_LOOK)
        change(scene)
        report = collect(scene)
        assert report.exit_status == 1
        assert borders(scene) == (0, 30, 30)
        assert states(scene, ledgers) == [LedgerState.CLOSED] * 3
        if change is not unreadable:
            with Cluster(scene.rig.uri) as cluster:
                ending.stop(cluster, LOG, scene.copier, may_keep=False)
            assert scene.log.tier is None
            assert scene.log.listed_ids == ledgers
            assert scene.rig.rows() == rows


@pytest.mark.parametrize("call", ["sizes", "read", "open"])
class TestATableThatGivesNoAnswer:
    """Storage answers neither that the rows are there nor that they are not."""

    @pytest.fixture
    def silence(self, call: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
        def silent(*_: object) -> None:
            raise OSError(errno.EIO, "the disk does not answer")

        name = f"bkspark.storage.folders._LocalFolder.{call}"
        return lambda: monkeypatch.setattr(name, silent)

    @pytest.mark.parametrize("looks", [0, 1])
    def test_nothing_is_freed(self, scene: Scene, silence: Callable[[], None], looks: int) -> None:
        rows, ledgers, before = scene.rig.rows(), scene.log.listed_ids, (0, 30 * looks, 30)
        if looks:
            free(scene, FIRST_LOOK)
        silence()
        report = collect(scene)
        assert report.exit_status == 1
        assert "the disk does not answer" in report.left[0].reason
        assert borders(scene) == before
        assert states(scene, ledgers) == [LedgerState.CLOSED] * 3
        assert scene.log.dropped.to_delete == ()
        assert looks or scene.rig.rows() == rows

    def test_it_is_not_left_behind(
        self, scene: Scene, silence: Callable[[], None], call: str
    ) -> None:
        """A table that is absent needs no fence; one that does not answer does."""
        before = scene.log
        silence()
        with Cluster(scene.rig.uri) as cluster:
            if call == "open":  # a fence needs no rows
                ending.stop(cluster, LOG, scene.copier, may_keep=False)
                assert scene.copier.calls[-1] == "fence"
            else:
                with pytest.raises(TableUnavailableError):
                    ending.stop(cluster, LOG, scene.copier, may_keep=False)
                assert scene.log == before


class TestBetweenALookAndTheRecord:
    def meanwhile(
        self, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object], times: int = 1
    ) -> list[int]:
        """Act inside of the compare-and-set, so often; return a list that counts them."""
        real, done = offloading.freed, list[int]()

        def freed(*given: object, **named: object) -> object:
            if len(done) < times:
                done.append(1)
                act()
            return real(*given, **named)  # type: ignore[arg-type]

        monkeypatch.setattr(offloading, "freed", freed)
        return done

    def test_an_offload_has_the_table_looked_at_again(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene.append(3)
        done = self.meanwhile(monkeypatch, lambda: scene.offload(table=""))
        outcome = free(scene, FIRST_LOOK)
        assert (done, outcome.left) == ([1], [])
        assert borders(scene) == (0, 40, 40)

    def test_the_log_was_overwritten(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = partitions_of(6, first=100)
        self.meanwhile(monkeypatch, lambda: scene.rig.write(rows, is_overwrite=True))
        outcome = free(scene)
        assert outcome.steps == []
        assert scene.log.tier is None
        assert scene.rig.rows() == flat(rows)

    def test_rows_were_truncated(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        def truncate() -> None:
            with Cluster(scene.rig.uri) as cluster:
                truncation.truncate(cluster, LOG, 15)

        self.meanwhile(monkeypatch, truncate)
        outcome = free(scene)
        assert outcome.left == []
        assert scene.log.first_offset == 15
        assert scene.log.freed == 30

    def test_the_tier_changes_without_end(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def changed() -> None:
            with Cluster(scene.rig.uri) as cluster:
                log = cluster.log(LOG).value
                assert log.tier is not None
                epoch, version = log.tier.epoch, log.tier.verified_version
                cluster.logs.update(
                    LOG,
                    lambda now: offloading.verified_again(
                        now, epoch, TableVersion(1 - version % 2)
                    ),
                )

        self.meanwhile(monkeypatch, changed, times=100)
        outcome = free(scene)
        assert outcome.steps == []
        assert "was changed" in outcome.left[0].reason
        assert scene.log.freed == 0


def test_rows_that_bookies_lose_are_read_from_the_table_after_a_look(scene: Scene) -> None:
    rows = scene.rig.rows()
    for bookie_id in scene.rig.urls:
        for name in scene.rig.names(bookie_id):
            scene.rig.replace_file(bookie_id, name, None)
    with pytest.raises(BookKeeperError):
        scene.rig.rows()
    assert free(scene, FIRST_LOOK).left == []
    assert scene.rig.rows() == rows


def test_what_a_truncation_hid_needs_no_rows(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        truncation.truncate(cluster, LOG, 10)
    deleted(scene)
    assert free(scene).left == []
    assert borders(scene)[0] == 30
    assert scene.rig.rows() == flat(partitions_of(30))[10:]


def inside(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], object], call: int = 1
) -> None:
    """Act once, inside of the call of a transition with this number."""
    real, calls = getattr(offloading, name), list[int]()

    def transition(*given: object, **named: object) -> object:
        calls.append(1)
        if len(calls) == call:
            act()
        return real(*given, **named)

    monkeypatch.setattr(offloading, name, transition)


def truncated(scene: Scene, offset: int) -> None:
    with Cluster(scene.rig.uri) as cluster:
        truncation.truncate(cluster, LOG, offset)


def overwritten(scene: Scene) -> None:
    scene.rig.write(partitions_of(6, first=100), is_overwrite=True)


class TestOtherChangesOfTheTier:
    def test_changes_are_accepted_only_of_the_tier_that_was_looked_at(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        updated(scene)
        inside(monkeypatch, "accepted", lambda: truncated(scene, 15))
        with Cluster(scene.rig.uri) as cluster, pytest.raises(MetadataVersionError):
            ending.accept_changes(cluster, LOG)
        assert scene.log.first_offset == 15

    def test_an_offload_of_a_log_that_is_overwritten_ends_nothing(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inside(monkeypatch, "taken_back", lambda: overwritten(scene), call=2)
        with Cluster(scene.rig.uri) as cluster, pytest.raises(MetadataVersionError):
            ending.stop(cluster, LOG, scene.copier, may_keep=False)
        assert scene.rig.rows() == flat(partitions_of(6, first=100))

    def test_a_segment_of_a_log_that_is_truncated_meanwhile_is_recorded(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scene.append(3)
        inside(monkeypatch, "finished", lambda: truncated(scene, 35))
        scene.offload(table="")
        assert borders(scene) == (0, 0, 40)
        assert scene.segments[-1][1] == 40
        assert scene.rig.rows() == flat(partitions_of(40))[35:]
