"""An offload copies and verifies each row once, whatever interrupts it or changes the table.

The tables are written by hand, and read as a reader of the log reads them.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bkspark import BookKeeper, environment
from bkspark.admin.auditing.audit import dropped_ledgers
from bkspark.admin.collecting import collection as collecting
from bkspark.admin.maintenance import Execution
from bkspark.admin.offloading import ending
from bkspark.admin.offloading.checking import table_view
from bkspark.admin.offloading.copier import CopyOrder
from bkspark.admin.offloading.offload import OffloadRequest, offload
from bkspark.admin.offloading.refusals import application_of
from bkspark.admin.offloading.request import carry_out
from bkspark.cli import main
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    InvalidRequestError,
    MetadataVersionError,
    OutcomeUnknownError,
    TableChangedError,
    TableUnavailableError,
)
from bkspark.log import truncation
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import TableVersion
from tests.integration.rig import LOG, partitions_of
from tests.kit.delta import HandTable, mapped

from .hand_copier import HandCopier, KilledError, rows_of
from .scene import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_an_offload_records_what_it_has_verified(scene: Scene) -> None:
    report = scene.offload()
    assert report.exit_status == 0
    assert report.done["entries"] == 30
    tier = scene.log.tier
    assert tier is not None
    assert (tier.begin, tier.freed, tier.copied, tier.intent) == (0, 0, 30, None)
    assert scene.segments == [(0, 30)]
    assert [one.name for one in tier.columns][:3] == ["_offset", "_ledger_id", "_entry_id"]
    assert len(scene.log.listed_ids) == 3
    with Cluster(scene.rig.uri) as cluster:
        page = cluster.logs.tier_pages(LOG).digests(tier.segments[0].digests)
    assert (page.begin, page.end) == (0, 30)


def test_the_next_offload_copies_only_what_is_new(scene: Scene) -> None:
    scene.offload()
    assert scene.offload(table="").done["entries"] == 0
    scene.append(3)
    assert scene.offload(table="").done["entries"] == 10
    assert scene.segments == [(0, 30), (30, 40)]
    assert scene.copier.calls == ["create", "append", "append"]


def test_a_dry_run_changes_nothing(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        wanted = OffloadRequest(scene.url, accepts_single_copy=True)
        before = cluster.log(LOG).stored
        plan = offload(cluster, LOG, wanted, None, Execution(dry_run=True)).plan
        assert cluster.log(LOG).stored == before
    assert (plan["first_offset"], plan["end_offset"], plan["entries"]) == (0, 30, 30)


def test_segments_are_commits_of_limited_size(scene: Scene) -> None:
    report = scene.offload(segment_bytes=1)
    assert report.done["segments"] == 3
    assert scene.segments == [(0, 10), (10, 20), (20, 30)]
    assert scene.file_count == 3


def test_commits_wait_for_their_rate(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[float]()
    monkeypatch.setattr(environment, "monotonic", lambda: sum(waits))
    monkeypatch.setattr(environment, "sleep", waits.append)
    scene.offload(segment_bytes=1, bytes_per_second=5.0)
    last = scene.log.bytes_in(20, 30)
    assert sum(waits) == pytest.approx((scene.log.bytes_in(0, 30) - last) / 5)
    assert scene.segments == [(0, 10), (10, 20), (20, 30)]


def test_what_was_accepted_of_a_table_is_not_asked_again(scene: Scene) -> None:
    with pytest.raises(InvalidRequestError, match="one copy of each row"):
        scene.offload(accepts_single_copy=False)
    scene.offload()
    scene.append(3)
    assert scene.offload(table="", accepts_single_copy=False).done["entries"] == 10


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (OffloadRequest("", accepts_single_copy=True), "has no table yet"),
        (OffloadRequest("/another"), "one copy of each row"),
    ],
)
def test_a_refused_restart_changes_nothing_and_starts_no_spark(
    scene: Scene, request_: OffloadRequest, said: str
) -> None:
    scene.offload()
    before = scene.log

    def copier_of(_urls: object) -> HandCopier:
        raise AssertionError("no Spark is needed for a refusal")

    with Cluster(scene.rig.uri) as cluster, pytest.raises(InvalidRequestError, match=said):
        carry_out(cluster, LOG, request_, ending.Ending.RESTART, copier_of, Execution())
    assert scene.log == before


@pytest.mark.parametrize("limits", [{"keep_bytes": 1}, {"older_than": 10.0**9}])
def test_what_is_to_be_kept_is_not_copied(scene: Scene, limits: dict[str, object]) -> None:
    scene.offload(**limits)
    assert max((end for _, end in scene.segments), default=0) < 30


def test_a_ledger_whose_writer_is_gone_is_copied_once_it_is_closed(
    scene: Scene, capfd: pytest.CaptureFixture[str]
) -> None:
    scene.offload()
    with BookKeeper(scene.rig.uri) as bk, bk.open_log(LOG) as log:
        writer = log.writer()
        writer.append_many(pa.Table.from_batches(partitions_of(2, first=30)[0]))
        writer.release()
        [ledger_id] = scene.log.tail
        words = ["--metadata", scene.rig.uri, "offload", LOG, "--accept-single-copy"]
        assert main([*words, "--dry-run"]) == 0
        assert f"`bkspark ledger recover {ledger_id}`" in capfd.readouterr().err
        bk.open_ledger(ledger_id)
    assert scene.log.tail == (ledger_id,)
    report = scene.offload(table="")
    assert report.plan["open_ledger"] is None
    assert report.done["entries"] == 2
    assert (scene.log.tail, scene.segments[-1]) == ((), (30, 32))


# --- kills -----------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("call", ["create", "append"])
def test_a_killed_offload_is_gone_on_with(scene: Scene, moment: str, call: str) -> None:
    def kill(name: str) -> None:
        if name == call:
            raise KilledError

    setattr(scene.copier, moment, kill)
    with pytest.raises(KilledError):
        scene.offload()
    setattr(scene.copier, moment, lambda _name: None)
    scene.append(3)
    scene.offload()
    assert scene.segments == ([(0, 30), (30, 40)] if call == "append" else [(0, 40)])
    assert _offsets(scene) == list(range(40))


def test_an_offload_killed_before_the_record_verifies_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patched:
        patched.setattr("bkspark.protocol.log.offloading.finished", killed)
        with pytest.raises(KilledError):
            scene.offload()
    assert scene.segments == []
    scene.offload()
    assert (scene.segments, scene.copier.calls.count("append")) == ([(0, 30)], 1)


# --- two offloads ----------------------------------------------------------------------------


def test_two_offloads_copy_the_same_offsets_once(scene: Scene) -> None:
    other = HandCopier()
    other.tables = scene.copier.tables

    def overtake(name: str) -> None:
        if name == "append":
            scene.copier.before = lambda _name: None
            scene.append(3)
            scene.offload(other)

    scene.copier.before = overtake
    scene.offload()
    assert scene.segments == [(0, 30), (30, 40)]
    assert _offsets(scene) == list(range(40))


def test_an_append_that_is_late_adds_nothing(scene: Scene) -> None:
    orders = list[CopyOrder]()
    append = scene.copier.append
    scene.copier.append = lambda order: (orders.append(order), append(order))  # type: ignore[method-assign,func-returns-value,assignment,return-value]
    scene.offload()
    append(orders[0])
    assert _offsets(scene) == list(range(30))


# --- the table is not as it was written ------------------------------------------------------


def _drop_a_row(scene: Scene, rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def _double_a_row(scene: Scene, rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows.slice(3, 1)])


def _change_a_value(scene: Scene, rows: pa.Table) -> pa.Table:
    numbers = rows.column("n").to_pylist()
    numbers[4] += 1
    return rows.set_column(rows.schema.get_field_index("n"), "n", pa.array(numbers, pa.int64()))


def _make_a_null(scene: Scene, rows: pa.Table) -> pa.Table:
    texts = [None, *rows.column("s").to_pylist()[1:]]
    return rows.set_column(rows.schema.get_field_index("s"), "s", pa.array(texts, pa.string()))


def _swap_two_rows(scene: Scene, rows: pa.Table) -> pa.Table:
    offsets = rows.column("_offset").to_pylist()
    offsets[0], offsets[1] = offsets[1], offsets[0]
    return rows.set_column(0, "_offset", pa.array(offsets, pa.int64()))


@pytest.mark.parametrize(
    "change", [_drop_a_row, _double_a_row, _change_a_value, _make_a_null, _swap_two_rows]
)
def test_rows_that_differ_are_not_recorded(
    scene: Scene, change: Callable[[Scene, pa.Table], pa.Table]
) -> None:
    def rewrite(name: str) -> None:
        if name == "append":
            [(path, _)] = scene.table.live.items()
            order = CopyOrder(scene.rig.uri, LOG, Password(), scene.url, 0, 30, "", "")
            scene.table.rewrite(change(scene, rows_of(order)), [path])

    scene.copier.after = rewrite
    with pytest.raises(TableChangedError):
        scene.offload()
    assert scene.segments == []
    assert len(scene.log.listed_ids) == 3


def test_a_transaction_without_its_rows_is_not_believed(scene: Scene) -> None:
    """The table was restored: it remembers the transaction, and has lost the rows (F1)."""

    def restore(name: str) -> None:
        if name == "append":
            [(path, _)] = scene.table.live.items()
            scene.table.commit(scene.table.remove(path), operation="RESTORE")

    scene.copier.after = restore
    with pytest.raises(TableChangedError, match="committed, and then removed"):
        scene.offload()
    with pytest.raises(TableChangedError, match="committed, and then removed"):
        scene.offload()
    assert (scene.segments, scene.copier.calls.count("append")) == ([], 1)


def test_a_commit_that_vanished_is_made_again(scene: Scene) -> None:
    """Another driver's commit has taken the place of ours, and ours is lost (F3)."""

    def lose(name: str) -> None:
        if name == "append":
            scene.table.commit_file(scene.table.version).unlink()
            scene.table.version -= 1
            scene.table.live.clear()
            scene.table.transactions.clear()

    scene.copier.after = lose
    with pytest.raises(TableChangedError, match="run this again, which appends them again"):
        scene.offload()
    scene.copier.after = lambda _name: None
    scene.offload()
    assert scene.segments == [(0, 30)]


