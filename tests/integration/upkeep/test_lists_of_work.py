"""``repair`` looks at ledgers that may lack copies, and not at all ledgers.

Each fault below comes after a repair has found the ledger whole. So the ledger is settled, and the
fault must be noticed by another way than by a look at each ledger.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin import bookies
from bkspark.admin.auditing.findings import UNDER_REPLICATED
from bkspark.admin.auditing.look import Look
from bkspark.admin.maintenance import Report
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.settled_ledgers import REPAIR, SettledLedgers
from bkspark.format import layout
from bkspark.ledger.deleting import exclude
from bkspark.protocol.upkeep.settling import Settled
from tests.integration.rig import Rig

from .flipping import flip, frames_of, journal_of, scrubbed
from .scenes import audited, copied_records, counted, members, take, written
from .test_repair import give_up, give_up_and_back


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=5)


def repaired(rig: Rig, **options: Any) -> Report:
    return verbs.repair(rig.uri, **{"open_grace": 0, **options})


def noted(rig: Rig) -> Settled:
    with Cluster(rig.uri) as cluster:
        return SettledLedgers(cluster, REPAIR).known()


def settled(rig: Rig) -> int:
    """The id of a closed ledger that a repair has found whole."""
    ledger_id = written(rig)
    assert repaired(rig).left == []
    assert noted(rig).has(ledger_id)
    return ledger_id


def looked_at(rig: Rig, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[int]:
    """The ids of the ledgers that a repair asks bookies about."""
    asked: set[int] = set()
    run = Look.run

    def noting(self: Look, *rest: Any) -> Any:
        asked.update(ledger.ledger_id for ledger in self.ledgers)
        return run(self, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Look, "run", noting)
        repaired(rig, **options)
    return sorted(asked)


def ways(rig: Rig) -> Sequence[str]:
    return [step["way"] for step in repaired(rig, dry_run=True).plan["steps"]]


# --- nothing to do --------------------------------------------------------------------------------


def test_a_run_with_nothing_to_do_asks_as_much_for_1000_ledgers_as_for_10(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.close()

    def cost() -> Counter[str]:
        asked: Counter[str] = Counter()
        with counted(monkeypatch, asked):
            assert looked_at(rig, monkeypatch) == []
        return asked

    copied_records(rig, handle.ledger_id, 9)
    assert len(looked_at(rig, monkeypatch)) == 10
    few = cost()
    assert few["get ledgers"] == few["list ledgers"] == few["list logs"] == few["get logs"] == 0
    copied_records(rig, handle.ledger_id, 990)
    assert len(looked_at(rig, monkeypatch)) == 990
    assert cost() == few


def test_a_dry_run_notes_nothing(rig: Rig) -> None:
    written(rig)
    assert repaired(rig, dry_run=True).left == []
    assert noted(rig) == Settled()


def test_named_ledgers_are_looked_at_whatever_is_noted(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger_id = settled(rig)
    assert looked_at(rig, monkeypatch, ledgers=[ledger_id]) == [ledger_id]


def test_a_ledger_that_its_log_has_dropped_is_settled(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    repaired(rig)
    target = rig.target()
    with Cluster(rig.uri) as cluster:
        assert exclude(cluster, rig.log_name, target.ledger_id, target.quorum)
    settled(rig)
    assert looked_at(rig, monkeypatch) == []
    assert noted(rig).has(target.ledger_id)


# --- lost bookies ---------------------------------------------------------------------------------


def test_a_bookie_is_lost(rig: Rig) -> None:
    ledger_id = settled(rig)
    give_up(rig, members(rig, ledger_id)[0])
    assert ways(rig) == ["replace"]
    assert repaired(rig).left == []
    assert audited(rig).counters[UNDER_REPLICATED] == 0


def test_a_bookie_is_set_up_again(rig: Rig) -> None:
    ledger_id = settled(rig)
    one = members(rig, ledger_id)[0]
    rig.wipe(one)
    assert bookies.reinit(rig.uri, one, accepts_risk=True).left == ()
    assert ways(rig) == ["replace"]


def test_a_bookie_is_silent_and_comes_back(rig: Rig) -> None:
    ledger_id = settled(rig)
    one = members(rig, ledger_id)[0]
    away = rig.lose(one)
    for _ in range(2):  # the second run finds the ledger by the note
        assert [left.subject for left in repaired(rig).left] == [f"ledger {ledger_id}"]
    assert not noted(rig).has(ledger_id)
    rig.bring_back(one, away)
    assert repaired(rig).left == []
    assert noted(rig).has(ledger_id)


def test_a_bookie_gets_copies_after_the_look_and_is_silent_before_the_next_one(
    make_rig: Callable[..., Rig],
) -> None:
    """The note is about other bookies than the ledger names."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=3)
    ledger_id = settled(rig)
    rig.urls["added"] = f"{rig.urls['bookie-1']}-added"
    with Cluster(rig.uri) as cluster:
        cluster.add_bookie("added", rig.urls["added"], accepts_risk=True)
    assert verbs.decommission(rig.uri, bookies=[members(rig, ledger_id)[0]]).left == []
    assert "added" in members(rig, ledger_id)
    rig.lose("added")
    assert [left.subject for left in repaired(rig).left] == [f"ledger {ledger_id}"]


