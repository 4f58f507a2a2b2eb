"""Every state of a small world in which a ledger is repaired, left and deleted beside its clients.

Writer and recovery are the protocol's machines. What upkeep does is written here step by step, as
``admin`` does it, and all that is decided are the protocol's functions: who gets a place, who
leaves, who is owed a deletion. Listings and records are read at one moment and acted on at another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bkspark.errors import InvalidRequestError, LedgerFencedError
from bkspark.protocol.ledger import deletion
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.recovery.steps import Close
from bkspark.protocol.upkeep import repairing
from bkspark.protocol.upkeep.repairing import Place
from tests.simulation.scheduler import Violation
from tests.simulation.states import world as values
from tests.simulation.states.search import Found, Search
from tests.simulation.states.steps import Step, Steps
from tests.simulation.states.world import NOBODY, Asked, Bookie, World

DELETING = LedgerState.DELETING


class Job(NamedTuple):
    """Somebody who looks after the ledger.

    Attributes:
        phase: what comes next.
        seen: the record that it has read, by number.
        place: that is to be made good.
        target: who is to have the copies.
        todo: bookies that it has to see to, or the record that it has stored.
        tries: how often it has lost a race.
        turns: how often it may begin again.
        is_late: whether the writer had read that it may acknowledge when the ledger was deleted.
    """

    kind: str
    phase: str = "begins"
    seen: int = NOBODY
    place: Place | None = None
    target: int = NOBODY
    todo: tuple[int, ...] = ()
    tries: int = 0
    turns: int = 0
    is_late: bool = False


Kind = Callable[[World, int, Job], Iterator[Step]]


@dataclass(frozen=True)
class Order:
    """What upkeep does one behind the other, each of which may be broken to see it noticed.

    Attributes:
        lists_first: whether bookies are looked at before the record is read.
    """

    lists_first: bool = True
    leaves_before_removing: bool = True
    compares_leaving: bool = True
    compares_swaps: bool = True
    looks_before_swapping: bool = True
    cleans_before_forgetting: bool = True


@dataclass(frozen=True)
class Scope(values.Scope):
    """What there is beside writer and recoverers.

    Attributes:
        jobs: of "repair", "collect" and "delete".
        turns: how often each may begin again.
        free: whether the last bookie that is free for a place is spared.
    """

    jobs: tuple[str, ...] = ()
    turns: int = 0
    free: bool = False
    order: Order = field(default_factory=Order)

    def __str__(self) -> str:
        jobs = f", {', '.join(self.jobs)}" if self.jobs else ""
        return f"{super().__str__()}{jobs}" + f", {self.turns} turns more" * bool(self.turns)


def search(scope: Scope, limit: int | None = None) -> Found:
    """Look at every state, or at the first ``limit``; ends at the first violation."""
    return Search(scope, UpkeepSteps(scope)).run(limit)


class UpkeepSteps(Steps):
    """Steps of clients, and those of jobs.

    Attributes:
        happened: what jobs did.
        kinds: what a job of each kind may do next.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._scope = scope
        self.happened: set[str] = set()
        self.kinds: dict[str, Kind] = {
            "repair": self._repair,
            "collect": self._collect,
            "delete": self._delete,
        }

    def first(self) -> World:
        jobs = tuple(Job(kind, turns=self._scope.turns) for kind in self._scope.jobs)
        return super().first()._replace(jobs=jobs)

    def after(self, world: World) -> Iterator[Step]:
        yield from super().after(world)
        for number, job in enumerate(world.jobs):
            if job.phase != "ended":
                for what, then in self.kinds[job.kind](world, number, job):
                    self.happened.add(f"{job.kind}: {what}")
                    yield f"{job.kind} {number}: {what}", then

    def _take_over(self, world: World, number: int, asked: Asked) -> World:
        """Of a ledger that is deleted, or gone, it is refused, and so is its end."""
        try:
            return super()._take_over(world, number, asked)
        except LedgerFencedError:
            return _without_recovery(world, number)

    def _close(self, world: World, number: int, asked: Asked, close: Close) -> World:
        try:
            return super()._close(world, number, asked, close)
        except (LedgerFencedError, InvalidRequestError):
            return _without_recovery(world, number)

    def _member(self, number: int) -> Member:
        return self.members[number]

    # --- repair ----------------------------------------------------------------------------------

    def _repair(self, world: World, number: int, job: Job) -> Iterator[Step]:
        if job.phase == "begins":
            yield from self._plan(world, number, job)
        elif job.phase == "planned":
            yield from self._begin(world, number, job)
        elif job.phase == "copies":
            yield self._copy(world, number, job)
        elif job.phase == "swaps":
            yield self._swap_place(world, number, job)
        elif job.phase == "looks":
            yield self._look_again(world, number, job)

    def _plan(self, world: World, number: int, job: Job) -> Iterator[Step]:
        """Any place may have to change hands."""
        ledger = self.ledgers[world.ledger]
        for location in Locations(ledger):
            for index, member in enumerate(location.members):
                place = Place(ledger.ledger_id, location.first_entry_id, index, member)
                if repairing.location_of(ledger, place) is not None:
                    planned = job._replace(phase="planned", place=place)
                    yield f"plans place {index}", with_job(world, number, planned)

    def _begin(self, world: World, number: int, job: Job) -> Iterator[Step]:
        """The record is read anew; who begins again keeps to whom it was copying to."""
        ledger = self.ledgers[world.ledger]
        assert job.place is not None
        if repairing.location_of(ledger, job.place) is None:
            yield "nothing is to do", self._again(world, number, job)
            return
        targets = self._targets(ledger, job.place)
        kept = [n for n in targets if n == job.target]
        for target in kept or targets:
            begun = job._replace(phase="copies", seen=world.ledger, target=target)
            yield f"begins for {target}", with_job(world, number, begun)
        if not targets:
            yield "nobody can have it", self._again(world, number, job)

    def _targets(self, ledger: LedgerMetadata, place: Place) -> list[int]:
        location = repairing.location_of(ledger, place)
        assert location is not None
        barred = repairing.barred(ledger, self.members)
        staying = {m.bookie_id for m in location.members if m != place.member}
        return [
            n for n, member in enumerate(self.members) if member.bookie_id not in staying | barred
        ]

    def _wanted(self, job: Job) -> Iterator[int]:
        """Entries that the place has to have."""
        ledger, place = self.ledgers[job.seen], job.place
        assert place is not None
        first, index, last = place.fragment_first_entry_id, place.index, ledger.last_entry_id
        for entry in range(first, (ledger.last_confirmed if last is None else last) + 1):
            is_here = ledger.fragment_of(entry).first_entry_id == first
            if is_here and index in ledger.quorum.write_set(entry):
                yield entry

    def _copy(self, world: World, number: int, job: Job) -> Step:
        """The next entry, from whoever of the ensemble has it."""
        has = {record.first for record in world.bookies[job.target].records}
        entry = next((one for one in self._wanted(job) if one not in has), None)
        if entry is None or not self._scope.order.looks_before_swapping:
            assert job.place is not None
            if self._member(job.target) == job.place.member:
                return "it has all", self._again(world, number, job)
            return "it has all", with_job(world, number, job._replace(phase="swaps"))
        ensemble = self.ledgers[job.seen].fragment_of(entry).ensemble
        sources = [world.bookies[self.numbers[member.bookie_id]] for member in ensemble]
        found = [one for s in sources for one in sorted(s.records) if one.first == entry]
        if not found:
            return "nobody has it", self._again(world, number, job)
        bookie = world.bookies[job.target]
        copied = bookie._replace(records=bookie.records | {found[0]})
        return f"entry {entry} to {job.target}", world.with_bookie(job.target, copied)

    def _swap_place(self, world: World, number: int, job: Job) -> Step:
        """Who loses the race begins again, once for all, with the copies that it has made."""
        assert job.place is not None
        if self._scope.order.compares_swaps and world.ledger != job.seen:
            after = job._replace(phase="planned", tries=job.tries + 1)
            again = self._again(world, number, job) if job.tries else None
            return "its record changed", again or with_job(world, number, after)
        successor = self._member(job.target)
        named = self.store(repairing.replaced(self.ledgers[job.seen], job.place, successor))
        looks = job._replace(phase="looks", todo=(named,))
        return "swaps", with_job(world, number, looks)._replace(ledger=named)

    def _look_again(self, world: World, number: int, job: Job) -> Step:
        """Behind the swap; who does not have it all gives the place back."""
        has = {record.first for record in world.bookies[job.target].records}
        if has.issuperset(self._wanted(job)):
            return "it is well", self._again(world, number, job)
        [named] = job.todo
        if world.ledger != named:
            return "its record changed", self._again(world, number, job)
        assert job.place is not None
        place = replace(job.place, member=self._member(job.target))
        try:
            given = repairing.replaced(self.ledgers[named], place, job.place.member)
        except InvalidRequestError:
            return "who had it has left", self._again(world, number, job)
        back = world._replace(ledger=self.store(given))
        return "gives it back", self._again(back, number, job)

    @staticmethod
    def _again(world: World, number: int, job: Job) -> World:
        after = Job(job.kind, turns=job.turns - 1) if job.turns else job._replace(phase="ended")
        return with_job(world, number, after)

    # --- collection of copies --------------------------------------------------------------------

    def _collect(self, world: World, number: int, job: Job) -> Iterator[Step]:
        if job.phase == "begins":
            holders = tuple(n for n, one in enumerate(world.bookies) if one != Bookie())
            listed = job._replace(phase="listed", todo=holders)
            if self._scope.order.lists_first:
                yield f"lists {holders}", with_job(world, number, listed)
            else:
                read = job._replace(phase="read", seen=world.ledger)
                yield "reads the record", with_job(world, number, read)
        elif job.phase == "listed":
            seen = job._replace(seen=world.ledger)
            yield "reads the record", self._judge(world, number, seen)
        elif job.phase == "read":
            holders = tuple(n for n, one in enumerate(world.bookies) if one != Bookie())
            yield f"lists {holders}", self._judge(world, number, job._replace(todo=holders))
        elif job.phase == "leaves":
            yield "stores who has left", self._store_left(world, number, job)
        elif job.phase == "removes":
            yield from self._remove(world, number, job)

    def _judge(self, world: World, number: int, job: Job) -> World:
        ledger = self.ledgers[job.seen]
        free = self.members if self._scope.free else ()
        holders = [self._member(n) for n in job.todo]
        left = {self.numbers[m.bookie_id] for m in repairing.leavers(ledger, holders, free)}
        if not left:
            return self._again(world, number, job)
        phase = "leaves" if self._scope.order.leaves_before_removing else "removes"
        judged = job._replace(phase=phase, todo=tuple(sorted(left)))
        return with_job(world, number, judged)

    def _store_left(self, world: World, number: int, job: Job) -> World:
        ledger = self.ledgers[job.seen]
        after = repairing.left_by(ledger, [self._member(n) for n in job.todo])
        if after != ledger:
            if self._scope.order.compares_leaving and world.ledger != job.seen:
                return self._again(world, number, job)
            world = world._replace(ledger=self.store(after))
        return with_job(world, number, job._replace(phase="removes"))

    def _remove(self, world: World, number: int, job: Job) -> Iterator[Step]:
        for bookie in job.todo:
            rest = job._replace(todo=tuple(n for n in job.todo if n != bookie))
            then = self._again(world, number, job) if not rest.todo else None
            then = then or with_job(world, number, rest)
            self._require_unnamed(world, bookie)
            yield f"removes what {bookie} has", then.with_bookie(bookie, Bookie())

    def _require_unnamed(self, world: World, bookie: int) -> None:
        ledger = self.ledgers[world.ledger]
        if ledger.state is not DELETING and bookie in self._named(ledger):
            raise Violation(f"what bookie {bookie} has is removed, and it has a place (RB-30)")

    # --- deletion --------------------------------------------------------------------------------

    def _delete(self, world: World, number: int, job: Job) -> Iterator[Step]:
        ledger = self.ledgers[world.ledger]
        if job.phase == "begins":
            is_late = world.check is not None and world.check.seen != NOBODY
            deleted = world._replace(ledger=self.store(ledger.deleting()))
            todo = tuple(range(len(self.members)))
            begun = job._replace(phase="cleans", todo=todo, is_late=is_late)
            yield "deletes", with_job(deleted, number, begun)
        elif job.phase == "cleans":
            yield from self._clean(world, number, job)
        elif job.phase == "gone":
            for n, bookie in enumerate(world.bookies):
                if bookie != Bookie():
                    yield f"sweeps {n}", world.with_bookie(n, Bookie())

    def _clean(self, world: World, number: int, job: Job) -> Iterator[Step]:
        ledger = self.ledgers[world.ledger]
        fences = deletion.needs_fence(ledger)
        for n in job.todo:
            bookie = world.bookies[n]
            if fences and not bookie.is_fenced:
                yield f"fences {n}", world.with_bookie(n, bookie._replace(is_fenced=True))
                continue
            rest = job._replace(todo=tuple(one for one in job.todo if one != n))
            cleaned = world.with_bookie(n, Bookie())
            yield f"cleans {n}", with_job(cleaned, number, rest)
        clean = [m for n, m in enumerate(self.members) if n not in job.todo]
        owed = deletion.owing(ledger, cleaned=clean, registered=self.members, lost=())
        if not owed or not self._scope.order.cleans_before_forgetting:
            if self._named(ledger).intersection(job.todo):
                raise Violation("a record goes, and its members were not cleaned (R11)")
            yield "the record goes", with_job(world, number, job._replace(phase="gone"))

    def _named(self, ledger: LedgerMetadata) -> set[int]:
        """Bookies that have a place."""
        return {self.numbers[m.bookie_id] for f in ledger.fragments for m in f.ensemble}

    # --- what must hold --------------------------------------------------------------------------

    def require(self, world: World) -> None:
        if self.ledgers[world.ledger].state is not DELETING:
            super().require(world)

    def require_step(self, before: World, after: World) -> None:
        old, new = self.ledgers[before.ledger], self.ledgers[after.ledger]
        if old.state is DELETING:
            if new.state is not DELETING:
                raise Violation("what is deleted is undead (R11)")
            if after.acked > before.acked and not any(job.is_late for job in before.jobs):
                raise Violation("an entry of a deleted ledger is acknowledged (R13)")
        elif old.state is LedgerState.CLOSED and old != new and new.state is not DELETING:
            self._require_repaired(before, old, new)

    def _require_repaired(self, world: World, old: LedgerMetadata, new: LedgerMetadata) -> None:
        if (old.state, old.last_entry_id, old.term) != (new.state, new.last_entry_id, new.term):
            raise Violation("what is CLOSED has another end (I6)")
        pairs = zip(old.fragments, new.fragments, strict=True)
        places = [zip(one.ensemble, other.ensemble, strict=True) for one, other in pairs]
        changed = sum(a != b for both in places for a, b in both)
        if changed + (old.left != new.left) > 1:
            raise Violation(f"{changed} places of what is CLOSED change at once (I6)")
        if not old.left <= new.left:
            raise Violation("who has left is forgotten (RB-30)")
        if any(not new.left.isdisjoint(fragment.ensemble) for fragment in new.fragments):
            raise Violation("who has left has a place (RB-30)")


def _without_recovery(world: World, number: int) -> World:
    return world.with_recovery(number, world.recoveries[number]._replace(asked=()))


def with_job(world: World, number: int, job: Job) -> World:
    return world._replace(jobs=(*world.jobs[:number], job, *world.jobs[number + 1 :]))
