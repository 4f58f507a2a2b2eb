"""The protocol document of BookKeeper, rule by rule: who writes, what counts, who ends it.

More of its rules are in ``test_protocol_document``; "Ledgers to logs" is with the tests of logs.
A test's name begins with the section that its rule stands in.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster
from bkspark.errors import (
    LedgerClosedError,
    LedgerFencedError,
    MetadataVersionError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState
from tests.integration.hand_writer import (
    Gate,
    HandWriter,
    good_copies,
    late,
    one_by_one,
    stop_behind,
    violations,
)
from tests.integration.rig import Rig
from tests.integration.waiting import wait_until
from tests.kit.faulty import METADATA, Fault, Operation


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def test_ledgers_metadata_changes_by_compare_and_set_only(keeper: BookKeeper) -> None:
    """Of two who saw the same version one changes it; the other learns that it did not."""
    handle = keeper.create_ledger()
    ledgers, name = keeper._cluster.ledgers, str(handle.ledger_id)
    seen = keeper._cluster.ledger(handle.ledger_id)

    def by(name: str) -> LedgerMetadata:
        settings = replace(seen.value.settings, custom_metadata={"by": name})
        return replace(seen.value, settings=settings)

    first = by("first")
    ledgers.replace(name, first, seen)
    with pytest.raises(MetadataVersionError):
        ledgers.replace(name, by("second"), seen)
    assert keeper._cluster.ledger(handle.ledger_id).value == first
    handle.release()


def test_ledgers_entries_are_on_bookies_and_nowhere_else(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """The metadata store is not written to, however many entries are added."""
    with keeper.create_ledger() as handle:
        handle.append(b"0")
        before = len(memory_rig.faults.trace)
        for number in range(20):
            handle.append(b"%d" % number)
        later = memory_rig.faults.trace[before:]
    assert {o.call for o in later if o.place == METADATA} <= {"is_current"}


def test_ledgers_have_one_writer_and_many_readers(memory_rig: Rig, keeper: BookKeeper) -> None:
    """Whoever is not the writer named in the metadata cannot act for it, and readers only read."""
    handle = keeper.create_ledger()
    handle.append(b"a")
    readers = [keeper.open_ledger(handle.ledger_id, recovery=False) for _ in range(3)]
    ledger = handle.metadata
    with pytest.raises(LedgerFencedError):
        ledger.with_ensemble(1, ledger.last_fragment.ensemble, term=ledger.term, token="f" * 32)
    with pytest.raises(LedgerFencedError):
        ledger.closed(last_entry_id=0, length_bytes=1, term=ledger.term, token="f" * 32)
    assert handle.append(b"b") == 1
    assert not any(hasattr(reader, "append") for reader in readers)
    handle.close()


def test_ack_quorums_come_from_the_write_quorum_of_the_entry(memory_rig: Rig) -> None:
    """Entry 0 belongs on bookies 0 to 2; that 3 and 4 have said so, too, is worth nothing."""
    writer = HandWriter(memory_rig, (5, 3, 2))
    writer.add(0, acknowledges=True)
    writer._adds[0].counted.update({3, 4})
    writer.acknowledge()
    assert writer.acked == []
    writer.put(0, 2)
    writer.acknowledge()
    assert writer.acked == [0]


def test_writing_counts_a_bookie_once_it_has_the_entry_on_disk(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """With one of three done, and the others still at it, nobody is told anything."""
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger()
    names = [m.bookie_id for m in handle.metadata.last_fragment.ensemble]
    gate.close(*names[1:])
    future = handle.append_async(b"a")
    with pytest.raises(TimeoutError):
        future.result(0.2)
    gate.open(names[1])
    assert future.result(120) == 0
    gate.open()
    handle.close()


def test_writing_records_carry_ledger_entry_confirmed_and_payload(memory_rig: Rig) -> None:
    """So a copy tells by itself where it belongs; it is found under no other number."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    record = writer._records[1].record
    assert (record.ledger_id, record.first_entry_id) == (writer.ledger_id, 1)
    assert record.last_add_confirmed == 0
    name = layout.journal(writer.ledger_id, 1, writer.metadata.token)
    assert b"entry 1" in memory_rig.file_bytes(writer.names[0], name)


def test_writing_what_is_confirmed_is_on_an_ack_quorum_for_all_later_readers(
    memory_rig: Rig,
) -> None:
    """Whatever a reader without recovery has seen, one with recovery sees as well."""
    writer = HandWriter(memory_rig)
    for _ in range(3):
        writer.add(0, 1, acknowledges=True)
    with BookKeeper(memory_rig.uri) as keeper:
        seen = [e.value for e in keeper.open_ledger(writer.ledger_id, recovery=False).read()]
        assert len(seen) >= 2
        writer.recover(run=one_by_one(lost=writer.names[:1]))
        assert [e.value for e in keeper.open_ledger(writer.ledger_id).read()][: len(seen)] == seen


