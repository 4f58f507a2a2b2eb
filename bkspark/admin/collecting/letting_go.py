"""Free unneeded files of remaining ledgers.

A former member's copy is removed only after a compare-and-set on the ledger's record
(``protocol.upkeep.leaving``, rule 2), which is read and checked anew for that. A copy whose size
has changed since the plan is left alone: a repair may be copying there and would have to begin
again. This check only avoids duplicate work: a repair overtaken by the removal loses only time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from bkspark.admin.collecting.collection_plan import Unwanted
from bkspark.admin.collecting.freeing import Doomed, Free, Freed, FreeFiles
from bkspark.admin.collecting.unfinished import FreeUnfinished
from bkspark.admin.collecting.unwanted import free_members, weighed
from bkspark.bookie.contract import BookieAddress, Usage
from bkspark.cluster.cluster import Cluster
from bkspark.errors import CorruptDataError, MetadataVersionError
from bkspark.ledger.recovery.running import Instruction, Runner
from bkspark.protocol.ledger.deletion import members_of
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.upkeep.leaving import leavers, left_by

GIVEN_BACK = (
    "a bookie with a place in the ledger is removed or being removed: the former bookie may "
    "get the place back"
)
IN_USE = "its places are changing: another command may be making copies"


@dataclass(slots=True)
class LetGo:
    """Freed files of remaining ledgers.

    Attributes:
        problems: why files remain, by ledger id and bookie id.
    """

    removed: Usage = field(default_factory=Usage)
    problems: dict[tuple[int, str], str] = field(default_factory=dict)


class LeftoverRemover:
    """Frees unneeded files; reads records anew, and changes the records first where necessary.

    Args:
        addresses: addresses of the bookies to ask.
        silent: ids of bookies not answering.
    """

    def __init__(
        self,
        cluster: Cluster,
        run: Runner,
        addresses: Mapping[Member, BookieAddress],
        silent: Collection[str],
    ) -> None:
        self.outcome = LetGo()
        self._cluster = cluster
        self._run = run
        self._addresses = addresses
        self._free = {m for m in free_members(cluster) if m.bookie_id not in silent}

    def take(self, step: Sequence[Unwanted]) -> None:
        """Free the files of ``step``.

        Raises:
            OutcomeUnknownError: the metadata store or Spark gave no definite answer.
        """
        here = [one for one in step if one.member in self._addresses]
        copies = self._as_planned([one for one in here if one.is_copy])
        doomed: dict[Member, list[Doomed]] = {}
        for ledger_id in sorted({one.ledger_id for one in copies}):
            leaving = self._leave(ledger_id, copies)
            for member in (one for one in self._addresses if one in leaving):
                doomed.setdefault(member, []).append(Doomed(ledger_id))
        strays = self._by_address(one for one in here if one.names and not one.is_journals)
        journals = self._by_address(one for one in here if one.is_journals)
        begun = self._by_address(one for one in here if one.is_unfinished)
        orders: list[Instruction[object]] = [
            *(Free(self._addresses[member], tuple(own)) for member, own in doomed.items()),
            *(FreeFiles(address, own) for address, own in strays.items()),
            *(FreeUnfinished(address, own) for address, own in begun.items()),
            *(FreeFiles(address, own) for address, own in journals.items()),
        ]
        for order, answer in zip(orders, self._run(orders), strict=True):
            self._note(order.address.bookie_id, answer)

    def _by_address(
        self, unwanted: Iterable[Unwanted]
    ) -> dict[BookieAddress, tuple[Unwanted, ...]]:
        found: dict[BookieAddress, tuple[Unwanted, ...]] = {}
        for one in unwanted:
            address = self._addresses[one.member]
            found[address] = (*found.get(address, ()), one)
        return found

    def _as_planned(self, copies: Sequence[Unwanted]) -> list[Unwanted]:
        """Return the copies with the same size as in the plan."""
        orders: dict[BookieAddress, list[int]] = {}
        for one in copies:
            orders.setdefault(self._addresses[one.member], []).append(one.ledger_id)
        now = set(weighed(self._run, orders))
        for one in copies:
            if one not in now:
                self.outcome.problems[one.ledger_id, one.member.bookie_id] = IN_USE
        return [one for one in copies if one in now]

    def _leave(self, ledger_id: int, copies: Iterable[Unwanted]) -> set[Member]:
        """Return the former members with unneeded copies, after recording their leaving."""
        try:
            seen = self._cluster.ledgers.get(str(ledger_id))
        except CorruptDataError:
            return set()  # the plan reports the record
        if seen is None:
            return set()
        ledger = seen.value
        holders = [one.member for one in copies if one.ledger_id == ledger_id]
        members = leavers(ledger, holders, self._free)
        after = left_by(ledger, members)
        if after != ledger:
            if self._may_be_given_back(ledger):
                names = [member.bookie_id for member in members]
                self.outcome.problems |= dict.fromkeys(((ledger_id, n) for n in names), GIVEN_BACK)
                return set()
            try:
                self._cluster.ledgers.replace(str(ledger_id), after, seen)
            except MetadataVersionError:
                return set()  # retried by the next run: the new record may name the members
        return members

    def _may_be_given_back(self, ledger: LedgerMetadata) -> bool:
        """Return whether a leaving member's place may return to its previous member.

        The bookies' records are read after the ledger's record (``admin.bookies.removing``).
        """
        return any(map(self._cluster.is_going, members_of(ledger)))

    def _note(self, bookie_id: str, answer: object) -> None:
        if isinstance(answer, Freed):
            self.outcome.removed += sum(answer.removed.values(), Usage())
            for ledger_id, problem in answer.problems.items():
                self.outcome.problems[ledger_id, bookie_id] = problem
        elif isinstance(answer, Mapping):
            for ledger_id, done in answer.items():
                if isinstance(done, Usage):
                    self.outcome.removed += done
                else:
                    self.outcome.problems[ledger_id, bookie_id] = done
