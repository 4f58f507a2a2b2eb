"""Every state of a small ledger that goes on in later terms: three writers, one after the other.

The recoveries are the protocol's own machine, and their changes of the metadata too. The writers
are plain here: they store an entry, look twice behind it, and never look at the metadata, so that
whatever keeps an entry safe is a marker and whose records count. A journal that is pruned takes the
records in it away, and who goes on in it stores nowhere.

Markers that nobody will ever look for go at once: when makes no difference (``_is_unseen``).
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from bkspark.errors import LedgerFencedError
from bkspark.protocol.ledger.evidence import counts, owners
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery import steps as ask
from bkspark.protocol.recovery.recovering import Ended, Looking, State
from bkspark.protocol.recovery.steps import (
    Displaced,
    LookAgain,
    Open,
    Opened,
    Prune,
    RecordShown,
    Take,
    Took,
    WrittenBack,
)
from tests.protocol.recovery_scene import record_of, tail_of
from tests.simulation.scheduler import Violation
from tests.simulation.states.specified import Invariants, Seen
from tests.simulation.states.specified import Shown as OnBookie
from tests.simulation.states.terms_world import (
    Bookie,
    Entry,
    Scope,
    Stored,
    ToPrune,
    World,
    begun,
    token,
    with_bookie,
    with_recovery,
)
from tests.simulation.states.terms_writer import begin, steps_of
from tests.simulation.states.world import Kept


@dataclass
class Found:
    """What was looked at; ``violation`` is empty if all is well.

    Attributes:
        outcomes: metadata that there may be, and what is acknowledged then.
    """

    states: int = 0
    opened: int = 0
    violation: str = ""
    story: tuple[str, ...] = ()
    is_complete: bool = False
    outcomes: frozenset[tuple[LedgerMetadata, frozenset[Entry]]] = frozenset()


def search(scope: Scope, limit: int | None = None) -> Found:
    """Look at every state, or at the first ``limit``; ends at the first violation."""
    steps, found = Steps(scope), Found()
    first = steps.first()
    came: dict[World, tuple[World | None, str]] = {first: (None, "")}
    todo = deque([first])
    while todo and (limit is None or found.states < limit):
        world = todo.popleft()
        found.states += 1
        try:
            steps.require(world)
        except Violation as violation:
            found.violation = str(violation)
            found.story = _story(came, world)
            return found
        for what, after in steps.after(world):
            if after not in came:
                came[after] = (world, what)
                todo.append(after)
    found.is_complete, found.opened = not todo, steps.opened
    outcomes = {(world.ledger, world.acked) for world in came}
    found.outcomes = frozenset((steps.ledgers[number], acked) for number, acked in outcomes)
    return found


def _story(came: dict[World, tuple[World | None, str]], world: World) -> tuple[str, ...]:
    told, at = list[str](), world
    while (before := came[at])[0] is not None:
        told.append(before[1])
        assert before[0] is not None
        at = before[0]
    return tuple(reversed(told))


class Steps:
    """All that may come next."""

    def __init__(self, scope: Scope) -> None:
        self.scope, self.opened = scope, 0
        self.members = tuple(
            Member(f"bookie-{n}", "1" * 32) for n in range(scope.quorum.ensemble_size)
        )
        self._at = {member: n for n, member in enumerate(self.members)}
        self.ledgers = Kept[LedgerMetadata]()
        self._states, self._instructions = Kept[State](), Kept[Any]()
        self._invariants = Invariants()

    def first(self) -> World:
        fragment = Fragment(0, 1, self.members, token(1), has_headers=True, owner=1)
        who, settings = (
            (1, fragment.token),
            LedgerSettings(guarantees_write_quorum=self.scope.is_guaranteed),
        )
        ledger = LedgerMetadata(
            7, self.scope.quorum, LedgerState.OPEN, *who, (fragment,), settings=settings
        )
        recoveries = tuple(
            (
                self._states.number(Looking(writer_token=token(16 + n))),
                (self._asked(ask.ReadLedger()),),
            )
            for n in range(self.scope.recoverers)
        )
        bookies = (Bookie(begun(1)),) * len(self.members)
        return World(self._store(ledger), bookies, (begin(self.scope, 1, 0),), recoveries)

    def after(self, world: World) -> Iterator[tuple[str, World]]:
        unseen = next((one for one in world.prunes if self._is_unseen(world, one)), None)
        if unseen is not None:
            yield self._pruned_by(world, unseen)
            return
        for number in range(len(world.writers)):
            yield from steps_of(self.scope, world, number)
        for number, (_, asked) in enumerate(world.recoveries):
            for one in asked:
                yield from self._of_recovery(world, number, one)
            if isinstance(self._states[world.recoveries[number][0]], Looking):
                break  # recoverers are alike: the first of them takes over first
        for prune in world.prunes:
            yield self._pruned_by(world, prune)
        if len(world.lost) < self.scope.losses:
            for at in set(range(len(world.bookies))) - world.lost:
                after = with_bookie(world, at, markers=frozenset(), records=frozenset())
                yield f"bookie {at} loses all", after._replace(lost=world.lost | {at})

    def _pruned_by(self, world: World, prune: ToPrune) -> tuple[str, World]:
        bookie, (marker, *left) = prune
        others = tuple(one for one in world.prunes if one != prune)
        todo = (*others, (bookie, tuple(left))) if left else others
        there = world.bookies[bookie]
        kind, term = marker
        records = there.records - (self._in_journal(there, term) if kind == "journal" else set())
        after = with_bookie(world, bookie, markers=there.markers - {marker}, records=records)
        return f"{marker} goes from {bookie}", after._replace(prunes=tuple(sorted(todo)))

    def _in_journal(self, there: Bookie, term: int) -> set[Stored]:
        """What goes with the journal of the writer of ``term``."""
        copies = {one for one in there.records if one[2] == term and self.scope.forgets == "term's"}
        return copies | {one for one in there.records if one[::2] == (term, 0)}

    def _is_unseen(self, world: World, prune: ToPrune) -> bool:
        """Whether what goes next decides nothing any more, for anybody.

        His permission goes, or his journal in front of it, in which nothing counts: he finds his
        fence there, unless he has looked for it already.
        No recovery asks for it any more that took him for the last writer, and none will. Then the
        fence goes: he finds it, or no permission behind it.
        """
        if not (self.scope.is_in_order and self.scope.goes_at_once):
            return False
        bookie, (first, *_) = prune
        kind, term = first
        if kind == "fence":
            return True
        his = (one.places[bookie] for one in world.writers if one.term == term)
        has_fence = ("fence", term + 1) in world.bookies[bookie].markers
        return has_fence and "unfenced" not in his and not self._is_asked(world, bookie, term)

    def _is_asked(self, world: World, bookie: int, term: int) -> bool:
        """Whether a recovery behind the writer of ``term`` is still to read a bookie."""
        for number, (_, asked) in enumerate(world.recoveries):
            steps = [self._instructions[one] for one, _ in asked]
            fences = [step for step in steps if isinstance(step, ask.Fence)]
            is_to_read = any(self._at[step.member] == bookie for step in fences)
            if is_to_read and self._base(world, number).term == term:
                return True
        return False

    def _store(self, ledger: LedgerMetadata) -> int:
        return self.ledgers.number(ledger, (ledger.state, ledger.token, ledger.fragments))

    def _asked(self, instruction: Any) -> tuple[int, bool]:
        key = (type(instruction).__name__, instruction)
        return self._instructions.number(instruction, key), False

    # --- recoveries ------------------------------------------------------------------------------

    def _of_recovery(
        self, world: World, number: int, asked: tuple[int, bool]
    ) -> Iterator[tuple[str, World]]:
        step, is_half = self._instructions[asked[0]], asked[1]
        what = f"recovery {number}: {type(step).__name__}"
        ledger = self.ledgers[world.ledger]
        match step:
            case ask.Fence(index, member, after) if not is_half:
                base = self._base(world, number)
                at = self._at[member]
                fenced = world.bookies[at].markers | {("fence", base.term + 1)}
                if self.scope.fences:
                    world = with_bookie(world, at, markers=fenced)
                yield f"{what} {at}, fenced", self._half(world, number, asked)
            case ask.Fence(index, member, after):
                tail = self._tail(world, number, index, self._at[member], after)
                yield (
                    f"{what} {index}, read",
                    self._heard(world, number, asked, ask.Answer(step, tail)),
                )
            case ask.TakeOver():
                taken = ledger.in_recovery(token(32 + ledger.term + 1))
                world = world._replace(ledger=self._store(taken))
                yield what, self._heard(world, number, asked, ask.TakenOver(taken, self.members))
            case ask.WriteBack(_, member, groups):
                at = self._at[member]
                term = self._taken(world, number).term
                kept = {(g.record.term, g.record.first_entry_id, term) for g in groups}
                world = with_bookie(world, at, records=world.bookies[at].records | kept)
                event: Any = ask.Answer(step, WrittenBack(len(groups)))
                yield f"{what} {at}", self._heard(world, number, asked, event)
            case Open():
                yield what, self._open(world, number, asked, step)
            case ask.ReadLedger():
                yield what, self._heard(world, number, asked, ask.LedgerSeen(ledger))

    def _said(self, step: Any) -> Any:
        """The answer to what nobody else notices, so that it is there at once; None to others."""
        match step:
            case ask.ListLost():
                return ask.DeclaredLost(frozenset())
            case ask.Ask():
                return ask.Consent(False)
            case ask.LookUp(_, entry_id):
                return ask.Answer(step, RecordShown(self._record(1, entry_id)))
            case Take() | LookAgain():
                return Took(step)
            case ask.ChooseSpares():
                return ask.Spares(())
        return None

    def _open(self, world: World, number: int, asked: tuple[int, bool], step: Open) -> World:
        ledger = self.ledgers[world.ledger]
        if not self.scope.compares:
            ledger = self._taken(world, number)
        try:
            opened = step.applied_to(ledger)
        except LedgerFencedError as error:
            return self._heard(world, number, asked, Displaced(str(error)))
        self.opened += 1
        writer = begin(self.scope, opened.term, opened.last_fragment.first_entry_id)
        world = world._replace(
            ledger=self._store(opened), writers=tuple(sorted({*world.writers, writer}))
        )
        return self._heard(world, number, asked, Opened(opened))

    def _taken(self, world: World, number: int) -> LedgerMetadata:
        """As the recovery has taken it over."""
        state: Any = self._states[world.recoveries[number][0]]
        while not hasattr(state, "ledger"):
            names = ("evidence", "closing", "term")
            state = next(getattr(state, name) for name in names if hasattr(state, name))
        taken: LedgerMetadata = state.ledger
        return taken

    def _base(self, world: World, number: int) -> Fragment:
        return self._taken(world, number).last_fragment

    def _tail(self, world: World, number: int, index: int, at: int, after: int) -> Any:
        """What one bookie shows a recovery; the marker is looked for behind all else."""
        taken = self._taken(world, number)
        entries = {one[:2] for one in world.bookies[at].records}
        known = sorted(entries, reverse=self.scope.takes == "lowest")
        had = dict(world.said)
        records = [self._record(*one, had.get(one, ())) for one in known if one[1] > after]
        if self.scope.takes == "owner's":
            records = [one for one in records if counts(taken.fragments, one)]
        shown = [(record, True) for record in records]
        tail = tail_of(index, shown, None, is_full=self.scope.is_guaranteed)
        if begun(taken.last_fragment.term) <= world.bookies[at].markers:
            return tail
        return tail.without(after + 1, "it has lost its marker")

    def _record(self, term: int, entry: int, had: tuple[int, ...] = ()) -> AddRecord:
        record = record_of(self.scope.quorum, entry, entry, entry - 1)
        return replace(record, term=term, token=token(term), stored=had or record.stored)

    def _half(self, world: World, number: int, asked: tuple[int, bool]) -> World:
        state, all_asked = world.recoveries[number]
        half = tuple((one[0], True) if one == asked else one for one in all_asked)
        return with_recovery(world, number, (state, half))

    def _heard(self, world: World, number: int, asked: tuple[int, bool], event: Any) -> World:
        """Whoever is displaced, or cannot go on, ends: another one takes over."""
        number_of_state, all_asked = world.recoveries[number]
        state, events = self._states[number_of_state], [event]
        left = [one for one in all_asked if one != asked]
        while events:
            state, instructions = state.receive(events.pop(0))
            for one in instructions:
                if isinstance(one, ask.WaitForOthers | ask.Fail):
                    return with_recovery(world, number, (self._states.number(Ended()), ()))
                if (said := self._said(one)) is not None:
                    events.append(said)
                    world = self._taken_by(world, number, one)
                elif isinstance(one, Prune):
                    prunes = {*world.prunes, self._pruned(one)}
                    world = world._replace(prunes=tuple(sorted(prunes)))
                elif not isinstance(one, ask.Note | ask.LeaveReason | ask.EndRecovery):
                    left.append(self._asked(one))
        return with_recovery(world, number, (self._states.number(state), tuple(sorted(left))))

    def _taken_by(self, world: World, number: int, step: Any) -> World:
        """A permission, of a writer who is not there yet."""
        if not isinstance(step, Take):
            return world
        at, term = self._at[step.member], self._taken(world, number).term
        return with_bookie(world, at, markers=world.bookies[at].markers | begun(term))

    def _pruned(self, prune: Prune) -> ToPrune:
        term = prune.writer[0]
        markers = (("permission", term), ("fence", term + 1))
        in_order = markers if self.scope.permission_first else markers[::-1]
        goes = prune.is_empty and self.scope.forgets != "nobody's"
        return self._at[prune.member], ((("journal", term),) if goes else ()) + in_order

    # --- what must hold --------------------------------------------------------------------------

    def require(self, world: World) -> None:
        """What must hold in every state.

        Raises:
            Violation: it does not.
        """
        ledger, quorum = self.ledgers[world.ledger], self.scope.quorum
        for term, entry in world.acked:
            if any(one[1] == entry and one[0] != term for one in world.acked):
                raise Violation(f"entry {entry} is acknowledged in two terms (I4)")
            if term not in owners(ledger.fragments, entry):
                raise Violation(f"entry {entry} of term {term} is acknowledged and dead (I1)")
        end = ledger.last_fragment.first_entry_id
        for entry in range(end):
            [owner] = owners(ledger.fragments, entry)
            holders = [one for one in world.bookies if _has(one, (owner, entry))]
            if len(holders) + len(world.lost) < quorum.ack_quorum_size:
                raise Violation(f"entry {entry} of term {owner} has {len(holders)} copies (I2)")
        self.require_specified(world)

    def require_specified(self, world: World) -> None:
        """What the specifications demand, likewise; an entry is sent behind the ack of another."""
        records = tuple(one.records for one in world.bookies)

        def look() -> Seen:
            on = tuple(frozenset(OnBookie(t, e, e - 1) for t, e, _ in of) for of in records)
            numbers = {member.bookie_id: at for member, at in self._at.items()}
            return Seen(self.ledgers[world.ledger], on, world.acked, numbers, world.lost)

        self._invariants.require((world.ledger, records, world.acked, world.lost), look)


def _has(bookie: Bookie, entry: Entry) -> bool:
    return any(one[:2] == entry for one in bookie.records)
