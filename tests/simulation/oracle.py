"""What must hold after every step, whatever the clients think.

Rule: nothing here asks a client or uses its decisions. The oracle sees bytes appear on disks and
versions appear in the metadata store, is told of acks and reads, and knows which disks were lost.

The rules are those that ``bkspark/protocol/README.md`` says it asks for, by number.
"""

import re
from collections.abc import Set

import pyarrow as pa

from bkspark.bookie.memory import MemoryDisk
from bkspark.format import journal, layout, ledger_metadata
from bkspark.format.digest import Digester
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.metadata.memory import MemoryMetadataStore
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from bkspark.protocol.ledger.record import AddRecord
from tests.simulation.damage import NAME, damage
from tests.simulation.entry_logs import EntryLogs
from tests.simulation.fence_watch import FenceWatch
from tests.simulation.knowable import is_knowable, who_must_be_silent
from tests.simulation.known import Copy, Ledger, Place, label, payload, stripe_count
from tests.simulation.log_watch import LogWatch
from tests.simulation.moves import (
    require_fragments,
    require_legal_move,
    require_owners,
    require_repair,
    require_whole,
)
from tests.simulation.racks import RackWatch
from tests.simulation.scheduler import Violation
from tests.simulation.upkeep_watch import removed, require_left, require_tidy

OPEN, CLOSED = LedgerState.OPEN, LedgerState.CLOSED
REMOVALS = frozenset({"remove_folder", "delete"})
_KEY = re.compile(r"ledgers/([0-9a-f]{16})")


