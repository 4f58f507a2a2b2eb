"""Recoveries that end before they close the ledger, however many: the next one costs the same.

Each may have written copies, durable ones or not. The next one counts those of an earlier one where
they are all that it would write itself, and made durable by itself.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from bkspark.bookie.memory import MemoryRoot
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import OutcomeUnknownError
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.protocol.recovery.steps import Displaced, WrittenBack
from tests.integration.hand_writer import HandWriter, one_by_one, stop_behind, violations
from tests.integration.rig import Rig


def interrupted(rig: Rig) -> HandWriter:
    """Entry 0 has its ack, 1 is on two bookies, 2 on one."""
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1)
    writer.add(0)
    return writer


def in_vain(writer: HandWriter, write_backs: int = 1) -> None:
    """A recovery that dies behind so many of its write-backs."""
    with pytest.raises(OutcomeUnknownError, match="stopped"):
        writer.recover(run=one_by_one(before=stop_behind(write_backs)))


def copies(rig: Rig, name: str) -> list[str]:
    """The journals that recoveries have made on a bookie."""
    return [n for n in rig.names(name) if "/journal/" in n and "/journal/00000001-" not in n]


@pytest.mark.parametrize("write_backs", [1, 2])
def test_the_200th_costs_as_much_as_the_second(write_backs: int, memory_rig: Rig) -> None:
    writer = interrupted(memory_rig)
    costs = []
    for _ in range(200):
        memory_rig.faults.forget()
        with memory_rig.faults.installed():
            in_vain(writer, write_backs)
        costs.append(len(memory_rig.faults.trace))
    assert costs[1:] == costs[1:2] * 199
    assert all(len(copies(memory_rig, name)) == 1 for name in writer.names[:write_backs])
    assert writer.recover().last_entry_id == 2
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def last_write_back(rig: Rig, writer: HandWriter) -> WriteCopies:
    """What the next recovery would do on the bookie that has copies of the one before."""
    found: list[Any] = []

    def run(instructions: Sequence[Any]) -> list[Any]:
        if isinstance(instructions[0], WriteCopies):
            found.append(instructions[0])
            raise OutcomeUnknownError("stopped")
        return [instruction.run() for instruction in instructions]

    with pytest.raises(OutcomeUnknownError), Cluster(rig.uri) as cluster:
        recover(cluster, writer.ledger_id, Password(), run=run)
    return found[0]


def test_what_is_counted_was_made_durable_by_who_counts_it(rig: Rig) -> None:
    """Whoever wrote it may have died before it was."""
    writer = interrupted(rig)
    in_vain(writer)
    write_back = last_write_back(rig, writer)
    [there] = copies(rig, writer.names[0])
    rig.faults.forget()
    with rig.faults.installed():
        assert write_back.run() == WrittenBack(2)
    assert copies(rig, writer.names[0]) == [there]
    names = [(one.call, one.name) for one in rig.faults.trace]
    synced = names.index(("sync", there))
    behind = names[synced:]
    assert ("open_root", writer.names[0]) in behind
    assert any(call == "read" and name == there for call, name in behind)


def test_copies_that_are_not_all_there_are_written_anew(rig: Rig) -> None:
    writer = interrupted(rig)
    in_vain(writer)
    [there] = copies(rig, writer.names[0])
    data = rig.file_bytes(writer.names[0], there)
    for changed in (data[:-1], b"", data[:-1] + bytes([data[-1] ^ 1])):
        rig.replace_file(writer.names[0], there, changed)
        before = copies(rig, writer.names[0])
        assert last_write_back(rig, writer).run() == WrittenBack(2)
        [new] = set(copies(rig, writer.names[0])) - set(before)
        assert rig.file_bytes(writer.names[0], new) == data
        rig.replace_file(writer.names[0], new, None)


def test_copies_that_are_lost_while_they_are_made_durable_do_not_count(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R6: they are looked for anew behind it, and so is the fence."""
    writer = interrupted(memory_rig)
    in_vain(writer)
    write_back = last_write_back(memory_rig, writer)
    [there] = copies(memory_rig, writer.names[0])
    sync = MemoryRoot.sync

    def sync_and_lose(self: MemoryRoot, name: str) -> bool:
        found = sync(self, name)
        if name == there:
            memory_rig.replace_file(writer.names[0], there, b"")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(MemoryRoot, "sync", sync_and_lose)
        result = write_back.run()
    assert result == WrittenBack(2)
    assert len(copies(memory_rig, writer.names[0])) == 2


def test_a_fence_that_is_lost_by_then_is_seen(memory_rig: Rig) -> None:
    writer = interrupted(memory_rig)
    in_vain(writer)
    write_back = last_write_back(memory_rig, writer)
    memory_rig.replace_file(writer.names[0], write_back.writer.fence, None)
    assert isinstance(write_back.run(), Displaced)


def test_a_journal_of_the_writer_is_never_counted_as_a_copy(memory_rig: Rig) -> None:
    """He may have died before it was durable there, and a power cut takes what follows from it.

    Where it begins with a header, it is no copy by that alone.
    """
    writer = HandWriter(memory_rig, begins=False)
    writer.add(0, 1)
    in_vain(writer, 0)
    [journal] = [n for n in memory_rig.names(writer.names[0]) if "/journal/" in n]
    assert last_write_back(memory_rig, writer).run() == WrittenBack(1)
    assert len(copies(memory_rig, writer.names[0])) == 1
    assert journal in memory_rig.names(writer.names[0])


def test_the_first_looks_for_none(memory_rig: Rig) -> None:
    """Nobody can have left any, and it would be a listing for each bookie."""
    writer = interrupted(memory_rig)
    write_back = last_write_back(memory_rig, writer)
    memory_rig.faults.forget()
    with memory_rig.faults.installed():
        assert write_back.run() == WrittenBack(2)
    assert "list" not in [one.call for one in memory_rig.faults.trace]
