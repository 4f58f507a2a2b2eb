"""What live data takes on disks, reckoned from records alone, and what is there.

One copy of a row is the frame of the record that holds it, or its entry log; of a record that names
entry logs each member of the fragment has the frame. That is all that anybody needs; a journal that
metadata say was begun may have a header. Markers are empty files, and a cookie belongs to no
ledger. What else is there are records that a recovery wrote back beside those of the writer,
journals that are damaged, records behind a fragment's end, and garbage.

Nothing of the collection is asked: the ledgers are those that a log lists, or that are in none and
not deleted; what is in them is what any bookie shows.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.ledger.creating import log_of
from bkspark.log.reading.ledger_files import keep_owned
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState
from bkspark.protocol.ledger.record import AddRecord, header
from tests.integration.rig import Rig


@dataclass(frozen=True, slots=True)
class DiskUse:
    """By ledger id, in bytes on all bookies together.

    Attributes:
        copies: the ledgers that somebody can read need so much.
        headers: of their journals.
        stored: what there is, of whichever ledger; -1 for files of none.
    """

    copies: Counter[int]
    headers: Counter[int]
    stored: Counter[int]

    def excess(self, kept: int = 0) -> float:
        """What is there and not needed, as a part of what is.

        Args:
            kept: bytes that bookies keep as the last that may be given a place of a ledger.
        """
        return (self.stored.total() - kept) / (self.copies + self.headers).total() - 1

    @property
    def lacking(self) -> list[int]:
        """Ledgers of which there is less than they need."""
        return [one for one, size in self.copies.items() if self.stored[one] < size]

    @property
    def left_behind(self) -> list[int]:
        """Those of which there is something, and nobody can read them."""
        return sorted(self.stored.keys() - self.copies.keys())


def disk_use(rig: Rig) -> DiskUse:
    stored: Counter[int] = Counter()
    journals: dict[int, list[bytes]] = {}
    for bookie_id in rig.urls:
        for name in rig.names(bookie_id):
            parts = name.split("/")
            ledger_id = layout.ledger_of_folder(parts[2]) if len(parts) > 2 else None
            data = rig.file_bytes(bookie_id, name)
            stored[-1 if ledger_id is None else ledger_id] += len(data)
            if ledger_id is not None and parts[3] == "journal":
                journals.setdefault(ledger_id, []).append(data)
    copies: Counter[int] = Counter()
    headers: Counter[int] = Counter()
    for one in live(rig):
        digester = make_digester(one.settings.digest, Password())
        records = _records(one, journals.get(one.ledger_id, ()), digester)
        copies[one.ledger_id] = sum(_copies(record, digester) for record in records)
        headers[one.ledger_id] = sum(_headers(one, which, digester) for which in one.fragments)
    return DiskUse(copies, headers, stored)


def misplaced(rig: Rig, able: Collection[str]) -> list[tuple[int, str]]:
    """Closed ledgers of which there is something on bookies that they do not name.

    But where one of them is the last that may be given a place of the ledger, which it keeps.

    Args:
        able: ids of bookies that may be given places of ledgers.
    """
    return [
        (number, bookie_id) for number, bookie_id, is_last in _unnamed(rig, able) if not is_last
    ]


def kept_bytes(rig: Rig, able: Collection[str]) -> int:
    """What is on bookies that keep a ledger as the last that may be given a place of it."""
    return sum(
        len(rig.file_bytes(bookie_id, name))
        for number, bookie_id, is_last in _unnamed(rig, able)
        if is_last
        for name in rig.names(bookie_id)
        if name.count("/") > 2 and layout.ledger_of_folder(name.split("/")[2]) == number
    )


def _unnamed(rig: Rig, able: Collection[str]) -> Iterator[tuple[int, str, bool]]:
    """Closed ledgers on bookies that they do not name: ids of both, and whether it is the last."""
    ledgers = {one.ledger_id: one for one in live(rig) if one.state is LedgerState.CLOSED}
    for bookie_id in rig.urls:
        folders = {name.split("/")[2] for name in rig.names(bookie_id) if name.count("/") > 2}
        for ledger_id in ledgers.keys() & set(map(layout.ledger_of_folder, folders)):
            ledger = ledgers[ledger_id]
            named = {member.bookie_id for f in ledger.fragments for member in f.ensemble}
            free = set(able) - named - {member.bookie_id for member in ledger.left}
            if bookie_id not in named:
                yield ledger_id, bookie_id, free <= {bookie_id}


def live(rig: Rig) -> Iterator[LedgerMetadata]:
    """Ledgers that somebody can read."""
    with Cluster(rig.uri) as cluster:
        logs = [cluster.log(name).value for name in cluster.log_names()]
        listed = {one for log in logs for one in (*log.listed_ids, *log.tail)}
        for ledger_id in cluster.ledger_ids():
            ledger = cluster.ledgers.get(str(ledger_id))
            assert ledger is not None
            is_deleted = ledger.value.state is LedgerState.DELETING
            if ledger_id in listed or (log_of(ledger.value) is None and not is_deleted):
                yield ledger.value


def _copies(record: AddRecord, digester: Digester) -> int:
    members = {index for indexes in record.write_sets() for index in indexes}
    frames = sum(_frame_bytes(record, index, digester) for index in members)
    rows = sum(log.length_bytes for log in record.entry_logs)
    return frames + rows * record.quorum.write_quorum_size


def _records(
    ledger: LedgerMetadata, journals: Iterable[bytes], digester: Digester
) -> Iterator[AddRecord]:
    """All that the ledger has, each once."""
    assert ledger.state is LedgerState.CLOSED, ledger
    known: dict[int, AddRecord] = {}
    for data in journals:
        shown = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
        for record in shown.records:
            keep_owned(known, record, ledger)
    entry_id, end = 0, (ledger.last_entry_id or 0) + 1
    while entry_id < end:
        assert entry_id in known, (ledger.ledger_id, entry_id)
        yield known[entry_id]
        entry_id = known[entry_id].last_entry_id + 1


def _headers(ledger: LedgerMetadata, fragment: Fragment, digester: Digester) -> int:
    """Of the journals that the fragment's members began for it, those of fragments before apart."""
    if not fragment.has_headers:
        return 0
    before = {
        member
        for one in ledger.fragments
        if one.first_entry_id < fragment.first_entry_id and one.token == fragment.token
        for member in one.ensemble
    }
    one = header(
        ledger_id=ledger.ledger_id,
        term=fragment.term,
        token=fragment.token,
        quorum=ledger.quorum,
    )
    return _frame_bytes(one, 0, digester) * len(set(fragment.ensemble) - before)


