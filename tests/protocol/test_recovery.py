"""The recovery's machine: run by a plain loop, whatever members have, answer and fail to do."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, AttemptLogs, EntryLog
from bkspark.protocol.recovery import messages as say
from bkspark.protocol.recovery.recovering import TAKEOVERS_MAX, Ended, LedgerRecovery
from bkspark.protocol.recovery.replication import Replicated, Replication
from bkspark.protocol.recovery.steps import (
    Answer,
    Ask,
    ChooseSpares,
    Close,
    Closed,
    Consent,
    DeclaredLost,
    Displaced,
    DisplacedError,
    EndRecovery,
    Event,
    Fail,
    Failure,
    Fence,
    Instruction,
    KeptGroup,
    LedgerSeen,
    ListLost,
    LookUp,
    ReadLedger,
    RecordShown,
    Silence,
    Spares,
    Stuck,
    TakenOver,
    TakeOver,
    WaitForOthers,
    WriteBack,
    WrittenBack,
)
from bkspark.protocol.recovery.verdicts import Doubt, MemberTail

from .recovery_scene import OWN, WRITER, RecoveryScene, member, record_of, tail_of

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
        """The last instruction: ``EndRecovery`` or ``Fail``."""
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

    def _shown(self, index: int, entry_id: int) -> RecordShown | Failure:
        if self.how[index] != SURE:
            return Failure("it fails")
        has = [one for one in range(entry_id + 1) if index in self.has[one]]
        return RecordShown(self._record(has[-1]) if has else None)

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
    if isinstance(last, EndRecovery):
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
    assert isinstance(last, EndRecovery), last
    assert last.last_entry_id >= world.acked - 1


@given(worlds())
def test_what_an_operator_gives_up_is_told_and_only_that_may_be_lost(world: World) -> None:
    world.consents = True
    last = world.recover()
    if isinstance(last, EndRecovery):
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


@pytest.mark.parametrize("count", range(5))
def test_an_event_that_nobody_awaits_is_a_mistake_and_nothing_happens(count: int) -> None:
    """Looking, asked, deciding, writing back, and at the end."""
    scene = RecoveryScene("recovery 2/2/2 of a b")
    way = ["seen", "taken over", "a shows 0", "b shows 0", "lost nobody", "a took it", "b took it"]
    for line in [*way, "closed"][: (1, 2, 4, 5, 8)[count]]:
        scene.receive(line)
    before = scene.recovery.state
    for event in (Closed(scene.ledger), Consent(is_given=True)):
        with pytest.raises(AssertionError):
            scene.recovery.receive(event)
    assert scene.recovery.state == before


def test_who_looks_for_a_record_awaits_nothing_else() -> None:
    scene = RecoveryScene("recovery 2/2/2 of a b from 4 behind c d")
    for line in ("seen", "taken over", "a shows nothing", "b shows nothing", "lost nobody"):
        scene.receive(line)
    with pytest.raises(AssertionError):
        scene.recovery.receive(Spares(()))


def test_who_lets_a_writer_begin_awaits_nothing_else() -> None:
    scene = RecoveryScene("recovery 2/2/2 of a b for a writer")
    for line in ("seen", "taken over", "a shows nothing", "b shows nothing", "lost nobody"):
        scene.receive(line)
    with pytest.raises(AssertionError):
        scene.recovery.receive(Consent(is_given=True))


def test_who_cannot_close_awaits_the_newest_metadata() -> None:
    scene = RecoveryScene("recovery 1/1/1 of a")
    for line in ("seen", "taken over", "a is silent", "lost nobody"):
        scene.receive(line)
    with pytest.raises(AssertionError):
        scene.recovery.receive(Spares(()))


def test_the_closing_change_is_made_once_and_by_the_newest_recovery() -> None:
    """RB-17, H26, RB-04."""
    quorum, members = Quorum(1, 1, 1), (member("a"),)
    open_ = LedgerMetadata(7, quorum, LedgerState.OPEN, 1, WRITER, (Fragment(0, 1, members),))
    taken = open_.in_recovery(OWN)
    close = Close(taken.term, OWN, 3, record_of(quorum, 2, 3), 2, (member("d"),))
    closed = close.applied_to(taken)
    assert (closed.last_entry_id, closed.length_bytes) == (3, 40)
    assert [f.ensemble for f in closed.fragments] == [members, (member("d"),)]
    assert close.applied_to(closed) == closed
    assert Close(9, OWN, 0).applied_to(closed) == closed
    with pytest.raises(DisplacedError):
        close.applied_to(taken.in_recovery("d" * 32))


def test_a_stuck_recovery_is_told_anew_when_bookies_were_declared_lost_since() -> None:
    lost, silent = [member("a")], [member("b")]
    reason, hint = say.since_lost(7, 3, lost, silent, [member("b")])
    assert reason == (
        "ledger 7 cannot be closed yet: entry 3 is in doubt, no sure answer from b "
        "(declared lost since then: a)"
    )
    assert "`bkspark bookie lost b`" in hint
    reason, hint = say.since_lost(7, 3, lost, [], [])
    assert "`bkspark ledger recover 7`" in hint
    assert say.since_lost(7, None, lost, silent, []) == (reason, hint)


def test_damaged_copies_count_file_by_file() -> None:
    """Each of two entry logs has Qa good copies, though no two members have both."""
    quorum = Quorum(3, 3, 2)
    logs = tuple(EntryLog(name, 0, 1, 10, 5, "00000000") for name in ("e" * 32, "f" * 32))
    attempts = tuple(AttemptLogs(n, 1, (log,)) for n, log in enumerate(logs))
    record = AddRecord(7, 1, WRITER, 0, 1, -1, 20, quorum, (-1, -1, -1), rows=attempts)
    ensemble = tuple(map(member, "abc"))
    fragments = (Fragment(0, 1, ensemble, WRITER),)
    ledger = LedgerMetadata(7, quorum, LedgerState.OPEN, 1, WRITER, fragments).in_recovery(OWN)
    kept = KeptGroup(record, {}, ensemble)
    start = Replication(ledger, ensemble, (kept,), frozenset({0, 1, 2}), ensemble)

    def written(*damaged: tuple[int, ...]) -> Replication:
        state, writes = start.begun(())
        for write, numbers in zip(writes, damaged, strict=True):
            pieces = tuple(((logs[number].attempt_id, 0), "damaged") for number in numbers)
            assert isinstance(write, WriteBack)
            state, _ = state.receive(Answer(write, WrittenBack(1, pieces)))
        return state

    assert written((0,), (1,), ()).outcome == Replicated(ensemble)
    short = written((0,), (0,), ())
    assert not short.is_over
    with pytest.raises(AssertionError):
        short.receive(Consent(is_given=True))
    stopped, _ = short.receive(Spares(()))
    assert isinstance(stopped.outcome, Stuck)
