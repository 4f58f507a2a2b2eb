"""``recover --all`` reads a closed ledger once, so its cost grows with new ledgers only."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bkspark import environment, verbs
from bkspark.admin.maintenance import Report
from bkspark.admin.survey import Survey
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import settled_ledgers
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.gone_ledgers import GoneLedgers
from bkspark.cluster.records import Notes
from bkspark.cluster.settled_ledgers import RECOVER, SettledLedgers, missed, unclosed_ledgers
from bkspark.errors import CorruptDataError
from bkspark.format import layout, strict_json, upkeep_records
from bkspark.ledger.deleting import exclude
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.upkeep.settling import UNBORN_SECONDS, Settled
from tests.integration.rig import Rig

from .scenes import copied_records, counted, written

DAY_MS = int(UNBORN_SECONDS * 1000)


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="memory", metadata="memory", bookie_count=3)


def recovered(rig: Rig, **options: Any) -> Report:
    return verbs.recover(rig.uri, **{"open_grace": 0, **options})


def recovered_ids(report: Report) -> list[int]:
    return [row["ledger_id"] for row in report.details["recovered"]]


def left_open(rig: Rig) -> int:
    """The id of a ledger whose writer has gone."""
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        handle.release()
    return handle.ledger_id


def noted(rig: Rig) -> Settled:
    with Cluster(rig.uri) as cluster:
        seen = cluster.store.get(layout.settled_key(RECOVER))
    return Settled() if seen is None else upkeep_records.decode_settled(RECOVER, seen.value)


def cost(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    asked: Counter[str] = Counter()
    with counted(monkeypatch, asked):
        assert recovered(rig).left == []
    return asked


def test_a_run_with_nothing_to_do_asks_as_much_for_many_ledgers_as_for_few(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = written(rig)
    recovered(rig)
    few = cost(rig, monkeypatch)
    assert few["get ledgers"] == few["list ledgers"] == few["list logs"] == 0
    copied_records(rig, one, 300)
    first = cost(rig, monkeypatch)
    assert (first["get ledgers"], first["list ledgers"]) == (300, 0)
    assert cost(rig, monkeypatch) == few


def test_many_new_ledgers_are_named_by_one_listing(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settled_ledgers, "WALKED_MAX", 4)
    one = written(rig)
    with Cluster(rig.uri) as cluster:
        for _ in range(50):  # ids whose ledgers were never made
            cluster.new_ledger_id()
    ids = copied_records(rig, one, 2)
    last = left_open(rig)
    asked: Counter[str] = Counter()
    with counted(monkeypatch, asked):
        assert recovered_ids(recovered(rig)) == [last]
    assert asked["list ledgers"] == 1
    assert asked["get ledgers"] < 50
    assert all(noted(rig).has(ledger_id) for ledger_id in (one, *ids))
    assert cost(rig, monkeypatch)["list ledgers"] == 0


def test_an_open_ledger_is_read_until_it_is_closed(rig: Rig) -> None:
    first = left_open(rig)
    written(rig)
    last = left_open(rig)
    assert recovered_ids(recovered(rig, open_grace=3600)) == []
    assert noted(rig).exceptions.keys() == {first, last}
    assert recovered_ids(recovered(rig)) == [first, last]
    recovered(rig)
    assert noted(rig) == Settled(last + 1)


def test_a_dry_run_notes_nothing(rig: Rig) -> None:
    ledger_id = left_open(rig)
    assert recovered(rig, dry_run=True).plan["ledgers"] == 1
    assert noted(rig) == Settled()
    assert recovered_ids(recovered(rig)) == [ledger_id]


def test_a_ledger_that_is_made_after_the_look_is_found_by_the_next_one(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        record = cluster.ledger(left_open(rig)).value
        late = cluster.new_ledger_id()  # a client took the id, and is slow
        written(rig)
        recovered(rig)
        assert late in noted(rig).exceptions
        cluster.ledgers.create(str(late), replace(record, ledger_id=late))
    assert late in [row["ledger_id"] for row in recovered(rig, dry_run=True).plan["recover"]]


def test_an_id_whose_ledger_was_never_made_is_asked_for_during_a_day(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster:
        late = cluster.new_ledger_id()
    began = environment.now_ms()
    for passed, is_asked in ((0, True), (DAY_MS - 1, True), (DAY_MS, False)):
        with Survey(rig.uri) as cluster:
            looked = unclosed_ledgers(cluster, began + passed)
            SettledLedgers(cluster, RECOVER).note(looked.look)
        assert (late in noted(rig).exceptions) == is_asked


def test_a_gone_ledger_is_settled(rig: Rig) -> None:
    ledger_id = written(rig)
    with Cluster(rig.uri) as cluster:
        GoneLedgers(cluster.store, cluster.cluster_id).note([ledger_id])
        cluster.store.delete(layout.ledger_key(ledger_id))
    recovered(rig)
    assert noted(rig) == Settled(ledger_id + 1)


def test_a_ledger_whose_record_cannot_be_read_is_told_by_each_run(rig: Rig) -> None:
    ledger_id = written(rig)
    key = layout.ledger_key(ledger_id)
    with Cluster(rig.uri) as cluster:
        seen = cluster.store.get(key)
        assert seen is not None
        cluster.store.put(key, b"damaged", seen.version)
    for _ in range(2):
        assert [left.subject for left in recovered(rig).left] == [f"metadata record {key}"]
    with Survey(rig.uri) as survey:
        looked = unclosed_ledgers(survey, environment.now_ms() + 2 * DAY_MS)
        SettledLedgers(survey, RECOVER).note(looked.look)
    assert noted(rig).exceptions.keys() == {ledger_id}


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_ledger_closed_beside_the_look_is_settled_by_the_next_one(
    rig: Rig, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer closes the ledger just before or just after the change of the note."""
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger()
        handle.append(b"0")
        replaced = Notes.write_over

        def closing(notes: Any, name: str, value: Any) -> Any:
            if not isinstance(value, Settled):
                return replaced(notes, name, value)
            if moment == "before":
                handle.close()
            done = replaced(notes, name, value)
            if moment == "after":
                handle.close()
            return done

        with monkeypatch.context() as patch:
            patch.setattr(Notes, "write_over", closing)
            recovered(rig, open_grace=3600)
    assert noted(rig).exceptions.keys() == {handle.ledger_id}
    assert recovered_ids(recovered(rig)) == []
    assert noted(rig) == Settled(handle.ledger_id + 1)


