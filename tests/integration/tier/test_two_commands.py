"""Commands that change the tier of one log at the same time: none records what it has not seen."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bkspark.admin.offloading import ending
from bkspark.admin.offloading import offload as offloads
from bkspark.cluster.cluster import Cluster
from bkspark.errors import MetadataVersionError, TableChangedError
from bkspark.protocol.log import offloading
from bkspark.protocol.log.tier import TableVersion
from tests.integration.rig import LOG

from .hand_copier import KilledError
from .scene import Scene


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"))


def change_the_last_row(scene: Scene) -> None:
    name = list(scene.table.live)[-1]
    rows = pq.read_table(scene.table.path / name)
    texts = [*rows.column("s").to_pylist()[:-1], "other"]
    rows = rows.set_column(rows.schema.get_field_index("s"), "s", pa.array(texts))
    scene.table.commit(scene.table.remove(name), scene.table.write(rows), operation="UPDATE")


def verified_version(scene: Scene) -> int:
    tier = scene.log.tier
    assert tier is not None
    return tier.verified_version


def test_a_look_does_not_count_for_a_segment_that_is_new(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else readers would take a changed row of it for what was written."""
    scene.offload()
    real, acted = offloads.own_table, list[int]()

    def own_table(*given: object) -> object:
        if not acted:
            acted.append(1)
            scene.append(3)
            scene.offload()
            acted.append(verified_version(scene))
            change_the_last_row(scene)
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(offloads, "own_table", own_table)
    with pytest.raises(TableChangedError, match="are others"):
        scene.offload()
    assert scene.segments == [(0, 30), (30, 40)]
    assert verified_version(scene) == acted[1] < scene.table.version


def test_a_look_at_a_tier_that_changes_without_end_is_given_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.offload()
    real, looks = offloads.own_table, list[int]()

    def own_table(*given: object) -> object:
        looks.append(1)
        scene.table.commit()
        with Cluster(scene.rig.uri) as cluster:
            log = cluster.log(LOG).value
            assert log.tier is not None
            epoch, version = log.tier.epoch, TableVersion(log.tier.verified_version + 1)
            cluster.logs.update(
                LOG, lambda record: offloading.verified_again(record, epoch, version)
            )
            scene.table.commit()
        return real(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(offloads, "own_table", own_table)
    with pytest.raises(MetadataVersionError, match="was changed 5 times during a look"):
        scene.offload()
    assert len(looks) == 5


def test_an_offload_stopped_before_its_first_commit_can_begin_anew(scene: Scene) -> None:
    def kill(name: str) -> None:
        if name == "append":
            raise KilledError

    scene.copier.before = kill
    with pytest.raises(KilledError):
        scene.offload()
    scene.copier.before = lambda _name: None
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=False)
    scene.offload()
    assert scene.segments == [(0, 30)]