def test_a_ledger_that_names_a_lost_bookie_is_not_settled(rig: Rig) -> None:
    """The bookie still shows its copies; it may end to do so at any time."""
    ledger_id = settled(rig)
    one = members(rig, ledger_id)[0]
    give_up_and_back(rig, one)
    assert repaired(rig).left == []
    assert not noted(rig).has(ledger_id)
    take(rig, one, "/", ledger_id)
    assert ways(rig) == ["replace"]


# --- lost and damaged files -----------------------------------------------------------------------


def test_files_are_lost_and_an_audit_finds_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger_id = settled(rig)
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    assert looked_at(rig, monkeypatch) == []
    assert audited(rig).exit_status == 1
    assert repaired(rig).left == []
    assert audited(rig).exit_status == 0


def test_files_are_lost_and_an_audit_of_this_ledger_finds_it(rig: Rig) -> None:
    ledger_id = settled(rig)
    take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
    assert audited(rig, ledgers=[ledger_id]).exit_status == 1
    assert ways(rig) == ["fill"]


def test_an_audit_without_findings_doubts_nothing(rig: Rig) -> None:
    settled(rig)
    known = noted(rig)
    assert audited(rig).exit_status == 0
    assert noted(rig) == known


def test_a_copy_is_damaged_and_a_scrub_marks_it(rig: Rig) -> None:
    ledger_id = settled(rig)
    one = members(rig, ledger_id)[0]
    name = journal_of(rig, one, ledger_id)
    flip(rig, one, name, frames_of(rig, one, name)[5] - 1)
    assert ways(rig) == []
    assert scrubbed(rig).exit_status == 1
    assert ways(rig) == ["fill"]
    assert repaired(rig).left == []
    assert audited(rig).exit_status == 0


def test_files_are_lost_between_the_look_of_a_repair_and_its_note(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit finds the loss before the repair notes what it saw."""
    ledger_id = written(rig)
    note = SettledLedgers.note

    def late(self: SettledLedgers, look: Any) -> None:
        if self._verb == REPAIR:
            take(rig, members(rig, ledger_id)[0], "/journal/", ledger_id)
            assert audited(rig).exit_status == 1
        note(self, look)

    with monkeypatch.context() as patch:
        patch.setattr(SettledLedgers, "note", late)
        repaired(rig)
    assert not noted(rig).has(ledger_id)
    assert ways(rig) == ["fill"]


# --- unfinished and smaller ledgers ---------------------------------------------------------------


def test_a_ledger_that_is_not_closed_is_looked_at_after_it_was_closed(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    settled(rig)
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        assert looked_at(rig, monkeypatch, open_grace=3600) == [handle.ledger_id]
        take(rig, members(rig, handle.ledger_id)[0], "/journal/", handle.ledger_id)
        handle.close()
    assert ways(rig) == ["fill"]


def test_a_smaller_ledger_is_looked_at_until_it_has_its_copies(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=2)
    ledger_id = written(rig, (3, 3, 2))
    for _ in range(2):
        assert [left.subject for left in repaired(rig).left] == [f"ledger {ledger_id}"]
    rig.urls["third"] = f"{rig.urls['bookie-1']}-third"
    with Cluster(rig.uri) as cluster:
        cluster.add_bookie("third", rig.urls["third"], accepts_risk=True)
    assert repaired(rig).left == []
    assert len(members(rig, ledger_id)) == 3


def test_a_ledger_whose_record_cannot_be_read_is_not_settled(rig: Rig) -> None:
    ledger_id = settled(rig)
    repaired(rig)
    later = written(rig)
    with Cluster(rig.uri) as cluster:
        key = layout.ledger_key(later)
        seen = cluster.store.get(key)
        assert seen is not None
        damaged = cluster.store.put(key, b"damaged", seen.version)
        for _ in range(2):
            assert f"metadata record {key}" in [left.subject for left in repaired(rig).left]
        cluster.store.put(key, seen.value, damaged)
    take(rig, members(rig, later)[0], "/journal/", later)
    assert ways(rig) == ["fill"]
    assert noted(rig).has(ledger_id)
