"""A writer whose every step is a call, a recovery whose every step can be stopped, and what must
be true of a ledger after whatever happened to it."""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.bookie_client import post_check
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Joining, enlist, journal_on
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema, journal, layout
from bkspark.ledger.creating import create_ledger
from bkspark.ledger.handles.entries import VALUE_SCHEMA, encode_parts
from bkspark.ledger.recovery.recover import RecoveryReport, recover
from bkspark.ledger.recovery.recoverer import WriteCopies
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord, Made, confirmation
from bkspark.protocol.recovery.steps import Failure
from bkspark.protocol.writer.adding import PendingAdds
from tests.kit.faulty import Operation, StorageFaults

from .rig import Rig

_ASK_AGAIN_SECONDS = 0.5


class HandWriter:
    """Writes a ledger of bytes, one entry to a record; nothing happens by itself.

    Args:
        checks: whether it looks at a bookie after it wrote to it (the post-check).
        looks: whether it looks at the metadata before it acknowledges.
        begins: whether bookies begin its journals, or it makes them with their first records.
        goes_on: whether others may go on in its ledger.

    Attributes:
        sent: entry id -> value, whatever became of it.
        acked: ids that its caller was told.
        word: what its values begin with.
    """

    word = "entry"

    def __init__(
        self,
        rig: Rig,
        sizes: tuple[int, int, int] = (3, 3, 2),
        *,
        checks: bool = True,
        looks: bool = True,
        begins: bool = True,
        guarantees_write_quorum: bool = False,
        goes_on: bool = False,
    ) -> None:
        self.sent: dict[int, bytes] = {}
        self.acked: list[int] = []
        self.cluster = Cluster(rig.uri)
        self._addresses = self.cluster.addresses()
        self._checks, self._looks = checks, looks
        self._digester = make_digester(DigestSpec(), Password())
        created = create_ledger(
            self.cluster,
            quorum=Quorum(*sizes),
            digest=DigestSpec(),
            schema=arrow_schema.encode(VALUE_SCHEMA),
            custom_metadata={},
            digester=self._digester if begins else None,
            guarantees_write_quorum=guarantees_write_quorum,
            goes_on=goes_on,
        )
        self.seen, self._begun = created.seen, created.begun
        self.ledger_id = self.metadata.ledger_id
        self.pending = PendingAdds(
            self.metadata.quorum, guarantees_write_quorum=guarantees_write_quorum
        )
        self._adds: list[Any] = []
        self._records: list[journal.EncodedRecord] = []
        self._journals: dict[str, Journal] = {}

    @property
    def metadata(self) -> LedgerMetadata:
        return self.seen.value

    @property
    def names(self) -> list[str]:
        """Bookie ids of the ensemble, in stripe order."""
        return [member.bookie_id for member in self.metadata.last_fragment.ensemble]

    @property
    def permission(self) -> str:
        """The marker that its bookies took before they were named."""
        return layout.permission(self.ledger_id, self.metadata.term, self.metadata.token)

    def add(self, *indexes: int, acknowledges: bool = False) -> int:
        """A new entry, stored and counted on the bookies at ``indexes``; returns its id."""
        add = self.pending.push(1)
        value = f"{self.word} {add.first_entry_id}".encode()
        self.sent[add.first_entry_id] = value
        self._adds.append(add)
        self._records.append(self._encoded(add.first_entry_id, value))
        self.put(add.first_entry_id, *indexes)
        if acknowledges:
            self.acknowledge()
        return add.first_entry_id

    def put(self, entry_id: int, *indexes: int) -> None:
        """Store an entry on the bookies at ``indexes``, check and count."""
        for index in indexes:
            self.store(entry_id, index)
            self.check(entry_id, index)

    def store(self, entry_id: int, index: int) -> None:
        """Make an entry durable on one bookie; it does not count yet."""
        address = self._address(index)
        file = self._journal(address)
        file.append(self._records[entry_id].frame(index, file.end))

    def confirm(self, *indexes: int) -> None:
        """Say on the bookies at ``indexes`` how far entries are confirmed."""
        ledger = self.metadata
        record = confirmation(
            ledger_id=self.ledger_id,
            term=ledger.term,
            token=ledger.token,
            last_add_confirmed=self.pending.last_add_confirmed,
            length_bytes=sum(map(len, self.sent.values())),
            quorum=ledger.quorum,
            made=Made(ledger.last_fragment.first_entry_id),
            transactions={},
            stored=self.pending.stored,
        )
        encoded = journal.encode(record, self._digester)
        for index in indexes:
            file = self._journal(self._address(index))
            file.append(encoded.frame(index, file.end))

    def check(self, entry_id: int, index: int) -> None:
        """The post-check; the bookie counts behind it."""
        address = self._address(index)
        if self._checks:
            file = self._journal(address)
            term, token = self.metadata.term, self.metadata.token
            post_check(address, file, ledger_id=self.ledger_id, term=term, token=token)
        self.pending.count(index, entry_id, entry_id)

    def acknowledge(self) -> None:
        """Acknowledge whatever is complete, under the metadata check."""
        ticket = self.pending.ticket()
        if ticket is None:
            return
        if self._looks and not self.cluster.ledgers.is_current(str(self.ledger_id), self.seen):
            raise LedgerFencedError("the metadata changed")
        for add in self.pending.acknowledge(ticket):
            self.acked.extend(range(add.first_entry_id, add.last_entry_id + 1))

    def replace(self, index: int, bookie_id: str) -> None:
        """Change the ensemble from the first entry without an ack on."""
        ensemble = self.metadata.last_fragment.ensemble
        known = {m.bookie_id: a for m, a in self._addresses.items()}
        address = known[bookie_id]
        begun = enlist({index: address}, Joining.last_writer(self.metadata, self._digester))
        assert begun.bookie_ids == {bookie_id}
        self._begun.add(begun)
        member = Member(bookie_id, address.incarnation)
        changed = (*ensemble[:index], member, *ensemble[index + 1 :])
        first, lac = self.pending.fragment_without(index), self.pending.last_add_confirmed
        self.seen = self.cluster.ledgers.update(
            str(self.ledger_id),
            lambda ledger: ledger.with_ensemble(
                *(first, changed), last_add_confirmed=lac, term=1, token=self.metadata.token
            ),
        )
        self.pending.replace_members([index])

    def recover(self, **options: Any) -> RecoveryReport:
        return recover(self.cluster, self.ledger_id, Password(), **options)

    def _journal(self, address: BookieAddress) -> Journal:
        """The writer's own, as the bookie began it."""
        if address.bookie_id not in self._journals:
            found = journal_on(address, self.metadata, self._begun)
            self._journals[address.bookie_id] = found
        return self._journals[address.bookie_id]

    def _address(self, index: int) -> BookieAddress:
        return self._addresses[self.metadata.last_fragment.ensemble[index]]

    def _encoded(self, entry_id: int, value: bytes) -> journal.EncodedRecord:
        quorum = self.metadata.quorum
        place = {"ledger_id": self.ledger_id, "first_entry_id": entry_id, "quorum": quorum}
        parts, messages = encode_parts(one_row(value), self._digester, **place)
        record = AddRecord(
            ledger_id=self.ledger_id,
            term=self.metadata.term,
            token=self.metadata.token,
            first_entry_id=entry_id,
            last_entry_id=entry_id,
            last_add_confirmed=self.pending.last_add_confirmed,
            length_bytes=sum(map(len, self.sent.values())),
            quorum=quorum,
            made=Made(self.metadata.last_fragment.first_entry_id),
            rows=parts,
            stored=self.pending.stored,
        )
        return journal.encode(record, self._digester, messages)


