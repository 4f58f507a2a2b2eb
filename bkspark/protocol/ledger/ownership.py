"""Which record of an entry counts: the record of the term that owns the entry's id.

Rule 1. The fragments map ids to terms. A fragment opened by a writer names the writer's token; the
writer's term owns the ids from the fragment's first entry up to the first fragment of a later term.
If a recovery reopened the ledger, fragments name their owners themselves.

Rule 2. A record counts only if its term owns every id committed by the record. A record of an older
term is a leftover: its writer is fenced, and the recovery found the record unacknowledged. A record
of a later term belongs to a writer unknown to this metadata. Readers ignore both, on any bookie, in
any journal, and however many copies exist (H43, RB-34). So neither the highest term found nor the
first decides.

Rule 3. A recovery or a repair copies records unchanged into a journal of its own. So the term of a
record counts, never the term of the journal. A reader begins with the owner's journals, and then
reads journals of later terms, unless the owner's journals show a record with all its parts. The
order says where to look first, never that an entry is absent.

Rule 4. A fragment without a token was made by a recovery that closed the ledger, in a term without
a writer. Its records belong to an earlier writer. If the fragment replaced that writer's own
fragment, the metadata does not name the writer. No reader needs the name: a ledger without owners
has one writer (``metadata``, rule 6), so each id was sent in a single term. There every term counts
from the term of the last earlier token up to the fragment's own term.

Rule 5. A confirmation always counts: it commits nothing, and its content stays true in all later
terms.

Rule 6. Before the first remaining fragment no record counts, of any term.
"""

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter

from bkspark.protocol.ledger.metadata import FIRST_TERM, Fragment, LedgerMetadata
from bkspark.protocol.ledger.record import AddRecord

_FIRST = attrgetter("first_entry_id")


def owners(fragments: Sequence[Fragment], entry_id: int) -> range:
    """Return the terms whose records of ``entry_id`` (>= 0) may count; mostly a single term."""
    at = bisect_right(fragments, entry_id, key=_FIRST) - 1
    if at < 0:
        return range(0)
    if fragments[at].owner:
        return range(fragments[at].owner, fragments[at].owner + 1)
    named = (fragments[i].term for i in range(at, -1, -1) if fragments[i].token)
    return range(next(named, FIRST_TERM), fragments[at].term + 1)


def is_owner(fragments: Sequence[Fragment], term: int) -> bool:
    """Whether any record of ``term`` may count.

    Reads only the fragments of ``term`` and of later terms.
    """
    for fragment in reversed(fragments):
        if fragment.term < term:
            return False
        if term in owners(fragments, fragment.first_entry_id):
            return True
    return False


def first_behind(ledger: LedgerMetadata, term: int) -> int | None:
    """Return the first id owned by a later term than ``term``; None without any (rule 1)."""
    later = (f.first_entry_id for f in ledger.fragments if (f.owner or f.term) > term)
    return next(later, None)


def counts(fragments: Sequence[Fragment], record: AddRecord) -> bool:
    """Whether ``record`` counts in a ledger with these fragments, by the record's term."""
    first, last = record.first_entry_id, record.last_entry_id
    if last < first:
        return True
    end = fragments[-1]
    if first >= end.first_entry_id and end.token:  # the common case, answered faster
        return record.term == (end.owner or end.term)
    return record.term in owners(fragments, first) and record.term in owners(fragments, last)


def counts_in(ledger: LedgerMetadata, record: AddRecord) -> bool:
    """Whether ``record`` counts in ``ledger``, by the record's term."""
    return counts(ledger.fragments, record)
