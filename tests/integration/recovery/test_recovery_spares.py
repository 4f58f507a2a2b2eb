"""Spares that stand in while a recovery writes back, and what becomes of them when it dies.

Each rule is one of the list of historical bugs the project was made with (RB-nn) or of the list of
features (2.2.n).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bkspark.admin.absent_bookies import declare_lost
from bkspark.bookie import memory
from bkspark.bookie.contract import BookieAddress
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError, OutcomeUnknownError
from bkspark.format import layout
from bkspark.ledger import copying
from bkspark.ledger.copying import copy_entry_log
from bkspark.ledger.recovery.fencing import FenceAndRead
from bkspark.ledger.recovery.recover import recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.log.batch import commit as batch_commit
from bkspark.log.batch.target import BatchTarget
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.ledger.record import EntryLog
from bkspark.protocol.recovery.steps import Displaced, Failure, WrittenBack
from tests.integration.hand_writer import HandWriter, one_by_one, stop_behind, violations
from tests.integration.rig import Rig, partitions_of
from tests.kit.faulty import Crash, Fault, Moment, crash_at
from tests.thorough import always


def ensemble(rig: Rig, writer: HandWriter) -> list[str]:
    found = rig.ledger(writer.ledger_id).last_fragment.ensemble
    return [member.bookie_id for member in found]


def unwritable(*bookie_ids: str, before: Callable[[Any], None] = lambda _: None) -> Any:
    """Carries instructions out, but nothing can be written back to these bookies."""

    def run(instructions: Sequence[Any]) -> list[Any]:
        is_writing = isinstance(instructions[0], WriteCopies)
        return one_by_one(lost=bookie_ids if is_writing else (), before=before)(instructions)

    return run


def test_2_2_13_spares_stand_in_for_members_that_cannot_be_written(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0)
    gone = writer.names[1:]
    report = writer.recover(run=unwritable(*gone))
    ledger = memory_rig.ledger(writer.ledger_id)
    assert report.last_entry_id == 1
    assert [fragment.first_entry_id for fragment in ledger.fragments] == [0, 1] or (
        ledger.fragments[0].first_entry_id,
        len(ledger.fragments),
    ) == (0, 1)
    assert not set(ensemble(memory_rig, writer)) & set(gone)
    assert sum("replaces" in note for note in report.notes) == 2
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_confirmed_entries_stay_in_the_fragment_they_were_written_in(memory_rig: Rig) -> None:
    """Entry 0 is known to be confirmed, so the new fragment begins behind it."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, 2, acknowledges=True)
    writer.add(0, 1, acknowledges=True)
    old, gone = writer.names, writer.names[1:]
    writer.recover(run=unwritable(*gone))
    fragments = memory_rig.ledger(writer.ledger_id).fragments
    assert [fragment.first_entry_id for fragment in fragments] == [0, 1]
    assert [member.bookie_id for member in fragments[0].ensemble] == old
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_nobody_is_replaced_while_enough_members_can_be_written(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    writer.recover(run=unwritable(writer.names[2]))
    assert ensemble(memory_rig, writer) == writer.names
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_2_2_7_members_are_replaced_as_far_as_there_are_spares(make_rig: Any) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=4)
    writer = HandWriter(rig)
    writer.add(0)
    gone = writer.names[1:]
    writer.recover(run=unwritable(*gone))
    [spare] = set(rig.urls) - set(writer.names)
    assert spare in ensemble(rig, writer)
    assert len(set(ensemble(rig, writer)) & set(gone)) == 1
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_2_2_6_a_spare_that_fails_is_followed_by_another(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    spares = sorted(set(memory_rig.urls) - set(writer.names))
    gone = (*writer.names[1:], *spares[1:])
    writer.recover(run=unwritable(*gone))
    assert spares[0] in ensemble(memory_rig, writer)
    assert not set(ensemble(memory_rig, writer)) & set(spares[1:])
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("count", [3, 4])
def test_rb_04_no_spare_shows_before_the_closing_cas(count: int, memory_rig: Rig) -> None:
    """A recovery that dies leaves the next one the ensemble that the writer wrote to."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    silent = writer.names[1:]
    asked: list[list[str]] = [[]]

    def note(instruction: object) -> None:
        if isinstance(instruction, FenceAndRead):
            asked[-1].append(instruction.address.bookie_id)
        else:
            stop(instruction)

    stop = stop_behind(count)  # the members first, and then the spares
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=unwritable(*silent, before=note))
    assert memory_rig.ledger(writer.ledger_id).last_fragment == writer.metadata.last_fragment
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    asked.append([])
    stop = stop_behind(100)
    writer.recover(run=one_by_one(before=note))
    assert asked == [writer.names, writer.names]
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_04_the_new_ensemble_and_the_end_are_one_change(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    with memory_rig.faults.installed():
        with Cluster(memory_rig.uri) as cluster:
            recover(cluster, writer.ledger_id, Password(), run=unwritable(*writer.names[1:]))
        key = layout.ledger_key(writer.ledger_id)
        puts = [o for o in memory_rig.faults.trace if (o.call, o.name) == ("put", key)]
        memory_rig.faults.forget()
    assert len(puts) == 2
    assert ensemble(memory_rig, writer) != writer.names


@pytest.mark.parametrize("is_lost", [False, True])
def test_bookies_that_are_lost_or_read_only_stand_in_for_nobody(
    is_lost: bool, make_rig: Callable[..., Rig]
) -> None:
    rig = make_rig(kind="memory", metadata="memory", bookie_count=4)
    writer = HandWriter(rig)
    writer.add(0)
    [spare] = set(rig.urls) - set(writer.names)
    if is_lost:
        disk = rig.lose(spare)
        declare_lost(writer.cluster, spare)
        rig.bring_back(spare, disk)
    else:
        writer.cluster.registrations.update(
            spare, lambda record: replace(record, is_read_only=True)
        )
    with pytest.raises(NotEnoughBookiesError, match="cannot be written to 2 bookies"):
        writer.recover(run=unwritable(*writer.names[1:]))


@pytest.mark.parametrize("count", [4, 6])
def test_one_whose_disk_is_full_stands_in_where_there_is_no_other(
    count: int, make_rig: Callable[..., Rig]
) -> None:
    """Copies that are missing are worse than a disk that gets a little fuller."""
    rig = make_rig(kind="memory", metadata="memory", bookie_count=count)
    writer = HandWriter(rig)
    writer.add(0)
    full, *others = sorted(set(rig.urls) - set(writer.names))
    writer.cluster.registrations.update(full, lambda record: replace(record, is_full=True))
    writer.recover(run=unwritable(*writer.names[1:]))
    assert set(ensemble(rig, writer)) - set(writer.names) == set(others or [full])


@pytest.mark.parametrize("moment", always([Moment.AFTER], list(Moment)))
def test_a_recovery_with_spares_killed_at_any_operation_is_finished_by_the_next(
    moment: Moment, memory_rig: Rig
) -> None:
    """RB-04, RB-05: its spares count for nothing, and an entry that was acknowledged stays."""
    number, is_over = 0, False
    while not is_over:
        writer = HandWriter(memory_rig)
        writer.add(0, 1, acknowledges=True)
        lost = writer.names[1:]
        memory_rig.faults.forget()
        memory_rig.faults.decide = crash_at(number, moment)
        with memory_rig.faults.installed():
            try:
                with Cluster(memory_rig.uri) as cluster:
                    recover(cluster, writer.ledger_id, Password(), run=unwritable(*lost))
                is_over = True
            except Crash:
                number += 1
        memory_rig.faults.forget()
        writer.recover(run=one_by_one(lost=writer.names[:1]))
        assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked), number
    assert number > 30


def test_a_spare_has_its_markers_before_anything_else_is_written_to_it(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    with memory_rig.faults.installed():
        writer.recover(run=unwritable(*writer.names[1:]))
        trace = list(memory_rig.faults.trace)
        memory_rig.faults.forget()
    spares = set(ensemble(memory_rig, writer)) - set(writer.names)
    assert len(spares) == 2
    fence = layout.term_marker(writer.ledger_id, 2)
    for spare in spares:
        calls = [(o.call, o.name) for o in trace if o.place == spare and o.call != "open_root"]
        assert calls[0] == ("put_new", fence)
        assert calls[1][0] == "open_journal"


def test_a_member_that_was_silent_gets_its_markers_with_its_copies(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    late = writer.names[2]

    def answers_later(instructions: Any) -> list[Any]:
        is_first = isinstance(instructions[0], FenceAndRead)
        return one_by_one(lost=[late] if is_first else [])(instructions)

    writer.recover(run=answers_later)
    assert layout.term_marker(writer.ledger_id, 2) in memory_rig.names(late)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.fixture
def abandoned(memory_rig: Rig) -> Callable[[tuple[int, int, int]], BatchTarget]:
    """A DataFrame write of eight rows whose commit process died in front of its closing CAS."""

    def abandon(sizes: tuple[int, int, int]) -> BatchTarget:
        target = memory_rig.target(sizes)
        reports = memory_rig.tasks(target, partitions_of(3, 5))
        memory_rig.faults.decide = _dies_in_front_of_closing(target.ledger_id)
        with memory_rig.faults.installed(), pytest.raises(Crash):
            batch_commit.commit(target, reports)
        memory_rig.faults.forget()
        return target

    return abandon


@pytest.mark.parametrize("sizes", [(3, 3, 2), (4, 3, 2)])
@pytest.mark.parametrize("has_rival", [False, True])
def test_entry_logs_are_copied_to_the_spares(
    has_rival: bool,
    sizes: tuple[int, int, int],
    memory_rig: Rig,
    abandoned: Callable[[tuple[int, int, int]], BatchTarget],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a rival, another attempt of the same task is always just a bit faster."""
    target = abandoned(sizes)
    names = [address.bookie_id for address in target.ensemble]
    made: list[object] = []

    def outrun(log: EntryLog, sources: Any, into: BookieAddress, *args: Any, **more: Any) -> None:
        copy_entry_log(log, sources, into, *args, **more)
        if has_rival and (log, into) not in made:
            made.append((log, into))
            raise BookieUnavailableError("the name is taken")

    monkeypatch.setattr(copying, "copy_entry_log", outrun)
    with Cluster(memory_rig.uri) as cluster:
        report = recover(cluster, target.ledger_id, Password(), run=unwritable(*names[:2]))
    assert report.last_entry_id == 7
    placed = memory_rig.ledger(target.ledger_id).last_fragment.ensemble
    assert not {member.bookie_id for member in placed} & set(names[:2])
    copies = memory_rig.good_copies(target.ledger_id)
    assert copies
    assert all(len(holders) >= 2 for holders in copies.values())


def logs_on(rig: Rig, bookie_id: str) -> list[str]:
    return [name for name in rig.names(bookie_id) if name.endswith(".arrow")]


@pytest.mark.parametrize("bad_count", [1, 2])
def test_a_source_that_is_no_good_is_not_blamed_on_the_bookie_that_needs_a_copy(
    bad_count: int, memory_rig: Rig, abandoned: Callable[[tuple[int, int, int]], BatchTarget]
) -> None:
    """The third member lost its entry logs, and others are damaged behind the decision."""
    target = abandoned((3, 3, 2))
    *holders, needy = (address.bookie_id for address in target.ensemble)
    for name in logs_on(memory_rig, needy):
        memory_rig.replace_file(needy, name, None)
    damaged: list[str] = []

    def damage(instruction: object) -> None:
        if isinstance(instruction, WriteCopies) and not damaged:
            damaged.extend(holders[:bad_count])
            for bookie_id in damaged:
                for name in logs_on(memory_rig, bookie_id):
                    memory_rig.replace_file(bookie_id, name, b"damaged")

    with Cluster(memory_rig.uri) as cluster:
        run = one_by_one(before=damage)
        if bad_count == 2:
            with pytest.raises(
                NotEnoughBookiesError, match="can no longer read all copies"
            ) as caught:
                recover(cluster, target.ledger_id, Password(), run=run)
            assert all(f"{name}: " in str(caught.value) for name in holders)
            assert memory_rig.ledger(target.ledger_id).state is LedgerState.IN_RECOVERY
            return
        assert recover(cluster, target.ledger_id, Password(), run=run).last_entry_id == 7
    copies = memory_rig.good_copies(target.ledger_id)
    assert all({holders[1], needy} <= holders_of for holders_of in copies.values())


def _dies_in_front_of_closing(ledger_id: int) -> Any:
    def decide(_number: int, operation: Any) -> Any:
        is_closing = operation.call == "put" and operation.name == layout.ledger_key(ledger_id)
        return Fault(Moment.BEFORE, Crash) if is_closing else None

    return decide


# --- the copies themselves -----------------------------------------------------------------------


def write_backs(rig: Rig, writer: HandWriter) -> list[WriteCopies]:
    """What a recovery that was stopped would have done."""
    found: list[WriteCopies] = []

    def stop(instruction: object) -> None:
        if isinstance(instruction, WriteCopies):
            found.append(instruction)
            if len(found) == 3:
                raise OutcomeUnknownError("stopped")

    lost = writer.names
    with pytest.raises((OutcomeUnknownError, NotEnoughBookiesError)):
        writer.recover(run=_read_only(lost, stop))
    return found


def _read_only(names: list[str], before: Any) -> Any:
    def run(instructions: Any) -> list[Any]:
        for instruction in instructions:
            before(instruction)
        if isinstance(instructions[0], WriteCopies):
            return [Failure("not now") for _ in instructions]
        return [instruction.run() for instruction in instructions]

    return run


def test_an_instruction_that_runs_twice_writes_twice_and_both_count(rig: Rig) -> None:
    """Spark may run a task again, or beside itself: no attempt writes into another's journal."""
    writer = HandWriter(rig)
    writer.add(0, 1, acknowledges=True)
    for instruction in write_backs(rig, writer):
        before = set(rig.names(instruction.address.bookie_id))
        assert instruction.run() == instruction.run() == WrittenBack(1)
        added = sorted(set(rig.names(instruction.address.bookie_id)) - before)
        assert len(added) == 2
        first, second = (rig.file_bytes(instruction.address.bookie_id, name) for name in added)
        assert first == second
    writer.recover()
    assert not violations(rig, writer.ledger_id, writer.sent, writer.acked)


def test_r6_copies_in_a_place_that_was_made_anew_meanwhile_do_not_count(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    [instruction, *_] = write_backs(memory_rig, writer)
    append = memory.MemoryJournal.append

    def append_and_lose(self: memory.MemoryJournal, parts: Any) -> None:
        append(self, parts)
        memory_rig.replace_file(instruction.address.bookie_id, self.name, b"")

    with monkeypatch.context() as patch:
        patch.setattr(memory.MemoryJournal, "append", append_and_lose)
        result = instruction.run()
    assert "does not show the journal" in str(result)


def test_a_recovery_whose_fence_was_lost_sees_it_when_it_writes_back(rig: Rig) -> None:
    writer = HandWriter(rig)
    writer.add(0, 1, acknowledges=True)
    [instruction, *_] = write_backs(rig, writer)
    fence = layout.term_marker(writer.ledger_id, 2)
    rig.replace_file(instruction.address.bookie_id, fence, None)
    assert isinstance(instruction.run(), Displaced)