def test_a_second_commit_that_vanished_is_made_again(scene: Scene) -> None:
    """The table has the transaction of the first one."""

    def lose(name: str) -> None:
        if name == "append" and scene.file_count == 2:
            table = scene.table
            table.commit_file(table.version).unlink()
            table.version -= 1
            table.live.popitem()
            [(application, action)] = table.transactions.items()
            table.transactions[application] = {**action, "version": 10}

    scene.copier.after = lose
    with pytest.raises(TableChangedError, match="run this again, which appends them again"):
        scene.offload(segment_bytes=1)
    scene.copier.after = lambda _name: None
    scene.offload(segment_bytes=1)
    assert scene.segments == [(0, 10), (10, 20), (20, 30)]


def test_an_append_after_a_fence_asks_for_a_restart(scene: Scene) -> None:
    """A stop was killed after its fence, while an offload was about to append."""

    def fence(name: str) -> None:
        if name == "append":
            scene.copier.before = lambda _name: None
            tier = scene.log.tier
            assert tier is not None
            with Cluster(scene.rig.uri) as cluster:
                application = application_of(cluster.cluster_id, scene.log, tier.epoch)
            scene.copier.fence(scene.url, application)

    scene.copier.before = fence
    with pytest.raises(TableChangedError, match="offload events --restart --table URL"):
        scene.offload()
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=False)
    scene.offload()
    assert scene.segments == [(0, 30)]


