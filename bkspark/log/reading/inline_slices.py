"""Parts of ledgers whose rows are stored in their journals, and where each part begins.

Several tasks share a large ledger. The plan looks up once where the journals' pages begin, so that
each task reads only its own part.

The modules that read journals are imported on demand: a Spark process that reads entry logs only
does not need them, and loads this package in three quarters of the time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member

if TYPE_CHECKING:
    from bkspark.ledger.journals.journal_pages import IndexEntry

T = TypeVar("T")
Index = Sequence[tuple[Member, "IndexEntry"]]


@dataclass(frozen=True, slots=True)
class InlineSlice:
    """Entries ``[begin_entry, end_entry)`` of a ledger with its rows in journals.

    Attributes:
        turn: differs between neighbours, which therefore read different bookies.
        index: where to begin in the journals; a task then reads only its part.
    """

    ledger_id: int
    begin_entry: int
    end_entry: int
    length_bytes: int
    metadata_uri: str
    cluster_id: str = ""
    turn: int = 0
    index: tuple[tuple[Member, "IndexEntry"], ...] = ()


def cut_inline(item: InlineSlice, room: int, share: int) -> Iterator[InlineSlice]:
    """Split ``item`` into pieces: the first fills ``room`` bytes, later pieces ``share`` bytes."""
    count = item.end_entry - item.begin_entry
    begin, limit = item.begin_entry, room
    while begin < item.end_entry:
        end = begin + max(1, count * limit // max(1, item.length_bytes))
        if (item.end_entry - end) * 16 < count:
            end = item.end_entry
        length = item.length_bytes * (end - begin) // count
        yield replace(item, begin_entry=begin, end_entry=end, length_bytes=length)
        begin, limit = end, share


def find_index(cluster: Cluster, ledger: LedgerMetadata, end: int, password: Password) -> Index:
    """Return where pages begin in the ledger's journals, up to entry ``end``.

    Journals on bookies without an answer are left out.
    """
    from bkspark.ledger.handles.entry_reader import EntryReader

    digester = make_digester(ledger.settings.digest, password)
    return EntryReader(cluster, ledger.ledger_id, digester).index(ledger, end)


def with_index(item: T, index: Mapping[int, Index]) -> T:
    """Return ``item``; an inline slice gets the last page of each journal up to its begin."""
    if not isinstance(item, InlineSlice):
        return item
    last = {
        (member, entry.name): (member, entry)
        for member, entry in index.get(item.ledger_id, ())
        if entry.first_entry_id <= item.begin_entry
    }
    return replace(item, index=tuple(last.values()))
