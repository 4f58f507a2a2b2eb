"""Failed members of a writer's ensemble, and their replacement, one after the other.

Rule 1. Without delay every failed member is replaced, so that entries get all their copies.

Rule 2. With delay a writer continues as long as every entry still reaches Qa members of its write
set; otherwise all failed members are replaced. Entries written meanwhile have fewer than Qw copies
until repaired, but never fewer than Qa.

Rule 3. A failed bookie is not chosen, so that two bad bookies are not swapped for each other. A
writer of entry logs has minutes between its adds, and tries failed bookies again with each add. But
a bookie that did not surely take the writer's permission is never tried again, even if asked when
the ledger was reopened for the writer (R19).

Rule 4. In a ledger that guarantees its write quorum, a member is replaced only after all other
members have every entry before the new fragment. So the member that lacks most goes first,
whichever place the bookie was chosen for: waiting for that member would be in vain.

Rule 5. A member cedes its place to a bookie that has more entry logs of the next add. The member
stays until the metadata names the other bookie, and stays if no bookie is found.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.writer.adding import PendingAdds
from bkspark.protocol.writer.steps import Enlist, Join

# --- ensemble change -----------------------------------------------------------------------------


CHANGES_MAX = 100
"""A writer whose bookies fail more often has another problem; BookKeeper has the same cap."""


def members_to_replace(
    quorum: Quorum, failed: Collection[int], *, is_delayed: bool
) -> tuple[int, ...]:
    """Return the indexes among ``failed`` that must be replaced before the writer continues."""
    live = [index for index in range(quorum.ensemble_size) if index not in failed]
    if is_delayed and quorum.is_ack_quorum_of_all(live):
        return ()
    return tuple(sorted(failed))


@dataclass(frozen=True, slots=True)
class _Change:
    """A running change; without a member the writer still looks for a bookie.

    Attributes:
        is_named: whether the metadata is about to name the member.
    """

    ensemble_index: int
    reason: str
    member: Member | None = None
    is_named: bool = False


class EnsembleChanges:
    """The failed members, and the change of members in progress.

    Args:
        unjoined: ids of bookies that may have been asked for the writer before, and are no members.

    Attributes:
        failed: members that failed and were not replaced: ensemble index -> reason.
        failures: every bookie that failed, with the reason.
    """

    def __init__(self, quorum: Quorum, *, is_delayed: bool, unjoined: Collection[str] = ()) -> None:
        self.failed: dict[int, str] = {}
        self.failures: dict[str, str] = {}
        self._quorum = quorum
        self._is_delayed = is_delayed
        self._excluded = frozenset(unjoined)
        self._unjoined = self._excluded
        self._to_fill: dict[int, str] = {}
        self._change: _Change | None = None
        self._count = 0

    @property
    def state(self) -> tuple[object, ...]:
        """All values that decide the next step."""
        return (
            *(tuple(self.failed), tuple(self.failures.items()), self._excluded, self._unjoined),
            *(tuple(sorted(self._to_fill)), self._change, self._count),
        )

    @property
    def is_somebody_missed(self) -> bool:
        """Whether a member failed, or a place is to be filled."""
        return bool(self.failed) or self.is_under_way

    @property
    def is_under_way(self) -> bool:
        """Whether a place is to be filled."""
        return self._change is not None or bool(self._to_fill)

    @property
    def is_looking(self) -> bool:
        """Whether a change of one place is in progress."""
        return self._change is not None

    @property
    def is_swapping(self) -> bool:
        """Whether the metadata is about to name another ensemble."""
        return self._change is not None and self._change.is_named

    @property
    def is_held(self) -> bool:
        """Whether a bookie was found that the metadata must not name yet."""
        change = self._change
        return change is not None and change.member is not None and not change.is_named

    @property
    def excluded(self) -> frozenset[str]:
        """Ids of bookies that must not be chosen."""
        return self._excluded

    def live(self, indexes: Iterable[int]) -> tuple[int, ...]:
        if not self.failed:
            return tuple(indexes)
        return tuple(index for index in indexes if index not in self.failed)

    @property
    def all_live(self) -> tuple[int, ...]:
        return self.live(range(self._quorum.ensemble_size))

    def expected(self) -> frozenset[int]:
        """Return the indexes with a usable member now or soon."""
        change = () if self._change is None else (self._change.ensemble_index,)
        return frozenset((*self.all_live, *self._to_fill, *change))

    def fail(self, index: int, bookie_id: str, reason: str) -> None:
        """Note that the member at ``index`` failed."""
        self.failed[index] = reason
        self.exclude({bookie_id: reason})
        under_way = self._change.ensemble_index if self._change else None
        wanted = members_to_replace(self._quorum, self.failed, is_delayed=self._is_delayed)
        self._to_fill |= {i: self.failed[i] for i in wanted if i != under_way}

    def exclude(self, failures: Mapping[str, str]) -> None:
        """Exclude failed bookies, members or not, from being chosen."""
        self.failures.update(failures)
        self._excluded |= frozenset(failures)

    def pass_over(self, failures: Mapping[str, str]) -> None:
        """Exclude for ever bookies that were asked to join and may have agreed (rule 3)."""
        self.exclude(failures)
        self._unjoined |= frozenset(failures)

    def rolled_over(self, before: Sequence[Member], fragment: Fragment) -> list[Join]:
        """Note a new fragment in the metadata; return the joins in places of failed members."""
        joins: list[Join] = []
        for index, (old, new) in enumerate(zip(before, fragment.ensemble, strict=True)):
            if old != new and index in self.failed:
                replaced = old.bookie_id, self.failed.pop(index)
                joins.append(Join(index, new, fragment.first_entry_id, replaced))
                self._to_fill.pop(index, None)
        self._count = 0
        return joins

    def begin_anew(self, ceding: Iterable[int]) -> None:
        """Try failed bookies again (rule 3), and let ``ceding`` members be replaced (rule 5)."""
        self.failed = {}
        self._excluded = self._unjoined
        self._to_fill = dict.fromkeys(ceding, "it has fewer rows")

    def try_again(self) -> None:
        """Look again for bookies in the places of failed members."""
        self._to_fill = dict(self.failed)

    def look(self, ensemble: tuple[Member, ...]) -> Enlist | None:
        """Look for a bookie for the first open place, up to ``CHANGES_MAX`` times."""
        if self._count >= CHANGES_MAX:
            self._to_fill = {}
            return None
        index = min(self._to_fill)
        self._change = _Change(index, self._to_fill.pop(index))
        staying = tuple(ensemble[i] for i in self.all_live if i != index)
        exclude = {member.bookie_id for member in ensemble} | self._excluded
        return Enlist(index, staying, frozenset(exclude))

    def found(self, member: Member | None, passed_over: Mapping[str, str]) -> None:
        """Note that ``member`` may fill the place; None if no bookie may."""
        assert self._change is not None
        self.pass_over(passed_over)
        index = self._change.ensemble_index
        if member is None:
            self._to_fill = {} if index in self.failed else self._to_fill
            self._change = None
            return
        self._change = replace(self._change, member=member)
        self._count += 1

    def lacking_most(self, fragment_without: Callable[[int], int]) -> int:
        """Return the place to be filled by the chosen bookie (rule 4).

        Args:
            fragment_without: returns where a fragment would begin, by the leaving member's index.
        """
        assert self._change is not None
        mine = self._change.ensemble_index
        most = min((mine, *sorted(self._to_fill)), key=fragment_without)
        if most != mine:
            reason = self._to_fill.pop(most)
            self._to_fill[mine] = self._change.reason
            self._change = replace(self._change, ensemble_index=most, reason=reason)
        return most

    def name(self, ensemble: tuple[Member, ...]) -> tuple[Member, ...]:
        """Return the ensemble with the chosen bookie; the metadata is about to name it."""
        assert self._change is not None
        index, member = self._change.ensemble_index, self._change.member
        assert member is not None
        self._change = replace(self._change, is_named=True)
        return (*ensemble[:index], member, *ensemble[index + 1 :])

    def join(self, before: tuple[Member, ...], first_entry_id: int) -> Join:
        """End the change: the metadata names the new member, in place of one in ``before``."""
        assert self._change is not None
        assert self._change.member is not None
        index, replaced = self._change.ensemble_index, before[self._change.ensemble_index].bookie_id
        join = Join(index, self._change.member, first_entry_id, (replaced, self._change.reason))
        self.failed.pop(index, None)
        self._change = None
        return join


# --- last copies ---------------------------------------------------------------------------------
# Copies still missing after the acknowledgement, in a ledger that guarantees its write quorum.
#
# An add is acknowledged on Qa bookies and kept until it is fully replicated (``adding``, rule 9).
# ``ensemble_change`` finds bookies for the missing copies. This module decides when no bookie can
# be found, which ends the writer. Its acknowledgements stay correct, and a recovery makes the
# copies.


def nobody_takes_them(pending: PendingAdds, changes: EnsembleChanges, *, is_stopping: bool) -> bool:
    """Whether only missing copies remain, and the writer looks for no bookie to hold them.

    Args:
        is_stopping: no more entries are submitted.
    """
    lagging = pending.lagging
    if lagging is None or changes.is_under_way:
        return False
    lac, is_last = pending.last_add_confirmed, is_stopping and not pending
    is_owed = any(pending.fragment_without(index) <= lac for index in changes.failed)
    return is_owed and (is_last or lagging.is_full)


def gap(ledger: LedgerMetadata, pending: PendingAdds) -> str:
    """Describe the missing copies in one line; empty without any."""
    lagging = pending.lagging
    if lagging is None or not lagging.adds:
        return ""
    lacking = {i for add in lagging.adds for i in add.indexes if i not in add.counted}
    ensemble = ledger.last_fragment.ensemble
    names = ", ".join(ensemble[index].bookie_id for index in sorted(lacking))
    first, last = lagging.last_add_fully_replicated + 1, pending.last_add_confirmed
    return (
        f"ledger {ledger.ledger_id} guarantees {ledger.quorum.write_quorum_size} copies, and "
        f"copies of the acknowledged entries {first} to {last} are missing on {names}"
    )


def no_bookie(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> NotEnoughBookiesError:
    """Return the error for missing copies without a bookie."""
    reasons = "; ".join(changes.failures.values())
    return NotEnoughBookiesError(
        f"{gap(ledger, pending)} ({reasons})",
        hint="the ledger stays open; add bookies and recover the ledger, which makes the copies",
    )
