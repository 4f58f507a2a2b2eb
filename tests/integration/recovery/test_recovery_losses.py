"""Recovery among bookies that were declared lost, came back, or are damaged: nothing is closed in
front of an acknowledged entry without the word, and nothing that is gone goes unsaid."""

from dataclasses import replace

import pytest

from bkspark.admin.absent_bookies import declare_lost
from bkspark.cluster.cluster import Cluster
from bkspark.errors import NotEnoughBookiesError
from bkspark.format import journal, layout
from bkspark.protocol.ledger.metadata import LedgerState, Member
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.rig import Rig


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
    assert "ends in wrong bytes" in str(caught.value)


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


def damage(rig: Rig, writer: HandWriter, index: int, entry_id: int) -> None:
    """Make the record of an entry on one bookie wrong, in its middle."""
    sizes = [0]
    for number in range(1 + entry_id + 1):  # the first is the header
        at, data = sizes[-1], rig.file_bytes(writer.names[index], journal_of(writer))
        length = journal.frame_length(data, at, position=at)
        assert length, number
        sizes.append(at + length)
    flip(rig, writer, index, sizes[1 + entry_id] + journal.PREFIX_BYTES + 20)


def test_intact_records_behind_damage_are_kept_where_another_bookie_fills_the_gap(
    rig: Rig,
) -> None:
    """Bookie 0 alone has entry 2, bookie 1 alone has entry 3: each is damaged where the other is
    not, and nothing of it is confirmed."""
    writer = written(rig, (3, 3, 2), 2)
    writer.add(0, 1)
    writer.add(0, 1)
    writer.add(0, 1)
    damage(rig, writer, 0, 3)
    damage(rig, writer, 1, 2)
    lose(rig, writer, 2)
    told: list[str] = []
    report = writer.recover(accepts_loss=lambda loss: not told.append(loss))
    assert told == ["entries from 5 on are given up, although they may have been acknowledged"]
    assert (report.last_entry_id, report.kept, report.losses) == (4, 3, [])
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_what_is_given_up_is_told_range_by_range(memory_rig: Rig) -> None:
    """Entry 2 is on no bookie any more; 3, and 5 and 6, are whole and go with it; 4 is damaged."""
    writer = written(memory_rig, (3, 3, 2), 2)
    for _ in range(5):
        writer.add(0, 1)
    for index in (0, 1):
        for entry_id in (2, 4):
            damage(memory_rig, writer, index, entry_id)
    lose(memory_rig, writer, 2)
    loss = (
        "entry 2, entry 4 and all later entries are given up, and may have been acknowledged: no "
        "bookie has entry 2, entry 4 complete; entry 3, entries 5 to 6 are given up as well: "
        "they are complete, but come later"
    )
    with pytest.raises(NotEnoughBookiesError, match=loss):
        writer.recover()
    report = writer.recover(accepts_loss=lambda said: said == loss)
    assert (report.last_entry_id, report.lost_from) == (1, 2)
    assert any(note.startswith(f"DATA LOSS: {loss}") for note in report.notes)


@pytest.mark.parametrize("is_certain", [False, True])
def test_confirmed_entries_that_damage_hides_on_qa_bookies_are_named(
    is_certain: bool, rig: Rig
) -> None:
    writer = written(rig, (3, 3, 2), 3)
    writer.add(0, 1, 2)
    for index in range(3 if is_certain else 2):
        damage(rig, writer, index, 2)
    report = writer.recover(accepts_loss=lambda _: True)
    names = writer.names
    assert report.last_entry_id == 3
    damaged = ", ".join(names if is_certain else names[:2])
    [loss] = report.losses
    those = f"of entry 2, the entries stored on {', '.join(names)}"
    fails = f"are of no use: the journals on {damaged} are damaged or missing"
    if is_certain:
        assert loss == f"{those} cannot be read: all these bookies {fails}"
    else:
        assert loss == f"{those} may have had copies on {damaged} only, and these bookies {fails}"


def test_damage_on_fewer_than_qa_bookies_is_no_loss(rig: Rig) -> None:
    writer = written(rig, (3, 3, 2), 3)
    writer.add(0, 1, 2)
    damage(rig, writer, 0, 2)
    damage(rig, writer, 1, 1)
    report = writer.recover(accepts_loss=lambda _: True)
    assert (report.last_entry_id, report.losses) == (3, [])


