"""Truncation of the beginning of a ledger that continues in later terms, fragment by fragment.

Rule 1. Any client removes leading fragments for ever by one compare-and-set: the metadata then
begins with the first remaining fragment. No term owns earlier entries (``ownership``). Readers,
recoveries, audits and repairs ignore earlier entries, and a request for such an entry fails with an
error that names the truncation. A client with older metadata may still find the entries; if not,
the client reads the metadata again.

Rule 2. Truncation changes neither the term nor the last fragment, so writers and recoveries do not
notice.

Rule 3. The last fragment with entries stays, because only its last record states the ledger's
length and transactions. While the ledger is not closed, this is one of the last two fragments.

Rule 4. A journal may be removed when its term is older than all terms that still own an entry.
Every record in a journal is of the journal's term or of an older term, including copies made by
recoveries. So the journals of a long term stay as long as any of its entries stays.
"""

from dataclasses import replace

from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState


def without_front(ledger: LedgerMetadata, entry_id: int) -> LedgerMetadata:
    """Return ``ledger`` without the fragments that end before ``entry_id``; never restores any.

    Raises:
        InvalidRequestError: the ledger does not continue in later terms.
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
    """Return the oldest term that owns an entry; journals before may be removed (rule 4)."""
    return ledger.fragments[0].owner if ledger.first_available else 0
