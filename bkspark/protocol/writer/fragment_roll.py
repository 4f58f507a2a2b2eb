"""Fragment rolls: a writer begins a fragment on request, not because a bookie failed.

Rule 1. While the writer continues, bookies are chosen for all places, as for a new ledger. A member
that stays keeps its place. A new member has the writer's permission and journal before the metadata
names it (R18), and no bookie is asked for them twice (R19).

Rule 2. After that the writer sends no entry until all sent entries are acknowledged, and fully
replicated if the ledger guarantees full replication. So the fragment begins at the first unsent
entry, after the LAC (TLA+: at LAC+1). No entry changes its bookies, no copy needed by an
acknowledgement is given up, and requests in flight to leaving members stay in flight.

Rule 3. One compare-and-set names the fragment, while no metadata check is running (R4). Until then
the writer sends no entry and fills no other place.

Rule 4. A member that fails before the compare-and-set ends the roll, and is replaced as usual in
the fragment in use. The chosen bookies keep what they took, and may be chosen again. While a roll
looks for bookies, no replacement looks for any: no bookie is asked by both.

Rule 5. A fragment without sent entries already counts as new. A roll that is not stored when the
writer stops is not begun.

Rule 6. If the write quorum is guaranteed, no roll begins while a failed member is not replaced: the
roll would wait for its copies in vain.
"""

from collections.abc import Collection

from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.ensemble_change import EnsembleChanges
from bkspark.protocol.writer.steps import Instruction, Muster, NotRolled, RolledOver, Swap

ENDS = "the writer ends"


class FragmentRoll:
    """The progress of a fragment roll.

    Attributes:
        is_asked: whether a caller waits for a new fragment.
        is_named: whether the metadata is about to name the fragment.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.is_named = False
        self._is_looking = False
        self._is_stale = False
        self._found: tuple[Member, ...] = ()

    @property
    def state(self) -> tuple[object, ...]:
        """All values that decide the next step."""
        return (self.is_asked, self.is_named, self._is_looking, self._is_stale, self._found)

    @property
    def is_busy(self) -> bool:
        """Whether the writer must neither look for nor name another bookie."""
        return self._is_looking or self.is_named

    @property
    def holds(self) -> bool:
        """Whether the writer must not send entries (rule 2)."""
        return bool(self._found)

    def ask(self, *, is_stopping: bool) -> list[Instruction]:
        """Request a new fragment; two pending requests get one fragment."""
        self.is_asked = True
        return self.give_up(ENDS) if is_stopping else []

    def next(
        self, mine: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
    ) -> list[Instruction]:
        """Return the next instructions, if any."""
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
        """Note the chosen ``ensemble``; empty if there are too few bookies, for ``reason``."""
        self._is_looking = False
        if self._is_stale:
            return []
        if not ensemble:
            return self.give_up(reason)
        self._found = ensemble
        return []

    def give_up(self, reason: str) -> list[Instruction]:
        """Give up the roll and keep the fragment in use (rules 4 to 6)."""
        if not self.is_asked or self.is_named:
            return []
        self.is_asked, self._found, self._is_stale = False, (), True
        return [NotRolled(reason)]

    def member_failed(self, reason: str) -> list[Instruction]:
        """Give up a running roll after a member failed (rule 4).

        A member that failed before the search is never in the new fragment.
        """
        return self.give_up(reason) if self._is_looking or self._found else []

    def over(self, changed: Collection[int]) -> RolledOver:
        """End the roll: the metadata names the fragment, with new members in ``changed``."""
        self.is_asked, self.is_named, self._found = False, False, ()
        return RolledOver(tuple(changed))
