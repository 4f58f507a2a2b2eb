"""One writer of one ledger in one term: what it does next, whatever happens.

Events go in, instructions come out; a runner carries these out and brings what came of them. Here
is decided who acknowledges, what replaces whom, and in which order. It does no I/O, knows no clock
and no chance, and the same events have the same instructions: so whoever brings an event may run
it, one at a time. When adds are complete is in ``adding``.

Rule 1. A member counts when its copy is durable and passed the post-check, which the runner reports
as one (R1, R6). What a bookie reports that is no member any more counts for nothing (RB-07).

Rule 2. An acknowledgement comes straight behind a metadata check (R4). One check at a time is under
way. That somebody else changed the metadata is no takeover, as long as the term, the writer and the
ensemble are the same (RB-32); then it is checked once more.

Rule 3. A member that failed is replaced, one behind the other: a bookie is enlisted, the metadata
names it by compare-and-set, it joins, and gets all that is not acknowledged (RB-06, RB-43, H9).
Nothing is acknowledged while a compare-and-set is under way: its fragment begins behind the last
acknowledgement. While a bookie is only looked for, the others go on.

Rule 4. Who must be replaced, and when that may be delayed, is in ``ensemble_change``. Where nobody
is found the writer goes on as with delay, and looks again when the next member fails.

Rule 5. A fence on one member, a ledger that is not this writer's any more, an add that can reach no
ack quorum, or one that took too long ends the writer. Behind its end nothing is acknowledged; what
was on its way has an unknown outcome (RB-35).
"""

from collections.abc import Collection
from dataclasses import dataclass

