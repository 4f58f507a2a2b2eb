"""Guaranteed write quorum, sentence by sentence: what is closed, or in front, has all its copies.

The sentences are those of the document about unbounded ledgers, which tells of it, and of its
specification; what that gets wrong is the hazard H9.
"""

from collections.abc import Iterator

import pytest

from bkspark.admin.absent_bookies import declare_lost
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import Gate, HandWriter, good_copies, one_by_one, violations
from tests.integration.rig import Rig
from tests.integration.waiting import wait_until


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


@pytest.fixture
def handle(keeper: BookKeeper) -> WriteHandle:
    return keeper.create_ledger(guarantees_write_quorum=True)


@pytest.fixture
def writer(memory_rig: Rig) -> HandWriter:
    return HandWriter(memory_rig, guarantees_write_quorum=True)


def names_of(handle: WriteHandle) -> list[str]:
    return [m.bookie_id for m in handle.metadata.last_fragment.ensemble]


def others_than(rig: Rig, *names: str) -> set[str]:
    with BookKeeper(rig.uri) as keeper:
        known = {address.bookie_id for address in keeper._cluster.addresses().values()}
    return known - set(names)


def copies_of(rig: Rig, ledger_id: int) -> list[int]:
    """How many good copies each entry has, in entry order."""
    copies = good_copies(rig, rig.ledger(ledger_id))
    return [copies[entry_id] for entry_id in sorted(copies)]


def test_entries_are_acknowledged_on_the_ack_quorum_all_the_same(
    memory_rig: Rig, handle: WriteHandle
) -> None:
    gate = Gate(memory_rig.faults)
    gate.close(names_of(handle)[2])
    assert [handle.append(b"%d" % n) for n in range(3)] == [0, 1, 2]
    assert (handle.last_add_confirmed, handle.last_add_fully_replicated) == (2, -1)
    gate.open()
    wait_until(lambda: handle.last_add_fully_replicated == 2)
    handle.close()


def test_who_guarantees_nothing_counts_nothing(keeper: BookKeeper) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"0")
        assert handle.last_add_fully_replicated is None


@pytest.mark.parametrize("given", [1, "no", None])
def test_the_choice_is_yes_or_no(keeper: BookKeeper, given: object) -> None:
    with pytest.raises(InvalidRequestError, match="True or False"):
        keeper.create_ledger(guarantees_write_quorum=given)  # type: ignore[arg-type]


def test_all_entries_in_closed_ledgers_reach_the_write_quorum(
    memory_rig: Rig, handle: WriteHandle
) -> None:
    """A bookie that failed has its place filled, also with what was acknowledged without it."""
    for number in range(3):
        handle.append(b"%d" % number)
    wait_until(lambda: handle.last_add_fully_replicated == 2)
    gone = names_of(handle)[1]
    memory_rig.faults.down = {gone}
    for number in range(3, 6):
        handle.append(b"%d" % number)
    handle.close()
    memory_rig.faults.forget()
    ledger = memory_rig.ledger(handle.ledger_id)
    assert ledger.state is LedgerState.CLOSED
    assert copies_of(memory_rig, handle.ledger_id) == [3] * 6
    assert [fragment.first_entry_id for fragment in ledger.fragments] == [0, 3]
    assert gone not in names_of(handle)


def test_all_but_the_last_fragment_reach_the_write_quorum(
    memory_rig: Rig, handle: WriteHandle
) -> None:
    """The metadata names nobody new before the slow one has what the new fragment has not."""
    gate, before = Gate(memory_rig.faults), names_of(handle)
    gate.close(before[2])
    handle.append(b"0")
    memory_rig.faults.down = {before[0]}
    handle.append_async(b"1")
    wait_until(lambda: handle._writer.machine.changes.is_held)
    assert len(memory_rig.ledger(handle.ledger_id).fragments) == 1
    assert names_of(handle) == before
    gate.open()
    wait_until(lambda: names_of(handle) != before)
    ledger = memory_rig.ledger(handle.ledger_id)
    assert [fragment.first_entry_id for fragment in ledger.fragments] == [0, 1]
    handle.close()
    memory_rig.faults.forget()
    assert copies_of(memory_rig, handle.ledger_id) == [3, 3]


def test_a_ledger_stays_open_that_no_bookie_is_left_for(
    memory_rig: Rig, handle: WriteHandle
) -> None:
    names = names_of(handle)
    handle.append(b"0")
    wait_until(lambda: handle.last_add_fully_replicated == 0)
    memory_rig.faults.down = others_than(memory_rig, *names[:2])
    assert handle.append(b"1") == 1
    with pytest.raises(NotEnoughBookiesError, match=f"3 copies.*entries 1 to 1.*{names[2]}"):
        handle.close()
    assert memory_rig.ledger(handle.ledger_id).state is LedgerState.OPEN
    memory_rig.faults.forget()
    sent = {0: b"0", 1: b"1"}
    with BookKeeper(memory_rig.uri) as keeper:
        keeper.recover_ledger(handle.ledger_id)
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))
    assert copies_of(memory_rig, handle.ledger_id) == [3, 3]


