"""A bookie fails under a writer: who is asked, what counts, what is sent again; and lost answers.

The numbers are those of the list of historical bugs the project was made with.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.records import Records, Versioned
from bkspark.errors import (
    BookieUnavailableError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.handles import grouping
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.protocol.bookies import FAILURES_MAX
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer import ensemble_change
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.steps import Failed, Stored
from tests.integration.hand_writer import Gate, violations
from tests.integration.rig import Rig
from tests.integration.waiting import wait_for_all_copies, wait_until
from tests.kit.faulty import METADATA, Fault, Moment, Operation


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def names_of(handle: WriteHandle) -> list[str]:
    return [m.bookie_id for m in handle.metadata.last_fragment.ensemble]


def appends(rig: Rig, name: str) -> int:
    return sum(o.place == name and o.call == "append" for o in rig.faults.trace)


def replace_by_failing(handle: WriteHandle, index: int) -> bool:
    """Let a bookie fail; whether another one has its place then."""
    name, error = names_of(handle)[index], BookieUnavailableError("it failed")
    handle._writer._report(Failed(index, name, error))
    wait_until(lambda: not handle._writer.machine.changes.is_under_way)
    return names_of(handle)[index] != name


def test_a_bookie_that_fails_is_replaced_from_the_first_entry_without_an_ack(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger() as handle:
        sent = {handle.append(b"%d" % n): b"%d" % n for n in range(3)}
        before = names_of(handle)
        memory_rig.faults.down = {before[1]}
        sent[handle.append(b"3")] = b"3"
        wait_until(lambda: names_of(handle) != before)
        sent[handle.append(b"4")] = b"4"
        after = names_of(handle)
    assert (after[0], after[2]) == (before[0], before[2])
    ledger = memory_rig.ledger(handle.ledger_id)
    assert ledger.fragments[0].first_entry_id == 0
    assert ledger.fragments[-1].first_entry_id in (3, 4)
    memory_rig.faults.forget()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


@pytest.mark.parametrize("is_stored", [True, False])
def test_rb_06_no_ack_counts_from_a_bookie_that_the_metadata_does_not_name(
    is_stored: bool, memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two bookies are replaced, and come back without the entry."""
    handle = keeper.create_ledger()
    before = names_of(handle)
    if not is_stored:

        def in_memory(self: Records[Any], name: str, transform: Any, **_: Any) -> Versioned[Any]:
            seen = self.get(name)
            assert seen is not None
            return Versioned(transform(handle.metadata), seen.stored)

        monkeypatch.setattr(type(handle._cluster.ledgers), "update", in_memory)
    memory_rig.faults.down = set(before[:2])
    sent = {handle.append(b"0"): b"0"}
    handle.release()
    monkeypatch.undo()
    memory_rig.faults.forget()
    memory_rig.faults.down = {before[2]}
    keeper.recover_ledger(handle.ledger_id)
    memory_rig.faults.forget()
    assert bool(violations(memory_rig, handle.ledger_id, sent, [0])) is not is_stored


