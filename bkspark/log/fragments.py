"""The fragments of a log: each range of offsets with its bookies and its term."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bkspark.cluster.cluster import Cluster
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.log.ledger_list import LoggedLedger


@dataclass(frozen=True, slots=True)
class LogFragment:
    """A range of a log's entries on one ensemble.

    Attributes:
        first_offset: offset of the first entry, even if there is no entry yet.
        term: the term of the writer that owns the entries.
        ensemble: bookie ids, in stripe order.
    """

    first_offset: int
    ledger_id: int
    term: int
    ensemble: tuple[str, ...]


def fragments_of(
    cluster: Cluster, places: Iterable[LoggedLedger], first_offset: int
) -> list[LogFragment]:
    """Return the fragments that end after ``first_offset``, oldest first; the last one always.

    Raises:
        NoSuchLedgerError: a ledger was deleted meanwhile.
    """
    found = list(_every(cluster, places))
    ends = [one.first_offset for one in found[1:]]
    behind = sum(end <= first_offset for end in ends)
    return found[behind:]


def _every(cluster: Cluster, places: Iterable[LoggedLedger]) -> Iterator[LogFragment]:
    for place in places:
        for location in Locations(cluster.ledger(place.ledger_id).value):
            yield LogFragment(
                place.first_offset + location.first_entry_id,
                place.ledger_id,
                location.writer_term,
                tuple(location.bookie_ids),
            )
