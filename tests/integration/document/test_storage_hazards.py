"""Storage that goes back in time, shows less than there is, is full, or is another machine's.

Scripts on the real code; numbers are those of the list of hazards the project was made with (H-nn).
"""

import errno
import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bkspark.bookie import posix
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import CorruptDataError, LedgerFencedError, NotEnoughBookiesError
from bkspark.format import layout
from bkspark.log.batch.attempt_writer import AttemptWriter
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.rig import Rig, partitions_of, rows_from
from tests.kit.faulty import Fault, Operation

# --- storage that goes back in time -----------------------------------------------------------


@pytest.mark.parametrize("looks", [True, False])
def test_h20_bookies_that_forget_a_fence_are_made_up_for_by_the_metadata(
    looks: bool, memory_rig: Rig
) -> None:
    """Two of three come back as they were before the fence, with the right cookie.

    The writer's look at the metadata is all that is left to stop it; without it, what it
    acknowledges is not in the ledger that others have closed.
    """
    writer = HandWriter(memory_rig, looks=looks)
    writer.add(0, 1, acknowledges=True)
    assert writer.recover().last_entry_id == 0
    for name in writer.names[:2]:
        memory_rig.replace_file(name, layout.term_marker(writer.ledger_id, 2), None)
    if looks:
        with pytest.raises(LedgerFencedError):
            writer.add(0, 1, acknowledges=True)
        assert writer.acked == [0]
    else:
        writer.add(0, 1, acknowledges=True)
        assert writer.acked == [0, 1]
    wrong = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert wrong == ([] if looks else ["acknowledged entry 1 is cut off"])


def test_h20_what_went_back_in_time_is_a_hole_and_not_an_end(memory_rig: Rig) -> None:
    """R14: both bookies that had entry 1 are back from a snapshot without it.

    That is one loss more than was promised to be borne. But a third knows that they had it, and
    that it was confirmed. So it takes the word, the ledger is not closed in front of it all the
    same, and reading it is an error.
    """
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    name = layout.journal(writer.ledger_id, 1, writer.metadata.token)
    snapshot = {bookie: memory_rig.file_bytes(bookie, name) for bookie in writer.names[:2]}
    writer.add(0, 1, acknowledges=True)
    writer.add(2)  # its record says that entry 1 is confirmed
    for bookie, data in snapshot.items():
        memory_rig.replace_file(bookie, name, data)
    with pytest.raises(NotEnoughBookiesError, match=f"{writer.names[1]} has lost data"):
        writer.recover()
    assert writer.recover(accepts_loss=lambda _loss: True).last_entry_id == 2
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id)
        assert [entry.value for entry in reader.read(0, 0)] == [b"entry 0"]
        with pytest.raises(CorruptDataError, match="no bookie gives entry 1"):
            list(reader.read(0, 2))
        assert [entry.value for entry in reader.read(2, 2)] == [b"entry 2"]


