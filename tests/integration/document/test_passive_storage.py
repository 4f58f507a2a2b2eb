"""What goes wrong where bookies are folders and not servers, as scripts on the real code.

Numbers are those of the list of hazards the project was made with (H-nn).
"""

from concurrent.futures import ThreadPoolExecutor

import pytest

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, LedgerFencedError, OutcomeUnknownError
from bkspark.format import journal, layout
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.record import AddRecord
from tests.integration.hand_writer import (
    Gate,
    HandWriter,
    one_by_one,
    stop_at,
    stop_behind,
    violations,
)
from tests.integration.rig import Rig


def test_h3_a_marker_that_comes_late_moves_no_bookie_back(memory_rig: Rig) -> None:
    """Terms 2 and 3 have fenced, by one marker; then what term 2 had sent long ago arrives."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    for _ in range(2):
        with pytest.raises(OutcomeUnknownError):
            writer.recover(run=one_by_one(before=stop_at(recoverer.WriteCopies)))
    before = {name: memory_rig.names(name) for name in writer.names}
    for name, address in addresses(memory_rig, writer.names).items():
        with open_bookie(address).open_root() as root:
            assert not root.put_new(layout.term_marker(writer.ledger_id, 2), b"")
        assert {writer.permission, layout.term_marker(writer.ledger_id, 2)} <= set(before[name])
    assert {name: memory_rig.names(name) for name in writer.names} == before
    with pytest.raises(LedgerFencedError):
        writer.add(0)


def test_h4_nobody_writes_over_what_another_one_wrote(memory_rig: Rig) -> None:
    """A fenced writer still has its disks; its names are its own, and no name is written twice."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    token = writer.metadata.token
    assert writer.recover().last_entry_id == 0
    stored = {name: files(memory_rig, name) for name in writer.names}
    for name, address in addresses(memory_rig, writer.names).items():
        with open_bookie(address).open_root() as root:
            for path in (p for p in stored[name] if "journal" in p):
                with pytest.raises(BookieUnavailableError):
                    root.open_journal(path)
    with pytest.raises(LedgerFencedError):
        writer.put(0, 1)
    own = layout.journal(writer.ledger_id, 1, token)
    for name in writer.names:
        now = files(memory_rig, name)
        assert {path: now[path] for path in stored[name] if path != own} == {
            path: data for path, data in stored[name].items() if path != own
        }
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_h8_a_recovery_copies_records_as_they_are(memory_rig: Rig) -> None:
    """With a LAC of its own in a copy, a reader would see what may yet be closed below."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    writer.add(0)
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id, recovery=False)
        with pytest.raises(OutcomeUnknownError):
            writer.recover(run=one_by_one(before=stop_behind(2)))
        assert reader.read_last_add_confirmed() == -1
    written = [record for name in writer.names for record in records(memory_rig, name, writer)]
    originals = {r.first_entry_id: r for r in (e.record for e in writer._records)}
    assert len(written) > len(originals)
    assert all(record == originals[record.first_entry_id] for record in written)
    # Another recovery that does not hear of bookie 0 sees the copies, and keeps what they hold.
    writer.recover(run=one_by_one(lost=writer.names[:1]))
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_h11_nothing_is_acknowledged_behind_the_close(memory_rig: Rig) -> None:
    """An add that is on its way when its writer closes is waited for first, and is inside."""
    gate = Gate(memory_rig.faults)
    with (
        memory_rig.faults.installed(),
        BookKeeper(memory_rig.uri) as keeper,
        ThreadPoolExecutor(1) as pool,
    ):
        handle = keeper.create_ledger()
        gate.close(*memory_rig.urls)
        future = handle.append_async(b"a")
        closing = pool.submit(handle.close)
        assert memory_rig.ledger(handle.ledger_id).last_entry_id is None
        gate.open()
        closing.result(120)
        assert future.done()
        assert memory_rig.ledger(handle.ledger_id).last_entry_id == future.result() == 0


def addresses(rig: Rig, names: list[str]) -> dict[str, BookieAddress]:
    with Cluster(rig.uri) as cluster:
        return {
            member.bookie_id: address
            for member, address in cluster.addresses().items()
            if member.bookie_id in names
        }


def files(rig: Rig, bookie_id: str) -> dict[str, bytes]:
    return {name: rig.file_bytes(bookie_id, name) for name in rig.names(bookie_id)}


def records(rig: Rig, bookie_id: str, writer: HandWriter) -> list[AddRecord]:
    """All records of groups on a bookie, whoever wrote them there."""
    digester = make_digester(writer.metadata.settings.digest, Password())
    folder = layout.journal_folder(writer.ledger_id)
    found = []
    for path, data in files(rig, bookie_id).items():
        if path.startswith(folder):
            content = journal.decode_journal(data, digester, ledger_id=writer.ledger_id)
            found += [f.record for f in content.frames if not f.record.is_confirmation]
    return found
