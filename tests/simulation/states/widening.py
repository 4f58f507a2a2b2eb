"""Every state of a small world whose ledger was made on fewer bookies than wanted, and is widened.

A job "widen" does step by step what ``admin.repairing.widening`` does; what is decided are the
protocol's functions. Beside it are the clients of the ledger and the other jobs of upkeep.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, MadeSmaller, Member
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.protocol.upkeep import repairing
from tests.simulation.scheduler import Violation
from tests.simulation.states import upkeep
from tests.simulation.states.search import Found, Search
from tests.simulation.states.steps import Step
from tests.simulation.states.upkeep import Job, with_job
from tests.simulation.states.world import World


@dataclass(frozen=True)
class Scope(upkeep.Scope):
    """What there is, likewise.

    Attributes:
        wanted: the sizes that the ledger was to have; ``quorum`` is what it was made with.
    """

    wanted: Quorum = DEFAULT_QUORUM

    def __str__(self) -> str:
        wanted = self.wanted
        sizes = f"{wanted.ensemble_size}/{wanted.write_quorum_size}/{wanted.ack_quorum_size}"
        return f"{super().__str__()}, {sizes} wanted"


def search(scope: Scope, limit: int | None = None) -> Found:
    """Look at every state, or at the first ``limit``; ends at the first violation."""
    return Search(scope, WideningSteps(scope)).run(limit)


class WideningSteps(upkeep.UpkeepSteps):
    """Steps of clients and of jobs, of which some widen the ledger.

    Of such a job ``todo`` has the bookie that is to join each fragment, and ``target`` is the
    record that it has stored.
    """

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._wanted_sizes = scope.wanted
        self.kinds["widen"] = self._widen

    def first(self) -> World:
        world = super().first()
        ledger = self.ledgers[world.ledger]
        smaller = MadeSmaller(ledger.quorum, self._wanted_sizes)
        ledger = replace(ledger, settings=replace(ledger.settings, smaller=smaller))
        machine = self._writers[world.writer]
        machine.metadata = ledger
        return world._replace(ledger=self.store(ledger))

    def store(self, ledger: LedgerMetadata) -> int:
        who = (ledger.state, ledger.term, ledger.token, ledger.settings.smaller is None)
        key = (*who, ledger.last_entry_id, ledger.fragments, ledger.left)
        return self.ledgers.number(ledger, key)

    # --- widening --------------------------------------------------------------------------------

    def _widen(self, world: World, number: int, job: Job) -> Iterator[Step]:
        if job.phase == "begins":
            yield from self._choose(world, number, job)
        elif job.phase == "copies":
            yield self._copy_next(world, number, job)
        elif job.phase == "widens":
            yield self._store_wider(world, number, job)
        elif job.phase == "looks":
            yield self._look_at_wider(world, number, job)

    def _choose(self, world: World, number: int, job: Job) -> Iterator[Step]:
        """The record is read; any bookies that may join are as good."""
        ledger = self.ledgers[world.ledger]
        if not repairing.may_widen(ledger):
            if ledger.state in (LedgerState.CLOSED, LedgerState.DELETING):
                yield "nothing is to do", self._again(world, number, job)
            return
        barred = repairing.barred(ledger, self.members)
        free = [
            [
                n
                for n, member in enumerate(self.members)
                if member not in fragment.ensemble and member.bookie_id not in barred
            ]
            for fragment in ledger.fragments
        ]
        for chosen in product(*free):
            begun = job._replace(phase="copies", seen=world.ledger, todo=chosen)
            yield f"begins for {chosen}", with_job(world, number, begun)
        if not all(free):
            yield "nobody can join", self._again(world, number, job)

    def _lacking(self, world: World, ledger: LedgerMetadata, joining: tuple[int, ...]) -> list[int]:
        """Entries that the bookie that is to join their fragment lacks."""
        last = ledger.last_confirmed if ledger.last_entry_id is None else ledger.last_entry_id
        places = dict(zip((f.first_entry_id for f in ledger.fragments), joining, strict=True))
        lacking = []
        for entry in range(last + 1):
            bookie = world.bookies[places[ledger.fragment_of(entry).first_entry_id]]
            if all(record.first != entry for record in bookie.records):
                lacking.append(entry)
        return lacking

    def _copy_next(self, world: World, number: int, job: Job) -> Step:
        ledger = self.ledgers[job.seen]
        lacking = self._lacking(world, ledger, job.todo)
        if not lacking or not self._scope.order.looks_before_swapping:
            return "all have all", with_job(world, number, job._replace(phase="widens"))
        fragment = ledger.fragment_of(lacking[0])
        sources = [world.bookies[self.numbers[m.bookie_id]] for m in fragment.ensemble]
        found = [one for s in sources for one in sorted(s.records) if one.first == lacking[0]]
        if not found:
            return "nobody has it", self._again(world, number, job)
        target = job.todo[ledger.fragments.index(fragment)]
        bookie = world.bookies[target]
        copied = bookie._replace(records=bookie.records | {found[0]})
        return f"entry {lacking[0]} to {target}", world.with_bookie(target, copied)

    def _store_wider(self, world: World, number: int, job: Job) -> Step:
        if self._scope.order.compares_swaps and world.ledger != job.seen:
            after = Job(job.kind, tries=job.tries + 1, turns=job.turns)
            again = self._again(world, number, job) if job.tries else None
            return "its record changed", again or with_job(world, number, after)
        joining = [self._member(n) for n in job.todo]
        try:
            named = self.store(repairing.widened(self.ledgers[job.seen], joining))
        except InvalidRequestError:
            return "it may not", self._again(world, number, job)
        looks = job._replace(phase="looks", target=named)
        return "widens", with_job(world, number, looks)._replace(ledger=named)

    def _look_at_wider(self, world: World, number: int, job: Job) -> Step:
        if not self._lacking(world, self.ledgers[job.seen], job.todo):
            return "it is well", self._again(world, number, job)
        if world.ledger != job.target:
            return "its record changed", self._again(world, number, job)
        back = world._replace(ledger=job.seen)
        return "puts it back", self._again(back, number, job)

    # --- what must hold --------------------------------------------------------------------------

    def _require_repaired(self, world: World, old: LedgerMetadata, new: LedgerMetadata) -> None:
        grown = new.quorum.ensemble_size - old.quorum.ensemble_size
        if not grown:
            super()._require_repaired(world, old, new)
            return
        if (old.last_entry_id, old.term, old.left) != (new.last_entry_id, new.term, new.left):
            raise Violation("what is CLOSED has another end (I6)")
        if any(not new.left.isdisjoint(fragment.ensemble) for fragment in new.fragments):
            raise Violation("who has left has a place (RB-30)")
        size = old.quorum.ensemble_size
        pairs = zip(old.fragments, new.fragments, strict=True)
        if grown != 1 or any(a.ensemble != b.ensemble[:size] for a, b in pairs):
            raise Violation("a ledger that is widened loses members (I6)")
        for entry in range((old.last_entry_id or 0) + 1):
            self._require_copies(world, entry, set(Locations(old).holders(entry)), new)
        if new.quorum.write_quorum_size > self._wanted_sizes.write_quorum_size:
            raise Violation("a ledger has more copies than wanted")

    def _require_copies(
        self, world: World, entry: int, before: set[Member], new: LedgerMetadata
    ) -> None:
        """Whoever is to have an entry from now on has it, and nobody need not any more."""
        after = set(Locations(new).holders(entry))
        if not before <= after:
            raise Violation(f"entry {entry} has changed its bookies (I6)")
        for member in after - before:
            records = world.bookies[self.numbers[member.bookie_id]].records
            if all(record.first != entry for record in records):
                raise Violation(f"a member joins that lacks entry {entry} (I2, I3)")

    def require_step(self, before: World, after: World) -> None:
        old, new = self.ledgers[before.ledger], self.ledgers[after.ledger]
        if old.state is not LedgerState.CLOSED and old.quorum != new.quorum:
            raise Violation("what is not CLOSED is widened (R18)")
        if after.ledger != before.ledger and self._is_put_back(before, after):
            return
        super().require_step(before, after)

    @staticmethod
    def _is_put_back(before: World, after: World) -> bool:
        """Whether a job has stored the record as it was before it widened the ledger."""
        jobs = (job for job in before.jobs if job.kind == "widen" and job.phase == "looks")
        return any((job.target, job.seen) == (before.ledger, after.ledger) for job in jobs)
