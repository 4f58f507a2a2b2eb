"""The writer's machine: run by a plain loop, and by events in any order against a naive oracle."""

from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bkspark.errors import (
    BookieUnavailableError,
    LedgerFencedError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.adding import CheckTicket
from bkspark.protocol.writer.ensemble_change import CHANGES_MAX
from bkspark.protocol.writer.steps import (
    Acknowledge,
    Append,
    Checked,
    CheckMetadata,
    EndWriter,
    Enlist,
    Enlisted,
    Event,
    Failed,
    Instruction,
    Join,
    Stop,
    Stored,
    Submitted,
    Swap,
    Swapped,
)
from bkspark.protocol.writer.writing import LedgerWriter

from .script import ledger_of, member

# --- an ensemble change of a ledger that is somebody else's by now -------------------------------


def change_of(ledger: LedgerMetadata) -> Swap:
    ensemble = (*ledger.last_fragment.ensemble[:2], member("d"))
    return Swap(ledger.ledger_id, ledger.term, ledger.token, 0, ensemble)


@pytest.mark.parametrize("is_deleted", [True, False])
def test_nobody_changes_the_ensemble_of_a_ledger_that_is_closed_or_gone(is_deleted: bool) -> None:
    """Whoever closed it may have kept entries that have no ack, so it is no plain end (RB-35)."""
    ledger = ledger_of(Quorum(3, 3, 2), ["a", "b", "c"])
    closed = ledger.closed(last_entry_id=-1, length_bytes=0, term=ledger.term, token=ledger.token)
    with pytest.raises(
        LedgerFencedError, match="does not exist any more" if is_deleted else "by another client"
    ):
        change_of(ledger).applied_to(None if is_deleted else closed)


# --- a plain loop --------------------------------------------------------------------------------


@dataclass
class Loop:
    """Carries out instructions in memory, in an order by chance."""

    random: Random
    sizes: tuple[int, int, int]
    broken: set[str]
    guarantees_write_quorum: bool = False
    journals: dict[str, list[int]] = field(default_factory=dict)
    acked: list[int] = field(default_factory=list)

    def run(self, record_count: int) -> LedgerWriter:
        names = [f"b{number}" for number in range(self.sizes[0])]
        self.spares = [f"s{number}" for number in range(9)]
        is_full = self.guarantees_write_quorum
        self.ledger = ledger_of(Quorum(*self.sizes), names, guarantees_write_quorum=is_full)
        self.writer = LedgerWriter(self.ledger)
        self.events: list[Event] = []
        self.lanes: dict[str, deque[tuple[int, int]]] = {name: deque() for name in names}
        left = record_count
        while not self.writer.has_ended:
            choices = [name for name, lane in self.lanes.items() if lane]
            number = self.random.randrange(len(self.events) + len(choices) + 1)
            if number < len(self.events):
                self.bring(self.events.pop(number))
            elif number < len(self.events) + len(choices):
                self.store(choices[number - len(self.events)])
            elif left and self.writer.may_submit:
                left -= 1
                self.bring(Submitted(1, 1))
            elif not left:
                self.bring(Stop())
        return self.writer

    def bring(self, event: Event) -> None:
        for step in self.writer.receive(event):
            self.carry_out(step)

    def store(self, name: str) -> None:
        index, first = self.lanes[name].popleft()
        if name in self.broken:
            self.lanes[name].clear()
            self.events.append(Failed(index, name, BookieUnavailableError(f"{name} is broken")))
            return
        self.journals.setdefault(name, []).append(first)
        self.events.append(Stored(index, name, first, first))

    def carry_out(self, step: Instruction) -> None:
        match step:
            case Append():
                ensemble = self.writer.metadata.last_fragment.ensemble
                for index in step.indexes:
                    lane = self.lanes[ensemble[index].bookie_id]
                    lane.append((index, step.add.first_entry_id))
            case CheckMetadata():
                self.events.append(Checked(step.ticket))
            case Acknowledge():
                self.acked += [add.first_entry_id for add in step.adds]
            case Enlist():
                free = [name for name in self.spares if name not in step.exclude]
                self.events.append(Enlisted(member(free[0]) if free else None))
            case Swap():
                self.ledger = step.applied_to(self.ledger)
                self.events.append(Swapped(self.ledger))
                if self.guarantees_write_quorum:
                    first = self.ledger.last_fragment.first_entry_id
                    assert [self.copies_of(n) for n in range(first)] == [self.sizes[1]] * first
                    assert all(self.copies_of(n) >= self.sizes[2] for n in self.acked)
            case Join():
                self.lanes[step.member.bookie_id] = deque()

    def copies_of(self, entry_id: int) -> int:
        """How many members of its write set have an entry, as the metadata names them."""
        members = Locations(self.ledger).holders(entry_id)
        return sum(entry_id in self.journals.get(one.bookie_id, ()) for one in members)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("sizes", [(3, 3, 2), (5, 3, 2), (2, 1, 1), (4, 4, 4)])
def test_a_plain_loop_can_run_it(sizes: tuple[int, int, int], seed: int) -> None:
    """Two members and a spare are broken, and every entry ends on an ack quorum of its fragment."""
    loop = Loop(Random(seed), sizes, broken={"b0", "s0", f"b{sizes[0] - 1}"})
    writer = loop.run(12)
    assert loop.acked == list(range(12))
    assert writer.pending.last_add_confirmed == 11
    assert {writer.state}, "it is a value, whoever failed"
    assert all(loop.copies_of(entry_id) >= sizes[2] for entry_id in range(12))


def test_a_copy_goes_its_own_way() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    writer.receive(Submitted(1, 1))
    copy = deepcopy(writer)
    before = hash(writer.state)
    assert copy.state == writer.state
    copy.receive(Stored(0, "a", 0, 0))
    assert (hash(writer.state), copy.state != writer.state) == (before, True)
    writer.receive(Stored(0, "a", 0, 0))
    assert copy.state == writer.state


def test_what_each_member_has_stored_is_known() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    writer.receive(Submitted(2, 1))
    writer.receive(Submitted(1, 1))
    for event in (Stored(0, "a", 0, 1), Stored(0, "a", 2, 2), Stored(1, "b", 0, 1)):
        writer.receive(event)
    assert writer.pending.stored == (2, 0, -1)
    writer.receive(Failed(0, "a", BookieUnavailableError("it hangs")))
    writer.receive(Enlisted(member("d")))
    swapped = writer.metadata.with_ensemble(
        0, tuple(map(member, "dbc")), term=1, token=writer.metadata.token
    )
    writer.receive(Swapped(swapped))
    assert writer.pending.stored == (-1, 0, -1)


def test_the_writer_of_a_ledger_that_is_gone_closes_nothing() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    with pytest.raises(LedgerFencedError, match="does not exist any more"):
        writer.closed(None)


def test_what_one_bookie_was_not_sent_may_have_reached_another() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    writer.receive(Submitted(1, 1))
    refused = NothingSentError("too many open files; nothing was sent", hint="close some")
    [end] = (i for i in writer.receive(Failed(0, "a", refused)) if isinstance(i, EndWriter))
    assert type(end.error) is OutcomeUnknownError
    assert end.error.args[0] == "ledger 7: too many open files"
    assert end.error.hint == "close some"


def test_a_writer_that_changed_too_often_looks_for_nobody() -> None:
    writer = LedgerWriter(ledger_of(Quorum(3, 3, 2), ["a", "b", "c"]))
    ledger, name = writer.metadata, "a"
    for number in range(CHANGES_MAX):
        writer.receive(Failed(0, name, BookieUnavailableError("it hangs")))
        name = f"s{number}"
        (swap,) = writer.receive(Enlisted(member(name)))
        assert isinstance(swap, Swap)
        ledger = swap.applied_to(ledger)
        writer.receive(Swapped(ledger))
    steps = writer.receive(Failed(0, name, BookieUnavailableError("it hangs")))
    assert not any(isinstance(step, Enlist) for step in steps)


# --- events in any order -------------------------------------------------------------------------


class WriterMachine(RuleBasedStateMachine):
    """What a runner may bring, in any order; the oracle only knows what bookies reported."""

    @initialize(
        sizes=st.integers(1, 4).flatmap(
            lambda e: st.integers(1, e).flatmap(
                lambda w: st.tuples(st.just(e), st.just(w), st.integers(1, w))
            )
        ),
        is_delayed=st.booleans(),
        is_full=st.booleans(),
    )
    def start(self, sizes: tuple[int, int, int], is_delayed: bool, is_full: bool) -> None:
        self.sizes = sizes
        self.places: list[str] = [f"b{number}" for number in range(sizes[0])]
        self.gone: set[str] = set()
        self.is_full = is_full
        self.ledger = ledger_of(Quorum(*sizes), self.places, guarantees_write_quorum=is_full)
        self.writer = LedgerWriter(self.ledger, is_change_delayed=is_delayed)
        self.next_id = 0
        self.acked = -1
        self.sent: set[tuple[str, int]] = set()
        self.holders: dict[int, set[int]] = {}
        self.last_of: dict[int, int] = {}
        self.checks: list[tuple[CheckTicket, dict[int, set[int]]]] = []
        self.is_enlisting = False
        self.swap: Swap | None = None
        self.names = iter(f"s{number}" for number in range(10_000))
        self.has_ended = False

    def bring(self, event: Event) -> None:
        snapshot = next((held for ticket, held in self.checks if _is_of(event, ticket)), None)
        for step in self.writer.receive(event):
            assert not self.has_ended, "nothing is done behind the end"
            self.see(step, snapshot)

    def see(self, step: Instruction, snapshot: dict[int, set[int]] | None) -> None:
        match step:
            case Append():
                for index in step.indexes:
                    assert self.places[index] not in self.gone
                    self.sent.add((self.places[index], step.add.first_entry_id))
                    self.last_of[step.add.first_entry_id] = step.add.last_entry_id
            case CheckMetadata():
                assert self.swap is None
                held = {entry_id: set(of) for entry_id, of in self.holders.items()}
                self.checks.append((step.ticket, held))
            case Acknowledge():
                assert self.swap is None
                assert snapshot is not None
                for add in step.adds:
                    assert add.first_entry_id == self.acked + 1
                    for entry_id in range(add.first_entry_id, add.last_entry_id + 1):
                        e, qw, qa = self.sizes
                        window = {(entry_id + k) % e for k in range(qw)}
                        assert len(window & snapshot[add.first_entry_id]) >= qa
                    self.acked = add.last_entry_id
            case Enlist():
                assert not self.is_enlisting
                assert self.swap is None
                self.is_enlisting = True
            case Swap():
                self.require_copies(step)
                self.swap = step
            case Join():
                index = step.ensemble_index
                self.gone.discard(self.places[index])
                self.places[index] = step.member.bookie_id
                for entry_id, held in self.holders.items():
                    if entry_id > self.acked:
                        held.discard(index)
                    assert entry_id < step.first_entry_id or index not in held
                for _, held_then in self.checks:
                    held_then.clear()  # H10: it acknowledges nothing any more
            case EndWriter(error):
                self.has_ended = True
                is_whole = error is not None or not self.is_full
                assert is_whole or self.replicated_to == self.acked == self.next_id - 1

    def require_copies(self, step: Swap) -> None:
        """What a fragment leaves behind has all copies; no acknowledgement rests on who goes."""
        assert step.first_entry_id <= self.acked + 1 == step.last_add_confirmed + 1
        if not self.is_full:
            assert step.first_entry_id == self.acked + 1
            return
        assert self.replicated_to >= step.first_entry_id - 1
        before = self.writer.ensemble
        (index,) = (i for i, one in enumerate(step.ensemble) if one != before[i])
        held = (held for entry_id, held in self.holders.items() if entry_id <= self.acked)
        behind = [one for first, one in zip(self.holders, held) if first >= step.first_entry_id]
        assert all(index not in one for one in behind)

    @property
    def replicated_to(self) -> int:
        """The last entry up to which every member that is to have them reported all adds."""
        e, qw, _ = self.sizes
        last = -1
        for first, held in self.holders.items():
            end = self.last_of.get(first, first)
            if end > self.acked:
                break
            if not held >= {(n + k) % e for n in range(first, end + 1) for k in range(qw)}:
                break
            last = end
        return last

    @precondition(lambda self: self.writer.may_submit)
    @rule(count=st.integers(1, 5))
    def submit(self, count: int) -> None:
        self.holders[self.next_id] = set()
        self.next_id += count
        self.bring(Submitted(count, count))

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def store(self, data: st.DataObject) -> None:
        """Late answers of those that were replaced too."""
        name, first = data.draw(st.sampled_from(sorted(self.sent)))
        if self.is_full:  # which rests on the order that lanes keep
            first = min(begin for one, begin in self.sent if one == name)
        self.sent.discard((name, first))
        index = self.places.index(name) if name in self.places else 0
        if name in self.places and name not in self.gone:
            self.holders[first].add(index)
        self.bring(Stored(index, name, first, self.last_of[first]))

    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, self.sizes[0] - 1))
        name = self.places[index]
        self.gone.add(name)
        self.bring(Failed(index, name, BookieUnavailableError("it hangs")))

    @precondition(lambda self: self.is_enlisting)
    @rule(is_there=st.booleans())
    def enlist(self, is_there: bool) -> None:
        self.is_enlisting = False
        self.bring(Enlisted(member(next(self.names)) if is_there else None))

    @precondition(lambda self: self.swap is not None)
    @rule()
    def swapped(self) -> None:
        assert self.swap is not None
        self.ledger, self.swap = self.swap.applied_to(self.ledger), None
        self.bring(Swapped(self.ledger))

    @precondition(lambda self: self.checks)
    @rule(data=st.data())
    def check(self, data: st.DataObject) -> None:
        """Any check of before may end now."""
        number = data.draw(st.integers(max(0, len(self.checks) - 3), len(self.checks) - 1))
        self.bring(Checked(self.checks[number][0]))
        del self.checks[number : number + 1]

    @rule(kind=st.sampled_from(["fence", "stop", "nothing", "nothing", "nothing"]))
    def end(self, kind: str) -> None:
        if kind == "stop":
            self.bring(Stop())
        elif kind == "fence":
            self.bring(Failed(0, self.places[0], LedgerFencedError("fenced")))

    @invariant()
    def knows_what_was_acknowledged(self) -> None:
        assert self.writer.pending.last_add_confirmed == self.acked
        assert self.writer.has_ended == self.has_ended
        lagging = self.writer.pending.lagging
        assert lagging is None or lagging.last_add_fully_replicated == self.replicated_to


def _is_of(event: Event, ticket: CheckTicket) -> bool:
    return isinstance(event, Checked) and event.ticket == ticket


class TestAnyEvents(WriterMachine.TestCase):  # type: ignore[misc]
    settings = settings(
        max_examples=60, stateful_step_count=40, derandomize=True, database=None, deadline=None
    )
