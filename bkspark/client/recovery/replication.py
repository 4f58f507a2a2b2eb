"""Giving the groups that a recovery keeps to the members of their write sets.

Rule 1. Qa members of every write set must have them before the ledger is closed; what recovery
cannot write back it does not close (RB-15, H27). That holds for the records and for each entry log
by itself: a bookie with a damaged copy of one has good ones of others.

Rule 2. Where too few members take them, spares stand in for those that fail. The new ensemble is
this recovery's alone until the closing CAS: the next one, should this one die, asks the ensemble
that the writer wrote to (RB-04, RB-05).

Rule 3. A spare holds the fence before anything else is written to it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.client.recovery.displacement import DisplacedError
from bkspark.client.recovery.explaining import entries
from bkspark.client.recovery.fencing import (
    Displaced,
    RecoveredGroup,
    Unreadable,
    WriteBack,
    WrittenBack,
)
from bkspark.client.recovery.member_tail import MemberTail
from bkspark.client.recovery.notes import Notes
from bkspark.client.recovery.running import Runner
from bkspark.client.recovery.writer import Writer
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol import placement
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.placement import Candidate
from bkspark.protocol.record import AddRecord, Piece


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
        note: Notes,
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
        fenced = {index for index, tail in tails.items() if tail.is_fenced}
        before, written = self.ensemble, dict[int, Collection[Piece]]()
        turn = [index for index in owners if index not in silent]
        names = [self.ensemble[index].bookie_id for index in owners if index in silent]
        self.problems.update({name: f"bookie {name} does not answer" for name in names})
        while True:
            written |= self._write(turn, recovered, fenced=fenced)
            short = self._first_short(groups, written)
            if short is None:
                break
            if self._unreadable:
                raise self._cannot_be_read(short)
            failed = [index for index in owners if index not in written]
            failed += [index for index in owners if written.get(index)]
            turn = self._replaced(failed, written)
            if not turn:
                raise self._too_few(short)
        pairs = enumerate(zip(before, self.ensemble))
        self.ensemble = tuple(new if i in written else old for i, (old, new) in pairs)
        plural = "" if len(groups) == 1 else "s"
        self._note(f"wrote back {len(groups)} group{plural} to {len(written)} bookies")
        lacking = [before[index].bookie_id for index in owners if index not in written]
        if lacking:
            self._note.warn(f"closing it without copies on {', '.join(lacking)}")

    def _write(
        self, turn: Iterable[int], groups: Sequence[RecoveredGroup], *, fenced: Collection[int]
    ) -> dict[int, Collection[Piece]]:
        """One round; returns the indexes that have their copies, and which are damaged there."""
        instructions = [
            self._instruction(index, groups, fenced)
            for index in turn
            if self.ensemble[index] in self._known
        ]
        written: dict[int, Collection[Piece]] = {}
        for instruction, result in zip(instructions, self._run(instructions), strict=True):
            if isinstance(result, Displaced):
                raise DisplacedError(result.reason)
            if isinstance(result, WrittenBack):
                written[instruction.ensemble_index] = [piece for piece, _ in result.damaged]
                for _, reason in result.damaged:
                    self._not_written(instruction.address.bookie_id, reason)
            elif isinstance(result, Unreadable):
                self._unreadable.append(result.reason)
                self._note.warn(f"not written back: {result.reason}")
            else:
                self.problems[instruction.address.bookie_id] = str(result)
                self._note.warn(f"not written back: {result}")
        return written

    def _not_written(self, bookie_id: str, reason: str) -> None:
        self.problems[bookie_id] = f"{bookie_id}: {reason}"
        self._note(f"not written back: {bookie_id}: {reason}")

    def _replaced(self, failed: Sequence[int], written: dict[int, Collection[Piece]]) -> list[int]:
        """Put a spare in the place of each member that failed, while there are any."""
        turn: list[int] = []
        for index in failed:
            spare = self._spare(written)
            if spare is None:
                break
            self._note(f"{spare.bookie_id} stands in for {self.ensemble[index].bookie_id}")
            own = self.ensemble
            self.ensemble = (*own[:index], spare, *own[index + 1 :])
            written.pop(index, None)
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
                self._candidates,
                1,
                draw=environment.draw,
                exclude=exclude,
                near=near,
                last=self._suspects,
            )
        except NotEnoughBookiesError:
            return None
        return chosen[0].member

    def _first_short(
        self, groups: Sequence[AddRecord], written: Mapping[int, Collection[Piece]]
    ) -> AddRecord | None:
        """The first group of whose record, or of one of whose entry logs, there are too few."""
        quorum = self._metadata.quorum
        for group in groups:
            if not all(quorum.is_ack_quorum(ws, written) for ws in group.write_sets()):
                return group
            for piece in group.pieces:
                holders = [index for index, damaged in written.items() if piece not in damaged]
                if not quorum.is_ack_quorum(quorum.write_set(piece[1]), holders):
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
            Writer.of(ledger),
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