def test_damage_and_loss_count_together(memory_rig: Rig) -> None:
    writer = written(memory_rig, (3, 3, 2), 3)
    writer.add(0, 1, 2)
    damage(memory_rig, writer, 1, 2)
    lose(memory_rig, writer, 0)
    [loss] = writer.recover(accepts_loss=lambda _: True).losses
    lost, damaged = writer.names[:2]
    assert loss.endswith(
        f"on {lost}, {damaged} only, and these bookies are of no use: the journals on {damaged} "
        "are damaged or missing, the other bookies were declared lost or initialised again"
    )


def test_r14_what_is_confirmed_behind_damage_is_not_cut_off(rig: Rig) -> None:
    """The record of entry 2 is damaged; a confirmation behind it says that 2 is confirmed."""
    writer = written(rig, (3, 3, 2), 2)
    size = size_of(rig, writer, 2)
    writer.add(0, 1, 2, acknowledges=True)
    writer.confirm(0, 1, 2)
    flip(rig, writer, 2, size + journal.PREFIX_BYTES + 20)
    lose(rig, writer, 0, 1)
    told: list[str] = []

    def accepts(loss: str) -> bool:
        told.append(loss)
        return True

    report = writer.recover(accepts_loss=accepts)
    assert report.last_entry_id == 2
    assert told == ["entries from 3 on are given up, although they may have been acknowledged"]
    [loss] = report.losses
    assert loss.startswith(
        f"of entries 0 to 2, the entries stored on {', '.join(writer.names)} may have had"
    )


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_confirmed_entries_whose_bookies_are_gone_are_named(
    is_made_anew: bool, memory_rig: Rig
) -> None:
    """5/3/2: entries 3 and 8 were on bookies 3, 4 and 0 only; and those who tell of 10 answer."""
    writer = written(memory_rig, (5, 3, 2), 10)
    writer.add(1, 2)
    for index in (3, 4, 0):
        if is_made_anew:
            writer.cluster.registrations.update(
                writer.names[index], lambda record: replace(record, incarnation="2" * 32)
            )
        else:
            lose(memory_rig, writer, index)
    report = writer.recover()
    b0, b1, b2, b3, b4 = writer.names
    assert (report.last_entry_id, report.lost_from) == (10, None)
    gone = f"of entries 0 to 9, the entries stored on {b3}, {b4}, {b0} cannot be read"
    assert sum(gone in loss for loss in report.losses) == 1
    assert {loss.partition(" may ")[0] for loss in report.losses if " may " in loss} == {
        f"of entries 0 to 9, the entries stored on {b2}, {b3}, {b4}",
        f"of entries 0 to 9, the entries stored on {b4}, {b0}, {b1}",
    }
    assert any(note.startswith(f"DATA LOSS: {gone}") for note in report.notes)
    assert sum(note.startswith("POSSIBLE DATA LOSS: ") for note in report.notes) == 2


def test_with_fewer_than_qa_bookies_gone_nothing_is_said(memory_rig: Rig) -> None:
    writer = written(memory_rig, (5, 3, 2), 10)
    lose(memory_rig, writer, 0)
    report = writer.recover()
    assert report.last_entry_id == 9
    assert report.losses == []


def test_what_another_recovery_has_kept_is_not_said_to_be_lost(rig: Rig) -> None:
    """While the operator thinks, the bookie that has entry 2 comes back and somebody closes."""
    writer = written(rig, (3, 3, 2), 2)
    writer.confirm(0, 1, 2)
    writer.add(0, 1, acknowledges=True)
    disks = lose(rig, writer, 0, 1)

    def thinks(_loss: str) -> bool:
        for index, disk in disks.items():
            rig.bring_back(writer.names[index], disk)
        assert writer.recover(accepts_loss=lambda _: True).last_entry_id == 2
        return True

    report = writer.recover(accepts_loss=thinks)
    assert (report.last_entry_id, report.lost_from) == (2, None)
    assert not any(note.startswith("DATA LOSS") for note in report.notes)
    assert any(note.startswith("will be lost if ") for note in report.notes)


def test_a_bookie_that_was_lost_twice_is_waited_for_as_neither(memory_rig: Rig) -> None:
    bookie_id, again = next(iter(memory_rig.urls)), "2" * 32
    memory_rig.lose(bookie_id)
    with Cluster(memory_rig.uri) as cluster:
        record = cluster.bookies()[bookie_id]
        first = declare_lost(cluster, bookie_id)
        cluster.registrations.update(bookie_id, lambda _: replace(record, incarnation=again))
        second = declare_lost(cluster, bookie_id)
        assert second == Member(bookie_id, again)
        assert cluster.lost_members() == {first, second}
