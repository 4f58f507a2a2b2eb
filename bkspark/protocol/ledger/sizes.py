"""The sizes of a ledger that was made on fewer bookies than were wanted.

Rule 1. Such a ledger notes the sizes that it was made with and those that were wanted. It is a
ledger like any other: writers, recoveries and readers go by the sizes that it has.

Rule 2. Its add records name the sizes that it was made with, and never change (R9). A ledger that
has got further members since has other sizes than its records.

Rule 3. It is *short* while its entries have fewer copies than the write quorum that was wanted.
A ledger that only has fewer stripes than wanted has all its copies, and is not short.
"""

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum


def wanted(ledger: LedgerMetadata) -> Quorum:
    """The sizes that were wanted when ``ledger`` was made."""
    smaller = ledger.settings.smaller
    return ledger.quorum if smaller is None else smaller.wanted


def of_records(ledger: LedgerMetadata) -> Quorum:
    """The sizes that the add records of ``ledger`` name (rule 2)."""
    smaller = ledger.settings.smaller
    return ledger.quorum if smaller is None else smaller.made


def is_short(ledger: LedgerMetadata) -> bool:
    """Whether entries of ``ledger`` have fewer copies than wanted; a closed empty one has none."""
    is_empty = ledger.last_entry_id == INVALID_ENTRY_ID
    copies = ledger.quorum.write_quorum_size
    return copies < wanted(ledger).write_quorum_size and not is_empty