def _frame_bytes(record: AddRecord, index: int, digester: Digester) -> int:
    parts = {part.stripe: b"\0" * part.length_bytes for part in record.parts}
    return sum(map(len, journal.encode(record, digester, parts).frame(index, 0)))


def metadata_use(rig: Rig) -> dict[str, tuple[int, int]]:
    """By the first part of their keys, how many records there are, and their bytes."""
    found: dict[str, tuple[int, int]] = {}
    with Cluster(rig.uri) as cluster:
        store = cluster.store
        logs = store.list(layout.LOGS_PREFIX)
        prefixes = [
            *(layout.LOGS_PREFIX, layout.LEDGERS_PREFIX, layout.BOOKIES_PREFIX, layout.LOST_PREFIX),
            *(layout.DAMAGED_PREFIX, layout.AWAY_PREFIX, layout.RECOVERIES_PREFIX),
            *(layout.REPORTS_PREFIX, layout.LEASES_PREFIX, layout.GONE_PREFIX),
            *(f"{layout.LOG_PAGES_PREFIX}/{name}" for name in logs),
        ]
        for prefix in prefixes:
            records = [store.get(f"{prefix}/{name}") for name in store.list(prefix)]
            count, size = found.get(prefix.partition("/")[0], (0, 0))
            size += sum(len(one.value) for one in records if one is not None)
            found[prefix.partition("/")[0]] = (count + len(records), size)
    return found
