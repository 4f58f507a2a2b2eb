"""The transactions that a log remembers, including its open tail, read without a fence."""

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.log.reading.ledger_files import OpenBookies, find_records
from bkspark.log.reading.log_view import LogView, look_at
from bkspark.protocol.log.transactions import remembering


def transactions_of(cluster: Cluster, log_name: str, password: Password) -> dict[str, int]:
    """Return the last version per application; the application that committed last comes last.

    Raises:
        NoSuchLedgerError: there is no such log.
        BookieUnavailableError: too few bookies answer, so the readable end is unknown.
        CorruptDataError: no bookie gives the last record of the open ledger.
        UnauthorizedError: the password is missing or wrong.
    """
    view = look_at(cluster, log_name, password)
    found = dict(view.record.transactions)
    with OpenBookies(cluster) as bookies:
        for ledger_id, count in _tail_of(view).items():
            ledger = view.metadata[ledger_id]
            # The last record of a ledger repeats the transactions of all earlier records.
            records = find_records(bookies, ledger, password, begin=count - 1, end=count)
            found = remembering(found, records[-1].transactions)
    return found


def _tail_of(view: LogView) -> dict[int, int]:
    return {place.ledger_id: place.entry_count for place in view.tail}
