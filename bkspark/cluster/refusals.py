"""What a writer notes and says of bookies that did not join."""

import logging
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import ensemble_log
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.errors import NotEnoughBookiesError

logger = logging.getLogger(__name__)


def give_up(
    cluster: Cluster, ledger_id: int, refused: Collection[BookieAddress], begun: Begun
) -> dict[str, str]:
    """Note that bookies did not join, and return the reasons.

    Raises:
        NothingSentError: this process could not ask, which is no bookie's fault.
    """
    begun.require_asked()
    reasons = {address.bookie_id: begun.failed[address.bookie_id] for address in refused}
    for address in refused:
        cluster.note_failure(address.member)
        ensemble_log.given_up(logger, ledger_id, address.bookie_id, reasons[address.bookie_id])
    return reasons


@contextmanager
def naming(refused: Mapping[str, str]) -> Iterator[None]:
    """Add to a ``NotEnoughBookiesError`` the bookies that seemed usable and refused."""
    try:
        yield
    except NotEnoughBookiesError as error:
        if not refused:
            raise
        names, reasons = ", ".join(sorted(refused)), "; ".join(dict.fromkeys(refused.values()))
        raise NotEnoughBookiesError(
            f"{error.args[0]}: writes to {names} failed just now ({reasons})",
            hint=error.hint,
        ) from error