def test_h37_a_metadata_store_from_a_backup_gives_no_writer_its_ledger_back(rig: Rig) -> None:
    """The store says OPEN again; the bookies know of the term after, and nobody can add."""
    backup = rig.folder / "backup"
    writer = HandWriter(rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(2)
    shutil.copytree(rig.folder / "metadata", backup)
    end = writer.recover().last_entry_id
    before = rig.ledger(writer.ledger_id)
    shutil.rmtree(rig.folder / "metadata")
    backup.rename(rig.folder / "metadata")
    assert rig.ledger(writer.ledger_id).state is LedgerState.OPEN
    with pytest.raises(LedgerFencedError):
        writer.add(0, 1, acknowledges=True)
    with BookKeeper(rig.uri) as keeper:
        assert keeper.recover_ledger(writer.ledger_id).last_entry_id >= end
    again = rig.ledger(writer.ledger_id)
    assert again.length_bytes >= before.length_bytes
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


# --- storage that shows less than there is ----------------------------------------------------


@pytest.mark.parametrize("checks", [True, False])
def test_h21_what_a_listing_misses_is_not_counted_by_its_writer_either(
    checks: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is made while a recovery looks for it may be missed: it was behind the fence.

    Bookie 2 is silent and takes no marker, so one ack is to be had there; without the look behind
    the write there would be two, for an entry that the recovery has found absent.
    """
    writer = HandWriter(memory_rig, checks=checks, looks=checks, begins=False)
    real_size, made = MemoryRoot.size, list[str]()

    def missing(self: MemoryRoot, name: str) -> int | None:
        found = real_size(self, name)
        if not made and name.startswith(layout.journal_folder(writer.ledger_id)):
            made.append(name)
            writer.add()
            writer.store(0, 0)
            writer.store(0, 2)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(MemoryRoot, "size", missing)
        report = writer.recover(run=one_by_one(lost=writer.names[2:]))
    assert (len(made), report.last_entry_id) == (1, -1)
    writer.check(0, 2)
    if checks:
        with pytest.raises(LedgerFencedError):
            writer.check(0, 0)
    else:
        writer.check(0, 0)
    writer.acknowledge()
    wrong = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert wrong == ([] if checks else ["acknowledged entry 0 is cut off"])


# --- storage that is full ---------------------------------------------------------------------


WRITES = {"put_new", "create", "open_journal", "append"}


def full(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_h38_a_full_disk_is_fenced_all_the_same(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a marker says is in its name; it has no byte that would need room."""
    rig = make_rig(kind="file", metadata="memory", bookie_count=3)
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    with monkeypatch.context() as patch:
        for call in ("write", "writev"):
            patch.setattr(os, call, full)
        with pytest.raises(NotEnoughBookiesError, match="found but cannot be written"):
            writer.recover(run=one_by_one())
    for name in writer.names:
        assert layout.term_marker(writer.ledger_id, 2) in rig.names(name)
    with pytest.raises(LedgerFencedError):
        writer.add(0, 1, acknowledges=True)
    assert writer.recover().last_entry_id >= 0
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_h38_bookies_that_cannot_be_written_do_not_stop_a_recovery(memory_rig: Rig) -> None:
    """One of three is read and takes neither marker nor copy; two are enough to close."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    full = writer.names[0]
    before, asked = memory_rig.names(full), set[str]()

    def refuse(_number: int, operation: Operation) -> Fault | None:
        if operation.place != full:
            return None
        asked.add(operation.call)
        return Fault() if operation.call in WRITES else None

    memory_rig.faults.decide = refuse
    with memory_rig.faults.installed():
        report = writer.recover(run=one_by_one())
    memory_rig.faults.forget()
    assert report.last_entry_id == 0
    assert asked & WRITES
    assert asked - WRITES
    assert memory_rig.names(full) == before
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


# --- another machine's storage ----------------------------------------------------------------


def test_h40_the_same_path_on_another_machine_is_no_bookie(make_rig: Callable[..., Rig]) -> None:
    """Tasks run where the paths lead to empty folders of that machine: nothing is written there."""
    rig = make_rig(kind="file", bookie_count=3)
    target = rig.target((3, 3, 2))
    roots = [Path(posix.path_of(url)) for url in rig.urls.values()]
    for root in roots:
        root.rename(f"{root}.of-driver")
        root.mkdir(0o700)
    with pytest.raises(NotEnoughBookiesError):
        rig.tasks(target, partitions_of(5))
    for root in roots:
        assert list(root.iterdir()) == []
        root.rmdir()
        Path(f"{root}.of-driver").rename(root)
    assert rig.rows() == []


# --- names ------------------------------------------------------------------------------------


def _attempt(target: Any, ids: Any) -> None:
    report = AttemptWriter(target, 0).write([rows_from(0, 3)])
    ids.put([written.entry_log.attempt_id for written in report.logs])


def test_h44_processes_that_were_forked_never_share_a_name(make_rig: Callable[..., Rig]) -> None:
    rig = make_rig(kind="file", bookie_count=3)
    target = rig.target((3, 3, 2))
    forks = multiprocessing.get_context("fork")
    ids = forks.SimpleQueue()
    children = [forks.Process(target=_attempt, args=(target, ids)) for _ in range(4)]
    for child in children:
        child.start()
    found = [ids.get()[0] for _ in children]
    for child in children:
        child.join()
    with Cluster(rig.uri) as cluster:
        assert len(set(found)) == 4, cluster.uri
