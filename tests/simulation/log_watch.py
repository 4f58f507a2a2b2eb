"""What may become of a log's record: every version is compared with the one before it.

Rule: nothing here uses the decisions of the client. It is known which ledgers were ever listed,
placed and dropped, who made them, and what the metadata store says of them now. The codes are those
of the list of bugs that other systems had with logs of ledgers.

I8     places are dense and for ever; the list only grows at its end and shrinks at its beginning
RB-20  nothing goes behind a ledger that is not CLOSED, but by its own writer, and only one
RB-20b a list that somebody else has changed is not written over; what was dropped never joins
RB-21  an empty ledger takes no place
I10    a log that is deleted has no writer left, and one made anew is another generation
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bkspark.format import log_record
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerState
from bkspark.protocol.log.record import LogRecord
from tests.simulation.known import Ledger
from tests.simulation.merged_places import is_joinable, merge_fault
from tests.simulation.scheduler import Violation
from tests.unpaged import StoredPages, unpaged

Place = tuple[int, int, int]
"""(ledger id, first offset, entries) of a closed ledger."""


@dataclass
class History:
    """One generation of a log.

    Attributes:
        record: its newest version.
        tail: the last that it had before it was deleted.
        placed: all places there ever were, in order, those that are truncated as well.
        begin: how many of them are truncated.
        merged: places that took those of others, which the oracle has yet to look at.
        replaced: places that were there before a compaction, by ledger.
    """

    record: LogRecord
    tail: tuple[int, ...] = ()
    placed: list[Place] = field(default_factory=list)
    begin: int = 0
    merged: list[Place] = field(default_factory=list)
    replaced: dict[int, Place] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset behind the closed ledgers."""
        return self.placed[-1][1] + self.placed[-1][2] if self.placed else 0


