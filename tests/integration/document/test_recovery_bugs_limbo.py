"""RB-14, bookies that lost something: what, and in which state of the ledger.

Entries lost while the ledger is OPEN or IN_RECOVERY: ``test_rb_09``. A fence lost while it is OPEN:
``test_rb_46``. All fences lost with their bookies, behind the end: ``test_rb_10``. Here: the rest.
"""

import pytest

from bkspark.bookie import memory
from bkspark.format import layout
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.metadata import LedgerState
from tests.integration.hand_writer import HandWriter, late, one_by_one, violations
from tests.integration.rig import Rig


def lose_fences(rig: Rig, writer: HandWriter) -> None:
    """The marker of the recovery's term vanishes from an ack quorum; the writer's own is left."""
    for name in writer.names[:2]:
        rig.replace_file(name, layout.term_marker(writer.ledger_id, 2), None)


@pytest.mark.parametrize("looks", [True, False])
@pytest.mark.parametrize("copies", [0, 2])
def test_rb_14_a_fence_that_is_lost_during_a_recovery(
    copies: int, looks: bool, memory_rig: Rig
) -> None:
    """Lost before anything is copied it is noticed, and all are fenced anew. Behind the copies it
    is the look at the metadata alone that keeps the writer from an acknowledgement.
    """
    writer = HandWriter(memory_rig, looks=looks)
    writer.add(0, 1, acknowledges=True)
    writer.add()
    made: list[object] = []

    def lose(instruction: object) -> None:
        if isinstance(instruction, recoverer.WriteCopies):
            if len(made) == copies:
                lose_fences(memory_rig, writer)
                late(writer, 1, 0, 1)
            made.append(instruction)

    writer.recover(run=one_by_one(before=lose))
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert bool(broken) is (copies == 2 and not looks)
    assert (1 in writer.acked) is not looks
    assert memory_rig.ledger(writer.ledger_id).last_entry_id == (0 if copies else 1)


@pytest.mark.parametrize("looks", [True, False])
def test_rb_14_a_fence_that_is_lost_behind_the_end(looks: bool, memory_rig: Rig) -> None:
    writer = HandWriter(memory_rig, looks=looks)
    writer.add(0, 1, acknowledges=True)
    writer.add()
    writer.recover()
    lose_fences(memory_rig, writer)
    late(writer, 1, 0, 1)
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert broken == ([] if looks else ["acknowledged entry 1 is cut off"])


@pytest.mark.parametrize("checks_cookie", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_rb_14_entries_that_are_lost_behind_the_end_do_not_move_it(
    count: int, checks_cookie: bool, memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the bookies say now: where a closed ledger ends is in its metadata."""
    writer = HandWriter(memory_rig)
    writer.add(0, 1, acknowledges=True)
    writer.recover()
    for name in writer.names[:count]:
        memory_rig.wipe(name)
    if not checks_cookie:
        monkeypatch.setattr(memory, "check_cookie", lambda *_: None)
    assert writer.recover(run=one_by_one(lost=writer.names[2:])).last_entry_id == 0
    ledger = memory_rig.ledger(writer.ledger_id)
    assert (ledger.state, ledger.last_entry_id) == (LedgerState.CLOSED, 0)
    broken = violations(memory_rig, writer.ledger_id, writer.sent, writer.acked)
    assert [text for text in broken if "entry 0" not in text] == []
    assert bool(broken) is (count == 3)
