"""The sizes of a ledger made on fewer bookies than wanted.

Rule 1. Such a ledger notes its sizes when made and the wanted sizes. Writers, recoveries and
readers use the ledger's present sizes, as in any ledger.

Rule 2. Its add records name the sizes when made, and never change (R9). After the ledger got
further members, its sizes differ from those in its records.

Rule 3. A ledger is *short* while its entries have fewer copies than the wanted write quorum. A
ledger with fewer stripes than wanted has all its copies, and is not short.
"""

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum


def wanted(ledger: LedgerMetadata) -> Quorum:
    """Return the sizes wanted when ``ledger`` was made."""
    smaller = ledger.settings.smaller
    return ledger.quorum if smaller is None else smaller.wanted


def of_records(ledger: LedgerMetadata) -> Quorum:
    """Return the sizes named by the add records of ``ledger`` (rule 2)."""
    smaller = ledger.settings.smaller
    return ledger.quorum if smaller is None else smaller.made


def is_short(ledger: LedgerMetadata) -> bool:
    """Whether entries of ``ledger`` have fewer copies than wanted; False without entries."""
    is_empty = ledger.last_entry_id == INVALID_ENTRY_ID
    copies = ledger.quorum.write_quorum_size
    return copies < wanted(ledger).write_quorum_size and not is_empty