def test_an_unreadable_table_is_no_empty_table(scene: Scene) -> None:
    def hide(name: str) -> None:
        if name == "append":
            scene.table.commit_file(0).unlink()

    scene.copier.after = hide
    with pytest.raises(TableUnavailableError):
        scene.offload()
    assert scene.segments == []


def test_a_table_that_another_driver_is_making_is_waited_for(scene: Scene) -> None:
    def unmake(name: str) -> None:
        if name == "create":
            commit = scene.table.commit_file(0)
            commit.rename(commit.with_name(".made.tmp"))

    scene.copier.after = unmake
    with pytest.raises(OutcomeUnknownError, match="another driver is making the table") as caught:
        scene.offload()
    assert "mounted" not in str(caught.value.__cause__)
    assert scene.log.tier is None


def test_another_table_in_its_place_is_refused(scene: Scene) -> None:
    scene.offload()
    scene.append(3)
    properties = scene.table.settings["metaData"]["configuration"]
    action = {**scene.table.settings["metaData"], "id": "another", "configuration": properties}
    scene.table.commit({"metaData": action})
    with pytest.raises(TableChangedError, match="another table"):
        scene.offload()
    assert scene.segments == [(0, 30)]


def _changed(scene: Scene, change: Callable[[Scene, pa.Table], pa.Table]) -> None:
    """The owner of the table changes rows by a commit that says so."""
    [path] = scene.table.live
    order = CopyOrder(scene.rig.uri, LOG, Password(), scene.url, 0, 30, "", "")
    add = scene.table.write(change(scene, rows_of(order)))
    scene.table.commit(scene.table.remove(path), add, operation="UPDATE")