def one_row(value: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([value], pa.binary())], schema=VALUE_SCHEMA)


def one_by_one(
    *, lost: Collection[str] = (), before: Callable[[Any], None] | None = None
) -> Callable[[Sequence[Any]], list[Any]]:
    """Carries out instructions in order.

    Args:
        lost: bookies that nothing reaches.
        before: called before each instruction.
    """

    def run(instructions: Sequence[Any]) -> list[Any]:
        results = []
        for instruction in instructions:
            if before is not None:
                before(instruction)
            name = instruction.address.bookie_id
            results.append(Failure(f"{name} is silent") if name in lost else instruction.run())
        return results

    return run


def late(writer: HandWriter, entry_id: int, *indexes: int) -> None:
    """A writer that does not know yet goes on as far as it gets."""
    try:
        writer.put(entry_id, *indexes)
        writer.acknowledge()
    except (LedgerFencedError, BookieUnavailableError):
        pass


def stop_at(kind: type) -> Callable[[object], None]:
    def stop(instruction: object) -> None:
        if isinstance(instruction, kind):
            raise OutcomeUnknownError("stopped")

    return stop


def stop_behind(count: int) -> Callable[[object], None]:
    """Let so many write-backs happen, no more."""
    left = [count]

    def stop(instruction: object) -> None:
        if isinstance(instruction, WriteCopies):
            left[0] -= 1
            if left[0] < 0:
                raise OutcomeUnknownError("stopped")

    return stop


