"""What a writer asks the cluster for: who its members are, who may step in, whose the ledger is.

Each of these may take long. They change nothing of the writer: what came of them is an event.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.cluster import ensemble_log, ensembles
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, journal_on
from bkspark.cluster.ensembles import Regrouping, Vacancy
from bkspark.cluster.records import Versioned
from bkspark.cluster.stepping_over import leave_out
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
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.writer import steps
from bkspark.protocol.writer.adding import CheckTicket

logger = logging.getLogger(__name__)

_GONE = "none, because it is being removed"
"""Nothing is stored on a bookie that must be this incarnation: it fails, and is replaced."""

_OF_FENCED = (
    BookieUnavailableError,
    LedgerClosedError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    NothingSentError,
    OutcomeUnknownError,
)
"""What the writer of a ledger that goes on may meet where a later term has begun."""

News = tuple[steps.Event, Versioned[LedgerMetadata] | None]
"""What happened, and the version of the metadata that it tells of."""


class Membership:
    """The metadata of one writer's ledger.

    Args:
        seen: of a ledger that is OPEN for this writer.
        begun: the journals of its members.
        addresses: of its members; None if they are to be found.
        is_timed: whether a check has a time of its own; nobody watches it otherwise.

    Attributes:
        seen: the version that the writer goes by.
        on_failure: is called when a member is given up; must take no lock, and not wait.

    Raises:
        NotEnoughBookiesError: a member is not what it was when it was chosen.
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
        known = cluster.addresses(leave_out).values() if addresses is None else addresses
        self._addresses = {address.member: address for address in known}
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

    def journal(self, address: BookieAddress) -> Journal | None:
        """The writer's own on a bookie that was enlisted; given once."""
        return self._begun.hand_over(address.bookie_id)

    def journal_on(self, address: BookieAddress) -> Journal:
        """The same, or one that is made now, where another process has made the ledger.

        Raises:
            BookieUnavailableError: it was given before, or cannot be made.
        """
        return journal_on(address, self.seen.value, self._begun)

    def take_back(self, address: BookieAddress, journal: Journal | None) -> None:
        """The journal of a bookie that has left, and has stored all."""
        if journal is not None:
            self._begun.give_back(address.bookie_id, journal)

    def close(self) -> None:
        """Let go of journals that nobody appends to."""
        self._begun.close()

    # --- what may take long ------------------------------------------------------------------

    def check(self, ticket: CheckTicket, seen: Versioned[LedgerMetadata]) -> News:
        """Whether ``seen`` is what the metadata says, and what it says if not."""
        ledger_id = seen.value.ledger_id
        if self._checked.is_current(str(ledger_id), seen):
            return steps.Checked(ticket), None
        newest = self._cluster.ledger(ledger_id)
        return steps.Checked(ticket, newest.value), newest

    def enlist(self, step: steps.Enlist, among: Sequence[BookieAddress] | None = None) -> News:
        """A bookie that is not in use, has not failed, and has begun the writer's journal.

        Args:
            among: bookies of which it is to be one, preferred first; None if it may be any.

        Raises:
            LedgerFencedError: others go on in the ledger: no bookie takes anything for this writer.
        """
        mine = self._still_mine()
        joining = Joining.last_writer(mine, self._digester)
        exclude = step.exclude | self._begun.lent
        place = (mine.ledger_id, step.ensemble_index, joining, step.staying)
        vacancy = Vacancy(*place, exclude, among, self._begun)
        found = ensembles.replace(self._cluster, vacancy)
        passed_over = tuple(found.failed.items())
        if found.address is None:
            return steps.Enlisted(None, passed_over), None
        member = found.address.member
        self._addresses[member] = found.address
        self._begun.add(found.begun)
        return steps.Enlisted(member, passed_over), None

    def _still_mine(self) -> LedgerMetadata:
        """The ledger as the writer knows it, unless others have gone on in it in later terms.

        They prune his journals where he wrote nothing, so that it is not the bookies that fail.
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
            return  # too few bookies were found, and no more is known

    def muster(self, step: steps.Muster) -> News:
        """Bookies for a new fragment; those that stay, and others that are enlisted.

        Raises:
            LedgerFencedError: as ``enlist``.
        """
        lent = self._begun.lent.difference(member.bookie_id for member in step.ensemble)
        exclude = step.exclude | lent
        try:
            ledger = self._still_mine()
            who = (ledger.ledger_id, Joining.last_writer(ledger, self._digester))
            wanted = Regrouping(*who, step.ensemble, step.failed, exclude, self._begun)
            found = ensembles.regroup(self._cluster, wanted)
        except LedgerFencedError:
            raise
        except BookKeeperError as error:  # nobody was asked for anything
            return steps.Mustered((), reason=str(error)), None
        self._begun.add(found.begun)
        self._addresses |= {m: found.addresses[m] for m in found.ensemble if m in found.addresses}
        if not found.ensemble:
            self._require_not_fenced()
        too_few = "" if found.ensemble else "there are too few bookies that can be used"
        return steps.Mustered(found.ensemble, tuple(found.failed.items()), too_few), None

    def swap(self, step: steps.Swap) -> News:
        """Have the metadata name another ensemble."""
        step = replace(step, now_ms=environment.now_ms())
        stored = self._cluster.ledgers.update(str(step.ledger_id), step.applied_to)
        for member in set(step.ensemble) - set(self.seen.value.last_fragment.ensemble):
            if self._cluster.is_going(member):
                self._addresses[member] = replace(self._addresses[member], incarnation=_GONE)
        return steps.Swapped(stored.value), stored

    def explained(self, error: BookKeeperError) -> BookKeeperError:
        """``error``, or that a later term has begun, if the metadata says so.

        A takeover removes permissions and journals of older terms, and a seal or a deletion takes
        over first. So a fenced writer of a ledger that goes on meets any of these errors, and its
        user gets one. The writer of another ledger meets only a missing permission.
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
        """An error in the block is raised as it is explained."""
        try:
            yield
        except BookKeeperError as error:
            told = self.explained(error)
            if told is error:
                raise
            raise told from error

    # --- what is told --------------------------------------------------------------------------

    def released(self, step: steps.Release) -> None:
        """A member is used no more."""
        self._cluster.note_failure(step.member)
        name = step.member.bookie_id
        ensemble_log.given_up(logger, self.seen.value.ledger_id, name, step.reason)
        self.on_failure()

    def joined(self, step: steps.Join) -> None:
        """The metadata names another member."""
        (old, reason), new, first = step.replaced, step.member.bookie_id, step.first_entry_id
        ensemble_log.replaced(logger, self.seen.value.ledger_id, old, new, first, reason)

    def rolled(self, ledger: LedgerMetadata) -> None:
        """A new fragment is in use."""
        ensemble_log.rolled(logger, ledger)

    def warn(self, step: steps.WarnOfGaps) -> None:
        """Entries have fewer copies."""
        ensemble_log.fewer_copies(logger, self.seen.value, step)