class Oracle:
    """Looks at everything after every effect.

    Args:
        uri: of the metadata store in memory.
        checks_reasons: whether an ack or end without its reasons (J4, R16) is a violation.
    """

    def __init__(self, uri: str, *, checks_reasons: bool = True) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self.acks = 0
        self._store = MemoryMetadataStore(uri)
        self._checks_reasons = checks_reasons
        self._places: dict[str, Place] = {}
        self._lost: set[tuple[str, str]] = set()
        self._entry_logs = EntryLogs()
        self._digester = Digester(DigestSpec(), None)
        self._appended: dict[tuple[str, str, int], list[tuple[str, int]]] = {}
        self._unfenced: dict[tuple[str, str, int], tuple[int, int]] = {}
        self._current: dict[tuple[str, int], int] = {}
        self._fences = FenceWatch()
        self.racks = RackWatch()
        self.logs = LogWatch(self._store, self.ledgers)

    # --- told by the simulation ------------------------------------------------------------

    def place(self, bookie_id: str, incarnation: str, disk: MemoryDisk) -> None:
        """From now on ``disk`` is at the bookie's place; what was there is lost."""
        before = self._places.get(bookie_id)
        if before is not None:
            self._lost.add((bookie_id, before.incarnation))
        self._places[bookie_id] = Place(incarnation, disk)

    def damaged(self, bookie_id: str, name: str, *, keeps_start: bool = False) -> None:
        """The file ``name`` has other bytes, or is gone.

        Args:
            keeps_start: whether the bytes that are left are as they were.
        """
        place = self._places[bookie_id]
        before, file = place.names.pop(name, b""), place.disk.files.get(name)
        left = b"" if file is None else bytes(file.data)
        if file is not None:
            place.names[name] = left
            place.damaged.add(name)
            place.is_flipped = place.is_flipped or not keeps_start
        member = (bookie_id, place.incarnation)
        good = left if keeps_start else b""
        damage(self.ledgers, self._digester, member, name, before, good)

    def are_losses_knowable(self) -> bool:
        """Whether it can be known of every ledger what its bookies have lost by now."""
        return all(is_knowable(ledger, self._disks()) for ledger in self.ledgers.values())

    def who_must_be_silent(self) -> frozenset[str] | None:
        """See ``knowable``: of any ledger."""
        found = (who_must_be_silent(one, self._disks()) for one in self.ledgers.values())
        return next((silent for silent in found if silent is not None), None)

    def _disks(self) -> dict[tuple[str, str], dict[str, bytes]]:
        return {
            (bookie_id, place.incarnation): place.durable
            for bookie_id, place in self._places.items()
            if layout.COOKIE in place.disk.files
        }

    def lost_power(self, bookie_id: str, name: str) -> None:
        """The file ``name`` has only its durable bytes left; no good copy was anywhere else."""
        place = self._places[bookie_id]
        place.withheld.pop(name, None)
        file = place.disk.files.get(name)
        if file is None:
            place.names.pop(name, None)
        else:
            place.names[name] = bytes(file.data)

    def after(
        self, step: int, process: str, place: str, call: str, name: str, result: object
    ) -> None:
        """An operation of ``process`` took effect just now, with ``result``."""
        if place == "metadata":
            self._after_metadata(step, process, call, name, result)
        elif call in ("put_new", "append", "finish", "open_journal", "sync"):
            self._look_at(step, process, place, name)
            self._fences.made(step, process, place, name)
        elif call in REMOVALS:
            removed(self.ledgers, self._digester, place, self._places[place])
        elif call == "size":
            self._note_post_check(step, process, place, name, result)
        elif call == "list" and name.endswith("/journal"):
            ledger_id = int(name.split("/")[2], 16)
            self._fences.looked(step, process, place, self.ledgers[ledger_id].metadata)

    def failed(self, process: str, place: str, call: str, name: str) -> None:
        """``process`` was told that an operation failed, whatever became of it."""
        if call == "put_new":
            self._fences.failed(process, place, name)

    def acknowledged(self, process: str, ledger_id: int, entry_id: int, term: int = 1) -> None:
        """The client learns that ``entry_id`` is durable for ever, late perhaps: others go on."""
        ledger = self.ledgers[ledger_id]
        self.acks += 1
        if entry_id <= ledger.told.get(term, -1 if ledger.metadata.goes_on else ledger.acked):
            raise Violation(f"entry {entry_id} of ledger {ledger_id} is acked out of order (I1)")
        ledger.told[term] = entry_id
        if ledger.metadata.goes_on:
            ledger.owners[entry_id] = term
            require_owners(ledger)
        first, ledger.acked = ledger.acked + 1, max(ledger.acked, entry_id)
        end = ledger.metadata.last_entry_id
        if self.is_deleted(ledger_id):
            raise Violation(f"entry {entry_id} of ledger {ledger_id} is acked, it is deleted (R13)")
        if end is not None and entry_id > end:
            raise Violation(
                f"entry {entry_id} of ledger {ledger_id} is acked, but it is closed at {end} (I1)"
            )
        self._require_copies(ledger, first, entry_id, "acked", "I2")
        self._require_reasons(process, ledger, first, entry_id)

    def committed(self, process: str, ledger_id: int, row_count: int) -> None:
        """A DataFrame's writer learns that its rows are in the log."""
        self.logs.require_listed(process, ledger_id, row_count)

    def is_deleted(self, ledger_id: int) -> bool:
        return self.ledgers[ledger_id].metadata.state is LedgerState.DELETING

    def shown_by_now(self, ledger_id: int) -> int:
        """The highest LAC that any reader was given: whoever looks from now on must not miss it."""
        return self.ledgers[ledger_id].shown if ledger_id in self.ledgers else -1

    def shown(self, reader: str, ledger_id: int, confirmed: int, before: int) -> None:
        """A reader was given ``confirmed``; ``before`` was shown by the time he began to look."""
        ledger = self.ledgers[ledger_id]
        if confirmed < before:
            raise Violation(f"{reader} is shown LAC {confirmed}, {before} was shown before (I7)")
        end = ledger.metadata.last_entry_id
        if confirmed > (ledger.acked if end is None else end):
            raise Violation(f"{reader} is shown LAC {confirmed}, acked is {ledger.acked} (I7)")
        ledger.shown = max(ledger.shown, confirmed)

    def has_read(self, reader: str, ledger_id: int, entry_id: int, value: bytes) -> None:
        if value != payload(entry_id, self.ledgers[ledger_id].owner_of(entry_id) or 1):
            raise Violation(f"{reader} reads {value!r} as entry {entry_id} (I4)")

    def require_fences(self, process: str, ledger_id: int, term: int) -> None:
        """Every bookie that ``process`` looked at in ``term`` had been fenced by it by then."""
        if self._checks_reasons:
            self._fences.require(process, ledger_id, term)

    def require_whole(self, ledger_id: int) -> None:
        """A repair has left nothing to do: everybody has all that he should."""
        require_whole(self.ledgers[ledger_id], self._places, self._digester)

    def require_tidy(self, ledger_id: int, registered: Set[str]) -> None:
        """A last collection has left nothing of it on bookies of the cluster that have left it."""
        require_tidy(self.ledgers[ledger_id].metadata, self._places, registered)

    # --- what appears on disks -------------------------------------------------------------

    def _look_at(self, step: int, process: str, bookie_id: str, name: str) -> None:
        place = self._places[bookie_id]
        file = place.disk.files.get(name)
        if file is None:
            return
        data, before = bytes(file.data), place.names.get(name)
        match = NAME.fullmatch(name)
        is_journal = match is not None and match[2] == "journal"
        if before is not None and not (data.startswith(before) if is_journal else data == before):
            raise Violation(f"{name} on {bookie_id} changes its bytes (J1)")
        place.names[name] = data
        if match is None:
            return
        ledger_id = int(match[1], 16)
        if name in place.damaged:
            self._lost.add((bookie_id, place.incarnation))  # What comes behind is lost as well.
        copies = list[Copy]()
        if is_journal:
            begin = len(before or b"")
            content = journal.decode_journal(
                data[begin:], self._digester, ledger_id=ledger_id, position=begin
            )
            for frame in (one for one in content.frames if not one.record.is_header):
                copies += self._add_frame(step, process, bookie_id, frame, data[begin:])
        if match[2] == "entries":
            attempt, _, stripe = match[3].removesuffix(".arrow").rpartition("-")
            self._entry_logs.note(attempt, int(stripe), data)
            copies.append(("log", attempt, stripe))
        place.withheld.setdefault(name, []).extend((ledger_id, copy) for copy in copies)
        self._count_durable(bookie_id, name)

    def _add_frame(
        self, step: int, process: str, bookie_id: str, frame: journal.Frame, data: bytes
    ) -> list[Copy]:
        """Compare a record with its other copies; returns what it is a copy of."""
        record = frame.record
        ledger, first = self.ledgers[record.ledger_id], record.first_entry_id
        if record.last_add_confirmed > ledger.acked:
            raise Violation(
                f"a record says LAC {record.last_add_confirmed}, acked is {ledger.acked} (I7)"
            )
        if record.is_confirmation:
            return []
        if ledger.records.setdefault(ledger.key_of(record), record) != record:
            raise Violation(f"two records begin at entry {first}: {record} (I4)")
        name = label(record)
        copies: list[Copy] = [("record", name)]
        for stripe, (at, length) in frame.parts.items():
            message = data[at : at + length]
            if ledger.parts.setdefault((name, stripe), message) is message:
                self._require_payloads(record, stripe, message)
            elif ledger.parts[name, stripe] != message:
                raise Violation(f"copies of entry {first}, stripe {stripe} differ (I4)")
            copies.append(("part", name, str(stripe)))
        key = (process, bookie_id, record.ledger_id)
        self._appended.setdefault(key, []).append((name, step))
        return copies

    def _count_durable(self, bookie_id: str, name: str) -> None:
        """What a file has is a good copy once it is durable."""
        place = self._places[bookie_id]
        if name in place.disk.unsynced:
            return
        for ledger_id, copy in place.withheld.pop(name, []):
            ledger, found = self.ledgers[ledger_id], (copy, bookie_id, place.incarnation)
            ledger.copies.add(found)
            ledger.cut.discard(found)

    def _require_payloads(self, record: AddRecord, stripe: int, message: bytes) -> None:
        count = stripe_count(record.quorum.ensemble_size, record.quorum.write_quorum_size)
        ids = range(record.first_entry_id, record.last_entry_id + 1)
        expected = [payload(number, record.term) for number in ids if number % count == stripe]
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), VALUE_SCHEMA)
        if batch.column(0).to_pylist() != expected:
            raise Violation(f"group {ids} holds other entries than were submitted (I4)")

    def _note_post_check(
        self, step: int, process: str, bookie_id: str, name: str, result: object
    ) -> None:
        match = NAME.fullmatch(name)
        if match is None or match[2] != "terms":
            return
        ledger_id, term = int(match[1], 16), int(match[3].partition("-")[0], 16)
        key = (process, bookie_id, ledger_id)
        if result is None:
            self._unfenced[key] = (term - 1, step)
            return
        own_term, since = self._unfenced.pop(key, (0, 0))
        if own_term == term:
            for name_of, appended in self._appended.get(key, []):
                if appended < since:
                    self.ledgers[ledger_id].checked.setdefault((name_of, bookie_id), since)

    # --- what appears in the metadata store ------------------------------------------------

    def _after_metadata(
        self, step: int, process: str, call: str, name: str, result: object
    ) -> None:
        if call == "put" and name.startswith("logs/"):
            self.logs.see(process, name)
        match = _KEY.fullmatch(name)
        if match is None:
            return
        ledger_id = int(match[1], 16)
        if call == "is_current" and result is True:
            self._current[process, ledger_id] = step
        elif call == "put":
            self.see(process, ledger_id)
            if ledger_id in self.ledgers:
                self.ledgers[ledger_id].note_state(step)

    def see(self, process: str, ledger_id: int) -> None:
        """Look at the newest version of a ledger's metadata."""
        stored = self._store.get(f"ledgers/{ledger_id:016x}")
        if stored is None:
            return
        after = ledger_metadata.decode(ledger_id, stored.value)
        ledger = self.ledgers.get(ledger_id)
        if ledger is None:
            self.ledgers[ledger_id] = Ledger(after)
            self.logs.made(process, ledger_id)
            self.racks.made(after)
            return
        before, ledger.metadata = ledger.metadata, after
        if before == after:
            return
        if after.state is OPEN is not before.state:
            self.logs.taken(process, ledger_id)
        require_legal_move(before, after)
        require_fragments(before, after)
        self.racks.changed(before, after, self._places)
        require_left(before, after)
        self._require_copies(ledger, 0, ledger.acked, "acked", "I2")
        if after.settings.guarantees_write_quorum and before.last_fragment != after.last_fragment:
            end = after.last_fragment.first_entry_id - 1
            self._require_copies(ledger, 0, end, f"in front of {end + 1}", "I3", is_full=True)
        if before.state is CLOSED and after.state is CLOSED:
            require_repair(ledger, before, self._lost)
            return
        if after.state is LedgerState.DELETING:
            self.logs.require_hidden(ledger_id)
        if after.state is CLOSED:
            self._require_end(process, ledger, was_open=before.state is OPEN)
        if (before.state, after.state) == (LedgerState.IN_RECOVERY, OPEN):
            self._require_end(process, ledger, was_open=False)
            ledger.acked = after.last_fragment.first_entry_id - 1
        require_owners(ledger)

    def _require_end(self, process: str, ledger: Ledger, *, was_open: bool) -> None:
        """Where it is closed, or set open behind."""
        metadata = ledger.metadata
        end = metadata.last_entry_id
        end = metadata.last_fragment.first_entry_id - 1 if end is None else end
        if end < ledger.acked:
            raise Violation(f"closed at {end}, but entry {ledger.acked} was acked (I1)")
        if end < ledger.shown:
            raise Violation(f"closed at {end}, but LAC {ledger.shown} was given out (J3)")
        is_full = metadata.settings.guarantees_write_quorum
        self._require_copies(ledger, 0, end, f"in front of the end {end}", "I3", is_full=is_full)
        if was_open:
            self._require_reasons(process, ledger, ledger.acked + 1, end)
        else:
            self.require_fences(process, metadata.ledger_id, metadata.term)

    def _require_copies(
        self, ledger: Ledger, first: int, last: int, why: str, rule: str, *, is_full: bool = False
    ) -> None:
        """Qa, or Qw, good copies of everything in ``[first, last]`` where the metadata says."""
        quorum = ledger.metadata.quorum
        needed = quorum.write_quorum_size if is_full else quorum.ack_quorum_size
        entry_id = max(first, ledger.metadata.first_available)
        while entry_id <= last:
            record = ledger.group_of(entry_id)
            if record is None:
                raise Violation(f"entry {entry_id} is {why} and was never written ({rule})")
            for copy, members in ledger.placed(record):
                good, lost = ledger.good_and_lost(copy, members, self._lost)
                if good < needed - lost:
                    raise Violation(
                        f"entry {entry_id} is {why}, but {copy} is on {good} bookies of "
                        f"{[bookie_id for bookie_id, _ in members]}, {lost} lost ({rule})"
                    )
            entry_id = record.last_entry_id + 1

    def _require_reasons(self, process: str, ledger: Ledger, first: int, last: int) -> None:
        if not self._checks_reasons or first > last:
            return
        metadata = ledger.metadata
        looked = self._current.get((process, metadata.ledger_id), -1)
        entry_id = first
        while entry_id <= last:
            record = ledger.group_of(entry_id)
            assert record is not None
            for _, members in ledger.placed(record):
                steps = [ledger.checked.get((label(record), bookie_id)) for bookie_id, _ in members]
                counted = sum(step is not None and step < looked for step in steps)
                if counted < metadata.quorum.ack_quorum_size:
                    raise Violation(
                        f"entry {entry_id} is acked on {counted} post-checks of {members} before "
                        f"the metadata check at step {looked} (J4)"
                    )
            entry_id = record.last_entry_id + 1
