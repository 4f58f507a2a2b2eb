"""Parts of ledgers whose rows lie in their journals, and where each part begins.

A big one is shared by several tasks. Where its pages begin is looked up once, when it is planned,
so that each task reads its part and not what lies in front of it.

The machinery that reads journals is loaded when it is needed: each process that Spark starts for a
log of entry logs does without it, which saves a quarter of what this package takes to load.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.protocol.ledger import LedgerMetadata, Member

if TYPE_CHECKING:
    from bkspark.client.journals.journal_pages import Mark

T = TypeVar("T")
Marks = Sequence[tuple[Member, "Mark"]]


@dataclass(frozen=True, slots=True)
class InlineSlice:
    """Entries ``[begin_entry, end_entry)`` of a ledger whose rows lie in its journals.

    Attributes:
        turn: differs between neighbours, so that they read different bookies.
        marks: where in the journals to begin, so that a task reads only its part.
    """

    ledger_id: int
    begin_entry: int
    end_entry: int
    length_bytes: int
    metadata_uri: str
    turn: int = 0
    marks: tuple[tuple[Member, "Mark"], ...] = ()


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


def find_marks(cluster: Cluster, ledger: LedgerMetadata, end: int, password: Password) -> Marks:
    """Where pages begin in the ledger's journals, up to entry ``end``, on bookies that answer."""
    from bkspark.client.handles.group_finder import GroupFinder

    digester = make_digester(ledger.digest, password)
    return GroupFinder(cluster, ledger.ledger_id, digester).marks(ledger, end)


def with_mark(item: T, marks: Mapping[int, Marks]) -> T:
    """``item``, if it is inline with the last mark of each journal that is not behind its begin."""
    if not isinstance(item, InlineSlice):
        return item
    last = {
        (member, mark.name): (member, mark)
        for member, mark in marks.get(item.ledger_id, ())
        if mark.first_entry_id <= item.begin_entry
    }
    return replace(item, marks=tuple(last.values()))
