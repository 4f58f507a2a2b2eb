"""Finding the record that ends at the last confirmed entry.

A recovery that keeps nothing beyond it needs the record all the same: it alone knows the ledger's
length and transactions up to there.
"""

from collections.abc import Mapping

from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.client.reading.ledger_files import OpenBookies
from bkspark.client.recovery.fencing import MemberTail
from bkspark.client.recovery.journal_tail import find_record
from bkspark.errors import BookieUnavailableError, NotEnoughBookiesError
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.protocol.record import AddRecord


def confirmed_record(
    cluster: Cluster,
    ledger: LedgerMetadata,
    password: Password,
    tails: Mapping[int, MemberTail],
    entry_id: int,
) -> AddRecord:
    """The record that ends at ``entry_id``: from what was read, else from its own fragment.

    Raises:
        NotEnoughBookiesError: no bookie shows it.
    """
    for tail in tails.values():
        shown = [record for record, _ in tail.answer.records.values()]
        for record in (*shown, tail.confirmed):
            if record is not None and record.last_entry_id == entry_id:
                return record
    return _look_up(cluster, ledger, password, entry_id)


def _look_up(
    cluster: Cluster, ledger: LedgerMetadata, password: Password, entry_id: int
) -> AddRecord:
    digester = make_digester(ledger.digest, password)
    problems: list[str] = []
    with OpenBookies(cluster) as bookies:
        for member in ledger.fragment_of(entry_id).ensemble:
            try:
                found = find_record(bookies.root(member), ledger.ledger_id, digester, entry_id)
            except BookieUnavailableError as error:
                problems.append(str(error))
                continue
            if found is not None:
                return found
    raise NotEnoughBookiesError(
        f"ledger {ledger.ledger_id}: no bookie shows the record of the confirmed entry "
        f"{entry_id} ({'; '.join(problems)})",
        hint="bring back one of these bookies, then recover again",
    )