def test_a_run_keeps_what_an_audit_doubts_meanwhile(rig: Rig) -> None:
    """The audit doubts between the look and the note of another run."""
    closed = written(rig)
    with Survey(rig.uri) as cluster:
        settled = SettledLedgers(cluster, RECOVER)
        settled.note(unclosed_ledgers(cluster, 1).look)
        written(rig)
        looked = unclosed_ledgers(cluster, 2)
        settled.doubt([closed], 3)
        settled.note(looked.look)
    later = closed + 2
    assert noted(rig) == Settled(later, {closed: 3}, doubts=1, doubted={closed: 1})


def wrongly_settled(rig: Rig) -> int:
    """An open ledger that a note calls settled, as after a restored backup."""
    ledger_id = left_open(rig)
    with Cluster(rig.uri) as cluster:
        SettledLedgers(cluster, RECOVER)._change(lambda _: Settled(ledger_id + 1))
    return ledger_id


def test_an_audit_finds_what_a_note_wrongly_calls_settled(rig: Rig) -> None:
    ledger_id = wrongly_settled(rig)
    closed = written(rig)
    assert recovered_ids(recovered(rig)) == []
    report = verbs.audit(rig.uri)
    assert (report.exit_status, [left.subject for left in report.left]) == (
        1,
        [f"ledger {ledger_id}"],
    )
    assert "took it for closed" in report.left[0].reason
    assert recovered_ids(recovered(rig)) == [ledger_id]
    assert verbs.audit(rig.uri).left == []
    recovered(rig)
    assert noted(rig) == Settled(closed + 1, {}, doubts=1)


def test_an_audit_of_some_ledgers_is_about_these(rig: Rig) -> None:
    ledger_id = wrongly_settled(rig)
    assert verbs.audit(rig.uri, ledgers=[ledger_id]).left == []


def test_an_audit_says_nothing_about_a_ledger_closed_since(rig: Rig) -> None:
    ledger_id = wrongly_settled(rig)
    with BookKeeper(rig.uri) as keeper:
        keeper.recover_ledger(ledger_id)
    with Survey(rig.uri) as cluster:
        assert missed(cluster, [ledger_id], 1) == []


def test_a_note_that_cannot_be_read_costs_a_look_at_all(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = written(rig)
    copied_records(rig, one, 5)
    recovered(rig)
    key = layout.settled_key(RECOVER)
    with Cluster(rig.uri) as cluster:
        seen = cluster.store.get(key)
        assert seen is not None
        cluster.store.put(key, b"damaged", seen.version)
    assert cost(rig, monkeypatch)["get ledgers"] == 6
    assert noted(rig) == Settled(one + 6)


def test_a_note_has_exceptions_of_its_own_ledgers() -> None:
    known = Settled(9, {3: 5, 7: 6}, "bookies", 4)
    assert (
        upkeep_records.decode_settled(
            RECOVER, upkeep_records.encode_settled(RECOVER, known, "nonce")
        )
        == known
    )
    key = layout.settled_key(RECOVER)
    for below, exceptions in ((3, [[3, 5]]), (9, [[3, 5], [3, 6]]), (9, [[-1, 5]]), (9, [7])):
        fields = {"below": below, "exceptions": exceptions, "members": "", "doubts": 0}
        with pytest.raises(CorruptDataError):
            upkeep_records.decode_settled(
                RECOVER, strict_json.encode(upkeep_records.SETTLED_KIND, key, fields)
            )
    full = Settled(2**63 - 1, {2**62 + n: 2**42 for n in range(20_000)}, "b" * 64, 2**62)
    assert len(upkeep_records.encode_settled(RECOVER, full, "nonce")) < 768 * 1024


def test_an_open_ledger_that_its_log_has_dropped_is_left_to_a_collection(rig: Rig) -> None:
    target = rig.target()
    ledger_id = target.ledger_id
    with Cluster(rig.uri) as cluster:
        assert recovered(rig, dry_run=True).plan["ledgers"] == 1
        assert exclude(cluster, rig.log_name, ledger_id, target.quorum)
    assert recovered_ids(recovered(rig)) == []
    assert noted(rig).exceptions.keys() == {ledger_id}


def test_a_deleted_ledger_is_settled(rig: Rig) -> None:
    ledger_id = left_open(rig)
    with BookKeeper(rig.uri) as keeper:
        keeper.delete_ledger(ledger_id)
    with Cluster(rig.uri) as cluster:
        seen = cluster.ledgers.get(str(ledger_id))
    assert seen is not None
    assert seen.value.state is LedgerState.DELETING
    assert recovered_ids(recovered(rig)) == []
    assert noted(rig) == Settled(ledger_id + 1)