def test_a_close_tells_in_its_time_what_is_lacking(memory_rig: Rig, keeper: BookKeeper) -> None:
    settings = WriterSettings(add_entry_quorum_timeout_seconds=0.2)
    handle = keeper.create_ledger(guarantees_write_quorum=True, settings=settings)
    gate, slow = Gate(memory_rig.faults), names_of(handle)[2]
    gate.close(slow)
    handle.append(b"0")
    error = handle._no_end("the writer")
    assert f"the acknowledged entries 0 to 0 are missing on {slow}" in str(error)
    gate.open()
    handle.close()


def test_recovery_starts_at_the_last_entry_that_is_fully_replicated(
    memory_rig: Rig, writer: HandWriter
) -> None:
    """What is confirmed and may lack copies is written back too, and nothing in front of it."""
    for _ in range(3):
        writer.add(0, 1, 2, acknowledges=True)
    for _ in range(3):
        writer.add(0, 1, acknowledges=True)
    report = writer.recover()
    assert report.last_entry_id == 5
    assert copies_of(memory_rig, writer.ledger_id) == [3] * 6
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert any("wrote back 4 groups" in note for note in report.notes)  # 2 is not known to be done


def test_recovery_writes_reach_the_write_quorum(memory_rig: Rig, writer: HandWriter) -> None:
    """Spares stand in, and where there are none, the ledger waits for bookies."""
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    gone = writer.names[2]
    memory_rig.faults.down = others_than(memory_rig, *writer.names[:2])
    with memory_rig.faults.installed(), pytest.raises(NotEnoughBookiesError, match="3 bookies"):
        writer.recover(run=one_by_one(lost=[gone]))
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    memory_rig.faults.forget()
    writer.recover(run=one_by_one(lost=[gone]))
    ledger = memory_rig.ledger(writer.ledger_id)
    assert gone not in {member.bookie_id for member in ledger.last_fragment.ensemble}
    assert copies_of(memory_rig, writer.ledger_id) == [3, 3]
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_what_only_silent_bookies_could_show_is_waited_for(memory_rig: Rig) -> None:
    """Bookies 2 and 3 tell that entry 0 is confirmed, and neither is to have it."""
    writer = HandWriter(memory_rig, (4, 2, 2), guarantees_write_quorum=True)
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    writer.add(2, 3)
    silent = writer.names[:2]
    with pytest.raises(NotEnoughBookiesError, match=f"guarantees 2 copies.*entry 0.*{silent[0]}"):
        writer.recover(run=one_by_one(lost=silent))
    assert writer.recover().last_entry_id == 2
    assert copies_of(memory_rig, writer.ledger_id) == [2, 2, 2]


def test_what_is_lost_is_waited_for_no_more(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig, (4, 2, 2), guarantees_write_quorum=True)
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    writer.add(2, 3)
    memory_rig.faults.down = set(writer.names[:2])
    with memory_rig.faults.installed():
        for name in writer.names[:2]:
            declare_lost(writer.cluster, name)
        report = writer.recover()
    assert report.last_entry_id == 2
    assert "entries 0 to 1" in report.losses[0]


def test_a_fragment_may_begin_in_front_of_what_is_acknowledged(
    memory_rig: Rig, writer: HandWriter
) -> None:
    """And no reader is told less than before it was there."""
    writer.add(0, 1, 2, acknowledges=True)
    for _ in range(3):
        writer.add(0, 1, acknowledges=True)
    spare = sorted(others_than(memory_rig, *writer.names))[0]
    writer.replace(2, spare)
    fragment = writer.metadata.last_fragment
    assert (fragment.first_entry_id, fragment.confirmed) == (1, 3)
    with BookKeeper(memory_rig.uri) as keeper:
        assert keeper.open_ledger(writer.ledger_id, recovery=False).last_add_confirmed == 3
    assert writer.recover().last_entry_id == 3
    assert copies_of(memory_rig, writer.ledger_id) == [3] * 4
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_a_new_member_is_not_held_to_what_was_acknowledged_before(
    memory_rig: Rig, writer: HandWriter
) -> None:
    """Entry 3 says that entry 2 is acknowledged, and of the member of then that it had entry 1."""
    for indexes in ((0, 1, 2), (0, 1, 2), (0, 1), (0, 1)):
        writer.add(*indexes, acknowledges=True)
    spare = sorted(others_than(memory_rig, *writer.names))[0]
    writer.replace(2, spare)
    assert writer.metadata.last_fragment.first_entry_id == 2
    assert writer.recover(run=one_by_one(lost=[writer.names[1]])).last_entry_id == 3
    assert copies_of(memory_rig, writer.ledger_id) == [3] * 4


def test_h9_a_later_entry_tells_nothing_of_an_earlier_one(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """The specification takes all up to the LAC for fully replicated as soon as one ack comes."""
    handle = keeper.create_ledger(ensemble_size=4, guarantees_write_quorum=True)
    gate = Gate(memory_rig.faults)
    gate.close(names_of(handle)[0])
    handle.append(b"0")
    handle.append(b"1")  # which that bookie is not to have
    assert handle.last_add_fully_replicated == -1
    gate.open()
    handle.close()
    assert copies_of(memory_rig, handle.ledger_id) == [3, 3]
