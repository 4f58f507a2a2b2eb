"""Asks the cluster for a writer: its members, spare bookies, and whether the ledger is still its
own.

Each question may take long. None changes the writer's state: the result is an event.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.cluster import ensembles, log_messages
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, journal_on
from bkspark.cluster.ensembles import Regrouping, Vacancy
from bkspark.cluster.log_messages import leave_out
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookieUnavailableError,
    BookKeeperError,
    InvalidTermError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format.digest import Digester
from bkspark.metadata import freshness
from bkspark.protocol.apart import Apart
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import CheckTicket

logger = logging.getLogger(__name__)

_GONE = "none, because the bookie is being removed"
"""An incarnation that no bookie has: stores there fail, and the member is replaced."""

_OF_FENCED = (
    BookieUnavailableError,
    LedgerClosedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
"""Errors that a writer may meet after a later term has begun in a ledger with several terms."""

News = tuple[steps.Event, Versioned[LedgerMetadata] | None]
"""An event, and the version of the metadata on which it rests."""


class Membership:
    """The metadata of one writer's ledger.

    Args:
        seen: of a ledger OPEN for this writer.
        begun: the journals of its members. Where they were begun, the members were found a moment
            ago, so their records are not read again: a member that was moved or initialised again
            since fails the first post-check.
        addresses: of its members; None for those of ``begun``, or to look them up.
        is_timed: whether checks need their own time limit, because no task watches them.

    Attributes:
        seen: the version used by the writer.
        on_failure: called when a member is given up; must take no lock, and not wait.

    Raises:
        NotEnoughBookiesError: a member was initialised again since it was chosen.
    """

    def __init__(
        self,
        cluster: Cluster,
        seen: Versioned[LedgerMetadata],
        digester: Digester,
        begun: Begun,
        addresses: Iterable[BookieAddress] | None = None,
        *,
        is_timed: bool = False,
    ) -> None:
        self.seen = seen
        self.on_failure: Callable[[], None] = lambda: None
        self._cluster = cluster
        self._digester = digester
        self._begun = begun
        self._checked = cluster.ledgers if is_timed else cluster.untimed_ledgers
        members = Locations(seen.value).last.members
        if addresses is None and begun.places.keys() >= set(members):
            addresses = begun.places.values()
        elif addresses is None:
            with freshness.from_begin():
                addresses = cluster.addresses_of(members, leave_out, is_anew=True).values()
        self._addresses = {address.member: address for address in addresses}
        for member in members:
            if member not in self._addresses:
                raise NotEnoughBookiesError(
                    f"ledger {seen.value.ledger_id}: bookie {member.bookie_id} was "
                    "initialised again after it was chosen",
                    hint="nothing was written; create another ledger",
                )

    def address(self, member: Member) -> BookieAddress:
        """Return the address of a member."""
        return self._addresses[member]

    def journal(self, address: BookieAddress) -> Journal | None:
        """Return the writer's own journal on an enlisted bookie; only once."""
        return self._begun.hand_over(address.bookie_id)

    def journal_on(self, address: BookieAddress) -> Journal:
        """Return the same, or make the journal now if another process has made the ledger.

        Raises:
            BookieUnavailableError: the journal was given before, or cannot be made.
        """
        return journal_on(address, self.seen.value, self._begun)

    def take_back(self, address: BookieAddress, journal: Journal | None) -> None:
        """Take back the journal of a bookie that has left after storing all its records."""
        if journal is not None:
            self._begun.give_back(address.bookie_id, journal)

    def close(self) -> None:
        """Release journals without an appender."""
        self._begun.close()

    # --- slow questions ----------------------------------------------------------------------

    def check(self, ticket: CheckTicket, seen: Versioned[LedgerMetadata]) -> News:
        """Check that ``seen`` is still the newest metadata; otherwise report the newest."""
        ledger_id = seen.value.ledger_id
        if self._checked.is_current(str(ledger_id), seen):
            return steps.Checked(ticket), None
        newest = self._cluster.ledger(ledger_id)
        return steps.Checked(ticket, newest.value), newest

    def enlist(self, step: steps.Enlist, among: Sequence[BookieAddress] | None = None) -> News:
        """Find a bookie that is not in use and has not failed; begin the writer's journal there.

        Args:
            among: candidates, preferred first; None for any bookie.

        Raises:
            LedgerFencedError: a later term has begun: no bookie takes records of this writer.
        """
        mine = self._still_mine()
        joining = Joining.last_writer(mine, self._digester)
        exclude = step.exclude | self._begun.lent
        place = (mine.ledger_id, step.ensemble_index, joining, step.staying)
        now = (Locations(mine).last.members, Apart.of(mine))
        vacancy = Vacancy(*place, exclude, *now, among, self._begun)
        found = ensembles.replace(self._cluster, vacancy)
        passed_over = tuple(found.failed.items())
        if found.address is None:
            return steps.Enlisted(None, passed_over), None
        member = found.address.member
        self._addresses[member] = found.address
        self._begun.add(found.begun)
        return steps.Enlisted(member, passed_over), None

    def _still_mine(self) -> LedgerMetadata:
        """Return the ledger as the writer knows it; raise if a later term has begun.

        A later writer removes this writer's journals without entries. Without this check the
        bookies would seem to fail.
        """
        mine = self.seen.value
        if mine.goes_on:
            newest = self._cluster.ledger(mine.ledger_id).value
            if newest.term > mine.term:
                raise newest.fenced(mine.term)
        return mine

    def _require_not_fenced(self) -> None:
        """Raise ``LedgerFencedError`` if bookies refused because a later term has begun."""
        try:
            self._still_mine()
        except LedgerFencedError:
            raise
        except BookKeeperError:
            return  # too few bookies, for an unknown reason

    def muster(self, step: steps.Muster) -> News:
        """Find bookies for a new fragment: staying members, and newly enlisted bookies.

        Raises:
            LedgerFencedError: as ``enlist``.
        """
        lent = self._begun.lent.difference(member.bookie_id for member in step.ensemble)
        exclude = step.exclude | lent
        try:
            ledger = self._still_mine()
            wanted = Regrouping(
                ledger.ledger_id,
                Joining.last_writer(ledger, self._digester),
                step.ensemble,
                step.failed,
                exclude,
                self._begun,
                Apart.of(ledger),
            )
            found = ensembles.regroup(self._cluster, wanted)
        except LedgerFencedError:
            raise
        except BookKeeperError as error:  # no bookie was asked
            return steps.Mustered((), reason=str(error)), None
        self._begun.add(found.begun)
        self._addresses |= {m: found.addresses[m] for m in found.ensemble if m in found.addresses}
        if not found.ensemble:
            self._require_not_fenced()
        too_few = "" if found.ensemble else "there are too few bookies that can be used"
        return steps.Mustered(found.ensemble, tuple(found.failed.items()), too_few), None

    def swap(self, step: steps.Swap) -> News:
        """Store another ensemble in the metadata."""
        step = replace(step, now_ms=environment.now_ms())
        stored = self._cluster.ledgers.update(str(step.ledger_id), step.applied_to)
        for member in set(step.ensemble) - set(Locations(self.seen.value).last.members):
            if self._cluster.is_going(member):
                self._addresses[member] = replace(self._addresses[member], incarnation=_GONE)
        return steps.Swapped(stored.value), stored

    def explained(self, error: BookKeeperError) -> BookKeeperError:
        """Return ``error``, or an ``InvalidTermError`` if the metadata shows a later term.

        A takeover removes permissions and journals of older terms; a seal or a deletion takes over
        first. So a fenced writer of a ledger with several terms may meet any of these errors, and
        its user always gets the same kind. The writer of another ledger meets only a missing
        permission.
        """
        mine = self.seen.value
        is_asked = (
            isinstance(error, _OF_FENCED) if mine.goes_on else type(error) is LedgerFencedError
        )
        if not is_asked or isinstance(error, InvalidTermError):
            return error
        try:
            newest = self._cluster.ledgers.get(str(mine.ledger_id))
        except BookKeeperError:
            return error
        if newest is None and mine.goes_on:
            line = f"ledger {mine.ledger_id} was deleted by another client"
            told = LedgerFencedError.by(
                line, hint=error.hint, term=mine.term, newer_term=mine.term + 1
            )
        elif newest is not None and newest.value.term > mine.term:
            told = newest.value.fenced(mine.term, hint=error.hint)
        else:
            return error
        told.__cause__ = error
        return told

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Raise an error of the block as ``explained`` returns it."""
        try:
            yield
        except BookKeeperError as error:
            told = self.explained(error)
            if told is error:
                raise
            raise told from error

    # --- log lines -----------------------------------------------------------------------------

    def released(self, step: steps.Release) -> None:
        """Log that a member is no longer used."""
        self._cluster.note_failure(step.member)
        name = step.member.bookie_id
        log_messages.given_up(logger, self.seen.value.ledger_id, name, step.reason)
        self.on_failure()

    def joined(self, step: steps.Join) -> None:
        """Log that the metadata names another member."""
        (old, reason), new, first = step.replaced, step.member.bookie_id, step.first_entry_id
        log_messages.replaced(logger, self.seen.value.ledger_id, old, new, first, reason)

    def rolled(self, ledger: LedgerMetadata) -> None:
        """Log that a new fragment is in use."""
        log_messages.rolled(logger, ledger)

    def warn(self, step: steps.WarnOfGaps) -> None:
        """Log that entries have fewer copies."""
        log_messages.fewer_copies(logger, self.seen.value, step)
