"""Search for the record that ends at the last confirmed entry.

A recovery that keeps no later group still needs this record: only the record states the ledger's
length and transactions up to there.

If no remaining bookie has the record, the entries up to the last confirmed one stay in the ledger
(R14: a ledger is never closed below them). Length and transactions then come from the newest
earlier record. This needs the operator's consent, because acknowledged entries are gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, Fragment, Member
from bkspark.protocol.ledger.record import AddRecord, later
from bkspark.protocol.recovery import steps


@dataclass(frozen=True, slots=True)
class RecordSearch:
    """Searches the record on the members of its own fragment, then of earlier fragments.

    Attributes:
        entry_id: the last confirmed entry.
        known: registered bookies.
        lost: members declared lost; the search does not wait for them.
        ensembles: of the fragments left; the record's own fragment is the first.
        awaited: members that have not answered.
        newest: the newest record shown, None without any.
        problems: members that may have another record, each with the reason in one line.
    """

    entry_id: int
    known: tuple[Member, ...]
    lost: frozenset[Member]
    ensembles: tuple[tuple[Member, ...], ...]
    awaited: frozenset[Member] = frozenset()
    newest: AddRecord | None = None
    problems: tuple[tuple[Member, str], ...] = ()

    @classmethod
    def of(
        cls,
        fragments: Sequence[Fragment],
        entry_id: int,
        known: tuple[Member, ...],
        lost: frozenset[Member],
    ) -> "Step":
        """Begin a search in the last of ``fragments`` that can have the record."""
        can = [fragment for fragment in fragments if fragment.first_entry_id <= entry_id]
        ensembles = tuple(fragment.ensemble for fragment in reversed(can))
        return cls(entry_id, known, lost, ensembles)._look_up()

    def receive(self, event: steps.Event) -> "Step":
        """Return the next step after an answer to an instruction."""
        match event:
            case steps.Answer(steps.LookUp(member), result):
                is_sure = isinstance(result, steps.RecordShown) and not result.problem
                record = result.record if isinstance(result, steps.RecordShown) else None
                problem = result.problem if isinstance(result, steps.RecordShown) else str(result)
                return replace(
                    self,
                    awaited=self.awaited - {member},
                    newest=later(self.newest, record),
                    problems=self.problems if is_sure else (*self.problems, (member, problem)),
                )._going_on()
        raise AssertionError(f"a search awaits no {type(event).__name__}")

    @property
    def is_over(self) -> bool:
        """Whether all asked members have answered."""
        return not self.awaited

    @property
    def end(self) -> int:
        """The last entry of the newest record shown."""
        return INVALID_ENTRY_ID if self.newest is None else self.newest.last_entry_id

    @property
    def silent(self) -> dict[Member, str]:
        """The members that may still show the record, with the reason."""
        if self.end == self.entry_id:
            return {}
        return {member: why for member, why in self.problems if member not in self.lost}

    def _look_up(self) -> "Step":
        """Ask the members of the next ensemble."""
        ensemble, *left = self.ensembles
        gone = (
            (m, f"{m.bookie_id} was initialised again") for m in ensemble if m not in self.known
        )
        asked = [member for member in ensemble if member in self.known]
        state = replace(self, awaited=frozenset(asked), ensembles=tuple(left), problems=tuple(gone))
        if not asked:
            return state._going_on()
        return state, tuple(steps.LookUp(member, self.entry_id) for member in asked)

    def _going_on(self) -> "Step":
        is_here = self.awaited or self.newest is not None or self.silent or not self.ensembles
        return (self, ()) if is_here else self._look_up()


Step = tuple[RecordSearch, tuple[steps.LookUp, ...]]
