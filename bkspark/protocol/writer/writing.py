"""The writer of one ledger in one term: decides its next step after any event.

Events go in, instructions come out; a runner carries out the instructions and delivers the results
as events. The machine decides acknowledgements, replacements and their order, without I/O, clock or
randomness; the same events give the same instructions. Any thread may deliver events; calls must
not overlap. ``adding`` decides when adds are complete.

Rule 1. A member counts when its copy is durable and passed the post-check, reported by the runner
as one event (R1, R6). Reports of a bookie that is no longer a member do not count (RB-07).

Rule 2. An acknowledgement directly follows a metadata check (R4). Only one check runs at a time. If
another client changed the metadata, but term, writer and ensemble are the same, the change is no
takeover (RB-32); the writer checks again.

Rule 3. Failed members are replaced one after the other: the writer enlists a bookie, the metadata
names it by compare-and-set, the bookie joins, and gets all unacknowledged adds (RB-06, RB-43, H9).
During a compare-and-set the writer acknowledges no add: the fragment begins after the last
acknowledgement. During the search for a bookie the other members continue.

Rule 4. ``ensemble_change`` decides replacements and their delay. If no bookie is found, the writer
continues as with delay, and looks again when the next member fails.

Rule 5. The writer ends on a fence on any member, on losing the ledger, on an add that can reach no
ack quorum, on an add that took too long, or if its own process cannot ask a member: no other member
would do. After the end no add is acknowledged; pending adds have
an unknown outcome (RB-35).

Rule 6. In a ledger that guarantees its write quorum, a member is replaced only after all entries
before the new fragment are fully replicated. The writer ends without an error only when all entries
are. Too many other entries slow the writer down, or end it if no bookie is left for them. Before
its end the writer looks for such a bookie once more.

Rule 7. For an add that names entry logs, each member that stays first gets the entry logs of its
place, from any bookie. When all members have theirs, each gets the record (R1, R10, H13). A member
found without a good copy has failed, and its counts are taken back.

Rule 8. A requested fragment begins as ``fragment_roll`` says; once its bookies are chosen, new adds
wait for the fragment.

Rule 9. If the ledger continues in later terms, the writer at its end leaves the ledger open and
states its LAC.
"""

from collections.abc import Collection, Mapping
from itertools import chain

from bkspark.errors import (
    BookKeeperError,
    LedgerFencedError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    UNKNOWN,
    CommitTimes,
    LedgerMetadata,
    Member,
)
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import CheckTicket, PendingAdd, PendingAdds
from bkspark.protocol.writer.ensemble_change import EnsembleChanges, no_bookie, nobody_takes_them
from bkspark.protocol.writer.steps import (
    Instruction,
    Join,
    Muster,
    NotRolled,
    RolledOver,
    Swap,
    WarnOfGaps,
)

# --- gaps ----------------------------------------------------------------------------------------
# Missing copies of sent entries, if no bookie will make them.


def closed_gap(pending: PendingAdds, join: Join) -> list[Instruction]:
    """Warn of entries acknowledged without the replaced member; its successor lacks them too."""
    first, last = pending.first_lacking(join.ensemble_index), join.first_entry_id - 1
    return [WarnOfGaps(*join.replaced, first, last)] if first <= last else []