def violations(
    rig: Rig,
    ledger_id: int,
    sent: Mapping[int, bytes],
    acked: Collection[int],
    *,
    patience_seconds: float = 0,
) -> list[str]:
    """What is wrong with a closed ledger; empty if everything promised holds.

    Args:
        patience_seconds: for how long bookies are asked again that give no answer, if copies are
            missing without them; for a test that has taken none of them away.
    """
    ledger = rig.ledger(ledger_id)
    if ledger.state is not LedgerState.CLOSED or ledger.last_entry_id is None:
        return [f"it is {ledger.state.value}"]
    wrong = [f"acknowledged entry {n} is cut off" for n in acked if n > ledger.last_entry_id]
    wrong += _missing_copies(rig, ledger, ledger.last_entry_id, patience_seconds)
    with BookKeeper(rig.uri) as keeper:
        try:
            found = [entry.value for entry in keeper.open_ledger(ledger_id).read()]
        except BookKeeperError as error:
            return [*wrong, str(error)]
    expected = [sent[n] for n in range(ledger.last_entry_id + 1)]
    if found != expected:
        wrong.append("it is read back otherwise than it was sent")
    if ledger.length_bytes != sum(map(len, expected)):
        wrong.append(f"its length is {ledger.length_bytes}")
    return wrong


def good_copies(rig: Rig, ledger: LedgerMetadata) -> dict[int, int]:
    """Entry id -> members of its own write set that have its row, checked; all must answer."""
    copies, unseen = _copies(rig, ledger)
    assert not unseen, unseen
    return copies


def _missing_copies(
    rig: Rig, ledger: LedgerMetadata, last_entry_id: int, patience_seconds: float
) -> list[str]:
    """Entries of which fewer copies are seen than are promised, and who could not be looked at.

    Who gives no answer may have a copy all the same: whoever reads that one is missing must know.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        copies, unseen = _copies(rig, ledger)
        quorum = ledger.quorum.full if ledger.settings.guarantees_write_quorum else ledger.quorum
        short = [n for n in range(last_entry_id + 1) if copies.get(n, 0) < quorum.ack_quorum_size]
        if not short or not unseen or time.monotonic() >= deadline:
            break
        time.sleep(_ASK_AGAIN_SECONDS)
    doubt = f", not all was looked at: {'; '.join(unseen)}" if unseen else ""
    return [f"entry {n} has {copies.get(n, 0)} copies{doubt}" for n in short]


def _copies(rig: Rig, ledger: LedgerMetadata) -> tuple[dict[int, int], list[str]]:
    """How many good copies of each entry are seen, and why some bookies gave no answer."""
    copies: dict[int, int] = {}
    unseen: list[str] = []
    digester = make_digester(ledger.settings.digest, Password())
    with Cluster(rig.uri) as cluster:
        addresses = cluster.addresses()
    for member in {m for fragment in ledger.fragments for m in fragment.ensemble}:
        found: set[int] = set()
        try:
            found.update(_entries_on(addresses[member], ledger, digester))
        except BookieUnavailableError as error:
            unseen.append(str(error))
        for entry_id in found:
            if member in Locations(ledger).holders(entry_id):
                copies[entry_id] = copies.get(entry_id, 0) + 1
    return copies, unseen


def _entries_on(address: BookieAddress, ledger: LedgerMetadata, digester: Any) -> Iterator[int]:
    """Entries of which the bookie has a good row; some come more than once.

    Raises:
        BookieUnavailableError: it gives no answer, or none to what comes next.
    """
    folder = layout.journal_folder(ledger.ledger_id)
    with open_bookie(address).open_root() as root:
        for name in filter(layout.is_journal, root.list(folder)):
            data = root.read(f"{folder}/{name}") or b""
            content = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
            for frame in content.frames:
                record, stripes = frame.record, ledger.quorum.stripe_count
                ids = range(record.first_entry_id, record.last_entry_id + 1)
                yield from (n for n in ids if n % stripes in frame.parts)


class Gate:
    """Operations of one kind that wait at some bookies until the gate is opened."""

    def __init__(self, faults: StorageFaults, call: str = "append") -> None:
        self._call = call
        self._closed: set[str] = set()
        self._changed = threading.Condition()
        faults.decide = self._wait

    def close(self, *bookie_ids: str) -> None:
        with self._changed:
            self._closed.update(bookie_ids)

    def open(self, *bookie_ids: str) -> None:
        """Let through what waits at these bookies; at all if none is named."""
        with self._changed:
            self._closed -= set(bookie_ids) or set(self._closed)
            self._changed.notify_all()

    def _wait(self, _number: int, operation: Operation) -> None:
        if operation.call == self._call:
            with self._changed:
                self._changed.wait_for(lambda: operation.place not in self._closed, timeout=300)
