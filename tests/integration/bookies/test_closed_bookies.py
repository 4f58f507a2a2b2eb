"""Bookies that get nothing new: by an operator's word, or because their disks are nearly full."""

import logging
from collections.abc import Callable
from dataclasses import replace

import pytest

from bkspark.admin import bookies
from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster import ensembles, records
from bkspark.cluster.bookie_status import note_fullness
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, MetadataVersionError, NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig
from tests.kit.faulty import Fault

ALL_BUT_ONE, ALL = Quorum(4, 3, 2), Quorum(5, 3, 2)


def chosen(rig: Rig, quorum: Quorum = ALL_BUT_ONE) -> set[str]:
    with Cluster(rig.uri) as cluster:
        ledger_id = cluster.new_ledger_id()
        placed = ensembles.choose(cluster, ledger_id, quorum)
        return {address.bookie_id for address in (*placed.ensemble, *placed.spares)}


def fill(rig: Rig, bookie_id: str, used: float) -> None:
    """Have the bookie's disk be used so far."""
    disk = memory.find_disk(rig.urls[bookie_id])
    assert disk is not None
    disk.free_bytes = round(disk.total_bytes * (1 - used))


def is_noted_as_full(rig: Rig, bookie_id: str) -> bool:
    with Cluster(rig.uri) as cluster:
        return cluster.bookie(bookie_id).value.is_full


@pytest.fixture
def full_rig(make_rig: Callable[..., Rig]) -> Rig:
    """Five bookies, of which the first is more than 95 % full."""
    rig = make_rig(kind="memory")
    fill(rig, "bookie-1", 0.96)
    return rig


# --- by an operator's word ------------------------------------------------------------------------


def test_2_5_13_a_read_only_bookie_is_chosen_by_nobody_until_that_is_taken_back(rig: Rig) -> None:
    report = bookies.readonly(rig.uri, "bookie-1")
    assert report.done == {"steps": len(report.plan["steps"])} == {"steps": 1}
    assert chosen(rig) == set(rig.urls) - {"bookie-1"}
    with pytest.raises(NotEnoughBookiesError):
        chosen(rig, ALL)
    assert bookies.readonly(rig.uri, "bookie-1").plan["steps"] == []
    bookies.readonly(rig.uri, "bookie-1", off=True)
    assert chosen(rig, ALL) == set(rig.urls)


def test_3_10_what_it_has_is_read_and_who_writes_to_it_goes_on(
    keeper: BookKeeper, rig: Rig
) -> None:
    with keeper.create_ledger(ensemble_size=5) as ledger:
        ledger.append(b"before")
        bookies.readonly(rig.uri, "bookie-1")
        ledger.append(b"behind")
        assert ledger.faults == {}
    found = keeper.open_ledger(ledger.ledger_id)
    assert [entry.value for entry in found.read()] == [b"before", b"behind"]