@pytest.mark.parametrize("has_more", [False, True])
def test_a_change_of_recorded_rows_stops_the_next_offload(scene: Scene, has_more: bool) -> None:
    scene.offload()
    version = scene.log.tier.verified_version  # type: ignore[union-attr]
    _changed(scene, _change_a_value)
    if has_more:
        scene.append(3)
    with pytest.raises(TableChangedError, match="are others"):
        scene.offload()
    tier = scene.log.tier
    assert tier is not None
    assert (tier.verified_version, scene.segments) == (version, [(0, 30)])


def test_another_commit_as_the_verified_version_is_looked_at(scene: Scene) -> None:
    scene.offload()
    rows = pq.read_table(scene.table.path / next(iter(scene.table.live)))
    for change, is_sound in ((lambda _scene, rows: rows, True), (_change_a_value, False)):
        add = scene.table.write(change(scene, rows))
        scene.table.commit_again(add, operation="OPTIMIZE")
        if is_sound:
            scene.offload()
            found = table_view(scene.url, ()).version
            assert scene.log.tier.table.verified == found  # type: ignore[union-attr]
        else:
            with pytest.raises(TableChangedError, match="are others"):
                scene.offload()


def test_a_rewriting_without_a_change_is_verified(scene: Scene) -> None:
    scene.offload()
    _changed(scene, lambda _scene, rows: rows)
    scene.offload()
    assert scene.log.tier.verified_version == scene.table.version  # type: ignore[union-attr]


def test_changes_are_accepted_on_demand(scene: Scene) -> None:
    scene.offload()
    _changed(scene, lambda scene, rows: _change_a_value(scene, rows).slice(2))
    with Cluster(scene.rig.uri) as cluster:
        plan = ending.accept_changes(cluster, LOG, dry_run=True).plan
        assert (plan["windows"], plan["missing"]) == (1, 2)
        ending.accept_changes(cluster, LOG)
    assert scene.log.tier.missing == ((0, 2),)  # type: ignore[union-attr]
    scene.append(3)
    scene.offload()
    assert scene.segments == [(0, 30), (30, 40)]


