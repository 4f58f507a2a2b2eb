"""Interleavings that have lost data elsewhere, as scripts: fencing, and what recovery decides.

Each is safe; and where a guard can be taken away, the script fails without it, so that it is known
to test something. A case's number is that of the list of historical bugs the project was made with.
"""

from dataclasses import replace

import pytest

from bkspark.bookie import memory
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.format.journal import Tail
from bkspark.ledger.recovery import fencing, recoverer
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery.conclusions import Term
from tests.integration.hand_writer import (
    HandWriter,
    late,
    one_by_one,
    stop_at,
    stop_behind,
    violations,
)
from tests.integration.rig import Rig

# --- fencing -----------------------------------------------------------------------------------

GUARDS = [(True, True), (True, False), (False, True), (False, False)]


@pytest.mark.parametrize(("fences", "looks"), GUARDS)
def test_rb_01_an_absence_counts_only_behind_a_fence(
    fences: bool, looks: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look at the metadata guards the same: it takes both to be missing to lose an entry."""
    writer = HandWriter(memory_rig, looks=looks)
    writer.add()
    if not fences:
        monkeypatch.setattr(fencing.FenceAndRead, "_fence", lambda *_: "")
    writer.recover(run=one_by_one(lost=writer.names[2:]))
    late(writer, 0, 0, 2)
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert bool(broken) is (not fences and not looks)


@pytest.mark.parametrize(("checks", "looks"), GUARDS)
def test_rb_03_a_writer_checks_behind_its_write(checks: bool, looks: bool, memory_rig: Rig) -> None:
    """One that checked before it wrote is one without a check."""
    writer = HandWriter(memory_rig, checks=checks, looks=looks)
    writer.add()
    writer.recover(run=one_by_one(lost=writer.names[2:]))
    late(writer, 0, 0, 2)
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert bool(broken) is (not checks and not looks)


def test_rb_03_a_fence_between_the_write_and_the_check_refuses(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add()
    writer.store(0, 0)
    writer.recover()
    with pytest.raises(LedgerFencedError):
        writer.check(0, 0)
    assert rig_end(memory_rig, writer) == 0  # found by recovery, and kept
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_36_a_marker_found_in_place_is_made_durable_again_before_anything_is_read(
    memory_rig: Rig,
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    with pytest.raises(OutcomeUnknownError), memory_rig.faults.installed():
        writer.recover(run=one_by_one(before=stop_at(recoverer.WriteCopies)))
    memory_rig.faults.forget()
    with memory_rig.faults.installed():
        writer.recover(run=one_by_one())
    for name in writer.names:
        calls = [(o.call, o.name) for o in memory_rig.faults.trace if o.place == name]
        assert calls[:3] == [
            ("open_root", name),
            ("put_new", layout.term_marker(writer.ledger_id, 2)),
            ("list", layout.journal_folder(writer.ledger_id)),
        ]


def rig_end(rig: Rig, writer: HandWriter) -> int | None:
    return rig.ledger(writer.ledger_id).last_entry_id


@pytest.mark.parametrize(
    ("silent", "is_decided"),
    [((4, 5, 0), False), ((0, 3), True), ((1, 4), True), ((2, 3), True), ((0, 5), False)],
)
def test_rb_37_answers_are_counted_in_each_window(
    silent: tuple[int, ...], is_decided: bool, memory_rig: Rig
) -> None:
    """E = 6, Qw = 3, Qa = 2: entry 4 is kept from any of 4, 5, 0, and 5, 0, 1 lack entry 5."""
    writer = HandWriter(memory_rig, (6, 3, 2))
    for entry_id in range(5):
        writer.add(*((entry_id + k) % 6 for k in range(3)), acknowledges=True)
    lost = [writer.names[index] for index in silent]
    if is_decided:
        writer.recover(run=one_by_one(lost=lost))
    else:
        with pytest.raises(NotEnoughBookiesError):
            writer.recover(run=one_by_one(lost=lost))
        writer.recover()
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_37_two_of_two_with_one_dead_is_enough_to_see_that_nothing_was_added(
    memory_rig: Rig,
) -> None:
    writer = HandWriter(memory_rig, (2, 2, 2))
    writer.recover(run=one_by_one(lost=writer.names[:1]))
    assert rig_end(memory_rig, writer) == -1


def test_rb_46_a_missing_marker_is_a_fence(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    for name in writer.names:
        memory_rig.replace_file(name, writer.permission, None)
    with pytest.raises(LedgerFencedError):
        writer.add(0)


# --- what recovery decides -----------------------------------------------------------------------


@pytest.mark.parametrize("is_on_trial", [False, True])
@pytest.mark.parametrize("checks_cookie", [True, False])
def test_rb_09_a_wiped_bookie_has_no_vote(
    checks_cookie: bool, is_on_trial: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RB-14 too: it may be wiped while the ledger is open, or while it is in recovery."""
    writer = HandWriter(memory_rig)
    writer.add(0, 2, acknowledges=True)
    if is_on_trial:
        with pytest.raises(NotEnoughBookiesError):
            writer.recover(run=one_by_one(lost=writer.names[:1] + writer.names[2:]))
    memory_rig.wipe(writer.names[0])
    if not checks_cookie:
        monkeypatch.setattr(memory, "check_cookie", lambda *_: None)
        monkeypatch.setattr(fencing.FenceAndRead, "_judged", lambda _self, tail: tail)
        writer.recover(run=one_by_one(lost=writer.names[2:]))
        assert "acknowledged entry 0 is cut off" in violations(
            memory_rig, writer.ledger_id, writer.sent, writer.acked
        )
        return
    with pytest.raises(NotEnoughBookiesError):
        writer.recover(run=one_by_one(lost=writer.names[2:]))
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    writer.recover()
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("is_guarded", [True, False])
def test_rb_10_wiped_bookies_do_not_forget_that_the_ledger_is_closed(
    is_guarded: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HandWriter(memory_rig, (2, 2, 2), checks=is_guarded, looks=is_guarded)
    writer.add(0, 1, acknowledges=True)
    writer.recover()
    for name in writer.names:
        memory_rig.wipe(name)
    writer.add()
    late(writer, 1, 0, 1)
    assert writer.acked == ([0] if is_guarded else [0, 1])


@pytest.mark.parametrize("damage", ["corrupt", "torn"])
@pytest.mark.parametrize("is_doubted", [True, False])
def test_rb_11_damage_is_not_an_absence(
    is_doubted: bool, damage: str, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HandWriter(memory_rig)
    name = layout.journal(writer.ledger_id, 1, writer.metadata.token)
    begin = len(memory_rig.file_bytes(writer.names[0], name))
    writer.add(0, 1)
    writer.add(0)
    writer.acknowledge()
    data = bytearray(memory_rig.file_bytes(writer.names[0], name))
    if damage == "corrupt":
        data[begin + 100] ^= 1
    else:
        data = data[: begin + 200]
    memory_rig.replace_file(writer.names[0], name, bytes(data))
    if not is_doubted:
        read_tail = fencing.read_tail

        def trusting(*args: object, **options: object) -> fencing.JournalTail:
            return replace(read_tail(*args, **options), tail=Tail.CLEAN)

        monkeypatch.setattr(fencing, "read_tail", trusting)
        writer.recover(run=one_by_one(lost=[writer.names[1]]))
        assert violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
        return
    with pytest.raises(NotEnoughBookiesError, match=r"entry 0 is in doubt") as caught:
        writer.recover(run=one_by_one(lost=[writer.names[1]]))
    assert writer.names[1] in str(caught.value)
    writer.recover()
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize("is_stored_early", [False, True])
def test_rb_04_a_recovery_keeps_its_ensemble_to_itself(
    is_stored_early: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a spare that stands in the metadata prove an absence: it never took the permission.

    So it takes both to be missing to lose an entry.
    """
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    names = writer.names
    stop = stop_at(recoverer.WriteCopies)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(lost=[names[0]], before=stop))
    if is_stored_early:
        spare = next(m for m in writer.cluster.addresses() if m.bookie_id not in names)
        changed = (spare, *writer.metadata.last_fragment.ensemble[1:])

        def early(ledger: LedgerMetadata | None) -> LedgerMetadata:
            assert ledger is not None
            whose, stored = ledger.last_fragment, ledger.with_recovered_ensemble(0, changed)
            moved = replace(stored.last_fragment, token=whose.token, term=whose.term)
            return replace(stored, fragments=(moved,))

        ledgers, name = writer.cluster.ledgers, str(writer.ledger_id)
        with pytest.raises(InvalidRequestError, match="contradicts"):  # an open end has a writer
            ledgers.update(name, lambda ledger: ledger.with_recovered_ensemble(0, changed))
        ledgers.update(name, early)
        with pytest.raises(NotEnoughBookiesError, match="has lost data"):
            writer.recover(run=one_by_one(lost=[names[1]]))
        monkeypatch.setattr(fencing.FenceAndRead, "_judged", lambda _self, tail: tail)
    writer.recover(run=one_by_one(lost=[names[1]]))
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert bool(broken) is is_stored_early


def test_rb_05_every_recovery_asks_the_ensemble_of_the_writer(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    asked: list[Member] = []

    def note(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies):
            raise OutcomeUnknownError("stopped")
        assert isinstance(instruction, fencing.FenceAndRead)
        asked.append(Member(instruction.address.bookie_id, instruction.address.incarnation))

    for silent in writer.names:
        with pytest.raises(OutcomeUnknownError):
            writer.recover(run=one_by_one(lost=[silent], before=note))
    assert tuple(asked) == writer.metadata.last_fragment.ensemble * 3


@pytest.mark.parametrize("knows_floor", [True, False])
def test_rb_02_nothing_below_the_last_fragment_is_looked_for(
    knows_floor: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2/2/2, three fragments, no bookie of the last one has ever stored anything."""
    writer = HandWriter(memory_rig, (2, 2, 2))
    spares = [f"bookie-{n}" for n in range(1, 8) if f"bookie-{n}" not in writer.names]
    for index, spare in ((0, spares[0]), (1, spares[1])):
        writer.add(0, 1, acknowledges=True)
        writer.replace(index, spare)
    assert [f.first_entry_id for f in writer.metadata.fragments] == [0, 1, 2]
    writer.replace(0, spares[2])
    if not knows_floor:
        monkeypatch.setattr(Term, "floor", -1)
        with pytest.raises(InvalidRequestError, match="cannot end at"):
            writer.recover()
        return
    assert writer.recover().last_entry_id == 1
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_15_a_recovery_that_cannot_write_back_does_not_close(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    stuck = set(memory_rig.urls) - {writer.names[0]}

    def fall_silent(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies):
            memory_rig.faults.down = stuck

    with memory_rig.faults.installed(), pytest.raises(NotEnoughBookiesError, match="cannot be wri"):
        writer.recover(run=one_by_one(before=fall_silent))
    assert memory_rig.ledger(writer.ledger_id).state is LedgerState.IN_RECOVERY
    writer.recover()
    assert rig_end(memory_rig, writer) == 0
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_15_closing_after_an_add_failed_leaves_the_entries_in_doubt_to_recovery(
    memory_rig: Rig,
) -> None:
    with BookKeeper(memory_rig.uri) as keeper, memory_rig.faults.installed():
        handle = keeper.create_ledger()
        handle.append(b"entry 0")
        ensemble = {m.bookie_id for m in handle.metadata.last_fragment.ensemble}
        kept = min(ensemble)
        memory_rig.faults.down = set(memory_rig.urls) - {kept}
        with pytest.raises(NotEnoughBookiesError):
            handle.append(b"entry 1")
        with pytest.raises(NotEnoughBookiesError):
            handle.close()
        memory_rig.faults.forget()
        assert memory_rig.ledger(handle.ledger_id).state is LedgerState.OPEN
        found = [entry.value for entry in keeper.open_ledger(handle.ledger_id).read()]
    assert found in ([b"entry 0", b"entry 1"], [b"entry 0"])


@pytest.mark.parametrize("is_finished", [True, False])
def test_rb_17_a_recovery_that_was_overtaken_adopts_what_the_other_decided(
    is_finished: bool, memory_rig: Rig
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    other_run = one_by_one(
        lost=writer.names[:1], before=None if is_finished else stop_at(recoverer.WriteCopies)
    )

    def overtake(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies) and not overtaken:
            overtaken.append(True)
            if is_finished:
                writer.recover(run=other_run)
            else:
                writer.cluster.ledgers.update(
                    str(writer.ledger_id), lambda ledger: ledger.in_recovery("b" * 32)
                )

    overtaken: list[bool] = []
    if is_finished:
        report = writer.recover(run=one_by_one(before=overtake))
        assert (report.last_entry_id, rig_end(memory_rig, writer)) == (-1, -1)
        return
    report = writer.recover(run=one_by_one(before=overtake))
    assert (report.last_entry_id, memory_rig.ledger(writer.ledger_id).term) == (0, 4)
    assert any("displaced" in note for note in report.notes)
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_17_nobody_can_change_the_ensemble_of_a_ledger_in_recovery(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    spare = next(n for n in memory_rig.urls if n not in writer.names)
    writer.add(0)
    with pytest.raises(OutcomeUnknownError):
        writer.recover(run=one_by_one(before=stop_at(recoverer.WriteCopies)))
    with pytest.raises(LedgerFencedError):
        writer.replace(0, spare)


def test_rb_38_recovery_stops_at_a_gap(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.add(1, 2, acknowledges=True)
    writer.add()
    writer.add(1)
    writer.recover()
    late(writer, 3, 0, 2)
    assert (rig_end(memory_rig, writer), writer.acked) == (1, [0, 1])
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


@pytest.mark.parametrize(
    ("having", "lost", "end"),
    [((0, 1), (), 0), ((0, 1), (0,), 0), ((0, 1), (1,), 0), ((0,), (), 0), ((0,), (0,), -1)],
)
def test_rb_31_an_end_is_computed_from_answers_only(
    having: tuple[int, ...], lost: tuple[int, ...], end: int, memory_rig: Rig
) -> None:
    writer = HandWriter(memory_rig)
    writer.add(*having, acknowledges=True)
    writer.recover(run=one_by_one(lost=[writer.names[index] for index in lost]))
    assert rig_end(memory_rig, writer) == end
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)


def test_rb_33_a_copy_made_by_a_recovery_is_no_ack_for_the_writer(memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig)
    writer.add(0)
    with pytest.raises(BookKeeperError):
        writer.recover(run=one_by_one(before=stop_behind(1)))
    late(writer, 0, 1, 2)
    assert not writer.acked
    writer.recover(run=one_by_one(lost=writer.names[:1]))
    assert not violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
