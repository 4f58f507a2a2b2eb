"""Recovery among bookies that were declared lost, came back, or are damaged: nothing is closed in
front of an acknowledged entry without the word, and nothing that is gone goes unsaid."""

from dataclasses import replace

import pytest

from bkspark.client.upkeep.lost_bookies import declare_lost
from bkspark.errors import NotEnoughBookiesError
from bkspark.format import journal, layout
from bkspark.protocol.ledger import LedgerState

from .hand_writer import HandWriter, one_by_one, violations
from .rig import Rig


def journal_of(writer: HandWriter) -> str:
    return layout.journal(writer.ledger_id, 1, writer.metadata.token)


def size_of(rig: Rig, writer: HandWriter, index: int) -> int:
    return len(rig.file_bytes(writer.names[index], journal_of(writer)))


def cut(rig: Rig, writer: HandWriter, index: int, size: int) -> None:
    data = rig.file_bytes(writer.names[index], journal_of(writer))
    rig.replace_file(writer.names[index], journal_of(writer), data[:size])


def lose(rig: Rig, writer: HandWriter, *indexes: int) -> dict[int, object]:
    """Take the bookies away and declare them lost; returns their disks."""
    disks: dict[int, object] = {index: rig.lose(writer.names[index]) for index in indexes}
    for index in indexes:
        declare_lost(writer.cluster, writer.names[index])
    return disks


def written(rig: Rig, sizes: tuple[int, int, int], count: int) -> HandWriter:
    """Entries on every member of their write sets, all acknowledged."""
    writer = HandWriter(rig, sizes)
    for first in range(count):
        writer.add(*writer.metadata.quorum.write_set(first), acknowledges=True)
    return writer


def test_a_lost_bookie_that_comes_back_without_an_entry_is_no_proof_of_its_absence(
    rig: Rig,
) -> None:
    """Entry 2 has its ack from bookies 0 and 1; 0 comes back from a repair without its record."""
    writer = written(rig, (3, 3, 2), 2)
    size = size_of(rig, writer, 0)
    writer.add(0, 1, acknowledges=True)
    disks = lose(rig, writer, 0)
    rig.bring_back(writer.names[0], disks[0])
    cut(rig, writer, 0, size)
    with pytest.raises(NotEnoughBookiesError, match="entry 2 is in doubt") as caught:
        writer.recover(run=one_by_one(lost=[writer.names[1]]), accepts_loss=lambda _: True)
    assert f"`bkspark bookie lost {writer.names[1]}`" in str(caught.value)
    assert writer.recover().last_entry_id == 2
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_what_a_lost_bookie_still_shows_is_kept(rig: Rig) -> None:
    writer = written(rig, (3, 3, 2), 2)
    writer.add(0)
    disks = lose(rig, writer, 0)
    rig.bring_back(writer.names[0], disks[0])
    assert writer.recover().last_entry_id == 2
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_damage_on_a_lost_bookie_that_comes_back_stays_damage(memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 2)
    disks = lose(memory_rig, writer, 0)
    memory_rig.bring_back(writer.names[0], disks[0])
    flip(memory_rig, writer, 0, size_of(memory_rig, writer, 0) // 2 - 60)
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(run=one_by_one(lost=[writer.names[1]]))
    assert "ends in bytes that are wrong" in str(caught.value)


def test_no_entry_is_given_up_while_a_bookie_outside_of_its_write_set_is_silent(rig: Rig) -> None:
    """5/3/2: those that had entry 0 are lost; the others reboot, and know that it is confirmed."""
    writer = written(rig, (5, 3, 2), 10)
    lose(rig, writer, 0, 1, 2)
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover(
            run=one_by_one(lost=[writer.names[3], writer.names[4]]), accepts_loss=lambda _: True
        )
    assert all(f"`bkspark bookie lost {writer.names[n]}`" in str(caught.value) for n in (3, 4))
    assert rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY


def test_a_torn_end_beside_a_lost_bookie_takes_the_word(rig: Rig) -> None:
    """Entry 2 has its ack from bookies 0 and 1; 0 is lost, and a disk fault cut it off from 1."""
    writer = written(rig, (3, 3, 2), 2)
    writer.add(0, 1, acknowledges=True)
    lose(rig, writer, 0)
    cut(rig, writer, 1, size_of(rig, writer, 1) - 10)
    with pytest.raises(NotEnoughBookiesError, match="--accept-loss"):
        writer.recover()
    report = writer.recover(accepts_loss=lambda _: True)
    assert (report.last_entry_id, report.lost_from) == (1, 2)


def flip(rig: Rig, writer: HandWriter, index: int, at: int) -> None:
    data = bytearray(rig.file_bytes(writer.names[index], journal_of(writer)))
    data[at] ^= 1
    rig.replace_file(writer.names[index], journal_of(writer), bytes(data))


def test_r14_what_is_confirmed_behind_damage_is_not_cut_off(rig: Rig) -> None:
    """The record of entry 2 is damaged; that of entry 3 behind it says that 2 is confirmed."""
    writer = written(rig, (3, 3, 2), 2)
    size = size_of(rig, writer, 2)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, 2)
    flip(rig, writer, 2, size + journal.PREFIX_BYTES + 20)
    lose(rig, writer, 0, 1)
    told: list[str] = []

    def accepts(loss: str) -> bool:
        told.append(loss)
        return True

    report = writer.recover(accepts_loss=accepts)
    assert report.last_entry_id == 2
    assert told == [
        "entries from 3 on may have been acknowledged and are given up",
        "entry 2 was acknowledged and cannot be read any more",
    ]


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_confirmed_entries_whose_bookies_are_gone_are_named(
    is_made_anew: bool, memory_rig: Rig
) -> None:
    """5/3/2: entries 3 and 8 were on bookies 3, 4 and 0 only; and those who tell of 10 answer."""
    writer = written(memory_rig, (5, 3, 2), 10)
    writer.add(1, 2)
    for index in (3, 4, 0):
        if is_made_anew:
            writer.cluster._bookies.update(
                writer.names[index], lambda record: replace(record, incarnation="2" * 32)
            )
        else:
            lose(memory_rig, writer, index)
    report = writer.recover()
    b0, b1, b2, b3, b4 = writer.names
    assert (report.last_entry_id, report.lost_from) == (10, None)
    gone = f"of entries 0 to 9, those on {b3}, {b4}, {b0} cannot be read"
    assert sum(gone in loss for loss in report.losses) == 1
    assert {loss.partition(" may ")[0] for loss in report.losses if " may " in loss} == {
        f"of entries 0 to 9, those on {b2}, {b3}, {b4}",
        f"of entries 0 to 9, those on {b4}, {b0}, {b1}",
    }
    assert any(note.startswith(f"DATA LOSS: {gone}") for note in report.notes)
    assert sum(note.startswith("POSSIBLE DATA LOSS: ") for note in report.notes) == 2


def test_with_fewer_than_qa_bookies_gone_nothing_is_said(memory_rig: Rig) -> None:
    writer = written(memory_rig, (5, 3, 2), 10)
    lose(memory_rig, writer, 0)
    report = writer.recover()
    assert report.last_entry_id == 9
    assert report.losses == []
