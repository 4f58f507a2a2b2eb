"""Pages of a tier go when no record can name them any more, and no sooner."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bkspark import BookKeeper
from bkspark.admin.collecting import collection
from bkspark.admin.maintenance import Execution, Report
from bkspark.admin.offloading import ending
from bkspark.admin.offloading.freeing import FreeingDue, TierOutcome, planned_steps
from bkspark.admin.offloading.tier_pages import SpentTierPages
from bkspark.admin.scrubbing.scrub import ScrubRequest, scrub
from bkspark.admin.survey import Survey
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_records import TierPages
from bkspark.errors import CorruptDataError, OutcomeUnknownError
from bkspark.log import truncation
from bkspark.protocol.log import offloading
from tests.integration.rig import LOG, partitions_of

from .hand_copier import KilledError
from .interrupted import MemoryScene
from .scene import Scene
from .test_freeing import lied

DUE = FreeingDue(-1, -1)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """All three ledgers of a log, of 10 rows each, are copied in three segments."""
    scene = MemoryScene(tmp_path)
    scene.offload(segment_bytes=1)
    return scene


def pages(scene: Scene) -> set[str]:
    with Cluster(scene.rig.uri) as cluster:
        return set(cluster.logs.tier_pages(LOG).names())


def named(scene: Scene) -> set[str]:
    found = scene.log.tier
    assert found is not None
    with Cluster(scene.rig.uri) as cluster:
        return cluster.logs.tier_pages(LOG).named_by(found)


def collect(scene: Scene, *, dry_run: bool = False) -> Report:
    with Cluster(scene.rig.uri) as cluster:
        return collection.collect(cluster, Execution(dry_run=dry_run))


def overwrite(scene: Scene) -> None:
    scene.rig.write(partitions_of(6, first=100), is_overwrite=True)


def delete(scene: Scene) -> None:
    with BookKeeper(scene.rig.uri) as keeper:
        keeper.delete_log(LOG)


@pytest.mark.parametrize("end", [overwrite, delete])
def test_the_pages_of_an_ended_tier_go(scene: Scene, end: Callable[[Scene], None]) -> None:
    assert pages(scene) == named(scene)
    assert len(pages(scene)) == 3
    assert collect(scene).done["pages"] == 0
    end(scene)
    assert collect(scene, dry_run=True).plan["pages"] == 3
    assert len(pages(scene)) == 3
    assert collect(scene).done["pages"] == 3
    assert pages(scene) == set()
    assert collect(scene).done["pages"] == 0


def test_an_offload_that_is_stopped_removes_its_pages(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=False)
    assert scene.log.tier is None
    assert pages(scene) == set()


def test_pages_of_truncated_and_accepted_rows_go(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        truncation.truncate(cluster, LOG, 10)
        assert collect(scene).done["pages"] == 1
        assert pages(scene) == named(scene)
    lied_about_the_last(scene)
    with Cluster(scene.rig.uri) as cluster:
        ending.accept_changes(cluster, LOG)
    assert len(pages(scene)) == 3
    assert collect(scene).done["pages"] == 1
    assert pages(scene) == named(scene)


def lied_about_the_last(scene: Scene) -> None:
    first = next(iter(scene.table.live))
    kept = scene.table.live.pop(first)
    lied(scene)
    scene.table.live[first] = kept


def test_older_pages_of_segments_stay(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    from bkspark.protocol.log import record

    with Cluster(scene.rig.uri) as cluster:
        collection.collect(cluster, abandoned_after=0.0, offload_grace=0.0)
        collection.collect(cluster, abandoned_after=0.0, offload_grace=0.0)
        monkeypatch.setattr(record, "SEGMENTS_KEPT", 2)
        monkeypatch.setattr(record, "SEGMENTS_OF_PAGE", 1)
        scene.append(3)
        scene.offload()
    found = scene.log.tier
    assert found is not None
    assert found.older
    assert len(pages(scene)) > 4
    assert collect(scene).done["pages"] == 0
    assert pages(scene) == named(scene)


# --- at the same time ------------------------------------------------------------------------


def test_a_page_that_an_offload_has_made_and_not_named_is_made_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, removed = TierPages.make_digests, list[int]()

    def make_digests(self: TierPages, *given: object) -> None:
        real(self, *given)  # type: ignore[arg-type]
        if not removed:
            with Cluster(scene.rig.uri) as cluster:
                spent = SpentTierPages(cluster)
                removed.extend(spent.free(*one) for one in spent.found([LOG]).items())

    monkeypatch.setattr(TierPages, "make_digests", make_digests)
    scene.append(3)
    scene.offload()
    assert removed == [1]
    assert scene.segments[-1] == (30, 40)
    assert named(scene) == pages(scene)
    removed.clear()
    lied(scene)
    with Cluster(scene.rig.uri) as cluster:
        ending.accept_changes(cluster, LOG)
    assert removed == [1]
    assert named(scene) <= pages(scene)


def test_a_page_that_a_record_names_by_then_is_not_removed(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cluster(scene.rig.uri) as cluster:
        spent = SpentTierPages(cluster)
        assert spent.free(LOG, sorted(named(scene))) == 0
    assert pages(scene) == named(scene)


def test_pages_stay_while_it_is_not_known_which_are_named(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KilledError

    scene.append(3)
    with monkeypatch.context() as patched:
        patched.setattr(offloading, "with_digests", killed)
        with pytest.raises(KilledError):
            scene.offload()
    assert len(pages(scene)) == 4

    def silent(*_: object) -> None:
        raise OutcomeUnknownError("no answer")

    with Cluster(scene.rig.uri) as cluster:
        spent = SpentTierPages(cluster)
        with monkeypatch.context() as patched:
            patched.setattr(TierPages, "named_by", silent)
            assert spent.found([LOG]) == {}
            assert spent.free(LOG, sorted(pages(scene))) == 0
        assert list(spent.doubts.values()) == ["no answer"]
        assert [len(names) for names in spent.found([LOG]).values()] == [1]
    assert len(pages(scene)) == 4


def test_a_scrub_goes_on_where_a_collection_removed_pages(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, acted = TierPages.digests, list[int]()

    def digests(self: TierPages, name: str) -> object:
        if len(acted) == 1:
            with Cluster(scene.rig.uri) as cluster:
                truncation.truncate(cluster, LOG, 20)
            collect(scene)
        acted.append(1)
        return real(self, name)

    monkeypatch.setattr(TierPages, "digests", digests)
    with Survey(scene.rig.uri) as cluster:
        assert scrub(cluster, ScrubRequest()).exit_status == 0
    monkeypatch.undo()
    with Cluster(scene.rig.uri) as cluster:
        cluster.logs.tier_pages(LOG).remove(next(iter(named(scene))))
    with pytest.raises(CorruptDataError), Cluster(scene.rig.uri) as cluster:
        cluster.logs.tier_pages(LOG).digests(next(iter(named(scene))))
    with Survey(scene.rig.uri) as cluster:
        assert scrub(cluster, ScrubRequest()).exit_status == 1


def test_a_log_that_never_had_a_table_is_not_looked_at(tmp_path: Path) -> None:
    scene = MemoryScene(tmp_path)
    with Cluster(scene.rig.uri) as cluster:
        assert planned_steps(cluster, DUE) == TierOutcome()
        overwrite(scene)
        assert planned_steps(cluster, DUE).paged == [LOG]
