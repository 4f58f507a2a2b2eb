"""Whose record an entry is taken from: that of the term that owns its id, whatever else is found.

Rule 1. The fragments are the map from ids to terms. A fragment that a writer opened names his
token; his term owns the ids from its first entry on, up to the first fragment of a later term.
Where a recovery has let the ledger go on, fragments say themselves who owns them.

Rule 2. A record counts only if its term owns every id that it commits. One of an older term is left
over: its writer is fenced, and who recovered the ledger found that it never was acknowledged. One
of a later term is by a writer whom this metadata does not know yet. Neither is ever read, on
whatever bookie, in whatever journal, and however many copies of it there are (H43, RB-34). So the
highest term that is found tells nothing, nor does the first one.

Rule 3. What a recovery or a repair copies stays as its writer wrote it, in a journal of the
copier's own. So the term of a record counts, never that of the journal it lies in.
So a reader begins with the owner's journals, and goes on to those of later terms where they do not
show a record with all its parts: the order tells where to look first, never that nothing is there.

Rule 4. A fragment without a token was put in place by a recovery that closed the ledger, in a term
in which nobody ever wrote, or by an older version. Its records are of a writer in front, and where
it took the place of that one's own fragment, nothing says of which. Nothing needs to: writers of
such a ledger leave nothing undecided to one another (``metadata``, rule 5), so each id was only
ever sent in one term. There every term counts from that of the last token in front of it, up to the
fragment's own.

Rule 5. A confirmation commits nothing, and what it says stays true in all later terms: it counts.

Rule 6. In front of the first fragment that is left nothing counts, of whatever term.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from bkspark.protocol.ledger.metadata import FIRST_TERM, Fragment
from bkspark.protocol.ledger.record import AddRecord

_FIRST = attrgetter("first_entry_id")


def owners(fragments: Sequence[Fragment], entry_id: int) -> range:
    """The terms whose records of ``entry_id`` (>= 0) may be the one that counts; mostly one."""
    at = bisect_right(fragments, entry_id, key=_FIRST) - 1
    if at < 0:
        return range(0)
    if fragments[at].owner:
        return range(fragments[at].owner, fragments[at].owner + 1)
    named = (fragments[i].term for i in range(at, -1, -1) if fragments[i].token)
    return range(next(named, FIRST_TERM), fragments[at].term + 1)


def is_owner(fragments: Sequence[Fragment], term: int) -> bool:
    """Whether any record of ``term`` may count.

    Only the fragments of that term and later ones are looked at.
    """
    for fragment in reversed(fragments):
        if fragment.term < term:
            return False
        if term in owners(fragments, fragment.first_entry_id):
            return True
    return False


def first_behind(fragments: Sequence[Fragment], term: int) -> int | None:
    """The first id that is owned by a later term than ``term``; None if none is yet (rule 1)."""
    later = (f.first_entry_id for f in fragments if (f.owner or f.term) > term)
    return next(later, None)


def counts(fragments: Sequence[Fragment], record: AddRecord) -> bool:
    """Whether ``record`` is one of the ledger with these fragments, as far as its term tells."""
    first, last = record.first_entry_id, record.last_entry_id
    if last < first:
        return True
    end = fragments[-1]
    if first >= end.first_entry_id and end.token:  # as mostly, and quicker
        return record.term == (end.owner or end.term)
    return record.term in owners(fragments, first) and record.term in owners(fragments, last)
