"""Which failed members of an ensemble are replaced now.

Rule 1. Without delay every member that failed is, so that entries get all their copies.

Rule 2. With delay a writer goes on as long as every entry still reaches Qa members of its write
set; when some would not, all that failed are replaced. Entries written meanwhile
have fewer than Qw copies until they are repaired, and not one fewer than Qa.
"""

from collections.abc import Collection

from bkspark.protocol.ledger.quorum import Quorum


def members_to_replace(
    quorum: Quorum, failed: Collection[int], *, is_delayed: bool
) -> tuple[int, ...]:
    """The ensemble indexes among ``failed`` that must be replaced before the writer goes on."""
    live = [index for index in range(quorum.ensemble_size) if index not in failed]
    if is_delayed and quorum.is_ack_quorum_of_all(live):
        return ()
    return tuple(sorted(failed))
