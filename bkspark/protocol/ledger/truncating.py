"""Letting go of the beginning of a ledger that goes on in later terms, fragment by fragment.

Rule 1. Leading fragments go by one compare-and-set of anybody's, for ever: the ledger begins with
the first that is left, and says so. What lies in front is nobody's (``ownership``): no reader,
recovery, audit or repair knows of it, and who asks for it is told that it was truncated. Whoever
has older metadata may find it still, or finds it gone and looks at the metadata anew.

Rule 2. It changes nothing for a writer, or a recovery: neither the term nor the last fragment.

Rule 3. The last fragment with entries stays, which is one of the last two while the ledger is not
closed: its last record alone says the ledger's length and transactions.

Rule 4. A journal may be removed when its term is older than all that own an entry still: every
record in it is of its term or an older one, also where a recovery has put copies. So what one long
term has written stays as long as any of it does.
"""

from dataclasses import replace

from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState


def without_front(ledger: LedgerMetadata, entry_id: int) -> LedgerMetadata:
    """``ledger`` without fragments that end in front of ``entry_id``; never gives any back.

    Raises:
        InvalidRequestError: it does not go on in later terms.
    """
    if not ledger.goes_on:
        raise ledger.refused("only one that goes on in later terms is truncated at its beginning")
    if ledger.state is LedgerState.DELETING:
        return ledger
    stay = 1 if ledger.state is LedgerState.CLOSED else 2
    begins = (f.first_entry_id for f in ledger.fragments[: len(ledger.fragments) - stay + 1])
    begin = max((first for first in begins if first <= entry_id), default=0)
    kept = tuple(f for f in ledger.fragments if f.first_entry_id >= begin)
    return replace(ledger, fragments=kept)


def oldest_owner(ledger: LedgerMetadata) -> int:
    """Journals of terms in front of this one may be removed (rule 4)."""
    return ledger.fragments[0].owner if ledger.first_available else 0
