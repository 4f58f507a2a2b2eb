"""Which copies of closed and open ledgers are missing now.

A look, not a promise: bookies are opened, journals are read and entry logs are measured, but their
blocks are not. What is found here is what the repair of a ledger would have to make again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.client.reading.ledger_files import (
    OpenBookies,
    find_records,
    journal_name,
    placed_logs,
    records_on,
)
from bkspark.errors import BookieUnavailableError, CorruptDataError, UnauthorizedError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.protocol.ledger import LedgerMetadata, LedgerState, Member

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
    with OpenBookies(cluster) as bookies:
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
        digester = make_digester(ledger.digest, password)
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


def _missing_records(
    bookies: OpenBookies, ledger: LedgerMetadata, digester: Digester, away: set[Member]
) -> Iterator[MissingReplica]:
    fragment = ledger.last_fragment
    for member in fragment.ensemble:
        if member in away:
            continue
        try:
            records_on(bookies, member, ledger, digester)
        except (BookieUnavailableError, CorruptDataError) as error:
            yield MissingReplica(
                ledger.ledger_id,
                fragment.first_entry_id,
                member.bookie_id,
                journal_name(ledger),
                str(error),
            )


def _file_problem(bookies: OpenBookies, member: Member, name: str, length_bytes: int) -> str:
    try:
        size = bookies.root(member).size(name)
    except BookieUnavailableError as error:
        return str(error)
    if size is None:
        return "the file is missing"
    return "" if size == length_bytes else f"the file has {size} bytes in place of {length_bytes}"
