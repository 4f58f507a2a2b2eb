"""H21: a listing is a hint. Those of some stores leave out names that are new for a while.

Here no listing shows any journal at all. What the metadata tells by name is found all the same, so
nothing that was acknowledged is lost or denied.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bkspark.admin.auditing.audit import gaps_of
from bkspark.admin.auditing.look import show
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import NoSuchEntryError
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.open_tails import create_log, look, numbers, opened, table
from tests.integration.rig import Rig


@contextmanager
def unlisted() -> Iterator[list[str]]:
    """No listing shows a journal; gives the folders that were listed."""
    listed = list[str]()
    real = MemoryRoot.list

    def stale(self: MemoryRoot, folder: str) -> list[str]:
        found = real(self, folder)
        if folder.rpartition("/")[2] != "journal":
            return found
        listed.append(folder)
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryRoot, "list", stale)
        yield listed
    assert listed


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 3, 3), (4, 3, 2)])
def test_a_recovery_finds_the_writers_journals(
    sizes: tuple[int, int, int], memory_rig: Rig
) -> None:
    writer = HandWriter(memory_rig, sizes)
    for first in range(3):
        writer.add(*((first + k) % sizes[0] for k in range(3)), acknowledges=True)
    lost = writer.names[:1] if sizes[2] == 2 else writer.names[:2]
    with unlisted():
        report = writer.recover(run=one_by_one(lost=lost))
    assert report.last_entry_id == 2
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_recovery_finds_the_record_of_the_confirmed_entry(memory_rig: Rig) -> None:
    """It is in an earlier fragment, on a bookie that is no member of the last one."""
    writer = HandWriter(memory_rig, (1, 1, 1))
    writer.add(0, acknowledges=True)
    old = writer.names[0]
    writer.replace(0, next(name for name in memory_rig.urls if name != old))
    with unlisted():
        assert writer.recover().last_entry_id == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_reader_of_an_open_ledger_is_shown_no_less(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    for _ in range(3):
        writer.add(0, 1, 2, acknowledges=True)
    with unlisted(), BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id, recovery=False)
        assert reader.last_add_confirmed == 1
        assert [entry.value for entry in reader.read(0, 1)] == [b"entry 0", b"entry 1"]
        with pytest.raises(NoSuchEntryError):
            list(reader.read(2, 2))


@pytest.mark.parametrize("is_recovered", [False, True])
def test_entries_of_a_closed_ledger_are_read(is_recovered: bool, memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    for _ in range(2):
        writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1)
    if is_recovered:
        writer.recover()
    with unlisted(), BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id)
        values = [entry.value for entry in reader.read(0, 2)]
    assert values == [b"entry 0", b"entry 1", b"entry 2"]


def test_a_plan_finds_the_records_of_a_writer_who_did_not_close_it(memory_rig: Rig) -> None:
    """All was confirmed, so the recovery that closed it has no journal; nothing is missing."""
    writer = HandWriter(memory_rig)
    for _ in range(3):
        writer.add(0, 1, 2, acknowledges=True)
    writer.confirm(0, 1, 2)
    writer.recover()
    ledger = memory_rig.ledger(writer.ledger_id)
    assert ledger.state is LedgerState.CLOSED
    with unlisted(), Cluster(memory_rig.uri) as cluster:
        with OpenBookies(cluster) as bookies:
            found = find_records(bookies, ledger, Password())
        missing = gaps_of(cluster, [ledger.ledger_id])
    assert [record.token for record in found] == [writer.metadata.token]
    assert missing == []


def test_an_audit_finds_what_is_there(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    for _ in range(3):
        writer.add(0, 1, 2, acknowledges=True)
    ledger = writer.metadata
    member = ledger.last_fragment.ensemble[0]
    digester = make_digester(ledger.settings.digest, Password())
    with unlisted(), OpenBookies(writer.cluster) as bookies:
        shown = show(bookies.root(member), member, ledger, digester, lambda: None)
    assert shown.held == [((0, 2), 0)]


def test_an_open_tail_is_planned_and_read(memory_rig: Rig) -> None:
    with Cluster(memory_rig.uri) as cluster:
        create_log(cluster)
        writer = opened(cluster)
        for first, count in ((0, 5), (5, 4), (9, 3)):
            writer.append_many(table(first, count))
        with unlisted():
            view = look(cluster)
            assert (view.end_offset, view.has_open_end) == (9, True)
            assert numbers(cluster, view, 0, 9) == list(range(9))
        writer.close()
