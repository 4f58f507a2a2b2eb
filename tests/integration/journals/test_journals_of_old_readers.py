"""Journals that come to a bookie, or back to it, while a reader already knows some of it."""

from collections.abc import Callable

import pytest

from bkspark.admin.repairing.repair import Repair, RepairPlan, RepairStep
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.ledger.recovery.running import in_threads
from bkspark.protocol.upkeep.repairing import MemberState, Need, Place, Way
from tests.integration.rig import Rig

LONG = 700_000
"""So that two groups are on two pages."""


def move(rig: Rig, ledger_id: int, index: int, to: str) -> None:
    """Let another bookie have a place of the last fragment."""
    fragment = rig.ledger(ledger_id).last_fragment
    place = Place(ledger_id, fragment.first_entry_id, index, fragment.ensemble[index])
    step = RepairStep(
        Need(place, MemberState.ANSWERS, 0, "it moves"), Way.REPLACE, to=to, is_move=True
    )
    with Cluster(rig.uri) as cluster:
        work = Repair(cluster, Password(), in_threads, None)
        work.carry_out(RepairPlan((step,)), lambda _done, _total: None)
    assert work.left == []


def journal_of(rig: Rig, ledger_id: int, entry_id: int) -> str:
    """Of the writer that an entry is of."""
    owner = rig.ledger(ledger_id).fragment_of(entry_id)
    return layout.journal(ledger_id, owner.term, owner.token)


def take(rig: Rig, bookie_id: str, name: str) -> bytes:
    data = rig.file_bytes(bookie_id, name)
    rig.replace_file(bookie_id, name, None)
    return data


@pytest.fixture
def rig(make_rig: Callable[..., Rig]) -> Rig:
    return make_rig(kind="file", bookie_count=3)


def test_a_reader_finds_the_part_that_a_bookie_got_with_another_place(rig: Rig) -> None:
    """The journal that it knows there shows the same record, with the part of the old place."""
    with BookKeeper(rig.uri) as keeper:
        sizes = {"ensemble_size": 2, "write_quorum_size": 1, "ack_quorum_size": 1}
        with keeper.create_ledger(**sizes) as handle:
            for letter in (b"a", b"b"):
                handle.append_many([letter * LONG, letter * LONG])
        first, second = (m.bookie_id for m in handle.metadata.last_fragment.ensemble)
        third = next(name for name in rig.urls if name not in (first, second))
        old = keeper.open_ledger(handle.ledger_id)
        assert [entry.value[:1] for entry in old.read(0, 1)] == [b"a", b"a"]
        move(rig, handle.ledger_id, 0, third)
        move(rig, handle.ledger_id, 1, first)
        fresh = keeper.open_ledger(handle.ledger_id)
        assert [entry.value[:1] for entry in fresh.read(2, 3)] == [b"b", b"b"]
        [journal] = [name for name in rig.names(second) if "/journal/" in name]
        take(rig, second, journal)
        assert [entry.value[:1] for entry in old.read(2, 3)] == [b"b", b"b"]


def test_an_error_names_no_journal_that_is_back(rig: Rig) -> None:
    """The one of the first writer was gone, and has nothing of what is lost now."""
    with BookKeeper(rig.uri) as keeper:
        log = keeper.create_log("wal", unbounded=True)
        for value in (b"0", b"1"):
            with log.writer() as writer:
                writer.append(value)
        (ledger,) = log.ledgers
        reader = keeper.open_ledger(ledger.ledger_id, recovery=False)
        assert [entry.value for entry in reader.read(0, 1)] == [b"0", b"1"]
        reader._entry_reader._pages.clear()
        first, second = (journal_of(rig, ledger.ledger_id, n) for n in (0, 1))
        kept = {name: take(rig, name, first) for name in rig.urls}
        with pytest.raises(CorruptDataError, match=first):
            list(reader.read(0, 0))
        for name, data in kept.items():
            (rig.folder / rig.urls[name].rpartition("/")[2] / first).write_bytes(data)
            take(rig, name, second)
        reader._entry_reader._pages.clear()
        with pytest.raises(CorruptDataError, match=second) as error:
            list(reader.read(1, 1))
    assert first not in str(error.value)
