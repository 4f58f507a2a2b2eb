"""Collections free what nobody wants of ledgers that stay, and nothing that may be wanted."""

from collections.abc import Callable

import pytest

from bkspark import verbs
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.format import layout
from bkspark.format.recovery import LostBookie
from bkspark.log.batch.commit import commit
from bkspark.log.reading.read_slices import plan_log
from bkspark.log.reading.slice_reader import SliceReader
from bkspark.log.reading.slices import OffsetRange
from tests.integration.log_scenes import SILENT
from tests.integration.rig import SCHEMA, Rig, flat, partitions_of
from tests.kit.faulty import METADATA

from .garbage import collected, files_of, raw_ledger
from .scenes import PARTITIONS, audited, members, take, written
from .test_collect import put
from .test_repair import VALUES, assert_whole, repaired, values
from .test_repairs_between import at, holders, naming, wounded

ORPHANED, STRAYS = "NUM_ORPHANED_LEDGER_FOLDERS", "NUM_ORPHANED_ENTRY_LOGS"


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=5)


def give_away(rig: Rig, bookie_id: str) -> None:
    """A bookie loses its places, and comes back with all that it had."""
    disk = rig.lose(bookie_id)
    with Cluster(rig.uri) as cluster:
        incarnation = cluster.bookies()[bookie_id].incarnation
        cluster.upkeep.lost.create(bookie_id, LostBookie(bookie_id, (incarnation,)))
        assert repaired(rig).exit_status == 0
        cluster.store.delete(layout.lost_key(bookie_id))
    rig.bring_back(bookie_id, disk)


def names_of(rig: Rig, bookie_id: str, ledger_id: int) -> list[str]:
    folder = f"{layout.ledger_folder(ledger_id)}/"
    return [name for name in rig.names(bookie_id) if name.startswith(folder)]


def orphans(rig: Rig) -> tuple[int, int]:
    counters = audited(rig).counters
    return counters[ORPHANED], counters[STRAYS]


# --- copies on bookies that a ledger has left -----------------------------------------------------


def test_copies_go_from_a_bookie_that_has_no_place_any_more(rig: Rig) -> None:
    rows, ledger_id = rig.write(PARTITIONS).ledger_id, written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    assert orphans(rig)[0] > 0
    before = {name: rig.names(name) for name in rig.urls}
    dry = verbs.collect(rig.uri, dry_run=True)
    assert {name: rig.names(name) for name in rig.urls} == before
    report = collected(rig)
    assert (dry.plan, dry.details) == (report.plan, report.details)
    assert report.plan["copies"] == len([i for i in (rows, ledger_id) if old in _left(rig, i)])
    assert report.done["files"] == report.plan["files"] > 0
    assert report.done["bytes"] == report.plan["bytes"] > 0
    assert names_of(rig, old, ledger_id) == []
    after = {name: files if name != old else [] for name, files in before.items()}
    assert {name: rig.names(name) for name in rig.urls} == after
    assert orphans(rig) == (0, 0)
    assert (values(rig, ledger_id), rig.rows()) == (VALUES, flat(PARTITIONS))
    assert collected(rig).plan["copies"] == 0


def _left(rig: Rig, ledger_id: int) -> set[str]:
    return {member.bookie_id for member in rig.ledger(ledger_id).left}


def test_the_record_says_that_a_bookie_has_left_before_anything_goes(rig: Rig) -> None:
    ledger_id = written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    with rig.faults.installed():
        collected(rig)
    key = layout.ledger_key(ledger_id)
    trace = [(op.place, op.call) for op in rig.faults.trace if op.name in (key, *_folders(key))]
    assert trace.index((METADATA, "put")) < trace.index((old, "remove_folder"))


def _folders(key: str) -> set[str]:
    ledger_id = layout.parse_ledger_key(key.rpartition("/")[2])
    return {layout.entries_folder(ledger_id), layout.journal_folder(ledger_id)}


def test_a_repair_that_copies_to_a_bookie_that_leaves_chooses_another(rig: Rig) -> None:
    """The collection comes between its copies and its compare-and-set (RB-30)."""
    ledger_id, gone, free = wounded(rig)
    with rig.faults.installed():
        at(rig, naming(ledger_id), lambda: verbs.collect(rig.uri))
        assert repaired(rig).exit_status == 0
        rig.faults.forget()
    [left] = rig.ledger(ledger_id).left
    assert left.bookie_id in free
    assert gone not in members(rig, ledger_id)
    assert left.bookie_id not in members(rig, ledger_id)
    assert len(holders(rig, ledger_id, free)) == 1
    assert_whole(rig)
    assert values(rig, ledger_id) == VALUES


