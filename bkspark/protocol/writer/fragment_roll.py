"""When a writer begins a fragment because it was asked to, and not because a bookie failed.

Rule 1. Bookies for all places are looked for while the writer goes on, as for a new ledger. A
member that stays keeps its place; whoever comes in has the writer's permission and his journal
before the metadata names it (R18), and nobody is asked for them twice (R19).

Rule 2. Then nothing is sent until all that was is acknowledged, and fully replicated where the
ledger guarantees that. So the fragment begins at the first entry that was not sent, behind the LAC
(TLA+: at LAC+1): no entry changes its bookies, no copy that an acknowledgement rests on is given
up, and what was on its way to those who leave stays on its way.

Rule 3. One compare-and-set names the fragment, with no check of the metadata under way (R4). Until
it is there nothing is sent, and nobody else's place is filled.

Rule 4. A member that fails before that ends the roll: it is replaced as ever, in the fragment that
is in use. The bookies that were found keep what they took, and may be found again. While bookies
are looked for, nobody is looked for in the place of one: no bookie is asked by both.

Rule 5. A fragment of which nothing was sent is new as it is. What a writer that ends was asked for,
and has not stored yet, is not begun.

Rule 6. Where the write quorum is guaranteed, no roll begins while a member that failed is not
replaced: its copies would be waited for in vain.
"""

from collections.abc import Collection

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.ensemble_change import EnsembleChanges
from bkspark.protocol.writer.steps import Instruction, Muster, NotRolled, RolledOver, Swap

ENDS = "the writer ends"


class FragmentRoll:
    """How far a writer is with a new fragment.

    Attributes:
        is_asked: whether somebody waits for one.
        is_named: whether the metadata is about to name it.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.is_named = False
        self._is_looking = False
        self._is_stale = False
        self._found: tuple[Member, ...] = ()

    @property
    def state(self) -> tuple[object, ...]:
        """All that decides what comes next."""
        return (self.is_asked, self.is_named, self._is_looking, self._is_stale, self._found)

    @property
    def is_busy(self) -> bool:
        """Whether nobody else may be looked for, or named."""
        return self._is_looking or self.is_named

    @property
    def holds(self) -> bool:
        """Whether nothing may be sent (rule 2)."""
        return bool(self._found)

    def ask(self, *, is_stopping: bool) -> list[Instruction]:
        """Somebody wants a new fragment; that of two is one."""
        self.is_asked = True
        return self.give_up(ENDS) if is_stopping else []

    def next(
        self, mine: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
    ) -> list[Instruction]:
        """What to do now, if anything."""
        if self._found and not self.is_named and not any(pending.unfinished):
            self.is_named = True
            lac = pending.last_add_confirmed
            mine_at = (mine.ledger_id, mine.term, mine.token, lac + 1)
            return [Swap(*mine_at, self._found, lac, pending.length_bytes)]
        if not self.is_asked or self._found or self._is_looking or changes.is_under_way:
            return []
        if pending.last_add_pushed < mine.last_fragment.first_entry_id:
            return [self.over(())]
        if pending.lagging is not None and changes.failed:
            return self.give_up("; ".join(changes.failed.values()))
        self._is_looking, self._is_stale = True, False
        ensemble = mine.last_fragment.ensemble
        return [Muster(ensemble, frozenset(changes.failed), changes.excluded)]

    def found(self, ensemble: tuple[Member, ...], reason: str) -> list[Instruction]:
        """Who may be in it; empty if there are too few, for ``reason``."""
        self._is_looking = False
        if self._is_stale:
            return []
        if not ensemble:
            return self.give_up(reason)
        self._found = ensemble
        return []

    def give_up(self, reason: str) -> list[Instruction]:
        """Rules 4 to 6: the fragment that is in use stays in use."""
        if not self.is_asked or self.is_named:
            return []
        self.is_asked, self._found, self._is_stale = False, (), True
        return [NotRolled(reason)]

    def member_failed(self, reason: str) -> list[Instruction]:
        """Rule 4; who failed before bookies were looked for is in no new fragment anyway."""
        return self.give_up(reason) if self._is_looking or self._found else []

    def over(self, changed: Collection[int]) -> RolledOver:
        """The metadata names it, with others in the places ``changed``."""
        self.is_asked, self.is_named, self._found = False, False, ()
        return RolledOver(tuple(changed))