def test_rb_06_a_change_that_the_metadata_store_does_not_answer_acknowledges_nothing(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger()
    broken = names_of(handle)[:2]

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_change = operation.place == METADATA and operation.call == "put"
        return Fault() if is_change or operation.place in broken else None

    memory_rig.faults.decide = decide
    with pytest.raises(OutcomeUnknownError):
        handle.append(b"0")
    assert handle.last_add_confirmed == -1


@pytest.mark.parametrize("takes_back", [True, False])
def test_rb_07_what_a_replaced_bookie_had_counted_is_taken_back(
    takes_back: bool, memory_rig: Rig, keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Entry 0 is on the bookie at 0, which then fails with entry 1; the one at 1 stores it next."""
    if not takes_back:
        monkeypatch.setattr(PendingAdds, "replace_members", lambda *_: None)
    monkeypatch.setattr(grouping, "GATHERED_BYTES_MAX", 0)  # entry 1 does not wait for entry 0
    gate = Gate(memory_rig.faults)
    handle = keeper.create_ledger()
    before = names_of(handle)
    gate.close(*(name for name in memory_rig.urls if name != before[0]))
    first = handle.append_async(b"0")
    wait_until(lambda: appends(memory_rig, before[0]) == 1)
    wait_until(lambda: next(iter(handle._writer.machine.pending)).counted)
    memory_rig.faults.down = {before[0]}
    handle.append_async(b"1")
    wait_until(lambda: names_of(handle) != before)
    gate.open(before[1])
    wait_until(lambda: appends(memory_rig, before[1]) == 2)
    if takes_back:
        with pytest.raises(TimeoutError):
            first.result(0.1)
    else:
        assert first.result(120) == 0
    gate.open()
    handle.release()
    assert first.result(120) == 0


def test_rb_07_a_late_report_of_a_replaced_bookie_counts_for_nothing(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger()
    before = names_of(handle)
    assert replace_by_failing(handle, 1)
    gate = Gate(memory_rig.faults)
    gate.close(*memory_rig.urls)
    waiting = handle.append_async(b"0")
    handle._writer._report(Stored(1, before[1], 0, 0))
    (add,) = handle._writer.machine.pending
    assert not add.counted
    gate.open()
    assert waiting.result(120) == 0
    handle.release()


def test_rb_08_everything_is_taken_back_before_anything_completes() -> None:
    """E = 2, Qw = Qa = 1: entry 1 was counted on a bookie that is replaced, entry 0 comes next."""
    pending = PendingAdds(Quorum(2, 1, 1))
    first, second = pending.push(1), pending.push(1)
    second.counted.add(1)
    pending.replace_members([1])
    first.counted.add(0)
    ticket = pending.ticket()
    assert ticket is not None
    assert pending.acknowledge(ticket) == [first]


def test_rb_16_without_a_spare_the_writer_goes_on_while_an_ack_quorum_is_left(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger(ensemble_size=3)
    before = names_of(handle)
    memory_rig.faults.down = set(memory_rig.urls) - set(before[:2])
    assert [handle.append(b"%d" % n) for n in range(3)] == [0, 1, 2]
    memory_rig.faults.down = set(memory_rig.urls) - set(before[:1])
    gate = Gate(memory_rig.faults)
    gate.close(before[1])  # the writer ends with it, and takes no entry any more
    last = [handle.append_async(b"3") for _ in range(3)]
    gate.open()
    for future in last:
        error = future.exception(120)
        assert isinstance(error, NotEnoughBookiesError)
    assert "cannot reach 2 bookies" in str(last[0].exception())
    memory_rig.faults.forget()
    assert keeper.recover_ledger(handle.ledger_id).last_entry_id >= 2


def test_rb_18_a_change_by_somebody_else_is_kept(memory_rig: Rig, keeper: BookKeeper) -> None:
    """RB-27e too: a writer that loses the compare-and-set applies its own change to the news."""
    handle = keeper.create_ledger()
    handle.append(b"0")
    broken, done = names_of(handle)[0], list[bool]()

    def decide(_number: int, operation: Operation) -> Fault | None:
        is_change = operation.place == METADATA and operation.call == "put"
        if is_change and not done:
            done.append(True)
            keeper._cluster.ledgers.update(
                str(handle.ledger_id),
                lambda ledger: replace(
                    ledger, settings=replace(ledger.settings, custom_metadata={"a": "job"})
                ),
            )
        return Fault() if operation.place == broken else None

    memory_rig.faults.decide = decide
    assert handle.append(b"1") == 1
    wait_until(lambda: broken not in names_of(handle))
    assert handle.append(b"2") == 2  # the others may have had entry 1 before the change
    handle.close()
    ledger = memory_rig.ledger(handle.ledger_id)
    assert (dict(ledger.settings.custom_metadata), len(ledger.fragments)) == ({"a": "job"}, 2)
    assert ledger.last_entry_id == 2


@pytest.mark.parametrize("state", [LedgerState.IN_RECOVERY, LedgerState.CLOSED])
def test_rb_35_a_ledger_taken_away_during_a_change_leaves_the_outcome_unknown(
    state: LedgerState, memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger()
    broken, done = names_of(handle)[:2], list[bool]()

    def taken(ledger: LedgerMetadata) -> LedgerMetadata:
        changed = ledger.in_recovery("b" * 32)
        if state is LedgerState.IN_RECOVERY:
            return changed
        return changed.closed(
            last_entry_id=-1, length_bytes=0, term=changed.term, token=changed.token
        )

    def decide(_number: int, operation: Operation) -> Fault | None:
        if operation.place == METADATA and operation.call == "put" and not done:
            done.append(True)
            keeper._cluster.ledgers.update(str(handle.ledger_id), taken)
        return Fault() if operation.place in broken else None

    memory_rig.faults.decide = decide
    with pytest.raises(LedgerFencedError):
        handle.append(b"0")


def test_rb_43_a_bookie_that_fails_behind_the_ack_is_replaced_all_the_same(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    gate = Gate(memory_rig.faults)
    with keeper.create_ledger() as handle:
        before = names_of(handle)
        gate.close(before[2])
        assert handle.append(b"0") == 0
        memory_rig.faults.down = {before[2]}
        gate.open()
        wait_until(lambda: names_of(handle) != before)
        assert handle.append(b"1") == 1
    assert before[2] not in names_of(handle)
    assert handle.metadata.last_fragment.first_entry_id == 1


@pytest.mark.parametrize("what", ["create", "change", "close", "take over"])
def test_rb_27_a_lost_answer_of_the_metadata_store_is_recognised_as_ones_own(
    what: str, memory_rig: Rig, keeper: BookKeeper
) -> None:
    def lose_the_answer(_number: int, operation: Operation) -> Fault | None:
        is_it = operation.call == "put" and operation.name.startswith(layout.LEDGERS_PREFIX)
        return Fault(Moment.AFTER) if is_it and operation.place == METADATA else None

    if what == "create":
        memory_rig.faults.decide = lose_the_answer
    handle = keeper.create_ledger()
    memory_rig.faults.decide = lose_the_answer
    before = names_of(handle)
    if what == "change":
        memory_rig.faults.down = {before[0]}
    handle.append(b"0")
    if what == "change":
        wait_until(lambda: names_of(handle) != before)
    if what == "take over":
        handle.release()
        assert keeper.recover_ledger(handle.ledger_id).last_entry_id == 0
    else:
        handle.close()
    memory_rig.faults.forget()
    assert [e.value for e in keeper.open_ledger(handle.ledger_id).read()] == [b"0"]
    assert keeper.list_ledgers() == [handle.ledger_id]


def test_rb_22_a_reader_follows_the_ledger_to_its_new_bookies(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    with keeper.create_ledger() as handle:
        handle.append(b"0")
        wait_for_all_copies(handle)
        reader = keeper.open_ledger(handle.ledger_id, recovery=False)
    taken = names_of(handle)
    spare, address = next(
        (m, a) for m, a in keeper._cluster.addresses().items() if m.bookie_id not in taken
    )
    old = handle.metadata.last_fragment.ensemble[0].bookie_id
    name = layout.journal(handle.ledger_id, 1, handle.metadata.token)
    with open_bookie(address).open_root() as root:
        assert root.put_new(name, memory_rig.file_bytes(old, name))
    assert reader.read_last_add_confirmed() == 0

    def moved(ledger: LedgerMetadata) -> LedgerMetadata:
        fragment = ledger.last_fragment
        members: tuple[Member, ...] = (spare, *fragment.ensemble[1:])
        return replace(ledger, fragments=(replace(fragment, ensemble=members),))

    keeper._cluster.ledgers.update(str(handle.ledger_id), moved)
    for lost in taken:
        memory_rig.lose(lost)
    assert [entry.value for entry in reader.read()] == [b"0"]


def test_a_writer_that_changed_too_often_gives_up(
    keeper: BookKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ensemble_change, "CHANGES_MAX", 1)
    handle = keeper.create_ledger()
    assert replace_by_failing(handle, 0)
    assert not replace_by_failing(handle, 1)
    handle.release()


def test_bookies_that_failed_are_never_swapped_for_one_another(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    handle = keeper.create_ledger()
    others, had = names_of(handle)[1:], names_of(handle)[:1]
    while replace_by_failing(handle, 0):
        had.append(names_of(handle)[0])
        assert len(had) <= len(memory_rig.urls)
    assert sorted(others + had) == sorted(memory_rig.urls)
    handle.release()


# --- choices -----------------------------------------------------------------------------------


def test_with_delay_nobody_is_replaced_while_every_entry_reaches_its_ack_quorum(
    memory_rig: Rig, keeper: BookKeeper
) -> None:
    """Then all that failed are, at once."""
    handle = keeper.create_ledger(settings=WriterSettings(is_change_delayed=True))
    before = names_of(handle)
    memory_rig.faults.down = {before[0]}
    sent = {handle.append(b"%d" % n): b"%d" % n for n in range(5)}
    assert (names_of(handle), len(handle.metadata.fragments)) == (before, 1)
    memory_rig.faults.down = {before[0], before[1]}
    sent[handle.append(b"5")] = b"5"
    wait_until(lambda: not {before[0], before[1]} & set(names_of(handle)))
    assert (names_of(handle)[2], handle.metadata.fragments[1].first_entry_id) == (before[2], 5)
    handle.close()
    memory_rig.faults.forget()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_bookies_that_keep_failing_are_chosen_last(memory_rig: Rig, keeper: BookKeeper) -> None:
    """By every writer of the same connection."""
    bad = next(iter(memory_rig.urls))
    (member,) = [m for m in keeper._cluster.addresses() if m.bookie_id == bad]
    for _ in range(FAILURES_MAX):
        handle = keeper.create_ledger(settings=WriterSettings(explicit_lac_ms=0))
        index = names_of(handle).index(bad) if bad in names_of(handle) else None
        if index is None:
            keeper._cluster.note_failure(member)
        else:
            replace_by_failing(handle, index)
        handle.release()
    assert keeper._cluster.suspects() == {bad}
    for _ in range(6):
        with keeper.create_ledger() as handle:
            assert bad not in names_of(handle)
            assert replace_by_failing(handle, 0)
            assert bad not in names_of(handle)
    with keeper.create_ledger(ensemble_size=len(memory_rig.urls)) as handle:
        assert bad in names_of(handle)


def test_a_failure_is_noted_with_the_bookie(memory_rig: Rig, keeper: BookKeeper) -> None:
    for _ in range(FAILURES_MAX):
        memory_rig.faults.forget()
        handle = keeper.create_ledger(ensemble_size=len(memory_rig.urls))
        memory_rig.faults.down = {"bookie-2"}
        handle.append_many([b"%d" % n for n in range(6)])
        wait_until(lambda handle=handle: handle._writer.machine.changes.failed)
        handle.release()
    assert keeper._cluster.suspects() == {"bookie-2"}
