"""Warns that ledgers are made on fewer bookies than wanted, once per shortage."""

import logging
import threading

from bkspark import environment
from bkspark.cluster.log_messages import tell
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum

logger = logging.getLogger(__name__)


class Shortages:
    """The clusters and wanted sizes of which this process has warned."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._warned: set[tuple[str, Quorum]] = set()

    def note_ledger(self, cluster_id: str, wanted: Quorum, *, is_smaller: bool) -> bool:
        """Record a new ledger; return whether it is the first smaller ledger since a full one.

        Only ledgers of one cluster and of the sizes ``wanted`` are compared.
        """
        key = (cluster_id, wanted)
        with self._guard:
            was_warned = key in self._warned
            if is_smaller:
                self._warned.add(key)
            else:
                self._warned.discard(key)
            return is_smaller and not was_warned


def note_made(cluster_id: str, ledger: LedgerMetadata) -> None:
    """Log that ``ledger`` is smaller than wanted: the first time as a warning, later as
    information.
    """
    made, wanted = ledger.quorum, sizes.wanted(ledger)
    is_smaller = made != wanted
    is_first = environment.the_one(Shortages).note_ledger(cluster_id, wanted, is_smaller=is_smaller)
    if not is_smaller:
        return
    copies = f"each entry gets {made.write_quorum_size} copies"
    if sizes.is_short(ledger):
        copies += f" and not {wanted.write_quorum_size}; `bkspark repair` makes the others once "
        copies += "there are bookies for them"
    tell(
        logger,
        "ledger %d is made on %d bookies, because only so many of the %d wanted can be used: %s "
        "(the setting strict refuses such writes)",
        *(ledger.ledger_id, made.ensemble_size, wanted.ensemble_size, copies),
        level=logging.WARNING if is_first else logging.INFO,
        ledger_id=ledger.ledger_id,
    )
