"""The recovery's machine: run by a plain loop, whatever members have, answer and fail to do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.member_tail import MemberTail
from bkspark.protocol.quorum import Quorum
from bkspark.protocol.record import AddRecord
from bkspark.protocol.recovering import TAKEOVERS_MAX, Ended, LedgerRecovery
from bkspark.protocol.recovery import Doubt
from bkspark.protocol.recovery_answers import (
    Displaced,
    Failure,
    Shown,
    Silence,
    WrittenBack,
)
from bkspark.protocol.recovery_steps import (
    Answer,
    Ask,
    ChooseSpares,
    Close,
    Closed,
    Consent,
    DeclaredLost,
    DisplacedError,
    End,
    Event,
    Fail,
    Fence,
    Instruction,
    LedgerSeen,
    ListLost,
    LookUp,
    ReadLedger,
    Spares,
    TakenOver,
    TakeOver,
    WaitForOthers,
    WriteBack,
)

from .recovery_scene import OWN, WRITER, member, record_of, tail_of

SIZES = [(1, 1, 1), (2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 2, 2), (4, 3, 2), (5, 3, 3)]
SURE, SILENT, LOST, BACK = "sure", "silent", "declared lost", "declared lost, and back"
HOWS = [SURE, SILENT, LOST, BACK, *(doubt for doubt in Doubt if doubt is not Doubt.LOST)]


@dataclass
class World:
    """One ledger as its writer left it: an entry in each record, the first ``acked`` acknowledged.

    Attributes:
        has: for each entry, the ensemble indexes of the members that have it.
        confirmed: the LAC in each record.
        how: for each member, how it answers; in doubt it hides what it has from an entry on.
        hides_from: that entry; a torn end hides nothing that was acknowledged.
        takes: whether the member takes copies.
        picks: in which order answers come.
    """

    quorum: Quorum
    acked: int
    has: list[set[int]]
    confirmed: list[int]
    how: list[object]
    hides_from: list[int]
    takes: list[bool]
    picks: Callable[[int], int]
    consents: bool = False
    asked: list[str] = field(default_factory=list)
    fenced: set[Member] = field(default_factory=set)
    copies: dict[int, set[Member]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [f"b{number}" for number in range(self.quorum.ensemble_size)]
        self.ensemble = tuple(map(member, names))
        fragments = (Fragment(0, 1, self.ensemble, WRITER),)
        state = LedgerState.OPEN
        self.ledger = LedgerMetadata(7, self.quorum, state, 1, WRITER, fragments)
        self.spares = [member(f"s{number}") for number in range(9)]

    def recover(self) -> Instruction:
        """The last instruction: ``End`` or ``Fail``."""
        machine = LedgerRecovery()
        events: list[Event] = [LedgerSeen(self.ledger)]
        while True:
            event = events.pop(self.picks(len(events)))
            twin = LedgerRecovery(machine.state)
            steps = machine.receive(event)
            assert twin.receive(event) == steps or isinstance(steps[-1], Fail)
            assert (twin.state, hash(twin.state)) == (machine.state, hash(machine.state))
            events += [found for step in steps if (found := self.carry_out(step)) is not None]
            if isinstance(machine.state, Ended):
                return steps[-1]

    def carry_out(self, step: Instruction) -> Event | None:
        match step:
            case TakeOver():
                self.ledger = self.ledger.in_recovery(OWN)
                return TakenOver(self.ledger, (*self.ensemble, *self.spares))
            case Fence(index, one):
                assert self.ledger.state is LedgerState.IN_RECOVERY
                self.fenced |= {one} if self.how[index] not in (SILENT, LOST) else set()
                return Answer(step, self._answer(index))
            case ListLost():
                pairs = zip(self.ensemble, self.how, strict=True)
                return DeclaredLost(frozenset(one for one, how in pairs if how in (LOST, BACK)))
            case LookUp(one, entry_id):
                return Answer(step, self._shown(self.ensemble.index(one), entry_id))
            case Ask(loss):
                self.asked.append(loss)
                return Consent(self.consents)
            case WriteBack(index, one):
                return Answer(step, self._write(step, index, one))
            case ChooseSpares(count, exclude):
                free = [one for one in self.spares if one.bookie_id not in exclude]
                return Spares(tuple(free[:count]))
            case Close():
                self._require_copies(step)
                self.ledger = step.applied_to(self.ledger)
                return Closed(self.ledger)
            case ReadLedger():
                return LedgerSeen(self.ledger)
        return None

    def _record(self, entry_id: int) -> AddRecord:
        return record_of(self.quorum, entry_id, entry_id, self.confirmed[entry_id])

    def _answer(self, index: int) -> MemberTail | Failure:
        how = self.how[index]
        if how in (SILENT, LOST):
            return Silence("it hangs")
        doubt = how if isinstance(how, Doubt) else None
        shown = [entry_id for entry_id, members in enumerate(self.has) if index in members]
        if doubt is not None or how == BACK:
            end = max(self.hides_from[index], self.acked if doubt is Doubt.TORN else 0)
            shown = [entry_id for entry_id in shown if entry_id < end]
        return tail_of(index, [(self._record(entry_id), True) for entry_id in shown], doubt)

    def _shown(self, index: int, entry_id: int) -> Shown | Failure:
        if self.how[index] != SURE:
            return Failure("it fails")
        has = [one for one in range(entry_id + 1) if index in self.has[one]]
        return Shown(self._record(has[-1]) if has else None)

    def _write(self, step: WriteBack, index: int, one: Member) -> WrittenBack | Failure:
        takes = one in self.spares or self.takes[index]
        if not takes:
            return Failure("it takes nothing")
        assert one in self.fenced or step.must_fence
        for group in step.groups:
            assert set(group.parts) == {part.stripe for part in group.record.parts}
            self.copies.setdefault(group.record.first_entry_id, set()).add(one)
        return WrittenBack(len(step.groups))

    def _require_copies(self, close: Close) -> None:
        """Qa members of the write set of whatever is kept beyond the LAC have it (RB-15)."""
        ensemble = close.ensemble or self.ensemble
        for entry_id, holders in self.copies.items():
            window = [ensemble[index] for index in self.quorum.write_set(entry_id)]
            assert len(holders & set(window)) >= self.quorum.ack_quorum_size
            assert entry_id <= close.last_entry_id


@st.composite
def worlds(draw: st.DrawFn, hows: list[object] = HOWS) -> World:
    quorum = Quorum(*draw(st.sampled_from(SIZES)))
    count = draw(st.integers(0, 5))
    acked = draw(st.integers(0, count))
    has, confirmed = list[set[int]](), list[int]()
    for entry_id in range(count):
        window = quorum.write_set(entry_id)
        least = quorum.ack_quorum_size if entry_id < acked else 0
        has.append(draw(st.sets(st.sampled_from(window), min_size=least)))
        floor = confirmed[-1] if confirmed else -1
        confirmed.append(draw(st.integers(floor, max(floor, min(entry_id, acked) - 1))))
    size = quorum.ensemble_size
    return World(
        quorum,
        acked,
        has,
        confirmed,
        draw(st.lists(st.sampled_from(hows), min_size=size, max_size=size)),
        draw(st.lists(st.integers(0, count), min_size=size, max_size=size)),
        draw(st.lists(st.booleans(), min_size=size, max_size=size)),
        lambda waiting: draw(st.integers(0, waiting - 1)),
    )


@given(worlds())
def test_it_never_closes_below_what_was_acknowledged(world: World) -> None:
    last = world.recover()
    if isinstance(last, End):
        assert world.ledger.last_entry_id == last.last_entry_id
        assert last.last_entry_id >= world.acked - 1
        assert (last.lost_from, world.asked) == (None, [])
    else:
        assert isinstance(last, Fail)
        assert isinstance(last.error, NotEnoughBookiesError)
        assert world.ledger.state is LedgerState.IN_RECOVERY


@given(worlds([SURE, SILENT]))
def test_it_decides_while_no_write_set_has_qa_silent_members(world: World) -> None:
    quorum = world.quorum
    silent = [index for index, how in enumerate(world.how) if how == SILENT]
    for write_set in quorum.write_sets():
        if quorum.is_ack_quorum(write_set, silent):
            world.how = [SURE] * quorum.ensemble_size
    last = world.recover()
    assert isinstance(last, End), last
    assert last.last_entry_id >= world.acked - 1


@given(worlds())
def test_what_an_operator_gives_up_is_told_and_only_that_may_be_lost(world: World) -> None:
    world.consents = True
    last = world.recover()
    if isinstance(last, End):
        is_short = last.last_entry_id < world.acked - 1
        assert not is_short or last.lost_from is not None
        assert (last.lost_from is None) == (not world.asked)
        if last.lost_from is not None:
            assert SILENT not in world.how, "nobody is asked for a word while a member is silent"


def test_one_that_is_displaced_for_ever_ends() -> None:
    quorum = Quorum(1, 1, 1)
    ledger = LedgerMetadata(
        7, quorum, LedgerState.OPEN, 1, WRITER, (Fragment(0, 1, (member("a"),), WRITER),)
    )
    recovery, waits = LedgerRecovery(), list[int]()
    for _ in range(TAKEOVERS_MAX):
        [take] = recovery.receive(LedgerSeen(ledger))
        assert take == TakeOver()
        ledger = ledger.in_recovery(OWN)
        fence = recovery.receive(TakenOver(ledger, (member("a"),)))[-1]
        assert isinstance(fence, Fence)
        recovery.receive(Answer(fence, tail_of(0, [], None)))
        assert isinstance(recovery.receive(DeclaredLost(frozenset()))[-1], Close)
        wait = recovery.receive(Displaced("another one is faster"))[-1]
        assert isinstance(wait, WaitForOthers)
        waits.append(wait.displaced_before)
    [fail] = recovery.receive(LedgerSeen(ledger))
    assert isinstance(fail, Fail)
    assert isinstance(fail.error, DisplacedError)
    assert waits == list(range(TAKEOVERS_MAX))
    with pytest.raises(AssertionError):
        recovery.receive(LedgerSeen(ledger))
