"""Readers of ledgers that change meanwhile: bookies join, terms open, all is closed or deleted."""

from collections.abc import Iterator

import pytest

from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookieUnavailableError, NoSuchLedgerError, UnauthorizedError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.ledger.record import confirmation
from tests.integration.hand_writer import HandWriter
from tests.integration.rig import Rig


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def written(keeper: BookKeeper, count: int, sizes: tuple[int, int, int] = (3, 3, 2)) -> WriteHandle:
    """A closed ledger of one record per entry, whose values are the ids as text."""
    e, qw, qa = sizes
    with keeper.create_ledger(ensemble_size=e, write_quorum_size=qw, ack_quorum_size=qa) as handle:
        for number in range(count):
            handle.append(b"%d" % number)
    return handle


def members(handle: WriteHandle) -> list[str]:
    return [member.bookie_id for member in handle.metadata.last_fragment.ensemble]


def journal_on(rig: Rig, bookie_id: str) -> str:
    [name] = [name for name in rig.names(bookie_id) if "/journal/" in name]
    return name


def test_rb_22_a_reader_follows_its_entries_to_bookies_that_joined(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """The reader's metadata is older than the ensemble that holds what it may read."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    reader = keeper.open_ledger(writer.ledger_id, recovery=False)
    fresh = [name for name in memory_rig.urls if name not in writer.names]
    for index in range(3):
        writer.replace(index, fresh[index])
    for _ in range(2):
        writer.add(0, 1, 2, acknowledges=True)
    assert [entry.value for entry in reader.read_unconfirmed(0, 2)] == [
        b"entry 0",
        b"entry 1",
        b"entry 2",
    ]


def test_2_1_25_a_tail_reader_sees_recovery_and_close(memory_rig: Rig, keeper: BookKeeper) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, 2, acknowledges=True)
    reader = keeper.open_ledger(writer.ledger_id, recovery=False)
    assert (reader.last_add_confirmed, reader.is_closed) == (0, False)
    writer.recover()
    assert reader.wait_for(1, timeout=20)
    assert reader.is_closed
    assert [entry.value for entry in reader.read()] == [b"entry 0", b"entry 1"]
    assert not reader.wait_for(2, timeout=20)


def test_h33_a_reader_of_a_ledger_that_is_deleted_says_so_and_skips_nothing(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = written(keeper, 3)
    reader = keeper.open_ledger(handle.ledger_id)
    keeper.delete_ledger(handle.ledger_id)
    for name in members(handle):
        memory_rig.replace_file(name, journal_on(memory_rig, name), None)
    losses: list[object] = []
    with pytest.raises(NoSuchLedgerError):
        list(reader.batches(0, 2, on_loss=lambda *loss: losses.append(loss)))
    assert losses == []
    with pytest.raises(NoSuchLedgerError):
        reader.read_last_add_confirmed()


def test_a_wrong_password_reads_nothing_and_disturbs_nobody(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger(digest_type="MAC", password="right") as handle:
        handle.append(b"a")
        before = memory_rig.ledger(handle.ledger_id)
        for recovery in (True, False):
            for password in ("wrong", "", None):
                with pytest.raises(UnauthorizedError):
                    keeper.open_ledger(handle.ledger_id, recovery=recovery, password=password)
        assert memory_rig.ledger(handle.ledger_id) == before
        handle.append(b"b")


@pytest.mark.parametrize("fill", [0, 3])
def test_a_reader_across_a_change_of_term_believes_only_terms_that_are_open(
    fill: int, memory_rig: Rig, keeper: BookKeeper
) -> None:
    """A LAC of a term that the metadata does not know says nothing; so do its entries."""
    writer = HandWriter(memory_rig)
    for _ in range(2 + fill):
        writer.add(0, 1, 2, acknowledges=True)
    token = "b" * 32
    record = confirmation(
        ledger_id=writer.ledger_id,
        term=2,
        token=token,
        last_add_confirmed=99,
        length_bytes=0,
        quorum=writer.metadata.quorum,
    )
    frame = journal.encode(record, Digester(DigestSpec())).frame(0, 0)
    name, data = layout.journal(writer.ledger_id, 2, token), b"".join(map(bytes, frame))

    def store(bookie_id: str) -> None:
        disk = memory.find_disk(memory_rig.urls[bookie_id])
        assert disk is not None
        disk.files[name] = memory.MemoryFile(data)

    store(writer.names[0])
    reader = keeper.open_ledger(writer.ledger_id, recovery=False)
    assert reader.last_add_confirmed == fill
    assert [entry.entry_id for entry in reader.read()] == list(range(fill + 1))
    store(writer.names[1])
    with pytest.raises(
        BookieUnavailableError, match="a record is of term 2, which has not begun yet"
    ):
        reader.read_last_add_confirmed()
