"""Let maintenance go on without bookies whose metadata records cannot be read.

Such a bookie is unknown: it may have all that it had. So it is not asked, and counts neither as
gone nor as lost. Ledgers that name it are left as they are.
"""

from collections.abc import Collection, Mapping

from bkspark.admin.maintenance import Left
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.stepping_over import leave_out
from bkspark.errors import BookKeeperError, CorruptDataError
from bkspark.format import layout
from bkspark.protocol.ledger.deletion import members_of
from bkspark.protocol.ledger.metadata import LedgerMetadata


def leave_out_unreadable(cluster: Cluster) -> dict[str, str]:
    """Let ``cluster`` leave out the bookies that are unreadable now; return the faults by id.

    A record that becomes unreadable later is still an error.
    """
    found: dict[str, str] = {}

    def note(key: str, error: BookKeeperError) -> None:
        if not isinstance(error, CorruptDataError):
            raise error
        found[key.rpartition("/")[2]] = str(error.args[0])

    def step_over(key: str, error: BookKeeperError) -> None:
        if key.rpartition("/")[2] not in found:
            raise error
        leave_out(key, error)

    cluster.bookies(note)
    if found:
        cluster.registrations.step_over = step_over
    return found


def why_left(ledger: LedgerMetadata, unreadable: Collection[str]) -> str:
    """Return why the ledger is left as it is; empty if it names no unreadable bookie."""
    named = {member.bookie_id for member in members_of(ledger)}.intersection(unreadable)
    names = ", ".join(sorted(named))
    return f"it names {names}, whose metadata record cannot be read" if named else ""


def left_records(unreadable: Mapping[str, str]) -> list[Left]:
    """Return the unreadable records as left."""
    return [
        Left(
            f"metadata record {layout.BOOKIES_PREFIX}/{bookie_id}",
            reason,
            "`bkspark metadata damaged` says what to do",
        )
        for bookie_id, reason in sorted(unreadable.items())
    ]
