"""Fragments that are asked for, by the writer's machine: amid all that may happen else."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from bkspark.errors import BookieUnavailableError
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.adding import CheckTicket
from bkspark.protocol.writer.ensemble_change import CHANGES_MAX
from bkspark.protocol.writer.steps import (
    Checked,
    Enlist,
    Enlisted,
    Failed,
    Instruction,
    Muster,
    Mustered,
    NotRolled,
    Roll,
    RolledOver,
    Stored,
    Submitted,
    Swap,
    Swapped,
)
from bkspark.protocol.writer.writing import LedgerWriter

from .script import ledger_of, member
from .test_writer import WriterMachine

HANGS = BookieUnavailableError("it hangs")


def rolled(writer: LedgerWriter, ledger: LedgerMetadata, names: str) -> LedgerMetadata:
    """The writer with these bookies in a new fragment, behind what is acknowledged."""
    writer.receive(Roll())
    (swap,) = writer.receive(Mustered(tuple(map(member, names))))
    assert isinstance(swap, Swap)
    after = swap.applied_to(ledger)
    writer.receive(Swapped(after))
    return after


def acknowledge(writer: LedgerWriter, names: str) -> None:
    """One entry, on all of these."""
    entry_id = writer.pending.last_add_pushed + 1
    writer.receive(Submitted(1, 1))
    for index, name in enumerate(names):
        writer.receive(Stored(index, name, entry_id, entry_id))
    writer.receive(Checked(CheckTicket(entry_id, writer.pending.empty_ticket.replacements)))
    assert writer.pending.last_add_confirmed == entry_id


def test_who_comes_in_is_said_to_have_nothing() -> None:
    """Else a record would say so, and who is there lose it by that (R14)."""
    ledger = ledger_of(Quorum(3, 3, 2), ["a", "b", "c"])
    writer = LedgerWriter(ledger)
    acknowledge(writer, "abc")
    assert writer.pending.stored == (0, 0, 0)
    rolled(writer, ledger, "dbe")
    assert writer.pending.stored == (-1, 0, -1)
    assert [writer.pending.first_lacking(index) for index in range(3)] == [1, 1, 1]


def test_nothing_is_sent_while_bookies_wait_for_the_new_fragment() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    writer.receive(Submitted(1, 1))
    writer.receive(Roll())
    assert writer.may_submit
    before = writer.state
    writer.receive(Mustered(tuple(map(member, "def"))))
    assert not writer.may_submit
    assert writer.state != before
    writer.receive(Failed(0, "a", HANGS))
    assert writer.may_submit


def test_a_fragment_gives_a_writer_all_its_changes_anew() -> None:
    """It may go on for ever, and so may the failures of its bookies."""
    ledger = ledger_of(Quorum(3, 3, 2), ["a", "b", "c"])
    writer, name = LedgerWriter(ledger), "a"
    for number in range(CHANGES_MAX):
        writer.receive(Failed(0, name, HANGS))
        name = f"s{number}"
        (swap,) = writer.receive(Enlisted(member(name)))
        assert isinstance(swap, Swap)
        ledger = swap.applied_to(ledger)
        writer.receive(Swapped(ledger))
    for index, one in enumerate((name, "b", "c")):
        if not index:
            writer.receive(Submitted(1, 1))
        writer.receive(Stored(index, one, 0, 0))
    writer.receive(Checked(CheckTicket(0, writer.pending.empty_ticket.replacements)))
    rolled(writer, ledger, "def")
    steps = writer.receive(Failed(0, "d", HANGS))
    assert any(isinstance(step, Enlist) for step in steps)


class RollMachine(WriterMachine):
    """The same events, with rolls at any time; who left may come back when it has stored all."""

    def __init__(self) -> None:
        super().__init__()
        self.is_mustering = False
        self.left: set[str] = set()
        self.is_asked = False

    def see(self, step: Instruction, snapshot: dict[int, set[int]] | None) -> None:
        match step:
            case Muster():
                assert not self.is_enlisting
                assert not self.is_mustering
                assert self.swap is None
                assert not self.writer.changes.is_under_way
                assert {self.places[index] for index in step.failed} == self.gone
                self.is_mustering = True
            case RolledOver():
                assert self.is_asked
                self.is_asked = False
                ensemble = [one.bookie_id for one in self.writer.ensemble]
                differ = [i for i, (a, b) in enumerate(zip(self.places, ensemble)) if a != b]
                assert list(step.changed) == differ
                self.left |= set(self.places) - self.gone
                self.gone &= set(ensemble)
                self.places = ensemble
                for _, held_then in self.checks:
                    held_then.clear()
            case NotRolled():
                assert self.is_asked
                self.is_asked = False
            case Enlist():
                assert not self.is_mustering
                super().see(step, snapshot)
            case _:
                super().see(step, snapshot)

    def require_copies(self, step: Swap) -> None:
        if not self.writer.roll.is_named:
            super().require_copies(step)
            return
        assert step.first_entry_id == self.acked + 1 == self.next_id
        assert not self.is_full or self.replicated_to == self.acked

    @rule()
    def roll(self) -> None:
        self.is_asked = not self.has_ended
        self.bring(Roll())

    @precondition(lambda self: self.is_mustering)
    @rule(data=st.data())
    def muster(self, data: st.DataObject) -> None:
        self.is_mustering = False
        passed = tuple((next(self.names), "it hangs") for _ in range(data.draw(st.integers(0, 1))))
        if not data.draw(st.integers(0, 4)):
            self.bring(Mustered((), passed, "too few"))
            return
        busy = {name for name, _ in self.sent} | self.gone
        back = sorted(self.left - busy - set(self.places))
        ensemble: list[Member] = []
        for name in self.places:
            stays = name not in self.writer.changes.failures and data.draw(st.booleans())
            other = back.pop() if back and data.draw(st.booleans()) else next(self.names)
            ensemble.append(member(name if stays else other))
        self.bring(Mustered(tuple(ensemble), passed))


@pytest.mark.thorough
class TestAnyEvents(RollMachine.TestCase):  # type: ignore[misc]
    settings = settings(
        max_examples=60, stateful_step_count=40, derandomize=True, database=None, deadline=None
    )