def test_writing_replaces_again_if_the_ledger_changed_and_is_still_open(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Somebody else's change of the metadata, a repair's for example, stops no writer."""
    handle = keeper.create_ledger()
    broken = handle.metadata.last_fragment.ensemble[0].bookie_id
    # Each change by somebody else meets the next one itself: the last to begin is stored first.
    turns = iter(range(3))

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_change = operation.place == METADATA and operation.call == "put"
        if is_change and (turn := next(turns, None)) is not None:
            keeper._cluster.ledgers.update(
                str(handle.ledger_id),
                lambda ledger: replace(
                    ledger, settings=replace(ledger.settings, custom_metadata={"turn": str(turn)})
                ),
            )
        return Fault() if operation.place == broken else None

    memory_rig.faults.decide = decide
    assert handle.append(b"0") == 0  # the others may have it before the change
    wait_until(lambda: broken not in {m.bookie_id for m in handle.metadata.last_fragment.ensemble})
    assert [handle.append(b"%d" % number) for number in (1, 2)] == [1, 2]
    handle.close()
    ledger = memory_rig.ledger(handle.ledger_id)
    assert broken not in {m.bookie_id for m in ledger.last_fragment.ensemble}
    assert dict(ledger.settings.custom_metadata) == {"turn": "0"}


def test_closing_as_a_writer_is_tried_again_while_the_ledger_is_open(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """The compare-and-set fails because of somebody who leaves the ledger open."""
    handle = keeper.create_ledger()
    handle.append(b"a")
    turns = iter(range(2))

    def decide(_number: int, operation: Operation) -> None:
        if operation.call == "put" and next(turns, None) is not None:
            keeper._cluster.ledgers.update(
                str(handle.ledger_id),
                lambda ledger: replace(
                    ledger, settings=replace(ledger.settings, custom_metadata={"a": "b"})
                ),
            )

    memory_rig.faults.decide = decide
    handle.close()
    ledger = memory_rig.ledger(handle.ledger_id)
    assert (ledger.state, ledger.last_entry_id) == (LedgerState.CLOSED, 0)
    assert dict(ledger.settings.custom_metadata) == {"a": "b"}


def test_closing_as_a_writer_leaves_no_way_to_add(keeper: BookKeeper) -> None:
    """Not by the handle, and not by a change of the metadata either."""
    handle = keeper.create_ledger()
    handle.close()
    with pytest.raises(LedgerClosedError):
        handle.append(b"a")
    ledger = keeper._cluster.ledger(handle.ledger_id).value
    with pytest.raises(LedgerClosedError):
        ledger.in_recovery("b" * 32)


def test_recovery_keeps_the_old_writer_from_changing_the_ensemble(memory_rig: Rig) -> None:
    """It fails on the compare-and-set and sees in the metadata why."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.recover()
    spare = next(name for name in memory_rig.urls if name not in writer.names)
    before = memory_rig.ledger(writer.ledger_id)
    with pytest.raises((LedgerFencedError, LedgerClosedError)):
        writer.replace(0, spare)
    assert memory_rig.ledger(writer.ledger_id) == before


def test_recovery_lets_the_old_writer_store_but_not_succeed(memory_rig: Rig) -> None:
    """One bookie never heard of the fence. What it takes belongs to nobody and stays unread."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.recover(run=one_by_one(lost=writer.names[2:]))
    writer.add()
    late(writer, 1, 2, 0, 1)
    assert writer.acked == [0]
    name = layout.journal(writer.ledger_id, 1, writer.metadata.token)
    assert b"entry 1" in memory_rig.file_bytes(writer.names[2], name)
    assert memory_rig.ledger(writer.ledger_id).last_entry_id == 0
    with BookKeeper(memory_rig.uri) as keeper:
        values = [entry.value for entry in keeper.open_ledger(writer.ledger_id).read()]
    assert values == [b"entry 0"]


def test_recovery_asks_for_more_than_qw_minus_qa_answers_in_every_write_quorum(
    memory_rig: Rig,
) -> None:
    """5/3/2: bookies 1 and 2 silent leave the write quorum of entry 0 with one answer of three."""
    writer = HandWriter(memory_rig, (5, 3, 2))
    silent = writer.names[1:3]
    with pytest.raises(NotEnoughBookiesError):
        writer.recover(run=one_by_one(lost=silent))
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    # With one of them back every write quorum has two answers.
    writer.recover(run=one_by_one(lost=silent[:1]))
    assert memory_rig.ledger(writer.ledger_id).last_entry_id == -1


def test_recovery_replicates_to_the_whole_write_quorum_before_it_closes(memory_rig: Rig) -> None:
    """Killed between two copies it has not closed, and whoever goes on makes all of them."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    with pytest.raises(OutcomeUnknownError, match="stopped"):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    writer.recover()
    ledger = memory_rig.ledger(writer.ledger_id)
    assert good_copies(memory_rig, ledger) == {0: 3}


def test_recovery_converges_whoever_wins_the_closing_compare_and_set(memory_rig: Rig) -> None:
    """Two have decided differently, since one heard of more copies; the first to close is right."""
    writer = HandWriter(memory_rig)
    writer.add(0)
    ends: list[int] = []

    def other(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies) and not ends:
            ends.append(-2)  # once
            ends.append(writer.recover(run=one_by_one(lost=writer.names[:1])).last_entry_id)

    ends.append(writer.recover(run=one_by_one(before=other)).last_entry_id)
    closed = memory_rig.ledger(writer.ledger_id).last_entry_id
    assert ends[1:] == [closed, closed] == [-1, -1]
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_recovery_a_state_that_is_reread_is_the_newest(memory_rig: Rig) -> None:
    """A client that reads the metadata after a change has returned sees the change."""
    writer = HandWriter(memory_rig)
    writer.recover()
    with Cluster(memory_rig.uri) as other:
        found: LedgerMetadata = other.ledger(writer.ledger_id).value
    assert found.state is LedgerState.CLOSED