class LogWatch:
    """Looks at every version of every log's record.

    Args:
        ledgers: what is known of them, kept up to date by somebody else.

    Attributes:
        histories: of the logs by name.
        past: (name, generation) -> what became of earlier ones.
        makers: who has created each ledger.
        owners: who had each ledger OPEN in a term of its own last.
        writers: who may put another one behind a ledger: its owner, and those before it until the
            owner has stored the list, which says that it goes on in the ledger.
    """

    def __init__(self, store: MetadataStore, ledgers: Mapping[int, Ledger]) -> None:
        self.histories: dict[str, History] = {}
        self.past: dict[tuple[str, int], History] = {}
        self.makers: dict[int, str] = {}
        self.owners: dict[int, str] = {}
        self.writers: dict[int, set[str]] = {}
        self._store = store
        self._ledgers = ledgers
        self._dropped: set[int] = set()
        self._listed: dict[int, int] = {}

    def made(self, process: str, ledger_id: int) -> None:
        """``process`` has created a ledger."""
        self.makers[ledger_id] = self.owners[ledger_id] = process
        self.writers[ledger_id] = {process}

    def taken(self, process: str, ledger_id: int) -> None:
        """``process`` has a ledger OPEN in a term of its own."""
        self.owners[ledger_id] = process
        self.writers[ledger_id].add(process)

    def see(self, process: str, key: str) -> None:
        """Look at the version of the record at ``key`` that ``process`` has just stored."""
        stored = self._store.get(key)
        if stored is None:
            return
        name = key.removeprefix("logs/")
        record = self._whole(log_record.decode(name, stored.value))
        history = self.histories.get(name)
        before = record if history is None else history.record
        if history is None or record.generation != history.record.generation:
            self._require_next(history, record)
            if history is not None:
                self.past[name, history.record.generation] = history
            history = self.histories[name] = History(record)
        added = self._require_places(history, record)
        self._require_tail(process, history, record, added)
        self._require_kept(before, record)
        self._require_never_dropped(record)
        for ledger_id in record.tail[:1]:
            if self.owners.get(ledger_id) == process:
                self.writers[ledger_id] = {process}
        history.record = record
        history.tail = history.tail if record.is_tombstone else record.tail
        for ledger_id in record.listed_ids:
            self._listed.setdefault(ledger_id, record.generation)
        self._dropped |= set(record.dropped.ids)

    def _whole(self, record: LogRecord) -> LogRecord:
        """With all that it has on pages, which must be there by now, as they will be for ever."""
        try:
            pages = StoredPages(self._store, record.name)
            return unpaged(replace(record, listed=replace(record.listed, source=pages)))
        except AssertionError as error:
            raise Violation(f"log {record.name} names a page, and {error} (I8)") from None

    def require_hidden(self, ledger_id: int) -> None:
        """``ledger_id`` was deleted just now, so no log may have it on its list."""
        for name, history in self.histories.items():
            if ledger_id in history.record.listed_ids:
                raise Violation(f"ledger {ledger_id} is deleted, log {name} lists it (I8)")

    def was_listed(self, ledger_id: int) -> bool:
        return ledger_id in self._listed

    def generation_of(self, ledger_id: int) -> int | None:
        """The generation in which a ledger was listed first; None if it never was."""
        return self._listed.get(ledger_id)

    def was_dropped(self, ledger_id: int) -> bool:
        return ledger_id in self._dropped

    def require_listed(self, process: str, ledger_id: int, row_count: int) -> None:
        """``process`` was told that its rows, those of ``ledger_id``, are in the log."""
        counts = [
            count
            for history in self.histories.values()
            for one, _, count in (*history.placed, *history.replaced.values())
            if one == ledger_id
        ]
        if counts != ([row_count] if row_count else []):
            raise Violation(f"{process} committed {row_count} rows, the log has {counts} (I8)")

    # --- one version and the next ----------------------------------------------------------

    def _require_next(self, history: History | None, after: LogRecord) -> None:
        """A new generation holds nothing of the one before, and says that this never joins."""
        if history is None:
            return
        before = history.record
        left = set(before.listed_ids) - set(after.dropped.ids)
        if after.generation != before.generation + 1 or left:
            raise Violation(
                f"log {after.name} goes from generation {before.generation} to {after.generation} "
                f"and does not drop {sorted(left)} (I8)"
            )

    def _require_places(self, history: History, after: LogRecord) -> Sequence[Place]:
        """Places stay as they were, and new ones are right; returns the new ones."""
        name, known = after.name, history.placed
        self._require_merges(history, after)
        listed = [(one.ledger_id, one.first_offset, one.entry_count) for one in after.ledgers]
        begin = known.index(listed[0]) if listed and listed[0] in known else len(known)
        if after.is_tombstone:
            return ()
        kept = len(known) - begin
        if begin < history.begin or listed[:kept] != known[begin:]:
            raise Violation(f"log {name} had {known[history.begin :]} and has {listed} (I8)")
        for ledger_id, first_offset, count in known[history.begin : begin]:
            if first_offset + count > after.first_offset or not self._is_given_up(ledger_id, after):
                raise Violation(
                    f"log {name} begins at offset {after.first_offset} and has no ledger "
                    f"{ledger_id}, which ended at {first_offset + count} (I8)"
                )
        history.begin = begin
        for place in listed[kept:]:
            self._require_place(history, place)
            known.append(place)
        return listed[kept:]

    def _require_merges(self, history: History, after: LogRecord) -> None:
        """A new place among the old ones has taken those of neighbours."""
        for place in () if after.is_tombstone else after.ledgers:
            own = (place.ledger_id, place.first_offset, place.entry_count)
            if own in history.placed or place.first_offset >= history.end:
                continue
            run = [
                one
                for one in history.record.ledgers
                if place.first_offset <= one.first_offset < place.end_offset
            ]
            fault = merge_fault(history.record, after, run, place)
            ledger = self._ledgers[place.ledger_id]
            if fault or not is_joinable(ledger, place) or place.ledger_id in self._listed:
                raise Violation(f"log {after.name}: {place}, in place of {run}, {fault} (I8)")
            self._require_fitting(after, place.ledger_id)
            old = [(one.ledger_id, one.first_offset, one.entry_count) for one in run]
            index = history.placed.index(old[0])
            history.placed[index : index + len(old)] = [own]
            history.replaced |= {one[0]: one for one in old}
            history.merged.append(own)

    def _is_given_up(self, ledger_id: int, record: LogRecord) -> bool:
        state = self._ledgers[ledger_id].metadata.state
        return ledger_id in record.dropped.ids or state is LedgerState.DELETING

    def _require_place(self, history: History, place: Place) -> None:
        ledger_id, first_offset, count = place
        ledger = self._ledgers[ledger_id].metadata
        if ledger.state is not LedgerState.CLOSED or ledger.last_entry_id != count - 1:
            raise Violation(
                f"log {history.record.name} lists {place}, ledger {ledger_id} is "
                f"{ledger.state.value} and ends at {ledger.last_entry_id} (RB-20)"
            )
        if first_offset != history.end or any(one == ledger_id for one, *_ in history.placed):
            raise Violation(
                f"log {history.record.name} lists {place} behind {history.placed[-3:]} (I8)"
            )
        if not count:
            raise Violation(f"log {history.record.name} has a place for nothing: {place} (RB-21)")

    def _require_tail(
        self, process: str, history: History, after: LogRecord, added: Sequence[Place]
    ) -> None:
        """What was in the tail settles in order; at most one ledger joins behind what is left."""
        name, before = after.name, history.record.tail
        left = [ledger_id for ledger_id in before if ledger_id in after.tail]
        settled, joined = before[: len(before) - len(left)], after.tail[len(left) :]
        if list(before[len(settled) :]) != left or list(after.tail[: len(left)]) != left:
            raise Violation(f"log {name} had the tail {before} and has {after.tail} (I8)")
        self._require_settled(after, settled, added)
        places = [ledger_id for ledger_id, *_ in added]
        spliced = [ledger_id for ledger_id in places if ledger_id not in settled]
        if (spliced and left) or places != [x for x in settled if x in places] + spliced:
            raise Violation(f"log {name} puts {spliced} behind {left}, which is not closed (RB-20)")
        for ledger_id in (*spliced, *joined):
            self._require_fitting(after, ledger_id)
        for ledger_id in joined:
            ledger = self._ledgers[ledger_id].metadata
            is_own = not left or (len(left) == 1 and process in self.writers.get(left[0], set()))
            if len(joined) > 1 or len(after.tail) > 2 or not is_own:
                raise Violation(f"{process} puts {joined} behind {left} in log {name} (RB-20)")
            if ledger.state is not LedgerState.OPEN or ledger_id in self._listed:
                raise Violation(
                    f"{process} puts ledger {ledger_id}, {ledger.state.value}, at the end of log "
                    f"{name} (RB-20b)"
                )

    def _require_settled(
        self, after: LogRecord, settled: Sequence[int], added: Sequence[Place]
    ) -> None:
        """A ledger leaves the tail for its place, or for nowhere if it is empty."""
        for ledger_id in settled:
            ledger = self._ledgers[ledger_id].metadata
            is_placed = any(ledger_id == one for one, *_ in added)
            is_empty = ledger.state is LedgerState.CLOSED and ledger.last_entry_id == -1
            is_gone = self._is_given_up(ledger_id, after)
            if not (after.is_tombstone and is_gone) and is_placed == (is_empty and is_gone):
                raise Violation(
                    f"log {after.name} loses ledger {ledger_id}, which is {ledger.state.value} up "
                    f"to {ledger.last_entry_id}, from its tail (I8)"
                )

    def _require_kept(self, before: LogRecord, after: LogRecord) -> None:
        """What only goes forward within one generation does."""
        name = after.name
        for ledger_id in set(before.dropped.ids) - set(after.dropped.ids):
            if self._ledgers[ledger_id].metadata.state is not LedgerState.DELETING:
                raise Violation(f"log {name} forgets ledger {ledger_id}, not deleted (RB-20b)")
        if after.is_tombstone and not before.is_tombstone:
            self._require_no_writer(before)
        if before.is_tombstone or after.is_tombstone or before.generation != after.generation:
            return
        if after.first_offset < before.first_offset:
            raise Violation(
                f"log {name} began at {before.first_offset} and begins at {after.first_offset} (I8)"
            )
        if before.is_sealed and not (after.is_sealed and after.end_offset == before.end_offset):
            raise Violation(f"log {name} was sealed at {before.end_offset} and goes on (I8)")
        for app_id, version in before.transactions.items():
            if after.transactions.get(app_id, -1) < version:
                raise Violation(f"log {name} forgets version {version} of {app_id} (I8)")

    def _require_no_writer(self, deleted: LogRecord) -> None:
        """Nobody can get an acknowledgement in a log that is not there any more."""
        for ledger_id in deleted.tail:
            if self._ledgers[ledger_id].metadata.state is LedgerState.OPEN:
                raise Violation(
                    f"log {deleted.name} is deleted, and ledger {ledger_id} can be written to (I10)"
                )

    def _require_fitting(self, record: LogRecord, ledger_id: int) -> None:
        """A ledger that joins has the settings of this log, not those of one deleted before it."""
        ledger = self._ledgers[ledger_id].metadata
        wanted = sizes.wanted(ledger)
        if wanted != record.quorum:
            raise Violation(
                f"ledger {ledger_id} of {wanted} joins log {record.name}, generation "
                f"{record.generation}, of {record.quorum} (I10)"
            )

    def _require_never_dropped(self, record: LogRecord) -> None:
        back = set(record.listed_ids) & self._dropped
        if back or len(set(record.listed_ids)) != len(record.listed_ids):
            raise Violation(
                f"log {record.name} lists {record.listed_ids}, {sorted(back)} were dropped (RB-20b)"
            )
