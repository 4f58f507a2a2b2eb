"""``collect`` looks at ledgers that may have something to free, and not at all ledgers.

Each ledger below is settled first: a collection has found that it is needed, and all its files are.
What comes then must be announced, or be found by an audit.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin import bookies
from bkspark.admin.collecting.freeing import FindUnfinished, ListLedgers
from bkspark.admin.collecting.unwanted import ShowEntryLogs
from bkspark.admin.maintenance import no_progress
from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.cluster.settled_ledgers import COLLECT, SettledLedgers
from bkspark.format import layout
from bkspark.ledger import deleting
from bkspark.ledger.deleting import truncate_ledger
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.recovery.steps import Silence
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way
from bkspark.protocol.upkeep.settling import Settled
from tests.integration.rig import Rig

from .garbage import collected, deleted_ledger, files_of, gone, ids_in_metadata, raw_ledger
from .scenes import PARTITIONS, audited, copied_records, counted, members, written
from .test_collect import NAME, fill, put, values
from .test_collect_copies import committed_twice, names_of
from .test_collect_old_journals import journals, three_terms
from .test_collect_unfinished import ATTEMPT, begun
from .test_killed_drivers import OTHERS, WEEK_MS, made_by_a_clock


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=5)


def noted(rig: Rig) -> Settled:
    with Cluster(rig.uri) as cluster:
        return SettledLedgers(cluster, COLLECT).known()


def settle(rig: Rig, *ledger_ids: int) -> None:
    """Collect until a collection needs no look at these ledgers, or at any."""
    for _ in range(3):
        collected(rig)
    for ledger_id in ledger_ids:
        assert noted(rig).has(ledger_id)


def settled(rig: Rig) -> int:
    ledger_id = written(rig)
    settle(rig, ledger_id)
    return ledger_id


def found_by_an_audit(rig: Rig) -> Any:
    """A collection does not find it, and says that nothing is left. After an audit it finds it."""
    assert collected(rig).plan["files"] == 0
    audited(rig)
    report = collected(rig)
    assert report.done["files"] == report.plan["files"] > 0
    return report


# --- nothing to do --------------------------------------------------------------------------------


def test_a_run_with_nothing_to_do_asks_as_much_for_1000_ledgers_as_for_10(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = raw_ledger(rig)

    def cost() -> Counter[str]:
        asked: Counter[str] = Counter()
        run = ListLedgers.run

        def noting(self: ListLedgers, *rest: Any) -> Any:
            asked["lists of bookies"] += 1
            return run(self, *rest)

        with monkeypatch.context() as patch, counted(monkeypatch, asked):
            patch.setattr(ListLedgers, "run", noting)
            collected(rig)
        return asked

    copied_records(rig, ledger_id, 9)
    settle(rig)
    few = cost()
    assert few["get ledgers"] == few["list ledgers"] == few["lists of bookies"] == 0
    copied_records(rig, ledger_id, 990)
    settle(rig)
    assert cost() == few


def test_a_dry_run_notes_nothing(rig: Rig) -> None:
    written(rig)
    verbs.collect(rig.uri, dry_run=True)
    assert noted(rig) == Settled()


# --- what a record announces ----------------------------------------------------------------------


def test_a_ledger_is_deleted(rig: Rig) -> None:
    ledger_id = settled(rig)
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_ledger(ledger_id)
    assert collected(rig).done["ledgers"] == 1
    assert files_of(rig, ledger_id) == []
    settle(rig, ledger_id)


def test_a_ledger_is_deleted_and_the_note_cannot_be_stored(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = settled(rig)
    with monkeypatch.context() as killed:
        killed.setattr(deleting, "tell_collections", lambda *_: None)
        with BookKeeper(rig.uri) as keeper:
            keeper.delete_ledger(ledger_id)
    found_by_an_audit(rig)
    assert gone(rig) == {ledger_id}


def test_a_ledger_is_deleted_between_the_look_and_the_note(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The collection has read it as closed. Others that it has read are settled."""
    ledger_id, other = written(rig), written(rig)
    note = SettledLedgers.note

    def late(self: SettledLedgers, look: Any) -> None:
        with BookKeeper(rig.uri) as keeper:
            keeper.delete_ledger(ledger_id)
        note(self, look)

    with monkeypatch.context() as patch:
        patch.setattr(SettledLedgers, "note", late)
        collected(rig)
    assert (noted(rig).has(ledger_id), noted(rig).has(other)) == (False, True)
    assert collected(rig).done["ledgers"] == 1


