"""Which copies are missing, by reading every record: what an audit is held against."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bkspark.bookie.contract import ReadableRoot
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError, UnauthorizedError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.ledger.journals.journal_reader import (
    CHUNK_BYTES_MAX,
    JournalReader,
    find_journals,
    journals_of,
)
from bkspark.log.reading.ledger_files import OpenBookies, find_records, keep_owned, placed_logs
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.protocol.ledger.record import AddRecord

WHOLE_BOOKIE = "everything"
"""What is missing if a bookie as a whole is."""


@dataclass(frozen=True, slots=True)
class MissingReplica:
    """Something that a bookie should hold and does not show.

    Attributes:
        first_entry_id: of the fragment, or of the file.
        missing: ``WHOLE_BOOKIE`` or the name of a file on the bookie.
        reason: in one line.
    """

    ledger_id: int
    first_entry_id: int
    bookie_id: str
    missing: str
    reason: str


def missing_replicas(
    cluster: Cluster, ledgers: Iterable[LedgerMetadata], password: Password | None = None
) -> Iterator[MissingReplica]:
    """What is missing of ``ledgers``; of those that are not CLOSED, whole bookies only.

    The records of a ledger with a password cannot be read without it; then the files that they
    name are not looked at.
    """
    away = {status.member: status.problem for status in cluster.probe() if status.problem}
    with OpenBookies(cluster, away) as bookies:
        for ledger in ledgers:
            yield from _missing_of(bookies, ledger, password or Password())


def _missing_of(
    bookies: OpenBookies, ledger: LedgerMetadata, password: Password
) -> Iterator[MissingReplica]:
    away: set[Member] = set()
    for fragment in ledger.fragments:
        for member in fragment.ensemble:
            try:
                bookies.root(member)
            except BookieUnavailableError as error:
                away.add(member)
                yield MissingReplica(
                    ledger.ledger_id,
                    fragment.first_entry_id,
                    member.bookie_id,
                    WHOLE_BOOKIE,
                    str(error),
                )
    if ledger.state is not LedgerState.CLOSED or ledger.last_entry_id == -1:
        return
    try:
        digester = make_digester(ledger.settings.digest, password)
    except UnauthorizedError:
        return
    yield from _missing_records(bookies, ledger, digester, away)
    try:
        records = find_records(bookies, ledger, password)
    except CorruptDataError:
        return  # every member was reported above
    for placed in placed_logs(ledger, records):
        log = placed.entry_log
        name = layout.entry_log(ledger.ledger_id, log.attempt_id, log.stripe)
        for member in placed.window:
            reason = (
                "" if member in away else _file_problem(bookies, member, name, log.length_bytes)
            )
            if reason:
                yield MissingReplica(
                    ledger.ledger_id, placed.first_entry_id, member.bookie_id, name, reason
                )


@dataclass(slots=True)
class _Shown:
    """The add records in all journals of a ledger on one bookie, and why there may be more."""

    records: dict[int, AddRecord] = field(default_factory=dict)
    problem: str = ""


def _missing_records(
    bookies: OpenBookies, ledger: LedgerMetadata, digester: Digester, away: set[Member]
) -> Iterator[MissingReplica]:
    """Records that a member of their fragment does not show, as one for each such member."""
    shown = {
        member: _records_on(bookies, member, ledger, digester)
        for member in Locations(ledger).members
        if member not in away
    }
    missing: dict[tuple[int, Member], list[int]] = {}
    for entry_id, indexes in _wanted(ledger, [x.records for x in shown.values()]):
        fragment = ledger.fragment_of(entry_id)
        for member in (fragment.ensemble[index] for index in indexes):
            if member in shown and entry_id not in shown[member].records:
                missing.setdefault((fragment.first_entry_id, member), []).append(entry_id)
    for (first_entry_id, member), entry_ids in missing.items():
        problem = shown[member].problem or f"{len(entry_ids)} add records are missing"
        yield MissingReplica(
            ledger.ledger_id,
            first_entry_id,
            member.bookie_id,
            layout.journal_folder(ledger.ledger_id),
            f"{problem}, from entry {entry_ids[0]} on",
        )


def _records_on(
    bookies: OpenBookies, member: Member, ledger: LedgerMetadata, digester: Digester
) -> _Shown:
    shown = _Shown()
    try:
        root = bookies.root(member)
        found = find_journals(root, member.bookie_id, ledger.ledger_id, journals_of(ledger, member))
        shown.problem = found.problem
        for name in found.names:
            _add_records(shown, root, name, ledger, digester)
    except BookieUnavailableError as error:
        shown.problem = str(error)
    return shown


def _add_records(
    shown: _Shown, root: ReadableRoot, name: str, ledger: LedgerMetadata, digester: Digester
) -> None:
    """What journal ``name`` shows, one record after the other: it may be long, or claim to be."""
    reader = JournalReader(root, name, digester, ledger_id=ledger.ledger_id)
    try:
        is_corrupt = False
        for begin, end in reader.frames():
            stored = reader.stored(begin, end)
            is_corrupt = is_corrupt or stored is None
            if stored is not None:
                keep_owned(shown.records, stored.record, ledger)
        # What a killed writer or a power cut left half-written is nothing that is missing.
        if is_corrupt or reader.tail(CHUNK_BYTES_MAX) is Tail.CORRUPT:
            shown.problem = f"journal {name} is corrupt"
    except CorruptDataError:
        shown.problem = f"journal {name} is gone"


def _wanted(
    ledger: LedgerMetadata, shown: Iterable[Mapping[int, AddRecord]]
) -> Iterator[tuple[int, set[int]]]:
    """(first entry id, ensemble indexes) of every add record that there should be.

    Of those that nobody shows: the first entry that is missing, and the write sets of all.
    """
    known: dict[int, AddRecord] = {}
    for records in shown:
        for record in records.values():
            keep_owned(known, record, ledger)
    entry_id, end = 0, (ledger.last_entry_id or 0) + 1
    while entry_id < end:
        if entry_id in known:
            write_sets = known[entry_id].write_sets()
            following = known[entry_id].last_entry_id + 1
        else:
            following = min((first for first in known if first > entry_id), default=end)
            write_sets = tuple(
                ledger.quorum.write_set(missing)
                for missing in range(
                    entry_id, min(following, entry_id + len(ledger.quorum.write_sets()))
                )
            )
        yield entry_id, {index for indexes in write_sets for index in indexes}
        entry_id = following


def _file_problem(bookies: OpenBookies, member: Member, name: str, length_bytes: int) -> str:
    try:
        size = bookies.root(member).size(name)
    except BookieUnavailableError as error:
        return str(error)
    if size is None:
        return "the file is missing"
    return "" if size == length_bytes else f"the file has {size} bytes in place of {length_bytes}"
