"""Recovery, killed at each of its storage operations and run again; and what it says when stuck."""

from collections.abc import Collection

import pytest

from bkspark.admin import views
from bkspark.admin.absent_bookies import declare_lost
from bkspark.bookie.memory import MemoryRoot
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    CorruptDataError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    UnauthorizedError,
)
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.recovery.recover import recover
from bkspark.log.batch import commit as batch_commit
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from tests.integration.hand_writer import HandWriter, one_by_one, violations
from tests.integration.rig import Rig, flat, partitions_of
from tests.kit.faulty import Crash, Moment, crash_at
from tests.thorough import always


def interrupted_writer(rig: Rig, sizes: tuple[int, int, int] = (3, 3, 2)) -> HandWriter:
    """Entries 0 and 1 have their ack, 2 is on one bookie, 3 on two without an ack."""
    writer = HandWriter(rig, sizes)
    size = sizes[0]
    writer.add(0, 1, acknowledges=True)
    writer.add(1 % size, 2 % size, acknowledges=True)
    writer.add(2 % size)
    writer.add(3 % size, 4 % size)
    return writer


def killed(rig: Rig, writer: HandWriter, number: int, moment: Moment) -> None:
    """One recovery that dies at its operation ``number``."""
    rig.faults.forget()
    rig.faults.decide = crash_at(number, moment)
    with rig.faults.installed(), pytest.raises(Crash), Cluster(rig.uri) as cluster:
        recover(cluster, writer.ledger_id, Password(), run=one_by_one())
    rig.faults.forget()


def operation_count(rig: Rig, sizes: tuple[int, int, int]) -> int:
    writer = interrupted_writer(rig, sizes)
    rig.faults.forget()
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        recover(cluster, writer.ledger_id, Password(), run=one_by_one())
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)
    return len(rig.faults.trace)


@pytest.mark.parametrize("moment", list(Moment))
@pytest.mark.parametrize("sizes", always([(3, 3, 2)], [(3, 3, 2), (5, 3, 2)]))
def test_a_recovery_killed_at_any_operation_is_finished_by_the_next(
    sizes: tuple[int, int, int], moment: Moment, memory_rig: Rig
) -> None:
    count = operation_count(memory_rig, sizes)
    assert count > 30
    for number in range(count):
        writer = interrupted_writer(memory_rig, sizes)
        killed(memory_rig, writer, number, moment)
        report = writer.recover(run=one_by_one())
        assert report.last_entry_id == 3, number
        assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked), number


@pytest.mark.parametrize("moment", always([Moment.HALF], list(Moment)))
def test_the_next_recovery_finishes_also_without_one_of_the_bookies(
    moment: Moment, memory_rig: Rig
) -> None:
    """One bookie away is what Qa = 2 promises to bear, whatever a killed recovery left behind."""
    count = operation_count(memory_rig, (3, 3, 2))
    for number in range(count):
        writer = interrupted_writer(memory_rig)
        killed(memory_rig, writer, number, moment)
        lost = writer.names[number % 3]
        end = writer.recover(run=one_by_one(lost=[lost])).last_entry_id
        assert 1 <= end <= 3, number
        assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked), number


def test_a_ledger_to_which_nothing_was_added_is_closed_empty(rig: Rig) -> None:
    writer = HandWriter(rig)
    report = writer.recover()
    assert (report.last_entry_id, report.kept, rig.ledger(0).length_bytes) == (-1, 0, 0)
    assert not violations(rig, writer.ledger_id, {}, [])


def test_a_closed_ledger_is_left_alone(rig: Rig) -> None:
    writer = interrupted_writer(rig)
    writer.recover()
    before = rig.ledger(writer.ledger_id)
    with rig.faults.installed(), Cluster(rig.uri) as cluster:
        rig.faults.forget()
        report = recover(cluster, writer.ledger_id, Password(), tell=print)
    assert (report.last_entry_id, rig.ledger(writer.ledger_id)) == (3, before)
    assert "already" in report.notes[-1]
    assert {operation.call for operation in rig.faults.trace} <= {"get", "list"}


def test_there_is_no_recovery_of_a_ledger_that_is_not_there(rig: Rig) -> None:
    with Cluster(rig.uri) as cluster, pytest.raises(NoSuchLedgerError):
        recover(cluster, 77, Password())