def test_a_log_is_deleted(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        fill(log, 1, 1)
        settle(rig, *log.record.listed_ids)
        keeper.delete_log(NAME)
    assert collected(rig).done["ledgers"] == 2


def test_a_log_is_truncated_and_overwritten(rig: Rig) -> None:
    rig.write(OTHERS)
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        sent = fill(log, 1, 1, 1)
        settle(rig, *log.record.listed_ids)
        log.truncate(before_offset=2)
        rig.write(PARTITIONS, is_overwrite=True)
        assert collected(rig).done["ledgers"] == 3
        assert values(log) == sent[2:]


def test_ledgers_were_deleted_and_their_log_has_forgotten_them(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log(NAME)
        fill(log, 1, 1, 1)
        settle(rig, *log.record.listed_ids)
        log.truncate(before_offset=2)
        assert not keeper.open_log(NAME).record.has_any_dropped
    assert collected(rig).done["ledgers"] == 2


def test_a_write_is_aborted_after_collections_have_seen_it(rig: Rig) -> None:
    target = rig.target()
    rig.tasks(target, OTHERS)
    settle(rig)
    assert verbs.collect(rig.uri, abandoned_after=0).done["ledgers"] == 1


def test_a_ledger_of_a_clock_that_is_behind_is_not_aborted_after_the_others_are_settled(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = rig.write(PARTITIONS).ledger_id
    settle(rig, ledger_id)
    made_by_a_clock(rig, -WEEK_MS - 1000, monkeypatch)
    assert collected(rig).done["ledgers"] == 0


def test_what_a_compaction_replaced_is_kept_for_readers_by_each_collection(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [rig.write(PARTITIONS).ledger_id, rig.write(OTHERS).ledger_id]
    settle(rig, *ids)
    assert verbs.compact(rig.uri, log=rig.log_name).left == []
    settle(rig)
    assert set(ids) < set(ids_in_metadata(rig))
    later = environment.now_ms() + 2 * 86_400_000
    with monkeypatch.context() as tomorrow:
        tomorrow.setattr(environment, "now_ms", lambda: later)
        assert collected(rig).done["ledgers"] == 2


def test_the_beginning_of_a_closed_ledger_goes(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        handle = three_terms(cluster)
        handle.close()
        settle(rig, handle.ledger_id)
        truncate_ledger(cluster, handle.ledger_id, 6)
        assert collected(rig).plan["journals"] > 0
        assert sorted(journals(cluster, rig, handle.ledger_id)) == [2, 3]


def moved(rig: Rig, ledger_id: int) -> str:
    """A member's place goes to another bookie, and nothing else changes; return the member's id."""
    member = rig.ledger(ledger_id).last_fragment.ensemble[0]
    need = Need(Place(ledger_id, 0, 0, member), MemberState.ANSWERS, 2, "it is moved")
    with Cluster(rig.uri) as cluster:
        work = Repair(cluster, Password(), in_threads, None)
        step = RepairStep(need, Way.REPLACE, is_move=True)
        work.carry_out(RepairPlan((step,)), no_progress)
    assert member.bookie_id not in members(rig, ledger_id)
    return member.bookie_id


def test_a_place_goes_to_another_bookie(rig: Rig) -> None:
    ledger_id = settled(rig)
    old = moved(rig, ledger_id)
    assert collected(rig).plan["copies"] == 1
    assert names_of(rig, old, ledger_id) == []
    settle(rig, ledger_id)


def test_a_bookie_was_silent_while_copies_on_it_became_unneeded(
    make_rig: Callable[..., Rig],
) -> None:
    """The ledger counts as settled while the bookie is away. Its return is a change."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=6)
    ledger_id = settled(rig)
    old = moved(rig, ledger_id)
    disk = rig.lose(old)
    for _ in range(3):
        verbs.collect(rig.uri)
    assert noted(rig).has(ledger_id)
    rig.bring_back(old, disk)
    assert collected(rig).plan["copies"] == 1


def test_a_ledger_gets_a_further_member(make_rig: Callable[..., Rig]) -> None:
    """Another bookie that was tried may have copies, too."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=2)
    ledger_id = written(rig, (3, 3, 2))
    with Cluster(rig.uri) as cluster:
        cluster.add_bookie("third", f"{rig.urls['bookie-1']}-third", accepts_risk=True)
    settle(rig, ledger_id)
    assert verbs.repair(rig.uri, open_grace=0).left == []
    assert not noted(rig).has(ledger_id)


def test_copies_that_the_last_free_bookie_keeps_are_looked_at_again(
    make_rig: Callable[..., Rig],
) -> None:
    """A bookie that is made writable again is no other bookie."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=5)
    ledger_id = written(rig)
    old = moved(rig, ledger_id)
    free = next(name for name in rig.urls if name not in {*members(rig, ledger_id), old})
    bookies.readonly(rig.uri, free)
    for _ in range(3):
        assert collected(rig).plan["copies"] == 0
    bookies.readonly(rig.uri, free, off=True)
    assert collected(rig).plan["copies"] == 1


# --- what no record announces ---------------------------------------------------------------------


def test_a_task_that_was_paused_writes_to_a_ledger_that_is_gone(rig: Rig) -> None:
    ledger_id = deleted_ledger(rig)
    settle(rig, ledger_id)
    assert ids_in_metadata(rig) == []
    put(rig, "bookie-1", layout.entry_log(ledger_id, ATTEMPT, 0))
    assert found_by_an_audit(rig).plan["late"] == 1
    assert files_of(rig, ledger_id) == []


def test_a_task_that_was_paused_writes_to_a_ledger_that_is_closed(rig: Rig) -> None:
    ledger_id = committed_twice(rig)
    settle(rig, ledger_id)
    put(rig, members(rig, ledger_id)[0], layout.entry_log(ledger_id, ATTEMPT, 0))
    assert found_by_an_audit(rig).plan["strays"] == 1


def test_a_task_was_killed_while_it_wrote_to_a_ledger_that_is_closed(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="file", metadata="memory", bookie_count=3)
    ledger_id = settled(rig)
    begun(rig, ledger_id, members(rig, ledger_id)[0])
    assert found_by_an_audit(rig).plan["unfinished"] == 1


def test_a_full_collection_looks_at_all(rig: Rig) -> None:
    ledger_id = committed_twice(rig)
    settle(rig, ledger_id)
    put(rig, members(rig, ledger_id)[0], layout.entry_log(ledger_id, ATTEMPT, 0))
    assert collected(rig).plan["strays"] == 0
    assert verbs.collect(rig.uri, full=True).plan["strays"] == 1


# --- looks that prove nothing ---------------------------------------------------------------------


@pytest.mark.parametrize("look", [ListLedgers, FindUnfinished, ShowEntryLogs])
def test_a_ledger_of_a_bookie_that_fails_during_the_look_is_looked_at_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, look: Any
) -> None:
    ledger_id = written(rig)
    victim = members(rig, ledger_id)[0]
    run = look.run

    def failing(self: Any, *rest: Any) -> Any:
        if self.address.bookie_id == victim:
            return {} if look is ShowEntryLogs else Silence("it fails")
        return run(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(look, "run", failing)
        verbs.collect(rig.uri)
    assert not noted(rig).has(ledger_id)
    settle(rig, ledger_id)


def test_a_log_that_cannot_be_read_settles_none_of_its_ledgers(rig: Rig) -> None:
    ledger_id = rig.write(PARTITIONS).ledger_id
    with Cluster(rig.uri) as cluster:
        key = layout.log_key(rig.log_name)
        good = cluster.store.get(key)
        assert good is not None
        version = cluster.store.put(key, b"damaged", good.version)
        verbs.collect(rig.uri)
        assert not noted(rig).has(ledger_id)
        cluster.store.put(key, good.value, version)
    settle(rig, ledger_id)


def test_a_ledger_that_cannot_be_read_is_looked_at_again(rig: Rig) -> None:
    ledger_id = written(rig)
    with Cluster(rig.uri) as cluster:
        key = layout.ledger_key(ledger_id)
        good = cluster.store.get(key)
        assert good is not None
        version = cluster.store.put(key, b"damaged", good.version)
        for _ in range(2):
            assert [one.subject for one in verbs.collect(rig.uri).left] == [f"ledger {ledger_id}"]
        cluster.store.put(key, good.value, version)
    settle(rig, ledger_id)
