"""When an add is acknowledged.

Rule 1. Entry ids are dense (no gaps), and only given out here.

Rule 2. An add is complete when every needed write set has Qa counted members; a member counts only
after its post-check (R1, R6).

Rule 3. Adds are acknowledged strictly in order, and only under a metadata check that began after
the last member was counted. Replacing a member voids a running check (R4, H10).

Rule 4. After a replacement only the replaced indexes are taken back, all of them before any add
completes (RB-07, RB-08).

Rule 5. Every record states its writer's LAC. If no record has stated the LAC yet, a confirmation
may, but only when no add is pending. Then no earlier record in a journal is unconfirmed, and a
reader that reads the journal from its end may stop there.

Rule 6. A record that names entry logs has no later record by which a member's lack would be
noticed. So such an add is complete only when every present and future member has the record.

Rule 7. If a record states that a member has stored a record, the present member of the place has
stored it: the post-check had passed. A successor begins with nothing (R14).

Rule 8. A member stores records in the order sent. So its missing data begins after the last record
counted for the member, acknowledged or not.

Rule 9. In a ledger that guarantees its write quorum, the writer keeps an acknowledged add until
every member of its write sets was counted. The last add fully replicated (LAFR) ends the unbroken
run of such adds: a later add proves nothing about an earlier add (H9). LAFR is never above LAC, so
taking back (rule 4) never lowers LAFR. An add of entry logs is acknowledged only when fully
replicated, since its writer ends afterwards.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, UNKNOWN, CommitTimes
from bkspark.protocol.ledger.quorum import Quorum

LAGGING_BYTES_MAX = 64 * 2**20
LAGGING_ADDS_MAX = 4096
"""Most acknowledged adds, not fully replicated, that a writer keeps."""


@dataclass(slots=True)
class PendingAdd:
    """A pending group of entries: ids ``[first_entry_id, last_entry_id]``.

    Attributes:
        write_sets: every write set needs Qa counted members.
        last_add_confirmed: the writer's LAC when the add was pushed, stated by its record.
        length_bytes: payload bytes of the ledger up to ``last_entry_id``.
        fragment_first_entry_id: first entry of the fragment when the add was pushed.
        times: when the ledger's entries up to ``last_entry_id`` were committed; informational.
        stored: each member's stored records when the add was pushed, stated by its record (rule 7).
        names_entry_logs: whether its rows lie in entry logs.
        counted: ensemble indexes whose copy is durable and passed the post-check.
        ready: indexes of members that have its entry logs, and were not sent its record yet.
    """

    first_entry_id: int
    last_entry_id: int
    write_sets: tuple[tuple[int, ...], ...]
    last_add_confirmed: int = INVALID_ENTRY_ID
    length_bytes: int = 0
    fragment_first_entry_id: int = 0
    times: CommitTimes = UNKNOWN
    stored: tuple[int, ...] = ()
    names_entry_logs: bool = False
    counted: set[int] = field(default_factory=set)
    ready: set[int] = field(default_factory=set)

    @property
    def indexes(self) -> tuple[int, ...]:
        """The members that get its record."""
        return tuple(sorted({index for write_set in self.write_sets for index in write_set}))

    def is_complete(self, quorum: Quorum) -> bool:
        return all(quorum.is_ack_quorum(write_set, self.counted) for write_set in self.write_sets)

    @property
    def is_fully_replicated(self) -> bool:
        return all(self.counted.issuperset(write_set) for write_set in self.write_sets)


@dataclass(frozen=True, slots=True)
class CheckTicket:
    """The adds covered by a metadata check: all up to ``last_entry_id``, if unchanged."""

    last_entry_id: int
    replacements: int


class Lagging:
    """Acknowledged adds that are not fully replicated (rule 9).

    Attributes:
        last_add_fully_replicated: the LAFR, -1 without any.
        adds: later adds, in entry order.
    """

    def __init__(self, last_add_fully_replicated: int, length_bytes: int) -> None:
        self.last_add_fully_replicated = last_add_fully_replicated
        self.adds: deque[PendingAdd] = deque()
        self._length_bytes = length_bytes

    @property
    def state(self) -> tuple[object, ...]:
        """All values that decide the next step."""
        adds = tuple((add.first_entry_id, frozenset(add.counted)) for add in self.adds)
        return (self.last_add_fully_replicated, adds)

    @property
    def is_full(self) -> bool:
        """Whether the writer should wait for full replication before sending more."""
        if not self.adds:
            return False
        size = self.adds[-1].length_bytes - self._length_bytes
        return size >= LAGGING_BYTES_MAX or len(self.adds) >= LAGGING_ADDS_MAX

    def advance(self) -> list[PendingAdd]:
        """Raise the LAFR as far as possible; return the adds now fully replicated."""
        done: list[PendingAdd] = []
        while self.adds and self.adds[0].is_fully_replicated:
            done.append(self.adds.popleft())
            self.last_add_fully_replicated = done[-1].last_entry_id
            self._length_bytes = done[-1].length_bytes
        return done


class PendingAdds:
    """The adds of one writer in one term, from id assignment to acknowledgement."""

    def __init__(
        self,
        quorum: Quorum,
        *,
        last_add_confirmed: int = INVALID_ENTRY_ID,
        length_bytes: int = 0,
        times: CommitTimes = UNKNOWN,
        guarantees_write_quorum: bool = False,
    ) -> None:
        self.quorum = quorum
        self.last_add_confirmed = last_add_confirmed
        self.lagging = (
            Lagging(last_add_confirmed, length_bytes) if guarantees_write_quorum else None
        )
        self.last_add_pushed = last_add_confirmed
        self.length_bytes = length_bytes
        self.times = times
        self._pushed_bytes = length_bytes
        self._said = last_add_confirmed
        self._stored = [INVALID_ENTRY_ID] * quorum.ensemble_size
        self._reached = [last_add_confirmed] * quorum.ensemble_size
        self._pending: deque[PendingAdd] = deque()
        self._replacements = 0

    @property
    def unfinished(self) -> Iterator[PendingAdd]:
        """The adds that a new member may need, in entry order."""
        return chain(self.lagging.adds if self.lagging else (), self._pending)

    def __len__(self) -> int:
        return len(self._pending)

    def __iter__(self) -> Iterator[PendingAdd]:
        """Iterate in entry order."""
        return iter(self._pending)

    @property
    def state(self) -> tuple[object, ...]:
        """All values that decide the next step."""
        adds = tuple(
            (a.first_entry_id, a.last_entry_id, frozenset(a.counted), frozenset(a.ready))
            for a in self
        )
        said = (self.last_add_confirmed, self.last_add_pushed, self._said, self.stored)
        lagging = () if self.lagging is None else self.lagging.state
        return (adds, *said, tuple(self._reached), self._replacements, lagging)

    def push(
        self,
        entry_count: int,
        *,
        byte_count: int = 0,
        times: CommitTimes = UNKNOWN,
        fragment_first_entry_id: int = 0,
        names_entry_logs: bool = False,
    ) -> PendingAdd:
        """Give the next ``entry_count`` (>= 1) ids to a new add; a zero-row add has no record.

        Args:
            byte_count: size of the payload.
            times: when the entries are committed, by the writer's clock.
            names_entry_logs: its rows lie in entry logs on rotated windows, so every write set must
                be able to prove the record (see ``record``, rule 3).
        """
        assert entry_count >= 1
        first = self.last_add_pushed + 1
        last = self.last_add_pushed + entry_count
        if names_entry_logs:
            write_sets = self.quorum.write_sets()
        else:
            distinct = min(entry_count, self.quorum.stripe_count)
            write_sets = tuple(self.quorum.write_set(first + k) for k in range(distinct))
        self._pushed_bytes += byte_count
        before = self._pending[-1].times if self._pending else self.times
        add = PendingAdd(
            *(first, last, write_sets),
            last_add_confirmed=self.last_add_confirmed,
            length_bytes=self._pushed_bytes,
            fragment_first_entry_id=fragment_first_entry_id,
            times=before.then(times, is_first=first == 0),
            stored=self.stored,
            names_entry_logs=names_entry_logs,
        )
        self._pending.append(add)
        self.last_add_pushed = last
        self._said = self.last_add_confirmed
        return add

    def count(self, index: int, first_entry_id: int, last_entry_id: int) -> None:
        """Count the record of these entries on the member at ``index``, after its post-check."""
        self._stored[index] = first_entry_id
        self._reached[index] = last_entry_id
        for add in self.unfinished:
            if add.first_entry_id == first_entry_id:
                add.counted.add(index)

    def copied(self, index: int, first_entry_id: int) -> None:
        """Note that the member at ``index`` has the entry logs of this record."""
        for add in self._pending:
            if add.first_entry_id == first_entry_id:
                add.ready.add(index)

    @property
    def stored(self) -> tuple[int, ...]:
        """By ensemble index, the first entry of the newest counted record; -1 without any."""
        return tuple(self._stored)

    def first_lacking(self, index: int) -> int:
        """Return the first entry, sent or not, that the member at ``index`` may lack."""
        entry_id = self._reached[index] + 1
        while index not in self.quorum.write_set(entry_id):
            entry_id += 1
        return entry_id

    def fragment_without(self, index: int) -> int:
        """Return where a fragment begins in which another member has the place at ``index``.

        The fragment begins after the acknowledged entries. In a ledger that guarantees its write
        quorum, the fragment begins before acknowledged entries that the old member lacks. So no
        copy needed by an acknowledgement is given up, and once the earlier entries are fully
        replicated, no copy is missing before the fragment.
        """
        lacking = (
            add.first_entry_id
            for add in (self.lagging.adds if self.lagging else ())
            if index in add.indexes and index not in add.counted
        )
        return next(lacking, self.last_add_confirmed + 1)

    @property
    def has_unsaid_lac(self) -> bool:
        """Whether a confirmation would give readers a later LAC (rule 5)."""
        return not self._pending and self.last_add_confirmed > self._said

    def confirmed(self) -> None:
        """Note that a confirmation states the LAC."""
        self._said = self.last_add_confirmed

    def ticket(self, expected: Callable[[], Collection[int]] = tuple) -> CheckTicket | None:
        """Return what a metadata check could acknowledge now; None without a complete add.

        Args:
            expected: returns the indexes of present and future members (rule 6).
        """
        last: int | None = None
        for add in self._pending:
            is_everywhere = not add.names_entry_logs or add.counted.issuperset(expected())
            if not (is_everywhere and add.is_complete(self.needed(add))):
                break
            last = add.last_entry_id
        return None if last is None else CheckTicket(last, self._replacements)

    @property
    def awaits_copies(self) -> bool:
        """Whether an add is not complete; complete adds only await the metadata check."""
        return not all(add.is_complete(self.needed(add)) for add in self._pending)

    def needed(self, add: PendingAdd) -> Quorum:
        """Return the quorum that makes the add complete (rules 2 and 9)."""
        must_be_full = self.lagging is not None and add.names_entry_logs
        return self.quorum.full if must_be_full else self.quorum

    @property
    def empty_ticket(self) -> CheckTicket:
        """The ticket of a metadata check that acknowledges no add."""
        return CheckTicket(self.last_add_confirmed, self._replacements)

    def acknowledge(self, ticket: CheckTicket) -> list[PendingAdd]:
        """Acknowledge the adds covered by ``ticket``, after its metadata check passed.

        Returns the adds now acknowledged, in entry order; none if a member was replaced since the
        ticket.
        """
        done: list[PendingAdd] = []
        if ticket.replacements != self._replacements:
            return done
        while self._pending and self._pending[0].last_entry_id <= ticket.last_entry_id:
            done.append(self._pending.popleft())
            self.last_add_confirmed = done[-1].last_entry_id
            self.length_bytes = done[-1].length_bytes
            self.times = done[-1].times
        if self.lagging is not None:
            self.lagging.adds.extend(done)
        return done

    def replace_members(self, indexes: Collection[int]) -> None:
        """Take back the counts of the members at ``indexes``, which have left their places.

        No acknowledgement depends on these counts (see ``fragment_without``).
        """
        self._replacements += 1
        for index in indexes:
            self._stored[index] = INVALID_ENTRY_ID
            self._reached[index] = self.fragment_without(index) - 1
        for add in self._pending:
            add.counted.difference_update(indexes)
            add.ready.difference_update(indexes)
