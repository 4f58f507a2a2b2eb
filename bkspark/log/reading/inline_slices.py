"""Parts of ledgers whose rows lie in their journals, and where each part begins.

A big one is shared by several tasks. Where its pages begin is looked up once, when it is planned,
so that each task reads its part and not what lies in front of it.

The machinery that reads journals is loaded when it is needed: each process that Spark starts for a
log of entry logs does without it, which saves a quarter of what this package takes to load.
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
    """Entries ``[begin_entry, end_entry)`` of a ledger whose rows lie in its journals.

    Attributes:
        turn: differs between neighbours, so that they read different bookies.
        index: where in the journals to begin, so that a task reads only its part.
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
    """``item`` in pieces: the first fills ``room`` bytes, the others ``share`` each."""
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
    """Where pages begin in the ledger's journals, up to entry ``end``, on bookies that answer."""
    from bkspark.ledger.handles.entry_reader import EntryReader

    digester = make_digester(ledger.settings.digest, password)
    return EntryReader(cluster, ledger.ledger_id, digester).index(ledger, end)


def with_index(item: T, index: Mapping[int, Index]) -> T:
    """``item``; an inline one with the last entry of each journal that is not behind its begin."""
    if not isinstance(item, InlineSlice):
        return item
    last = {
        (member, entry.name): (member, entry)
        for member, entry in index.get(item.ledger_id, ())
        if entry.first_entry_id <= item.begin_entry
    }
    return replace(item, index=tuple(last.values()))
