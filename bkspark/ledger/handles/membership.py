"""What a writer asks the cluster for: who its members are, who may step in, whose the ledger is.

Each of these may take long. They change nothing of the writer: what came of them is an event.
"""

import logging

from bkspark.bookie.contract import BookieAddress
from bkspark.cluster import ensemble_log, ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.ensembles import Vacancy
from bkspark.cluster.records import Seen
from bkspark.errors import NotEnoughBookiesError
from bkspark.format import layout
from bkspark.protocol.ledger.adding import CheckTicket
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.ledger.writing_steps import (
    Checked,
    Enlist,
    Enlisted,
    Event,
    Join,
    Release,
    Swap,
    Swapped,
    WarnOfGaps,
)

logger = logging.getLogger(__name__)

News = tuple[Event, Seen[LedgerMetadata] | None]
"""What happened, and the version of the metadata that it tells of."""


class Membership:
    """The metadata of one writer's ledger.

    Args:
        seen: of a ledger that is OPEN for this writer.

    Attributes:
        seen: the version that the writer goes by.

    Raises:
        NotEnoughBookiesError: a member is not what it was when it was chosen.
    """

    def __init__(self, cluster: Cluster, seen: Seen[LedgerMetadata]) -> None:
        self.seen = seen
        self._cluster = cluster
        self._addresses = cluster.addresses()
        for member in seen.value.last_fragment.ensemble:
            if member not in self._addresses:
                raise NotEnoughBookiesError(
                    f"ledger {seen.value.ledger_id}: bookie {member.bookie_id} was initialised "
                    "anew since it was chosen",
                    hint="nothing was written; create another ledger",
                )

    def address(self, member: Member) -> BookieAddress:
        """Where a member is."""
        return self._addresses[member]

    # --- what may take long ------------------------------------------------------------------

    def check(self, ticket: CheckTicket, seen: Seen[LedgerMetadata]) -> News:
        """Whether ``seen`` is what the metadata says, and what it says if not."""
        ledger_id = seen.value.ledger_id
        if self._cluster.untimed_ledgers.is_current(str(ledger_id), seen):
            return Checked(ticket), None
        newest = self._cluster.ledger(ledger_id)
        return Checked(ticket, newest.value), newest

    def enlist(self, step: Enlist) -> News:
        """A bookie that is not in use, has not failed, and holds the writer's permission."""
        mine = self.seen.value
        permission = layout.permission(mine.ledger_id, mine.term, mine.token)
        vacancy = Vacancy(mine.ledger_id, permission, step.staying, step.exclude)
        address, failed = ensembles.replace(self._cluster, vacancy)
        passed_over = tuple(failed.items())
        if address is None:
            return Enlisted(None, passed_over), None
        member = Member(address.bookie_id, address.incarnation)
        self._addresses[member] = address
        return Enlisted(member, passed_over), None

    def swap(self, step: Swap) -> News:
        """Have the metadata name another ensemble."""
        stored = self._cluster.ledgers.update(str(step.ledger_id), step.applied_to)
        return Swapped(stored.value), stored

    # --- what is told --------------------------------------------------------------------------

    def released(self, step: Release) -> None:
        """A member is used no more."""
        self._cluster.note_failure(step.member)
        name = step.member.bookie_id
        ensemble_log.given_up(logger, self.seen.value.ledger_id, name, step.reason)

    def joined(self, step: Join) -> None:
        """The metadata names another member."""
        (old, reason), new, first = step.replaced, step.member.bookie_id, step.first_entry_id
        ensemble_log.replaced(logger, self.seen.value.ledger_id, old, new, first, reason)

    def warn(self, step: WarnOfGaps) -> None:
        """Entries get fewer copies."""
        ensemble_log.fewer_copies(logger, self.seen.value, step.first_entry_id, dict(step.lacking))
