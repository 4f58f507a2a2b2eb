"""Sweeping what writers that were killed in mid-file have left on the bookies.

A file is written under a temporary name and gets its own when it is whole. Nothing looks temporary
names up, so one may be removed at any time without a promise being broken, and no clock is needed
to tell old from new: whoever still writes to it gets an error before its file has a name, and so
before anything counts it (R1). That error costs a living writer its bookie, though. Therefore only
folders of ledgers that are CLOSED or DELETING are swept: no live writer has work there, and a
repair that is hit begins again. Whole files that no record names are another matter (R12); this
never touches a file that has a name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from bkspark.bookie.contract import BookieAddress
from bkspark.bookie.uri import open_bookie
from bkspark.client.cluster import Cluster
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.protocol.ledger import LedgerState

_SEALED = {LedgerState.CLOSED, LedgerState.DELETING}


@dataclass(slots=True)
class SweepReport:
    """What a sweep did.

    Attributes:
        removed: files.
        problems: bookie id -> why it was not swept to the end, in one line.
    """

    removed: int = 0
    problems: dict[str, str] = field(default_factory=dict)


def sweep_leftovers(cluster: Cluster) -> SweepReport:
    """Remove temporary files of sealed ledgers from every bookie that can be reached.

    Can be killed at any point and run again, and at once with anything else. A bookie that fails is
    reported and does not stop the others.

    Raises:
        OutcomeUnknownError: the metadata store gave no sure answer; nothing was removed.
    """
    sealed = [ledger_id for ledger_id in cluster.ledger_ids() if _is_sealed(cluster, ledger_id)]
    report = SweepReport()
    for record in cluster.bookies().values():
        try:
            # Bookies that are in no fragment as well: spares were written to and not needed.
            report.removed += _sweep_bookie(cluster.address(record), sealed)
        except BookieUnavailableError as error:
            report.problems[record.bookie_id] = str(error)
    return report


def _is_sealed(cluster: Cluster, ledger_id: int) -> bool:
    seen = cluster.ledgers.get(str(ledger_id))
    return seen is not None and seen.value.state in _SEALED


def _sweep_bookie(address: BookieAddress, ledger_ids: Sequence[int]) -> int:
    with open_bookie(address).open_root() as root:
        return sum(
            root.sweep(folder)
            for ledger_id in ledger_ids
            for folder in (layout.terms_folder(ledger_id), layout.entries_folder(ledger_id))
        )