def open_gaps(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> list[Instruction]:
    """Warn of missing entries when the writer looks for no more bookies."""
    if changes.is_under_way:
        return []
    found: list[Instruction] = []
    for index in sorted(changes.failed):
        name, first = ledger.last_fragment.ensemble[index].bookie_id, pending.first_lacking(index)
        found.append(WarnOfGaps(name, changes.failures[name], first))
    return found


def require_ack_quorums(
    ledger: LedgerMetadata, pending: PendingAdds, changes: EnsembleChanges
) -> None:
    """Check that the remaining members can acknowledge all pending adds.

    Raises:
        NotEnoughBookiesError: an add cannot reach its quorum.
    """
    live = changes.all_live
    for add in pending:
        reachable, needed = add.counted.union(live), pending.needed(add)
        if not all(needed.is_ack_quorum(ws, reachable) for ws in add.write_sets):
            raise _out_of_reach(ledger, add, needed.ack_quorum_size, changes)


def _out_of_reach(
    ledger: LedgerMetadata, add: PendingAdd, count: int, changes: EnsembleChanges
) -> NotEnoughBookiesError:
    reasons = "; ".join(changes.failures.values())
    return NotEnoughBookiesError(
        f"ledger {ledger.ledger_id}: entry {add.first_entry_id} cannot reach {count} bookies "
        f"({reasons})",
        hint="add bookies, then open the ledger: a recovery decides whether it has the entry",
    )


# --- fragment roll -------------------------------------------------------------------------------
# Fragment rolls: a writer begins a fragment on request, not because a bookie failed.
#
# Rule 1. While the writer continues, bookies are chosen for all places, as for a new ledger. A
# member that stays keeps its place. A new member has the writer's permission and journal before the
# metadata names it (R18), and no bookie is asked for them twice (R19).
#
# Rule 2. After that the writer sends no entry until all sent entries are acknowledged, and fully
# replicated if the ledger guarantees full replication. So the fragment begins at the first unsent
# entry, after the LAC (TLA+: at LAC+1). No entry changes its bookies, no copy needed by an
# acknowledgement is given up, and requests in flight to leaving members stay in flight.
#
# Rule 3. One compare-and-set names the fragment, while no metadata check is running (R4). Until
# then the writer sends no entry and fills no other place.
#
# Rule 4. A member that fails before the compare-and-set ends the roll, and is replaced as usual in
# the fragment in use. The chosen bookies keep what they took, and may be chosen again. While a roll
# looks for bookies, no replacement looks for any: no bookie is asked by both.
#
# Rule 5. A fragment without sent entries already counts as new. A roll that is not stored when the
# writer stops is not begun.
#
# Rule 6. If the write quorum is guaranteed, no roll begins while a failed member is not replaced:
# the roll would wait for its copies in vain.


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


# --- writing -------------------------------------------------------------------------------------


ADDS_IN_FLIGHT_MAX = 4

_HINT = "open the ledger: a recovery decides about unacknowledged entries"


class LedgerWriter:
    """The state machine; ``copy.deepcopy`` copies it, and ``state`` compares copies.

    Args:
        metadata: metadata of a ledger that is OPEN for this writer.
        last_add_confirmed: the previous writer's last entry, which is acknowledged.
        length_bytes: payload bytes up to there.
        times: when the ledger's entries up to there were committed (``standing``).
        unjoined: ids of bookies that must not be asked to join (R19).

    Attributes:
        changes: failed members, and the change in progress.
        roll: progress of a requested fragment.
        is_stopping: whether no more entries are submitted.
        has_ended: whether the machine ignores all further events.
    """

    def __init__(
        self,
        metadata: LedgerMetadata,
        *,
        is_change_delayed: bool = False,
        last_add_confirmed: int = INVALID_ENTRY_ID,
        length_bytes: int = 0,
        times: CommitTimes = UNKNOWN,
        unjoined: Collection[str] = (),
    ) -> None:
        self.metadata = metadata
        self.pending = PendingAdds(
            metadata.quorum,
            last_add_confirmed=last_add_confirmed,
            length_bytes=length_bytes,
            times=times,
            guarantees_write_quorum=metadata.settings.guarantees_write_quorum,
        )
        is_delayed = is_change_delayed and not metadata.settings.guarantees_write_quorum
        self.changes = EnsembleChanges(metadata.quorum, is_delayed=is_delayed, unjoined=unjoined)
        self.roll = FragmentRoll()
        self.has_ended = False
        self.is_stopping = False
        self._checking: CheckTicket | None = None
        self._has_tried_again = False

    @property
    def state(self) -> tuple[object, ...]:
        """All values that decide the next step; machines with equal states act alike."""
        mine = self.metadata
        return (
            *(mine.ledger_id, mine.term, mine.token, mine.last_fragment),
            *(self.pending.state, self.changes.state, self.roll.state),
            *(self.has_ended, self.is_stopping, self._checking, self._has_tried_again),
        )

    @property
    def ensemble(self) -> tuple[Member, ...]:
        """The members that get entries now."""
        return self.metadata.last_fragment.ensemble

    @property
    def may_submit(self) -> bool:
        """Whether another record may be sent now."""
        lagging = self.pending.lagging
        may_grow = len(self.pending) < ADDS_IN_FLIGHT_MAX and not (lagging and lagging.is_full)
        return may_grow and not (self.roll.holds or self.is_stopping or self.has_ended)

    def closed(
        self, newest: LedgerMetadata | None, transactions: Mapping[str, int] | None = None
    ) -> LedgerMetadata:
        """Return the newest metadata, CLOSED after the last acknowledged entry.

        Raises:
            LedgerFencedError, LedgerClosedError: another client has taken the ledger over.
            NotEnoughBookiesError: acknowledged entries lack copies guaranteed by the ledger.
        """
        return self._there(newest).closed(
            last_entry_id=self.pending.last_add_confirmed,
            length_bytes=self.pending.length_bytes,
            transactions=transactions,
            times=self.pending.times,
            term=self.metadata.term,
            token=self.metadata.token,
        )

    def _there(self, newest: LedgerMetadata | None) -> LedgerMetadata:
        if newest is None:
            raise LedgerFencedError(f"ledger {self.metadata.ledger_id} does not exist any more")
        if self.pending.lagging is not None and self.pending.lagging.adds:
            raise no_bookie(self.metadata, self.pending, self.changes)
        return newest

    def receive(self, event: steps.Event) -> tuple[steps.Instruction, ...]:
        """Return the instructions for ``event``, in order."""
        if self.has_ended:
            return ()
        found: list[steps.Instruction] = []
        try:
            found += self._react(event)
            found += self._forget()
            # Only these two change members; on most turns all bookies are well.
            if self.changes.is_somebody_missed or self.roll.is_asked:
                self._try_again()
                found += self._look_for_a_bookie()
                found += self._swap()
                if self._checking is None:
                    found += self.roll.next(self.metadata, self.pending, self.changes)
                self._require_hope()
            found += self._send_ready()
            found += self._check()
        except BookKeeperError as error:
            self.has_ended = True
            return (*found, steps.EndWriter(error))
        if self.is_stopping and not any(self.pending.unfinished):
            self.has_ended = True
            found += [*(self._confirm() if self.metadata.goes_on else ()), steps.EndWriter(None)]
        return tuple(found)

    def _react(self, event: steps.Event) -> list[steps.Instruction]:
        match event:
            case steps.Stored():
                self._count(event)
            case steps.Submitted():
                return self._send(event)
            case steps.Gathered():
                self.changes.begin_anew(event.ceding)
            case steps.Copied():
                return self._copied(event)
            case steps.Failed():
                return self._fail(event)
            case steps.Enlisted():
                return self._enlisted(event)
            case steps.Swapped():
                return self._roll_over(event) if self.roll.is_named else self._join(event)
            case steps.Roll():
                return self.roll.ask(is_stopping=self.is_stopping)
            case steps.Mustered():
                self.changes.pass_over(dict(event.passed_over))
                return self.roll.found(event.ensemble, event.reason)
            case steps.Checked():
                return self._acknowledge(event)
            case steps.Asked():
                self._checking = self.pending.empty_ticket
                return [steps.CheckMetadata(self._checking)]
            case steps.TimedOut():
                self._time_out(event)
            case steps.Idle():
                return self._confirm()
            case _:  # Stop
                if event.error is not None:
                    raise event.error
                self.is_stopping = True
                return self.roll.give_up(ENDS)
        return []

    # --- adds ------------------------------------------------------------------------------------

    def _send(self, event: steps.Submitted) -> list[steps.Instruction]:
        add = self.pending.push(
            event.entry_count,
            byte_count=event.byte_count,
            times=event.times,
            fragment_first_entry_id=self.metadata.last_fragment.first_entry_id,
            names_entry_logs=event.names_entry_logs,
        )
        return self._sent(self.changes.live(add.indexes), add)

    def _sent(self, indexes: tuple[int, ...], add: PendingAdd) -> list[steps.Instruction]:
        """Send entry logs first, or the record (rule 7)."""
        if add.names_entry_logs:
            return [steps.Copy(index, self.ensemble[index], add) for index in indexes]
        return [steps.Append(indexes, add)]

    def _send_ready(self) -> list[steps.Instruction]:
        """Send records whose entry logs are on all members (rule 7)."""
        found: list[steps.Instruction] = []
        for add in self.pending:
            if not add.ready:
                continue
            is_ready = add.ready.union(add.counted).issuperset(self.changes.all_live)
            if is_ready and not self.changes.is_under_way:
                found.append(steps.Append(tuple(sorted(add.ready)), add))
                add.ready.clear()
        return found

    def _copied(self, event: steps.Copied) -> list[steps.Instruction]:
        """Note copied entry logs, and release members with bad copies (rule 7)."""
        bad, released = dict(event.bad), list[steps.Instruction]()
        self.changes.exclude(bad)
        if self._is_member(event.ensemble_index, event.bookie_id):
            self.pending.copied(event.ensemble_index, event.first_entry_id)
        for index, member in enumerate(self.ensemble):
            if member.bookie_id in bad:
                released += self._release(index, member.bookie_id, bad[member.bookie_id])
        return released

    def _count(self, event: steps.Stored) -> None:
        """Count a present member's copy (rule 1)."""
        if self._is_member(event.ensemble_index, event.bookie_id):
            self.pending.count(event.ensemble_index, event.first_entry_id, event.last_entry_id)

    def _check(self) -> list[steps.Instruction]:
        """Begin a check that could acknowledge an add, but not during a swap (rule 2)."""
        if self._checking is not None or self.changes.is_swapping:
            return []
        ticket = self.pending.ticket(self.changes.expected)
        if ticket is None:
            return []
        self._checking = ticket
        return [steps.CheckMetadata(ticket)]

    def _acknowledge(self, event: steps.Checked) -> list[steps.Instruction]:
        """Acknowledge after a check (rule 2), unless the members changed during the check (H10)."""
        if event.ticket != self._checking:
            return []
        if event.metadata is not None:
            self._require_mine(event.metadata)
            self.metadata = event.metadata
            return [steps.CheckMetadata(event.ticket)]
        self._checking = None
        done = self.pending.acknowledge(event.ticket)
        return [steps.Acknowledge(tuple(done))] if done else []

    def _require_mine(self, newest: LedgerMetadata) -> None:
        mine = self.metadata
        is_mine = newest.is_writable_by(term=mine.term, token=mine.token)
        if not is_mine or newest.last_fragment != mine.last_fragment:
            raise newest.fenced(mine.term, hint=_HINT)

    def _confirm(self) -> list[steps.Instruction]:
        if not self.pending.has_unsaid_lac:
            return []
        self.pending.confirmed()
        return [steps.Confirm(self.changes.all_live)]

    def _time_out(self, event: steps.TimedOut) -> None:
        if any(add.first_entry_id == event.first_entry_id for add in self.pending):
            raise OutcomeUnknownError(
                f"ledger {self.metadata.ledger_id}: entry {event.first_entry_id} was not "
                f"acknowledged within {round(event.seconds, 2):g} s",
                hint="open the ledger: a recovery decides whether it has the entry",
            )

    # --- members ---------------------------------------------------------------------------------

    def _is_member(self, index: int, bookie_id: str) -> bool:
        return index not in self.changes.failed and self.ensemble[index].bookie_id == bookie_id

    def _fail(self, event: steps.Failed) -> list[steps.Instruction]:
        """End after a fence or without a question, else release the member (rules 4 and 5)."""
        if isinstance(event.error, LedgerFencedError):
            raise event.error
        if isinstance(event.error, NothingSentError):  # but other members were sent entries
            raise event.error.in_doubt(f"ledger {self.metadata.ledger_id}")
        return self._release(event.ensemble_index, event.bookie_id, str(event.error))

    def _release(self, index: int, bookie_id: str, reason: str) -> list[steps.Instruction]:
        """Release a failed member (rules 4 and 7)."""
        if not self._is_member(index, bookie_id):
            return []
        self.changes.fail(index, bookie_id, reason)
        if any(add.names_entry_logs for add in self.pending):
            self.pending.replace_members([index])
            self._checking = None
        ended = self.roll.member_failed(reason)
        return [steps.Release(index, self.ensemble[index], reason), *ended, *self._gaps()]

    def _look_for_a_bookie(self) -> list[steps.Instruction]:
        """Look for a bookie for the first open place (rule 3)."""
        if not self.changes.is_under_way or self.changes.is_looking or self.roll.is_busy:
            return []
        enlist = self.changes.look(self.ensemble)
        return self._gaps() if enlist is None else [enlist]

    def _enlisted(self, event: steps.Enlisted) -> list[steps.Instruction]:
        """Note the result of the search (rule 3)."""
        self.changes.found(event.member, dict(event.passed_over))
        return [] if event.member is not None else self._gaps()

    def _swap(self) -> list[steps.Instruction]:
        """Name the new member in the metadata; acknowledge no add from now on (rules 3 and 6)."""
        if not self.changes.is_held:
            return []
        first = self.pending.last_add_confirmed + 1
        if (lagging := self.pending.lagging) is not None:
            index = self.changes.lacking_most(self.pending.fragment_without)
            first = self.pending.fragment_without(index)
            if lagging.last_add_fully_replicated < first - 1:
                return []
        self._checking = None
        mine, lac = self.metadata, self.pending.last_add_confirmed
        changed = self.changes.name(self.ensemble)
        return [steps.Swap(mine.ledger_id, mine.term, mine.token, first, changed, lac)]

    def _join(self, event: steps.Swapped) -> list[steps.Instruction]:
        """Take back the predecessor's counts, then send to the successor (rule 3; RB-07, RB-08)."""
        join = self.changes.join(self.ensemble, event.metadata.last_fragment.first_entry_id)
        self.metadata, self._has_tried_again = event.metadata, False
        index = join.ensemble_index
        gap = closed_gap(self.pending, join)
        self.pending.replace_members([index])
        again = [
            self._sent((index,), add)
            for add in self.pending.unfinished
            if index in add.indexes and add.first_entry_id >= join.first_entry_id
        ]
        return [join, *gap, *chain.from_iterable(again), *self._gaps()]

    def _roll_over(self, event: steps.Swapped) -> list[steps.Instruction]:
        """Begin the new fragment (rule 8); new members begin with nothing."""
        before, self.metadata, self._has_tried_again = self.ensemble, event.metadata, False
        changed = [i for i, member in enumerate(before) if member != self.ensemble[i]]
        replaced = self.changes.rolled_over(before, self.metadata.last_fragment)
        gaps = [closed_gap(self.pending, join) for join in replaced]
        self.pending.replace_members(changed)
        return [self.roll.over(changed), *chain.from_iterable(gaps)]

    def _gaps(self) -> list[steps.Instruction]:
        return open_gaps(self.metadata, self.pending, self.changes)

    def _require_hope(self) -> None:
        """Fail at once if an add can no longer be acknowledged (rule 5)."""
        if self.changes.is_looking or not self.changes.failed:
            return
        if self._owes_copies:
            raise no_bookie(self.metadata, self.pending, self.changes)
        if not (self.changes.is_under_way and self.roll.is_busy):
            require_ack_quorums(self.metadata, self.pending, self.changes)

    def _forget(self) -> list[steps.Instruction]:
        done = self.pending.lagging.advance() if self.pending.lagging else []
        return [steps.Forget(tuple(done))] if done else []

    def _try_again(self) -> None:
        """Look for bookies once more; again only after a member has joined (rule 6)."""
        if not self._has_tried_again and self._owes_copies:
            self._has_tried_again = True
            self.changes.try_again()

    @property
    def _owes_copies(self) -> bool:
        return nobody_takes_them(self.pending, self.changes, is_stopping=self.is_stopping)
