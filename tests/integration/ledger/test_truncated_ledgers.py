"""A ledger that has let go of its beginning: who reads it, goes on in it, or looks after it."""

from collections.abc import Iterator

import pytest

from bkspark import NoSuchEntryError, admin
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import InvalidRequestError, NoSuchLedgerError
from bkspark.ledger.deleting import truncate_ledger
from bkspark.protocol.ledger.metadata import LedgerState, Member
from tests.integration.going_on import SECONDS, add, begun, successor, those_from, values
from tests.integration.rig import Rig


@pytest.fixture
def cluster(memory_rig: Rig) -> Iterator[Cluster]:
    with Cluster(memory_rig.uri) as cluster:
        yield cluster


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def test_readers_are_refused_what_lies_in_front(cluster: Cluster, keeper: BookKeeper) -> None:
    with begun(cluster) as handle:
        add(handle)
        late = keeper.open_ledger(handle.ledger_id, recovery=False)
        assert truncate_ledger(cluster, handle.ledger_id, 5).first_available == 4
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
        last = reader.last_add_confirmed
        assert [entry.entry_id for entry in reader.read()] == list(range(4, last + 1))
        for read in (reader.read, reader.read_arrow):
            with pytest.raises(NoSuchEntryError, match=r"begins at entry 4, .* was truncated"):
                list(read(3))
        with pytest.raises(NoSuchEntryError, match="begins at entry 4"):
            list(reader.read_unconfirmed(0, 9))
        late.read_last_add_confirmed()
        with pytest.raises(NoSuchEntryError, match="begins at entry 4"):
            list(late.read(0))
        handle.append(b"8")
    assert values(keeper, handle.ledger_id) == those_from(4, 9)


def test_its_writer_goes_on_and_so_does_who_takes_over(
    cluster: Cluster, keeper: BookKeeper
) -> None:
    handle = begun(cluster)
    add(handle)
    truncate_ledger(cluster, handle.ledger_id, 100)
    assert handle.append(b"8") == 8
    assert handle.begin_fragment().result(SECONDS) == 9
    handle.begin_fragment().result(SECONDS)
    assert handle.metadata.first_available == 4
    handle.release()
    with successor(cluster, handle.ledger_id) as second:
        assert second.last_add_confirmed == 8
        assert second.metadata.first_available == 4
        assert truncate_ledger(cluster, handle.ledger_id, 100).first_available == 6
        assert second.append(b"9") == 9
    ledger = cluster.ledger(handle.ledger_id).value
    assert ledger.length_bytes == 10
    assert (ledger.state, ledger.last_entry_id) == (LedgerState.CLOSED, 9)
    assert values(keeper, handle.ledger_id) == those_from(6, 10)
    assert truncate_ledger(cluster, handle.ledger_id, 100).first_available == 9
    assert values(keeper, handle.ledger_id) == those_from(9, 10)


def test_behind_a_fragment_without_entries_its_length_is_known_still(
    cluster: Cluster, keeper: BookKeeper
) -> None:
    """The last record lies in the fragment in front of it."""
    handle = begun(cluster)
    add(handle)
    handle.begin_fragment().result(SECONDS)
    assert truncate_ledger(cluster, handle.ledger_id, 100).first_available == 6
    handle.release()
    keeper.recover_ledger(handle.ledger_id)
    ledger = cluster.ledger(handle.ledger_id).value
    assert (ledger.last_entry_id, ledger.length_bytes) == (7, 8)
    assert values(keeper, handle.ledger_id) == those_from(6, 8)


def test_an_audit_knows_only_what_is_left(
    cluster: Cluster, keeper: BookKeeper, memory_rig: Rig
) -> None:
    with begun(cluster) as handle:
        gone = set[Member]()
        while not gone:
            add(handle)
            before = handle.metadata
            left = {m for f in before.fragments[-2:] for m in f.ensemble}
            gone = {m for f in before.fragments for m in f.ensemble} - left
        truncate_ledger(cluster, handle.ledger_id, 100)
    for member in gone:
        memory_rig.lose(member.bookie_id)
    report = admin.audit(memory_rig.uri)
    assert not [one for one in report.left if f"ledger {handle.ledger_id}" in one.subject]
    ledger = cluster.ledger(handle.ledger_id).value
    end = (ledger.last_entry_id or 0) + 1
    assert values(keeper, handle.ledger_id) == those_from(ledger.first_available, end)


def test_what_does_not_go_on_is_not_truncated(cluster: Cluster, keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"0")
    with pytest.raises(InvalidRequestError, match="only one that goes on"):
        truncate_ledger(cluster, handle.ledger_id, 1)
    with pytest.raises(NoSuchLedgerError):
        truncate_ledger(cluster, 99, 1)