def test_3_10_a_recovery_fences_it_and_gives_it_copies(memory_rig: Rig) -> None:
    """It is a member: what it shows and lacks decides as before, and it may be needed for Qa."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    for name in writer.names:
        bookies.readonly(memory_rig.uri, name)
    memory_rig.lose(writer.names[0])
    assert writer.recover().last_entry_id == 0
    with Cluster(memory_rig.uri) as cluster:
        ledger = cluster.ledger(writer.ledger_id).value
    assert ledger.state is LedgerState.CLOSED
    assert any("/journal/" in file for file in memory_rig.names(writer.names[2]))


def test_a_dry_run_changes_nothing(rig: Rig) -> None:
    report = bookies.readonly(rig.uri, "bookie-1", dry_run=True)
    assert (len(report.plan["steps"]), report.done) == (1, {})
    bookies.marks(rig.uri, "bookie-1", high=0.5, low=0.4, dry_run=True)
    with Cluster(rig.uri) as cluster:
        record = cluster.bookie("bookie-1").value
    assert not record.is_read_only
    assert record.marks.high_permille == 950


@pytest.mark.parametrize("bookie_id", ["bookie-9", "../x", ""])
def test_only_what_is_registered_can_be_closed(rig: Rig, bookie_id: str) -> None:
    with pytest.raises(InvalidRequestError):
        bookies.readonly(rig.uri, bookie_id)
    with pytest.raises(InvalidRequestError):
        bookies.marks(rig.uri, bookie_id, high=0.9)


# --- by how full its disk is ----------------------------------------------------------------------


def test_3_11_a_disk_above_its_mark_gets_nothing_new_before_it_is_below_the_lower_one(
    full_rig: Rig,
) -> None:
    assert chosen(full_rig) == set(full_rig.urls) - {"bookie-1"}
    fill(full_rig, "bookie-1", 0.92)
    with pytest.raises(NotEnoughBookiesError):
        chosen(full_rig, ALL)
    fill(full_rig, "bookie-1", 0.89)
    assert chosen(full_rig, ALL) == set(full_rig.urls)
    fill(full_rig, "bookie-1", 0.92)
    assert chosen(full_rig, ALL) == set(full_rig.urls)


def test_both_changes_are_noted_and_told_once(
    full_rig: Rig, said: Callable[..., list[str]]
) -> None:
    for _ in range(2):
        chosen(full_rig)
        assert is_noted_as_full(full_rig, "bookie-1")
    assert len(said(logging.WARNING, "bookie-1", "96 % of its disk is used")) == 1
    fill(full_rig, "bookie-1", 0.5)
    for _ in range(2):
        chosen(full_rig)
        assert not is_noted_as_full(full_rig, "bookie-1")
    assert len(said(logging.WARNING, "bookie-1", "room again")) == 1


def test_nobody_fails_where_it_cannot_be_noted(
    full_rig: Rig, said: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "UPDATE_TRIES_MAX", 5)
    full_rig.faults.decide = lambda _number, operation: (
        Fault(error=MetadataVersionError)
        if operation.name.startswith("bookies/") and operation.call == "put"
        else None
    )
    with full_rig.faults.installed():
        assert chosen(full_rig) == set(full_rig.urls) - {"bookie-1"}
    assert said(logging.WARNING, "bookie-1", "could not be stored")


def test_who_only_looks_notes_nothing(full_rig: Rig) -> None:
    with Cluster(full_rig.uri) as cluster:
        [status] = [s for s in cluster.probe() if s.record.bookie_id == "bookie-1"]
    assert status.is_full
    assert not is_noted_as_full(full_rig, "bookie-1")


def test_a_bookie_that_does_not_answer_stays_what_it_was(full_rig: Rig) -> None:
    chosen(full_rig)
    disk = full_rig.lose("bookie-1")
    chosen(full_rig)
    assert is_noted_as_full(full_rig, "bookie-1")
    full_rig.bring_back("bookie-1", disk)


def test_marks_are_a_bookies_own(full_rig: Rig) -> None:
    report = bookies.marks(full_rig.uri, "bookie-1", high=0.97)
    assert report.plan["steps"] == ["set the marks of bookie-1 to 97 % and 90 %"]
    assert bookies.marks(full_rig.uri, "bookie-1", high=0.97).plan["steps"] == []
    assert chosen(full_rig, ALL) == set(full_rig.urls)
    bookies.marks(full_rig.uri, "bookie-2", high=0.4, low=0.3)
    assert chosen(full_rig) == set(full_rig.urls) - {"bookie-2"}


@pytest.mark.parametrize(
    "marks",
    [
        {"high": 0.8},
        {"low": 0.96},
        {"high": 1.1},
        {"low": 0},
        {"low": -1},
        {"high": float("nan")},
        {"high": 1e300},
    ],
)
def test_marks_that_are_none_are_refused(rig: Rig, marks: dict[str, float]) -> None:
    with pytest.raises(InvalidRequestError):
        bookies.marks(rig.uri, "bookie-1", **marks)


def test_what_was_seen_with_other_marks_or_of_another_disk_is_not_noted(full_rig: Rig) -> None:
    with Cluster(full_rig.uri) as cluster:
        [status] = [s for s in cluster.probe() if s.record.bookie_id == "bookie-1"]
        bookies.marks(full_rig.uri, "bookie-1", high=0.99)
        note_fullness(cluster.registrations, status)
        assert not is_noted_as_full(full_rig, "bookie-1")
        anew = replace(status.record, incarnation="f" * 32)
        cluster.registrations.update("bookie-1", lambda _before: anew)
        note_fullness(cluster.registrations, status)
    assert not is_noted_as_full(full_rig, "bookie-1")


def test_in_a_recovery_one_that_is_full_stands_in_only_where_there_is_no_other(
    make_rig: Callable[..., Rig],
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=6)
    full, *others, gone_too, gone = sorted(rig.urls)
    with Cluster(rig.uri) as cluster:
        cluster.registrations.update(full, lambda record: replace(record, is_full=True))
        for _ in range(20):  # whom chance chooses
            found = ensembles.stand_ins(cluster, 3, exclude=[gone, gone_too], near=[])
            assert {address.bookie_id for address in found} == set(others)
        found = ensembles.stand_ins(cluster, 4, exclude=[gone, gone_too], near=[])
        assert {address.bookie_id for address in found} == {full, *others}
