"""Giving the groups that a recovery keeps to the members of their write sets.

Rule 1. Qa members of every write set must have them before the ledger is closed; what recovery
cannot write back it does not close (RB-15).

Rule 2. Where too few members take them, spares stand in for those that fail. The new ensemble is
this recovery's alone until the closing CAS: the next one, should this one die, asks the ensemble
that the writer wrote to (RB-04, RB-05, features 2.2.13).

Rule 3. A spare holds the markers of the term before anything else is written to it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster, draw
from bkspark.client.password import Password
from bkspark.client.recovery.displacement import DisplacedError
from bkspark.client.recovery.explaining import entries
from bkspark.client.recovery.fencing import (
    Displaced,
    MemberTail,
    RecoveredGroup,
    Unreadable,
    WriteBack,
    WrittenBack,
)
from bkspark.client.recovery.running import Runner
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol import placement
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.placement import Candidate
from bkspark.protocol.record import AddRecord


class Replication:
    """Writes kept groups back, in rounds.

    Attributes:
        ensemble: who has the groups: the last fragment's ensemble, with spares where they stand in.
        problems: bookie id -> why it has no copy.
    """

    def __init__(
        self,
        cluster: Cluster,
        metadata: LedgerMetadata,
        password: Password,
        run: Runner,
        note: Callable[[str], None],
    ) -> None:
        self.ensemble = metadata.last_fragment.ensemble
        self.problems: dict[str, str] = {}
        self._unreadable: list[str] = []
        self._metadata = metadata
        self._password = password
        self._run = run
        self._note = note
        self._known = cluster.addresses()
        self._suspects = cluster.suspects()
        lost = cluster.lost_members()
        self._candidates = [
            Candidate(Member(record.bookie_id, record.incarnation), record.domain)
            for record in cluster.bookies().values()
            if not record.is_read_only
        ]
        self._candidates = [c for c in self._candidates if c.member not in lost]

    def give(
        self,
        groups: Sequence[AddRecord],
        tails: Mapping[int, MemberTail],
        *,
        silent: Collection[int] = (),
    ) -> None:
        """Make ``groups`` durable on their write sets, on Qa members of each at least.

        Args:
            silent: indexes of members that were waited for in vain; not again.

        Raises:
            NotEnoughBookiesError: too few members and spares take them.
            DisplacedError: somebody has taken the ledger over.
        """
        owners = [i for i in range(len(self.ensemble)) if any(_belongs_on(g, i) for g in groups)]
        recovered = [self._recovered(group, tails) for group in groups]
        before, written = self.ensemble, set[int]()
        turn = [index for index in owners if index not in silent]
        names = [self.ensemble[index].bookie_id for index in owners if index in silent]
        self.problems.update({name: f"bookie {name} does not answer" for name in names})
        while True:
            written |= self._write(turn, recovered, fenced=tails)
            short = self._first_short(groups, written)
            if short is None:
                break
            if self._unreadable:
                raise self._cannot_be_read(short)
            turn = self._replaced([index for index in owners if index not in written], written)
            if not turn:
                raise self._too_few(short)
        pairs = enumerate(zip(before, self.ensemble))
        self.ensemble = tuple(new if i in written else old for i, (old, new) in pairs)
        plural = "" if len(groups) == 1 else "s"
        self._note(f"wrote back {len(groups)} group{plural} to {len(written)} bookies")

    def _write(
        self, turn: Iterable[int], groups: Sequence[RecoveredGroup], *, fenced: Collection[int]
    ) -> set[int]:
        """One round; returns the indexes that have their copies."""
        instructions = [
            self._instruction(index, groups, fenced)
            for index in turn
            if self.ensemble[index] in self._known
        ]
        written: set[int] = set()
        for instruction, result in zip(instructions, self._run(instructions), strict=True):
            if isinstance(result, Displaced):
                raise DisplacedError(result.reason)
            if isinstance(result, WrittenBack):
                written.add(instruction.ensemble_index)
            elif isinstance(result, Unreadable):
                self._unreadable.append(result.reason)
                self._note(f"not written back: {result.reason}")
            else:
                self.problems[instruction.address.bookie_id] = str(result)
                self._note(f"not written back: {result}")
        return written

    def _replaced(self, failed: Sequence[int], written: Collection[int]) -> list[int]:
        """Put a spare in the place of each member that failed, while there are any."""
        turn: list[int] = []
        for index in failed:
            spare = self._spare(written)
            if spare is None:
                break
            self._note(f"{spare.bookie_id} stands in for {self.ensemble[index].bookie_id}")
            own = self.ensemble
            self.ensemble = (*own[:index], spare, *own[index + 1 :])
            turn.append(index)
        return turn

    def _spare(self, written: Collection[int]) -> Member | None:
        used = {member.bookie_id for member in self.ensemble}
        used |= {member.bookie_id for member in self._metadata.last_fragment.ensemble}
        good = {self.ensemble[index] for index in written}
        near = [c for c in self._candidates if c.member in good]
        exclude = used | set(self.problems)
        try:
            chosen = placement.choose(
                self._candidates, 1, draw=draw, exclude=exclude, near=near, last=self._suspects
            )
        except NotEnoughBookiesError:
            return None
        return chosen[0].member

    def _first_short(
        self, groups: Sequence[AddRecord], written: Collection[int]
    ) -> AddRecord | None:
        """The first group that a write set has fewer than Qa copies of."""
        quorum = self._metadata.quorum
        for group in groups:
            if not all(quorum.is_ack_quorum(ws, written) for ws in group.write_sets()):
                return group
        return None

    def _too_few(self, group: AddRecord) -> NotEnoughBookiesError:
        what = entries(group.first_entry_id, group.last_entry_id)
        verb = "was" if group.entry_count == 1 else "were"
        return NotEnoughBookiesError(
            f"ledger {self._metadata.ledger_id} cannot be closed yet: {what} {verb} found but "
            f"cannot be written to {self._metadata.quorum.ack_quorum_size} bookies "
            f"({'; '.join(self.problems.values())})",
            hint="bring back one of these bookies, or add one (`bkspark bookie add URL`), then "
            "recover again",
        )

    def _cannot_be_read(self, group: AddRecord) -> NotEnoughBookiesError:
        what = entries(group.first_entry_id, group.last_entry_id)
        return NotEnoughBookiesError(
            f"ledger {self._metadata.ledger_id} cannot be closed yet: {what} could be read a "
            f"moment ago, and now {self._unreadable[0]}",
            hint="bring back one of these bookies, then recover again: it decides anew",
        )

    def _recovered(self, group: AddRecord, tails: Mapping[int, MemberTail]) -> RecoveredGroup:
        ensemble = self._metadata.last_fragment.ensemble
        holders = (
            self._known.get(ensemble[index])
            for index, tail in tails.items()
            if group.first_entry_id in tail.answer.records
        )
        sources: tuple[BookieAddress, ...] = tuple(holder for holder in holders if holder)
        return RecoveredGroup(group, _all_parts(group, tails), sources)

    def _instruction(
        self, index: int, groups: Sequence[RecoveredGroup], fenced: Collection[int]
    ) -> WriteBack:
        ledger, member = self._metadata, self.ensemble[index]
        is_fenced = index in fenced and member == ledger.last_fragment.ensemble[index]
        return WriteBack(
            ledger.ledger_id,
            ledger.term,
            ledger.token,
            index,
            self._known[member],
            ledger.digest,
            self._password,
            tuple(group for group in groups if _belongs_on(group.record, index)),
            must_fence=not is_fenced,
        )


def _belongs_on(group: AddRecord, index: int) -> bool:
    return any(index in write_set for write_set in group.write_sets())


def _all_parts(group: AddRecord, tails: Mapping[int, MemberTail]) -> dict[int, bytes]:
    """The group's inline rows, put together from whoever has them."""
    found: dict[int, bytes] = {}
    for tail in tails.values():
        found.update(tail.parts.get(group.first_entry_id, {}))
    return found