def test_a_recovery_that_cannot_decide_says_what_it_waits_for(rig: Rig) -> None:
    writer = interrupted_writer(rig)
    away = {name: rig.lose(name) for name in writer.names[1:]}
    with pytest.raises(NotEnoughBookiesError) as caught:
        writer.recover()
    text = str(caught.value)
    assert "entry 2 is in doubt" in text
    assert all(name in text for name in away)
    assert "bring back one of these bookies" in text
    assert rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    for name, disk in away.items():
        rig.bring_back(name, disk)
    assert writer.recover().last_entry_id == 3
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_bookie_that_was_initialised_anew_counts_as_silent(rig: Rig) -> None:
    writer = interrupted_writer(rig)
    name = writer.names[0]
    rig.wipe(name)
    report = writer.recover()
    assert any(name in note for note in report.notes if "no answer" in note)
    assert report.last_entry_id == 3


@pytest.mark.parametrize("indexes", [(0,), (1,), (2,), (0, 1), (0, 1, 2)])
def test_torn_ends_are_decided_once_everybody_has_answered(
    indexes: Collection[int], rig: Rig
) -> None:
    """Entry 2 never reached an ack quorum: a writer killed in the middle of its record."""
    writer = HandWriter(rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(*indexes)
    name = layout.journal(writer.ledger_id, 1, writer.metadata.token)
    for index in indexes:
        data = rig.file_bytes(writer.names[index], name)
        rig.replace_file(writer.names[index], name, data[:-10])
    silent = writer.names[(min(indexes) + 1) % 3]
    if len(indexes) == 1:
        with pytest.raises(NotEnoughBookiesError, match="entry 2 is in doubt"):
            writer.recover(run=one_by_one(lost=[silent]))
    assert writer.recover().last_entry_id == 1
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("lost", [(), (0,), (1,), (2,), (3,), (4,)])
def test_the_confirmed_entry_is_found_whoever_knows_that_it_is_confirmed(
    lost: Collection[int], memory_rig: Rig
) -> None:
    """5/3/2: the one bookie that has the newest last-add-confirmed has not that entry itself."""
    writer = HandWriter(memory_rig, (5, 3, 2))
    for first in range(6):
        writer.add(*((first + k) % 5 for k in range(3)), acknowledges=True)
    writer.add(3)
    report = writer.recover(run=one_by_one(lost=[writer.names[index] for index in lost]))
    assert report.last_entry_id in (5, 6)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_ledger_whose_last_fragment_is_empty_is_closed_from_the_one_before(
    memory_rig: Rig,
) -> None:
    """1/1/1: the new bookie has never seen a record, and the length is known to the old one."""
    writer = HandWriter(memory_rig, (1, 1, 1))
    writer.add(0, acknowledges=True)
    old = writer.names[0]
    writer.replace(0, next(name for name in memory_rig.urls if name != old))
    disk = memory_rig.lose(old)
    with pytest.raises(NotEnoughBookiesError, match="no bookie shows the record"):
        writer.recover()
    memory_rig.bring_back(old, disk)
    assert writer.recover().last_entry_id == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("count", [1, 2])
def test_without_the_record_of_the_confirmed_entry_it_takes_a_word_and_closes_behind_it(
    count: int, memory_rig: Rig
) -> None:
    """1/1/1: each entry was written to a bookie of its own, and the last of them is lost."""
    writer = HandWriter(memory_rig, (1, 1, 1))
    others = [name for name in memory_rig.urls if name != writer.names[0]]
    for number in range(count):
        writer.add(0, acknowledges=True)
        old = writer.names[0]
        writer.replace(0, others[number])
    memory_rig.lose(old)
    with pytest.raises(NotEnoughBookiesError, match=f"`bkspark bookie lost {old}`"):
        writer.recover(accepts_loss=lambda _loss: True)  # it may come back
    told = views.recovery_of(writer.cluster, memory_rig.ledger(writer.ledger_id))
    assert told is not None
    assert told["waiting_for"] == [old]
    declare_lost(writer.cluster, old)
    told = views.recovery_of(writer.cluster, memory_rig.ledger(writer.ledger_id))
    assert told is not None
    assert (told["waiting_for"], f"declared lost since then: {old}" in told["reason"]) == ([], True)
    with pytest.raises(NotEnoughBookiesError, match="--accept-loss") as caught:
        writer.recover()
    last = count - 1
    loss = f"entry {last} was acknowledged and cannot be read any more"
    assert loss in str(caught.value)
    seen = writer.cluster.upkeep.recoveries.get(str(writer.ledger_id))
    assert seen is not None
    assert "--accept-loss" in seen.value.hint
    report = writer.recover(accepts_loss=lambda told: told == loss)
    assert (report.last_entry_id, report.lost_from) == (last, last)
    assert any(note.startswith(f"DATA LOSS: {loss}") for note in report.notes)
    ledger = memory_rig.ledger(writer.ledger_id)
    known = [value for n, value in writer.sent.items() if n < last]
    assert ledger.length_bytes == sum(map(len, known))
    with BookKeeper(memory_rig.uri) as keeper:
        reader = keeper.open_ledger(writer.ledger_id)
        assert reader.last_add_confirmed == last
        if known:
            assert [entry.value for entry in reader.read(0, last - 1)] == known
        with pytest.raises(CorruptDataError, match=f"entry {last}"):
            list(reader.read(last, last))


def test_a_new_bookie_alone_decides_about_what_was_added_to_it(memory_rig: Rig) -> None:
    """1/1/1: the entry before the fragment is confirmed, and needs no bookie to say so."""
    writer = HandWriter(memory_rig, (1, 1, 1))
    writer.add(0, acknowledges=True)
    old = writer.names[0]
    writer.replace(0, next(name for name in memory_rig.urls if name != old))
    writer.add(0, acknowledges=True)
    disk = memory_rig.lose(old)
    assert writer.recover().last_entry_id == 1
    memory_rig.bring_back(old, disk)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_wrong_password_fences_nobody(rig: Rig) -> None:
    with BookKeeper(rig.uri) as keeper:
        handle = keeper.create_ledger(digest_type="MAC", password="right")
        handle.append(b"entry 0")
        for attempt in (keeper.recover_ledger, keeper.open_ledger):
            for password in (None, "wrong"):
                with pytest.raises(UnauthorizedError):
                    attempt(handle.ledger_id, password=password)
        assert handle.append(b"entry 1") == 1
        handle.release()
        report = keeper.recover_ledger(handle.ledger_id, password="right")
        assert report.last_entry_id == 1
        reader = keeper.open_ledger(handle.ledger_id, password="right")
        assert [entry.value for entry in reader.read()] == [b"entry 0", b"entry 1"]


@pytest.mark.parametrize("moment", always([Moment.HALF], list(Moment)))
def test_a_dataframe_commit_killed_at_any_operation_is_recovered_whole_or_not_at_all(
    moment: Moment, memory_rig: Rig
) -> None:
    partitions, number, is_over = partitions_of(3, 5), 0, False
    ends: set[int | None] = set()
    while not is_over:
        memory_rig.faults.forget()
        memory_rig.log_name = f"log-{number}"
        target = memory_rig.target((5, 3, 2))
        reports = memory_rig.tasks(target, partitions)
        memory_rig.faults.decide = crash_at(number, moment)
        with memory_rig.faults.installed():
            try:
                batch_commit.commit(target, reports)
                is_over = True
            except Crash:
                number += 1
        memory_rig.faults.forget()
        with Cluster(memory_rig.uri) as cluster:
            end = recover(cluster, target.ledger_id, Password(), run=one_by_one()).last_entry_id
        ends.add(end)
        copies = memory_rig.good_copies(target.ledger_id)
        assert all(len(holders) >= 2 for holders in copies.values())
        assert bool(copies) is (end != -1)
        visible = memory_rig.log()
        assert memory_rig.rows() in ([], flat(partitions)) or visible is None
    assert ends == {-1, 7}
    assert number > 10


@pytest.mark.parametrize(
    ("sizes", "many"),
    always(
        [((3, 3, 2), 1600)],
        [((3, 3, 2), 1600), ((3, 3, 2), 5000), ((5, 3, 2), 1000)],
        are_rows=True,
    ),
)
def test_what_a_recovery_reads_does_not_grow_with_the_ledger(
    sizes: tuple[int, int, int], many: int, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_read, amounts = MemoryRoot.read, list[int]()

    def counted(self: MemoryRoot, *args: object) -> bytes | None:
        data = real_read(self, *args)
        amounts[-1] += len(data or b"")
        return data

    for count in (400, many):
        writer = HandWriter(memory_rig, sizes)
        for first in range(count):
            writer.add(*((first + k) % sizes[0] for k in range(3)), acknowledges=True)
        amounts.append(0)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryRoot, "read", counted)
            assert writer.recover(run=one_by_one()).last_entry_id == count - 1
    assert amounts[1] < 1.2 * amounts[0]


def test_what_is_kept_is_written_back_also_to_those_that_show_it(memory_rig: Rig) -> None:
    """A copy that was found need not be durable: its writer may have died before it was."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1)
    writer.add(0)
    assert writer.recover().last_entry_id == 2
    for name in writer.names:
        [made] = [one for one in memory_rig.names(name) if "/journal/00000002-" in one]
        data = memory_rig.file_bytes(name, made)
        found = journal.decode_journal(data, Digester(DigestSpec()), ledger_id=writer.ledger_id)
        assert [record.first_entry_id for record in found.records][-2:] == [1, 2]