def test_the_files_of_a_commit_are_durable_before_the_record(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set[str]()
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    seen = dict[str, bool]()
    finished = offloading.finished

    def recorded(*given: object) -> LogRecord:
        folder = scene.table.path
        wanted = [*(folder / name for name in scene.table.live), folder, folder / "_delta_log"]
        wanted += [scene.table.commit_file(version) for version in range(scene.table.version + 1)]
        seen.update({str(path): str(path) in synced for path in wanted})
        return finished(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(offloading, "finished", recorded)
    scene.offload()
    assert len(seen) == 5
    assert all(seen.values())


# --- ending ----------------------------------------------------------------------------------


def test_a_stopped_offload_forgets_its_table(scene: Scene) -> None:
    scene.offload()
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=True)
    assert scene.log.tier is None
    assert scene.copier.calls[-1] == "fence"
    with pytest.raises(InvalidRequestError, match="has rows already"):
        scene.offload()


def test_an_append_after_the_fence_adds_nothing(scene: Scene) -> None:
    orders = list[CopyOrder]()
    real = scene.copier.append

    def stop_first(order: CopyOrder) -> None:
        orders.append(order)
        with Cluster(scene.rig.uri) as cluster:
            ending.stop(cluster, LOG, scene.copier, may_keep=True)
        real(order)

    scene.copier.append = stop_first  # type: ignore[method-assign]
    with pytest.raises(MetadataVersionError, match="ended by another command"):
        scene.offload()
    assert not scene.table.live
    assert scene.log.tier is None


def test_ledgers_that_wait_are_no_garbage(scene: Scene) -> None:
    """They are the last copies in bookies of rows that the table is looked at for once more."""
    scene.offload()

    def change(step: Callable[[LogRecord], LogRecord]) -> None:
        with Cluster(scene.rig.uri) as cluster:
            cluster.logs.update(LOG, lambda record: step(record))  # type: ignore[arg-type]

    def collected() -> int:
        with Cluster(scene.rig.uri) as cluster:
            return int(collecting.collect(cluster, abandoned_after=0.0).done["ledgers"])

    ids = scene.log.listed_ids
    epoch = scene.log.tier.epoch  # type: ignore[union-attr]
    change(lambda log: offloading.freed(log, epoch, 30, TableVersion(1), environment.now_ms()))
    assert not scene.log.listed_ids
    assert collected() == 0
    assert dropped_ledgers_of(scene).isdisjoint(ids)
    change(lambda log: offloading.taken_back(log, epoch))
    assert len(scene.rig.rows()) == 30


def dropped_ledgers_of(scene: Scene) -> set[int]:
    with Cluster(scene.rig.uri) as cluster:
        return dropped_ledgers(cluster)


# --- the log changes meanwhile ---------------------------------------------------------------


def test_rows_truncated_during_the_copy_are_not_recorded(scene: Scene) -> None:
    def truncate(name: str) -> None:
        if name == "append":
            with Cluster(scene.rig.uri) as cluster:
                truncation.truncate(cluster, LOG, 10)

    scene.copier.after = truncate
    scene.offload()
    assert scene.segments == [(10, 30)]


def test_a_log_overwritten_during_the_copy_gets_no_tier(scene: Scene) -> None:
    def overwrite(name: str) -> None:
        if name == "append":
            scene.rig.write(partitions_of(5, first=100), is_overwrite=True)

    scene.copier.after = overwrite
    with pytest.raises(MetadataVersionError, match="overwritten"):
        scene.offload()
    assert scene.log.tier is None
    scene.copier.after = lambda _name: None
    with pytest.raises(InvalidRequestError, match="older contents"):
        scene.offload()


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"accepts_single_copy": False}, "one copy of each row"),
        ({"table": ""}, "has no table yet"),
        ({"table": "hdfs://somewhere/table"}, "file: or s3a:"),
    ],
)
def test_a_place_that_keeps_less_is_refused(
    scene: Scene, given: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        scene.offload(**given)
    assert not scene.copier.calls


def test_a_table_with_rows_of_others_is_refused(scene: Scene, tmp_path: Path) -> None:
    table = HandTable(tmp_path / "table")
    table.create({"_offset": "long", "n": "long", "s": "string"})
    table.append(pa.table({"_offset": [0], "n": [1], "s": ["x"]}))
    with pytest.raises(InvalidRequestError, match="has rows already"):
        scene.offload()
    assert scene.log.tier is None


@pytest.mark.parametrize(
    ("properties", "partition", "said"),
    [
        ({"delta.setTransactionRetentionDuration": "interval 1 day"}, (), "forgets transactions"),
        ({"bkspark.log": "x/y/1/e"}, (), "belongs to another log"),
        ({}, ("_timestamp",), "partitioned by _timestamp"),
    ],
)
def test_a_table_that_would_not_keep_the_rows_is_refused(
    scene: Scene, tmp_path: Path, properties: dict[str, str], partition: tuple[str, ...], said: str
) -> None:
    table = HandTable(tmp_path / "table")
    columns = {"_offset": "long", "_timestamp": "timestamp", "n": "long", "s": "string"}
    table.create(columns, properties=properties, partition=partition)
    with pytest.raises(InvalidRequestError, match=said):
        scene.offload()
    assert scene.log.tier is None


def test_an_empty_table_of_the_user_is_adopted(scene: Scene, tmp_path: Path) -> None:
    table = HandTable(tmp_path / "table")
    names = ("_offset", "_ledger_id", "_entry_id")
    table.create(
        {**dict.fromkeys(names, "long"), "_timestamp": "timestamp", "n": "long", "s": "string"}
    )
    scene.copier.tables[scene.url] = table
    scene.offload()
    assert scene.copier.calls == ["claim", "append"]
    assert scene.segments == [(0, 30)]


def _with_columns(scene: Scene, names: dict[str, str]) -> None:
    """The owner of the table gave columns other names; dropped those that have none."""
    before = json.loads(scene.table.settings["metaData"]["schemaString"])["fields"]
    columns = {names.get(one["name"], one["name"]): one for one in before}
    columns.pop("", None)
    kinds = {name: one["type"] for name, one in columns.items()}
    of_columns = {
        name: mapped(number, one["name"]) for number, (name, one) in enumerate(columns.items(), 1)
    }
    properties = scene.table.settings["metaData"]["configuration"]
    mode = {**properties, "delta.columnMapping.mode": "name"}
    protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
    action = scene.table.metadata(kinds, of_columns, properties=mode)
    scene.table.commit({"protocol": protocol}, action, operation="RENAME COLUMN")


def test_rows_are_appended_under_the_names_that_the_owner_gave(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.offload()
    _with_columns(scene, {"s": "text", "_offset": "place"})
    orders, append = list[CopyOrder](), scene.copier.append
    monkeypatch.setattr(scene.copier, "append", lambda order: (orders.append(order), append(order)))
    scene.append(3)
    assert scene.offload(table="").done["entries"] == 10
    names = {name: place.name for name, place in orders[0].places.items()}
    assert (names["_offset"], names["n"], names["s"]) == ("place", "n", "text")


def test_nothing_is_appended_to_a_table_without_a_column_of_the_log(scene: Scene) -> None:
    scene.offload()
    _with_columns(scene, {"s": ""})
    scene.append(3)
    with pytest.raises(TableChangedError, match="column 's' of log"):
        scene.offload(table="")
    assert scene.copier.calls == ["create", "append"]


def _offsets(scene: Scene) -> list[int]:
    found = [
        pq.read_table(scene.table.path / name)["_offset"].to_pylist() for name in scene.table.live
    ]
    return sorted(offset for one in found for offset in one)


# --- what is shown ---------------------------------------------------------------------------


def test_the_tier_of_a_log_is_shown(scene: Scene, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["log", "show", LOG, "--metadata", scene.rig.uri]
    assert main([*words, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["tier"] is None
    scene.offload()
    assert main([*words, "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)["tier"]
    assert (shown["table"], shown["copied"], shown["copying"]) == (scene.url, 30, None)
    assert main(words) == 0
    assert "offsets 0 to 29" in capfd.readouterr().out
    with BookKeeper(scene.rig.uri) as keeper:
        tier = keeper.open_log(LOG).tier
    assert tier is not None
    assert (tier.table_url, tier.copied, tier.freed) == (scene.url, 30, 0)