from bkspark.errors import (
    BookKeeperError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.adding import CheckTicket, PendingAdds
from bkspark.protocol.ledger.ensemble_change import members_to_replace
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member
from bkspark.protocol.ledger.writing_steps import (
    Acknowledge,
    Append,
    Checked,
    CheckMetadata,
    Confirm,
    End,
    Enlist,
    Enlisted,
    Event,
    Failed,
    Idle,
    Instruction,
    Join,
    Release,
    Stored,
    Submitted,
    Swap,
    Swapped,
    TimedOut,
    WarnOfGaps,
)

ADDS_IN_FLIGHT_MAX = 4

CHANGES_MAX = 100
"""A writer whose bookies fail this often has another problem; BookKeeper has the same cap."""

_HINT = "recovery decides about entries without an ack; open the ledger to see"


@dataclass(frozen=True, slots=True)
class _Change:
    """An ensemble change under way; without a member a bookie is still looked for."""

    ensemble_index: int
    member: Member | None = None


class LedgerWriter:
    """The machine; ``copy.deepcopy`` of it goes its own way, and ``state`` says where it is.

    Args:
        metadata: of a ledger that is OPEN for this writer.
        last_add_confirmed: the last entry of the writer before, which is acknowledged.
        length_bytes: up to there.

    Attributes:
        failed: indexes of members that failed and were not replaced.
        failures: every bookie that failed, with the reason.
        is_stopping: whether nothing more is submitted.
        has_ended: whether it does nothing any more.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        *,
        is_change_delayed: bool = False,
        last_add_confirmed: int = INVALID_ENTRY_ID,
        length_bytes: int = 0,
    ) -> None:
        self.metadata = metadata
        self.pending = PendingAdds(
            metadata.quorum, last_add_confirmed=last_add_confirmed, length_bytes=length_bytes
        )
        self.failed: frozenset[int] = frozenset()
        self.failures: dict[str, str] = {}
        self.has_ended = False
        self._is_change_delayed = is_change_delayed
        self.is_stopping = False
        self._checking: CheckTicket | None = None
        self._change: _Change | None = None
        self._vacant: tuple[int, ...] = ()
        self._changes = 0

    @property
    def state(self) -> tuple[object, ...]:
        """All that decides what it does; two with one state do the same."""
        mine = self.metadata
        return (
            *(mine.ledger_id, mine.term, mine.token, mine.last_fragment),
            *(self.pending.state, self.failed, tuple(self.failures.items())),
            *(self.has_ended, self.is_stopping, self._checking),
            *(self._change, self._vacant, self._changes),
        )

    @property
    def is_changing(self) -> bool:
        """Whether somebody is to take the place of another."""
        return self._change is not None or bool(self._vacant)

    @property
    def may_submit(self) -> bool:
        """Whether another record may be sent now."""
        may_grow = len(self.pending) < ADDS_IN_FLIGHT_MAX
        return may_grow and not self.is_stopping and not self.has_ended

    def receive(self, event: Event) -> tuple[Instruction, ...]:
        """What to do now, in this order."""
        if self.has_ended:
            return ()
        found: list[Instruction] = []
        try:
            found += self._react(event)
            found += self._check()
            if self.failed:
                found += self._look_for_a_bookie()
                self._require_hope()
        except BookKeeperError as error:
            self.has_ended = True
            return (*found, End(error))
        if self.is_stopping and not self.pending:
            self.has_ended = True
            found.append(End(None))
        return tuple(found)

    def _react(self, event: Event) -> list[Instruction]:
        match event:
            case Stored():
                self._count(event)
            case Submitted():
                return self._send(event)
            case Failed():
                return self._release(event)
            case Enlisted():
                return self._swap(event)
            case Swapped():
                return self._join(event)
            case Checked():
                return self._acknowledge(event)
            case TimedOut():
                self._time_out(event)
            case Idle():
                return self._confirm()
            case _:  # Stop
                if event.error is not None:
                    raise event.error
                self.is_stopping = True
        return []

    # --- adds ------------------------------------------------------------------------------------

    def _send(self, event: Submitted) -> list[Instruction]:
        add = self.pending.push(
            event.entry_count,
            byte_count=event.byte_count,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            names_entry_logs=event.names_entry_logs,
        )
        return [Append(self._live(add.indexes), add)]

    def _count(self, event: Stored) -> None:
        """Rule 1."""
        if self._is_member(event.ensemble_index, event.bookie_id):
            self.pending.count(event.ensemble_index, event.first_entry_id)

    def _check(self) -> list[Instruction]:
        """Rule 2: begin a check that could acknowledge something; not during a change."""
        if self._checking is not None or self._is_swapping:
            return []
        ticket = self.pending.ticket()
        if ticket is None:
            return []
        self._checking = ticket
        return [CheckMetadata(ticket)]

    def _acknowledge(self, event: Checked) -> list[Instruction]:
        """Rule 2: one that was under way when the ensemble changed tells nothing (H10)."""
        if event.ticket != self._checking:
            return []
        if event.metadata is not None:
            self._require_mine(event.metadata)
            self.metadata = event.metadata
            return [CheckMetadata(event.ticket)]
        self._checking = None
        done = self.pending.acknowledge(event.ticket)
        return [Acknowledge(tuple(done))] if done else []

    def _require_mine(self, newest: LedgerMetadata) -> None:
        mine = self.metadata
        is_mine = newest.is_writable_by(term=mine.term, token=mine.token)
        if not is_mine or newest.last_fragment != mine.last_fragment:
            raise LedgerFencedError(
                f"ledger {mine.ledger_id} was taken over by another client "
                f"({newest.state.value}, term {newest.term})",
                hint=_HINT,
            )

    def _confirm(self) -> list[Instruction]:
        if not self.pending.has_unsaid_lac:
            return []
        self.pending.confirmed()
        return [Confirm(self._live(range(self.metadata.quorum.ensemble_size)))]

    def _time_out(self, event: TimedOut) -> None:
        if any(add.first_entry_id == event.first_entry_id for add in self.pending):
            raise OutcomeUnknownError(
                f"ledger {self.metadata.ledger_id}: entry {event.first_entry_id} was not "
                f"acknowledged within {round(event.seconds, 2):g} s",
                hint="recovery decides about it; open the ledger to see",
            )

    # --- members ---------------------------------------------------------------------------------

    def _is_member(self, index: int, bookie_id: str) -> bool:
        ensemble = self.metadata.last_fragment.ensemble
        return index not in self.failed and ensemble[index].bookie_id == bookie_id

    def _live(self, indexes: Collection[int]) -> tuple[int, ...]:
        return tuple(index for index in indexes if index not in self.failed)

    @property
    def _is_swapping(self) -> bool:
        return self._change is not None and self._change.member is not None

    def _release(self, event: Failed) -> list[Instruction]:
        """Rules 4 and 5."""
        if isinstance(event.error, LedgerFencedError):
            raise event.error
        index = event.ensemble_index
        if not self._is_member(index, event.bookie_id):
            return []
        reason = str(event.error)
        self.failed |= {index}
        self.failures[event.bookie_id] = reason
        under_way = self._change.ensemble_index if self._change else None
        wanted = members_to_replace(
            self.metadata.quorum, self.failed, is_delayed=self._is_change_delayed
        )
        self._vacant = tuple(sorted({*self._vacant, *wanted} - {under_way}))
        released = Release(index, self.metadata.last_fragment.ensemble[index], reason)
        return [released, *self._gaps()]

    def _look_for_a_bookie(self) -> list[Instruction]:
        """Rule 3, for the first of the places that must be filled."""
        if not self._vacant or self._change is not None:
            return []
        index, *others = self._vacant
        if self._changes >= CHANGES_MAX:
            self._vacant = ()
            return self._gaps()
        self._vacant = tuple(others)
        self._change = _Change(index)
        ensemble = self.metadata.last_fragment.ensemble
        staying = tuple(ensemble[i] for i in self._live(range(len(ensemble))))
        exclude = {member.bookie_id for member in ensemble} | self.failures.keys()
        return [Enlist(index, staying, frozenset(exclude))]

    def _swap(self, event: Enlisted) -> list[Instruction]:
        """Rule 3: from now on nothing is acknowledged, and the fragment begins behind what is."""
        assert self._change is not None
        self.failures.update(event.passed_over)
        if event.member is None:
            self._change, self._vacant = None, ()
            return self._gaps()
        index = self._change.ensemble_index
        self._change = _Change(index, event.member)
        self._checking = None
        self._changes += 1
        mine, ensemble = self.metadata, self.metadata.last_fragment.ensemble
        first = self.pending.last_add_confirmed + 1
        changed = (*ensemble[:index], event.member, *ensemble[index + 1 :])
        return [Swap(mine.ledger_id, mine.term, mine.token, first, changed)]

    def _join(self, event: Swapped) -> list[Instruction]:
        """Rule 3: first what its predecessor had counted is taken back (RB-07, RB-08)."""
        assert self._change is not None
        assert self._change.member is not None
        index, first = self._change.ensemble_index, self.pending.last_add_confirmed + 1
        old = self.metadata.last_fragment.ensemble[index].bookie_id
        self.metadata = event.metadata
        self.failed -= {index}
        self.pending.replace_members([index])
        join = Join(index, self._change.member, first, (old, self.failures[old]))
        self._change = None
        again = [Append((index,), add) for add in self.pending if index in add.indexes]
        return [join, *again, *self._gaps()]

    def _gaps(self) -> list[Instruction]:
        """What is lacking, when nobody is looked for any more."""
        if not self.failed or self.is_changing:
            return []
        ensemble = self.metadata.last_fragment.ensemble
        names = [ensemble[index].bookie_id for index in sorted(self.failed)]
        first = self.pending.last_add_confirmed + 1
        return [WarnOfGaps(first, tuple((name, self.failures[name]) for name in names))]

    def _require_hope(self) -> None:
        """Rule 5: fail at once what can no longer be acknowledged, unless somebody may step in."""
        if self._change is not None:
            return
        quorum = self.metadata.quorum
        live = self._live(range(quorum.ensemble_size))
        for add in self.pending:
            reachable = add.counted.union(live)
            if not all(quorum.is_ack_quorum(ws, reachable) for ws in add.write_sets):
                reasons = "; ".join(self.failures.values())
                raise NotEnoughBookiesError(
                    f"ledger {self.metadata.ledger_id}: entry {add.first_entry_id} cannot reach "
                    f"{quorum.ack_quorum_size} bookies ({reasons})",
                    hint="recovery decides about it; add bookies and open the ledger",
                )
