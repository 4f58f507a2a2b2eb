"""What may come next in a small world: one step of one message, a death, or an answer that is lost.

Whatever is asked for is carried out here as threads or Spark tasks do it: a copy lands, and only
then is looked whether the bookie was fenced; a bookie is fenced, and only then read; metadata is
read at one moment and its answer taken at another.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

from bkspark.errors import BookieUnavailableError, LedgerClosedError, LedgerFencedError
from bkspark.protocol.ledger.metadata import (
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.recovery import steps as ask
from bkspark.protocol.recovery.recovering import Ended, Looking, State
from bkspark.protocol.recovery.steps import Displaced, RecordShown, Silence, WrittenBack
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.writing import LedgerWriter
from tests.protocol.recovery_scene import WRITER, record_of, tail_of
from tests.simulation.scheduler import Violation
from tests.simulation.states.world import (
    DEAD,
    NOBODY,
    Asked,
    Bookie,
    Check,
    Copy,
    Kept,
    Recovery,
    Said,
    Scope,
    World,
    require,
)

Step = tuple[str, World]
"""What happens, and the world then."""

_GONE = BookieUnavailableError("it gives no answer")
_FENCED = LedgerFencedError("it is fenced")


class Steps:
    """All steps of the worlds of a scope.

    Attributes:
        numbers: of bookies, by name.
        ledgers: every metadata that was stored.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope, self._rules = scope, scope.rules
        count = scope.quorum.ensemble_size + scope.spares
        self.members = tuple(Member(f"bookie-{n}", "1" * 32) for n in range(count))
        self.numbers = {member.bookie_id: n for n, member in enumerate(self.members)}
        self.ledgers, self._writers = Kept[LedgerMetadata](), Kept[LedgerWriter]()
        self._states, self._instructions = Kept[State](), Kept[Any]()
        self._written: dict[Any, tuple[int, tuple[Any, ...]]] = {}
        self._recovered: dict[Any, tuple[int, tuple[Asked, ...] | None]] = {}

    def first(self) -> World:
        ensemble = self.members[: self.scope.quorum.ensemble_size]
        fragments = (Fragment(0, 1, ensemble, WRITER),)
        ledger = LedgerMetadata(
            *(7, self.scope.quorum, LedgerState.OPEN, 1, WRITER, fragments),
            settings=LedgerSettings(guarantees_write_quorum=self.scope.is_guaranteed),
        )
        return World(
            ledger=self.store(ledger),
            bookies=(Bookie(),) * len(self.members),
            writer=self._keep(LedgerWriter(ledger)),
            copies=(),
            check=None,
            change=None,
            left=self.scope.entries,
            acked=-1,
            recoveries=tuple(self.recovery() for _ in range(self.scope.recoverers)),
            failures=self.scope.failures,
            may_die=self.scope.dies,
        )

    def recovery(self) -> Recovery:
        """One that begins."""
        return Recovery(self._states.number(Looking()), (self._asked(ask.ReadLedger()),))

    def store(self, ledger: LedgerMetadata) -> int:
        who = (ledger.state, ledger.term, ledger.token)
        key = (*who, ledger.last_entry_id, ledger.fragments, ledger.left)
        return self.ledgers.number(ledger, key)

    def require(self, world: World) -> None:
        """What must hold in every state; a ``Violation`` says that it does not."""
        require(world, self.ledgers[world.ledger], self.numbers)

    def require_step(self, before: World, after: World) -> None:
        """What must hold of every step, likewise."""
        is_closed = self.ledgers[before.ledger].state is LedgerState.CLOSED
        if is_closed and before.ledger != after.ledger:
            raise Violation("what is CLOSED was changed (I6)")

    def after(self, world: World) -> Iterator[Step]:
        """Everything that may come next."""
        heads: dict[tuple[int, int], Copy] = {}
        for copy in world.copies:
            heads.setdefault((copy.place, copy.bookie), copy)
        for copy in heads.values():
            yield from self._of_copy(world, copy)
        if world.writer >= 0:
            yield from self._of_writer(world, self._writers[world.writer])
        begun = True
        for number, recovery in enumerate(world.recoveries):
            if not begun:
                return  # recoverers are alike: the first of them takes over first
            begun = not isinstance(self._states[recovery.state], Looking)
            for asked in recovery.asked:
                yield from self._of_recovery(world, number, asked)

    # --- the writer ------------------------------------------------------------------------------

    def _keep(self, machine: LedgerWriter) -> int:
        return self._writers.number(machine, (machine.state, machine.metadata.fragments))

    def _of_copy(self, world: World, copy: Copy) -> Iterator[Step]:
        rules, bookie = self._rules, world.bookies[copy.bookie]
        without = world._replace(copies=tuple(one for one in world.copies if one is not copy))
        there = without.with_bookie(
            copy.bookie,
            bookie._replace(records=bookie.records | {copy.said}),
        )
        if world.writer < 0:
            yield f"{copy} lands", there
            if world.writer == DEAD:
                yield f"{copy} was never sent", without
            return
        if world.failures:
            for arrived in (without, there):
                lost = arrived._replace(failures=world.failures - 1)
                yield f"{copy} has no answer", self._failed(lost, copy, _GONE)
        if not copy.is_there and not rules.checks_before_append:
            yield f"{copy} lands", self._on_its_way(there, copy)
        elif bookie.is_fenced and (rules.checks_behind_append or not copy.is_there):
            yield f"{copy} is fenced", self._failed(without, copy, _FENCED)
        elif not copy.is_there:
            yield f"{copy} will land", self._on_its_way(without, copy)
        else:
            name = self.members[copy.bookie].bookie_id
            event = steps.Stored(copy.place, name, copy.said.first, copy.said.first)
            yield f"{copy} is stored", self._write(there, event, event)

    @staticmethod
    def _on_its_way(world: World, copy: Copy) -> World:
        half = copy._replace(is_there=True)
        return world._replace(copies=tuple(sorted((*world.copies, half))))

    def _failed(self, world: World, copy: Copy, error: Any) -> World:
        event = steps.Failed(copy.place, self.members[copy.bookie].bookie_id, error)
        return self._write(world, event, (event.ensemble_index, event.bookie_id, str(error)))

    def _of_writer(self, world: World, machine: LedgerWriter) -> Iterator[Step]:
        if world.left and machine.may_submit:
            event = steps.Submitted(1, 10)
            yield (
                "an entry is added",
                self._write(world._replace(left=world.left - 1), event, event),
            )
        if self.scope.is_guaranteed and not world.left and not machine.is_stopping:
            yield "the writer stops", self._write(world, steps.Stop(), "stop")
        if world.check is not None:
            yield self._of_check(world, world.check, machine)
        if isinstance(world.change, steps.Enlist):
            free = (one for one in self.members if one.bookie_id not in world.change.exclude)
            found = steps.Enlisted(next(free, None), ())
            yield "a bookie is chosen", self._write(world._replace(change=None), found, found)
        elif world.change is not None:
            yield "the ensemble changes", self._swap(world, world.change, machine)
        if world.may_die:
            yield "the writer dies", world.without_writer(DEAD)

    def _of_check(self, world: World, check: Check, machine: LedgerWriter) -> Step:
        mine = self.store(machine.metadata)
        if check.seen == NOBODY:
            seen = world.ledger if self._rules.reads_metadata else mine
            return "metadata is read", world._replace(check=check._replace(seen=seen))
        newest = None if check.seen == mine else self.ledgers[check.seen]
        event = steps.Checked(check.ticket, newest)
        key = ("checked", check)
        return "metadata is checked", self._write(world._replace(check=None), event, key)

    def _swap(self, world: World, swap: steps.Swap, machine: LedgerWriter) -> World:
        world = world._replace(change=None)
        compares = self._rules.compares_when_changing
        try:
            changed = swap.applied_to(self.ledgers[world.ledger] if compares else machine.metadata)
        except LedgerFencedError as error:
            return self._write(world, steps.Stop(error), "taken over")
        number = self.store(changed)
        if compares:
            world = world._replace(ledger=number)
        return self._write(world, steps.Swapped(changed), ("swapped", number))

    def _write(self, world: World, event: steps.Event, key: Any) -> World:
        """The writer's machine takes ``event``, for which ``key`` stands."""
        found = self._written.get((world.writer, key))
        if found is None:
            machine = deepcopy(self._writers[world.writer])
            instructions = machine.receive(event)
            found = (self._keep(machine), tuple(self._done(machine, instructions)))
            self._written[world.writer, key] = found
        number, done = found
        world = world._replace(writer=number)
        for carry_out in done:
            world = carry_out(world)
        return world.without_writer(NOBODY) if self._writers[number].has_ended else world

    def _done(
        self, machine: LedgerWriter, instructions: tuple[steps.Instruction, ...]
    ) -> Iterator[Callable[[World], World]]:
        """What each of them does to a world."""
        ensemble = machine.metadata.last_fragment.ensemble
        at = [self.numbers[member.bookie_id] for member in ensemble]
        for one in instructions:
            match one:
                case steps.Append(indexes, add):
                    yield partial(_sent, [Copy(i, at[i], self._said(add)) for i in indexes])
                case steps.Acknowledge(adds):
                    yield partial(_acknowledged, adds[-1].last_entry_id)
                case steps.Release(index):
                    yield partial(_released, index)
                case steps.CheckMetadata(ticket):
                    yield partial(World._replace, check=Check(ticket))
                case steps.Enlist() | steps.Swap():
                    yield partial(World._replace, change=one)
                case steps.EndWriter(None):
                    yield partial(self._closed_by, machine)

    def _closed_by(self, machine: LedgerWriter, world: World) -> World:
        try:
            closed = machine.closed(self.ledgers[world.ledger])
        except (LedgerFencedError, LedgerClosedError):
            return world
        return world._replace(ledger=self.store(closed))

    # --- recoveries ------------------------------------------------------------------------------

    def _asked(self, instruction: Any) -> Asked:
        key = (type(instruction).__name__, instruction)
        return Asked(self._instructions.number(instruction, key))

    def _of_recovery(self, world: World, number: int, asked: Asked) -> Iterator[Step]:
        step = self._instructions[asked.instruction]
        who = f"recovery {number}"

        def answered(after: World, event: Any, key: Any) -> World:
            return self._recover(after, number, asked, event, key)

        match step:
            case ask.ReadLedger():
                yield f"{who} looks", self._look(world, number, asked)
            case ask.TakeOver():
                yield f"{who} takes over", self._take_over(world, number, asked)
            case ask.Fence():
                yield from self._fence(world, number, asked, step)
            case ask.ListLost():
                yield f"{who} decides", answered(world, ask.DeclaredLost(frozenset()), "lost")
            case ask.Ask():
                yield f"{who} asks", answered(world, ask.Consent(False), "no")
            case ask.LookUp(member, entry_id):
                records = world.bookies[self.numbers[member.bookie_id]].records
                found = max((one for one in records if one.first <= entry_id), default=None)
                shown = RecordShown(self._record(found) if found else None)
                yield f"{who} looks for a record", answered(world, ask.Answer(step, shown), found)
            case ask.WriteBack():
                yield from self._write_back(world, number, asked, step)
            case ask.ChooseSpares(count, exclude):
                free = [one for one in self.members if one.bookie_id not in exclude]
                yield f"{who} chooses", answered(world, ask.Spares(tuple(free[:count])), "spares")
            case ask.Close():
                yield f"{who} closes", self._close(world, number, asked, step)
            case _:
                raise AssertionError(step)

    def _look(self, world: World, number: int, asked: Asked) -> World:
        event = ask.LedgerSeen(self.ledgers[world.ledger])
        return self._recover(world, number, asked, event, ("seen", world.ledger))

    def _take_over(self, world: World, number: int, asked: Asked) -> World:
        ledger = self.ledgers[world.ledger]
        if ledger.state is LedgerState.CLOSED:
            return self._look(world, number, asked)
        taken = ledger.in_recovery(f"{number + 1:x}" * 32)
        world = world._replace(ledger=self.store(taken))
        event = ask.TakenOver(taken, self.members)
        return self._recover(world, number, asked, event, ("taken", world.ledger))

    def _fence(self, world: World, number: int, asked: Asked, fence: ask.Fence) -> Iterator[Step]:
        rules, at = self._rules, self.numbers[fence.member.bookie_id]
        bookie, who = world.bookies[at], f"recovery {number}"
        is_fenced = rules.fences and (rules.fences_the_empty or bool(bookie.records))
        fenced = world.with_bookie(at, bookie._replace(is_fenced=bookie.is_fenced or is_fenced))
        if world.failures:
            lost = world._replace(failures=world.failures - 1)
            answer = ask.Answer(fence, Silence("it gives no answer"))
            yield f"{who} hears nothing", self._recover(lost, number, asked, answer, "silence")
        if not asked.is_half:
            first = fenced if rules.fences_before_reading else world
            half = asked._replace(is_half=True)
            if not rules.fences_before_reading:
                half = half._replace(shown=bookie.records)
            yield f"{who} fences {fence.member.bookie_id}", self._half(first, number, asked, half)
            return
        shown, world = (
            (bookie.records, world) if rules.fences_before_reading else (asked.shown, fenced)
        )
        had, full = [(self._record(one), True) for one in sorted(shown)], self.scope.is_guaranteed
        answer = ask.Answer(fence, tail_of(fence.index, had, None, is_full=full))
        what = f"{who} reads {fence.member.bookie_id}"
        yield what, self._recover(world, number, asked, answer, ("shown", shown))

    def _said(self, record: Any) -> Said:
        stored = record.stored if self.scope.is_guaranteed else ()
        return Said(record.first_entry_id, record.last_add_confirmed, stored)

    def _record(self, said: Said) -> Any:
        one = record_of(self.scope.quorum, said.first, said.first, said.confirmed)
        return replace(one, stored=said.stored) if said.stored else one

    def _write_back(
        self, world: World, number: int, asked: Asked, step: ask.WriteBack
    ) -> Iterator[Step]:
        at, who = self.numbers[step.member.bookie_id], f"recovery {number}"
        bookie = world.bookies[at]
        if step.must_fence and not asked.is_half:
            after = world.with_bookie(at, bookie._replace(is_fenced=True))
            half = asked._replace(is_half=True)
            yield f"{who} fences a spare", self._half(after, number, asked, half)
        else:
            records = bookie.records | {self._said(group.record) for group in step.groups}
            after = world.with_bookie(at, bookie._replace(records=records))
            done = ask.Answer(step, WrittenBack(len(step.groups)))
            yield f"{who} writes back", self._recover(after, number, asked, done, "written")
        if world.failures:
            silent = ask.Answer(step, Silence("it gives no answer"))
            for arrived in (world, after):
                lost = arrived._replace(failures=world.failures - 1)
                yield f"{who} hears nothing", self._recover(lost, number, asked, silent, "silence")

    def _close(self, world: World, number: int, asked: Asked, close: ask.Close) -> World:
        ledger = self.ledgers[world.ledger]
        try:
            closed = close.applied_to(ledger)
        except ask.DisplacedError as error:
            return self._recover(world, number, asked, Displaced(str(error)), "displaced")
        world = world._replace(ledger=self.store(closed))
        return self._recover(world, number, asked, ask.Closed(closed), ("closed", world.ledger))

    @staticmethod
    def _half(world: World, number: int, asked: Asked, half: Asked) -> World:
        recovery = world.recoveries[number]
        left = tuple(half if one is asked else one for one in recovery.asked)
        return world.with_recovery(number, recovery._replace(asked=left))

    def _recover(self, world: World, number: int, asked: Asked, event: Any, key: Any) -> World:
        """A recovery takes ``event``, for which ``key`` stands, as the answer to ``asked``."""
        recovery = world.recoveries[number]
        left = tuple(one for one in recovery.asked if one is not asked)
        known = (recovery.state, asked.instruction, key)
        if known not in self._recovered:
            self._recovered[known] = self._answered(self._states[recovery.state], event)
        state, more = self._recovered[known]
        after = Recovery(state, () if more is None else tuple(sorted((*left, *more))))
        return world.with_recovery(number, after)

    def _answered(self, state: State, event: Any) -> tuple[int, tuple[Asked, ...] | None]:
        """What it is then, and what it asks for; None if that is its end.

        One that is displaced would wait for the other, and then take over as a next one does.
        """
        after, instructions = state.receive(event)
        if any(
            isinstance(one, ask.WaitForOthers | ask.Fail | ask.EndRecovery) for one in instructions
        ):
            return self._states.number(Ended()), None
        told = (ask.Note, ask.LeaveReason)
        asked = (self._asked(one) for one in instructions if not isinstance(one, told))
        return self._states.number(after), tuple(asked)


def _sent(copies: list[Copy], world: World) -> World:
    return world._replace(copies=tuple(sorted({*world.copies, *copies})))


def _acknowledged(last: int, world: World) -> World:
    return world._replace(acked=max(world.acked, last))


def _released(place: int, world: World) -> World:
    """What is under way there may still land; nothing more is sent."""
    waiting = [copy for copy in world.copies if copy.place == place][1:]
    return world._replace(copies=tuple(copy for copy in world.copies if copy not in waiting))