def lose(rig: Rig, bookie_id: str) -> None:
    """For ever."""
    rig.lose(bookie_id)
    with Cluster(rig.uri) as cluster:
        incarnation = cluster.bookies()[bookie_id].incarnation
        cluster.upkeep.lost.create(bookie_id, LostBookie(bookie_id, (incarnation,)))


def test_where_only_bookies_are_free_that_have_left_a_repair_says_so(rig: Rig) -> None:
    ledger_id = written(rig)
    old, victim, *_ = members(rig, ledger_id)
    give_away(rig, old)
    collected(rig)
    [other] = set(rig.urls) - {old, *members(rig, ledger_id)}
    lose(rig, other)
    lose(rig, victim)
    [left] = repaired(rig).left
    assert f"permanently excluded: {old}" in left.reason
    assert "bookie add" in left.reason
    assert names_of(rig, old, ledger_id) == []
    with Cluster(rig.uri) as cluster:
        rig.urls["added"] = f"{rig.urls[old]}-added"
        cluster.add_bookie("added", rig.urls["added"], accepts_risk=True)
    assert repaired(rig).exit_status == 0
    assert "added" in members(rig, ledger_id)
    assert values(rig, ledger_id) == VALUES


def test_the_last_bookie_that_is_free_keeps_what_it_has(make_rig: Callable[..., Rig]) -> None:
    """It gets the next place that is free, and need not even be given copies."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=4)
    ledger_id = written(rig)
    old, victim, *_ = members(rig, ledger_id)
    give_away(rig, old)
    assert collected(rig).plan["copies"] == 0
    lose(rig, victim)
    report = repaired(rig)
    assert (report.left, report.done["bytes"]) == ([], 0)
    assert old in members(rig, ledger_id)
    assert values(rig, ledger_id) == VALUES


def test_what_a_late_comer_makes_where_the_ledger_has_left_goes_again(rig: Rig) -> None:
    ledger_id = written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    collected(rig)
    record = rig.ledger(ledger_id)
    put(rig, old, layout.journal(ledger_id, 1, "b" * 32))
    assert collected(rig).done == {"ledgers": 0, "files": 1, "bytes": 4, "pages": 0}
    assert names_of(rig, old, ledger_id) == []
    assert rig.ledger(ledger_id) == record


def test_a_bookie_on_which_copies_grow_is_left_alone(rig: Rig) -> None:
    ledger_id = written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    with rig.faults.installed():
        weighed = 0

        def decide(_number: int, op: object) -> None:
            nonlocal weighed
            if (getattr(op, "place", ""), getattr(op, "call", "")) == (old, "usage"):
                weighed += 1
                if weighed == 5:
                    rig.faults.decide = lambda _n, _op: None
                    put(rig, old, layout.journal(ledger_id, 1, "b" * 32))

        rig.faults.decide = decide
        report = verbs.collect(rig.uri)
    [left] = report.left
    assert "making copies" in left.reason
    assert rig.ledger(ledger_id).left == set()
    assert len(names_of(rig, old, ledger_id)) > 1
    collected(rig)
    assert names_of(rig, old, ledger_id) == []


def test_ledgers_that_are_not_closed_keep_all_they_have_anywhere(rig: Rig) -> None:
    """What no fragment names may be what a recovery looks for, or a writer is about to name."""
    ledger_id = raw_ledger(rig, is_closed=False)
    [other, *_] = set(rig.urls) - set(members(rig, ledger_id))
    for name in (layout.journal(ledger_id, 1, "b" * 32), layout.entry_log(ledger_id, "c" * 32, 0)):
        put(rig, other, name)
    before = files_of(rig, ledger_id)
    assert collected(rig).plan["files"] == 0
    assert files_of(rig, ledger_id) == before


def test_a_bookie_that_is_away_is_freed_when_it_is_back(rig: Rig) -> None:
    ledger_id = written(rig)
    old = members(rig, ledger_id)[0]
    give_away(rig, old)
    disk = rig.lose(old)
    report = verbs.collect(rig.uri)
    assert [left.subject for left in report.left] == [f"bookie {old}"]
    rig.bring_back(old, disk)
    assert names_of(rig, old, ledger_id)
    collected(rig)
    assert names_of(rig, old, ledger_id) == []


def test_a_reader_that_knows_only_bookies_that_were_left_goes_on(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=7)
    ledger_id = written(rig)
    with BookKeeper(rig.uri) as keeper:
        reader = keeper.open_ledger(ledger_id)
        for old in members(rig, ledger_id):
            give_away(rig, old)
            collected(rig)
        assert [bytes(entry.value) for entry in reader.read()] == VALUES


@pytest.mark.parametrize("fails_on_loss", [True, False])
def test_a_read_that_was_planned_before_all_its_bookies_were_left_goes_on(
    make_rig: Callable[..., Rig], fails_on_loss: bool
) -> None:
    rig = make_rig(kind="memory", bookie_count=7)
    ledger_id = rig.write(PARTITIONS).ledger_id
    with Cluster(rig.uri) as cluster:
        log = cluster.log(rig.log_name).value
        tasks = plan_log(cluster, log, OffsetRange(0, log.end_offset), Password(), 2**30)
    reader = SliceReader(SCHEMA, fails_on_loss=fails_on_loss)
    for old in members(rig, ledger_id):
        give_away(rig, old)
        collected(rig)
    batches = [batch for task in tasks for batch in reader.read(task)]
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert sorted(rows, key=str) == sorted(flat(PARTITIONS), key=str)


# --- entry logs that no record names --------------------------------------------------------------


def committed_twice(rig: Rig) -> int:
    """A ledger of rows whose tasks ran twice; its id."""
    target = rig.target()
    rig.tasks(target, PARTITIONS)
    commit(target, rig.tasks(target, PARTITIONS))
    return target.ledger_id


def test_files_of_attempts_that_were_not_committed_go(rig: Rig) -> None:
    ledger_id = committed_twice(rig)
    before = len(files_of(rig, ledger_id))
    count = orphans(rig)[1]
    assert count > 0
    dry = verbs.collect(rig.uri, dry_run=True)
    report = collected(rig)
    assert (dry.plan, dry.details) == (report.plan, report.details)
    assert report.plan["strays"] == report.plan["files"] == report.done["files"] == count
    assert report.done["bytes"] == report.plan["bytes"] > 0
    assert len(files_of(rig, ledger_id)) == before - count
    assert orphans(rig) == (0, 0)
    assert rig.rows() == flat(PARTITIONS)
    assert all(len(c) == 3 for c in rig.good_copies(ledger_id).values())
    assert rig.ledger(ledger_id).left == set()


@pytest.mark.parametrize("word", ["/journal/", "away"])
def test_nothing_is_unnamed_while_a_member_may_know_of_more(rig: Rig, word: str) -> None:
    """Its journal is gone, so its own files are named by nobody there; or it is away."""
    ledger_id = committed_twice(rig)
    victim, *others = members(rig, ledger_id)
    before = {who: rig.names(who) for who in others}
    disk = rig.lose(victim) if word == "away" else None
    if word != "away":
        take(rig, victim, word, ledger_id)
        before[victim] = rig.names(victim)
    report = verbs.collect(rig.uri)
    assert (report.plan["strays"], report.done["files"]) == (0, 0)
    assert {who: rig.names(who) for who in before} == before
    if disk is not None:
        rig.bring_back(victim, disk)
    repaired(rig)
    assert collected(rig).plan["strays"] > 0
    assert rig.rows() == flat(PARTITIONS)
    assert_whole(rig)


def test_what_is_none_of_ours_among_entry_logs_stays(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS).ledger_id
    odd = f"{layout.entries_folder(ledger_id)}/notes.txt"
    put(rig, members(rig, ledger_id)[0], odd)
    assert collected(rig).plan["files"] == 0
    assert odd in files_of(rig, ledger_id)


# --- killed, and two at once ----------------------------------------------------------------------


def test_ledgers_of_rows_without_rows_are_collected_as_others(rig: Rig) -> None:
    target = rig.target()
    rig.tasks(target, partitions_of(2))
    commit(target, rig.tasks(target, []))
    collected(rig)
    assert [name for name in files_of(rig, target.ledger_id) if "/entries/" in name] == []


def test_a_handle_that_goes_on_while_its_spares_are_freed_is_not_disturbed(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper, keeper.create_ledger(settings=SILENT) as handle:
        for number in range(4):
            handle.append(b"%d" % number)
            collected(rig)
    assert values(rig, handle.ledger_id) == [b"%d" % number for number in range(4)]
