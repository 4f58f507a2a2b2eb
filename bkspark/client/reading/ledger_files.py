"""Where the files of a closed ledger are: its add records, and the entry logs they name."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, BookieRoot
from bkspark.bookie.uri import open_bookie
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.errors import BookieUnavailableError, CorruptDataError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import Tail
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.record import AddRecord, EntryLog, first_entry_of


class OpenBookies:
    """The bookies of a cluster, each opened at most once, when first needed."""

    def __init__(self, cluster: Cluster) -> None:
        self._addresses = cluster.addresses()
        self._cleanup = ExitStack()
        self._roots: dict[Member, BookieRoot | BookieUnavailableError] = {}

    def __enter__(self) -> "OpenBookies":
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def root(self, member: Member) -> BookieRoot:
        """The storage of ``member``.

        Raises:
            BookieUnavailableError: it cannot be used, or has become another bookie.
        """
        known = self._roots.get(member)
        if known is None:
            try:
                known = self._cleanup.enter_context(open_bookie(self._address(member)).open_root())
            except BookieUnavailableError as error:
                known = error
            self._roots[member] = known
        if isinstance(known, BookieUnavailableError):
            raise known
        return known

    def located(self, window: Sequence[Member]) -> tuple[BookieAddress, ...]:
        """Where the members of ``window`` are, also those that fail now: readers report them."""
        return tuple(self._addresses[m] for m in window if m in self._addresses)

    def _address(self, member: Member) -> BookieAddress:
        address = self._addresses.get(member)
        if address is None:
            raise BookieUnavailableError(
                f"bookie {member.bookie_id} was initialised anew since and has lost its data"
            )
        return address


@dataclass(frozen=True, slots=True)
class PlacedLog:
    """A committed entry log.

    Attributes:
        first_entry_id: entry id of its first row.
        window: the members that should hold it, in write order.
    """

    entry_log: EntryLog
    first_entry_id: int
    window: tuple[Member, ...]


def find_records(
    bookies: OpenBookies, ledger: LedgerMetadata, password: Password
) -> Sequence[AddRecord]:
    """All add records of a closed ledger, from the first bookie that gives them whole.

    Raises:
        CorruptDataError: no bookie does.
        UnauthorizedError: the password is missing or wrong.
    """
    digester = make_digester(ledger.digest, password)
    problems: list[str] = []
    for member in ledger.last_fragment.ensemble:
        try:
            return records_on(bookies, member, ledger, digester)
        except (BookieUnavailableError, CorruptDataError) as error:
            problems.append(str(error))
    raise CorruptDataError(
        f"no bookie gives the add records of ledger {ledger.ledger_id}: {'; '.join(problems)}",
        hint="bring back one of these bookies",
    )


def records_on(
    bookies: OpenBookies, member: Member, ledger: LedgerMetadata, digester: Digester
) -> Sequence[AddRecord]:
    """All add records of a closed ledger as ``member`` has them.

    Raises:
        CorruptDataError: they are missing, damaged or not all there.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    data = bookies.root(member).read(journal_name(ledger))
    if data is None:
        raise CorruptDataError(f"bookie {member.bookie_id} has no journal of it")
    content = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
    if content.tail is not Tail.CLEAN or not _covers(content.records, ledger):
        raise CorruptDataError(
            f"the journal on bookie {member.bookie_id} ends {content.tail.value}"
        )
    return content.records


def stores_rows_inline(bookies: OpenBookies, ledger: LedgerMetadata, password: Password) -> bool:
    """Whether the ledger's rows lie in its journals: told by the first record that is found.

    False if no bookie gives a record now, so an answer of False about an open ledger may change.

    Raises:
        UnauthorizedError: the password is missing or wrong.
    """
    digester = make_digester(ledger.digest, password)
    folder = layout.journal_folder(ledger.ledger_id)
    for member in {m: None for fragment in ledger.fragments for m in fragment.ensemble}:
        try:
            root = bookies.root(member)
            for name in root.list(folder):
                data = root.read(f"{folder}/{name}") or b""
                content = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id)
                if content.records:
                    return bool(content.records[0].parts)
        except BookieUnavailableError:
            continue
    return False


def placed_logs(ledger: LedgerMetadata, records: Sequence[AddRecord]) -> Iterator[PlacedLog]:
    """The entry logs that ``records`` name."""
    for record in records:
        ensemble = ledger.fragment_of(record.first_entry_id).ensemble
        for attempt in record.attempts:
            for log in attempt.entry_logs:
                window = tuple(ensemble[i] for i in ledger.quorum.write_set(log.stripe))
                yield PlacedLog(log, first_entry_of(attempt, log), window)


def journal_name(ledger: LedgerMetadata) -> str:
    """The journal that holds the add records of a closed ledger."""
    return layout.journal(ledger.ledger_id, ledger.term, ledger.token)


def _covers(records: Sequence[AddRecord], ledger: LedgerMetadata) -> bool:
    """Whether ``records`` are the ledger's entries up to its last, without a gap."""
    expected = 0
    for record in records:
        if record.first_entry_id != expected or record.quorum != ledger.quorum:
            return False
        # A journal may hold an older term's records, which recovery wrote back as they were.
        is_own = record.term == ledger.term and record.token == ledger.token
        if not is_own and record.term >= ledger.term:
            return False
        expected = record.last_entry_id + 1
    return ledger.last_entry_id is not None and expected == ledger.last_entry_id + 1
