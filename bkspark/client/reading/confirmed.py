"""How far a ledger may be read: to its end if it is CLOSED, else to the last-add-confirmed.

The LAC of an open ledger is the highest that any bookie that answers has. Only the ends of journals
are read, and nobody is fenced or disturbed (features 2.3).
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bkspark.client import asking
from bkspark.client.cluster import Cluster
from bkspark.client.journals.journal_end import JournalEnds, JournalName
from bkspark.client.password import Password, make_digester
from bkspark.client.reading.ledger_files import OpenBookies
from bkspark.client.runtime import THREADS
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.protocol.record import AddRecord

COUNT_SECONDS = 2.0
"""For a number that is nice to have."""


@dataclass(frozen=True, slots=True)
class Readable:
    """What of a ledger may be read.

    Attributes:
        ledger: the metadata to read it with.
        last_entry_id: the last entry that may be read, -1 if there is none.
        length_bytes: payload up to there; of an open ledger about.
    """

    ledger: LedgerMetadata
    last_entry_id: int
    length_bytes: int


def readable(
    bookies: OpenBookies,
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    ends: JournalEnds | None = None,
) -> Readable:
    """What of a ledger may be read now.

    The metadata is read again after the LAC: an ensemble and a term are in it before any entry is
    acknowledged in them, so only then does it surely name where the entries up to the LAC are.

    Args:
        ends: remembers, from one call to the next, how far each journal was read.

    Raises:
        NoSuchLedgerError: it is not there, or not any more.
        BookieUnavailableError: it is not closed, and no member of its last fragment answers:
            unknown is never absent.
        UnauthorizedError: the password is missing or wrong.
    """
    seen = cluster.ledger(ledger_id)
    record = None
    if seen.value.last_entry_id is None:
        record = _last_record(bookies, seen.value, password, ends or JournalEnds())
        if not cluster.ledgers.is_current(str(ledger_id), seen):
            seen = cluster.ledger(ledger_id)
    ledger = seen.value
    if ledger.last_entry_id is None:
        return _confirmed(ledger, record)
    return Readable(ledger, ledger.last_entry_id, ledger.length_bytes or 0)


def confirmed_counts(cluster: Cluster, ledger_ids: Collection[int]) -> dict[int, int]:
    """How many entries of each ledger are confirmed, for people; nobody is disturbed.

    Without those of which that cannot be told at once: no bookie answers, or it takes a password.
    """

    def count(ledger_id: int) -> int:
        with OpenBookies(cluster) as bookies:
            return readable(bookies, cluster, ledger_id, Password()).last_entry_id + 1

    answers = asking.ask_all(
        THREADS,
        {ledger_id: partial(count, ledger_id) for ledger_id in ledger_ids},
        seconds=COUNT_SECONDS,
        name="count-entries",
    )
    return {
        ledger_id: answer.result()
        for ledger_id, answer in answers.items()
        if not isinstance(answer.exception(), BookKeeperError)
    }


def _confirmed(ledger: LedgerMetadata, record: AddRecord | None) -> Readable:
    # What lies in front of the last fragment was acknowledged when it was made.
    least = ledger.last_fragment.first_entry_id - 1
    if record is None:
        return Readable(ledger, least, 0)
    last = max(least, record.last_add_confirmed)
    share = min(1.0, (last + 1) / max(1, record.last_entry_id + 1))
    return Readable(ledger, last, int(record.length_bytes * share))


def _last_record(
    bookies: OpenBookies, ledger: LedgerMetadata, password: Password, ends: JournalEnds
) -> AddRecord | None:
    """The record with the highest LAC; None if no journal has one yet."""
    digester = make_digester(ledger.digest, password)
    records = _last_records(bookies, ledger, digester, ends)
    return max(records, key=lambda record: record.last_add_confirmed, default=None)


def _last_named(names: Sequence[str], ledger: LedgerMetadata) -> Sequence[str]:
    """The journals that may say more than the beginning of the last fragment does."""
    term = ledger.last_fragment.term
    return [name for name in names if layout.journal_term(name) >= term] or names


def _last_records(
    bookies: OpenBookies, ledger: LedgerMetadata, digester: Digester, ends: JournalEnds
) -> Iterator[AddRecord]:
    """The last record of each journal of the last fragment's members, as far as they answer."""
    folder = layout.journal_folder(ledger.ledger_id)
    answers = 0
    problems: list[str] = []
    for member in ledger.last_fragment.ensemble:
        try:
            root = bookies.root(member)
            for name in _last_named(root.list(folder), ledger):
                source = JournalName(ledger.ledger_id, member, f"{folder}/{name}", digester)
                record = ends.last_record(root, source)
                if record is not None:
                    yield record
            answers += 1
        except BookieUnavailableError as error:
            problems.append(str(error))
    if not answers:
        raise BookieUnavailableError(
            f"no bookie says how far ledger {ledger.ledger_id} may be read: {'; '.join(problems)}",
            hint="bring back one of these bookies, or read only up to a closed ledger's end",
        )
