"""Sets a recovered ledger OPEN for a new writer (``reopening``).

This process asks the bookies itself, all of one batch at once, instead of a runner's tasks: the
bookies begin the open journals of a writer in this process.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

from bkspark import environment
from bkspark.bookie.contract import BookieAddress, BookieRoot, told_of
from bkspark.bookie.uri import open_bookie
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun, Joining, enlist
from bkspark.cluster.fan_out import Timeouts, ask_all
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookieUnavailableError,
    CorruptDataError,
    LedgerFencedError,
    NoSuchLedgerError,
)
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_reader import JournalReader
from bkspark.ledger.journals.member_journals import Taken
from bkspark.protocol.ledger.evidence import is_owner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.recovery import steps
from bkspark.protocol.recovery.steps import LookAgain, Open, Opened, Prune, Take, Took

# --- pruning -------------------------------------------------------------------------------------
# Removes files of earlier writers from a bookie after a takeover (``reopening``, rules 5, 7, 8).


def prune(address: BookieAddress, plan: Prune, opened: LedgerMetadata, digester: Digester) -> None:
    """Remove unneeded files, one writer after the other, in ascending order of their terms.

    Args:
        opened: the ledger as read back.

    Raises:
        BookieUnavailableError: a file stays, or may stay.
    """
    with open_bookie(address).open_root() as root:
        place = _Place(root, opened, digester)
        # Beside the permission of a term's writer, a bookie may hold permissions left by takeovers
        # that died.
        for term, writers in groupby(place.left_over(plan.writer[0]), itemgetter(0)):
            for _, token in writers:
                place.forget(term, token, with_journal=place.is_blank(term, token))
            place.unfence(term)
        place.forget(*plan.writer, with_journal=plan.is_empty)
        place.unfence(plan.writer[0])


@dataclass(frozen=True, slots=True)
class _Place:
    """A bookie's files of the ledger."""

    root: BookieRoot
    ledger: LedgerMetadata
    digester: Digester

    def left_over(self, before: int) -> Iterator[tuple[int, str]]:
        """Yield terms and tokens of writers whose permissions still exist, ascending.

        Args:
            before: only terms before this term.
        """
        folder = layout.terms_folder(self.ledger.ledger_id)
        writers = (layout.writer_of(name) for name in self.root.list(folder))
        yield from sorted(writer for writer in writers if writer and writer[0] < before)

    def is_blank(self, term: int, token: str) -> bool:
        """Return whether a journal surely holds only its header, and its term owns no entries."""
        ledger_id = self.ledger.ledger_id
        if is_owner(self.ledger.fragments, term):
            return False
        name = layout.journal(ledger_id, term, token)
        reader = JournalReader(self.root, name, self.digester, ledger_id=ledger_id)
        try:
            is_begun = all(head.record.is_header for head in reader.forwards(reader.head))
        except CorruptDataError:
            return False  # there is no journal
        return is_begun and not reader.is_blocked

    def forget(self, term: int, token: str, *, with_journal: bool) -> None:
        """Remove a writer's permission, after its journal and before the fence.

        So a client that looks for the fence, and then for the permission, always finds the fence or
        a loss (R20). The permission is needed until the journal is gone: it names the journal that
        may be there.
        """
        ledger_id = self.ledger.ledger_id
        if with_journal:
            self.root.forget_journal(layout.journal(ledger_id, term, token))
        self.root.delete(layout.permission(ledger_id, term, token))

    def unfence(self, term: int) -> None:
        """Remove the fence of a term, once no permission of the term is left."""
        self.root.delete(layout.term_marker(self.ledger.ledger_id, term + 1))


# --- opener --------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

_Located: TypeAlias = Callable[[Member], BookieAddress]


class Opener:
    """Prepares a ledger for one writer and draws the writer's token.

    Attributes:
        writer_token: of the writer.
        begun: the writer's journals; a caller that does not write must close them.
        seen: the ledger once OPEN for the writer; None before.
    """

    def __init__(self, cluster: Cluster, digester: Digester, located: _Located) -> None:
        self.writer_token = environment.token()
        self.begun = Begun()
        self.seen: Versioned[LedgerMetadata] | None = None
        self._cluster = cluster
        self._digester = digester
        self._located = located

    def begin_anew(self) -> None:
        """Drop journals begun in an earlier term; called after each takeover of the ledger."""
        self.begun.close()
        self.begun = Begun()

    def take(self, asked: Sequence[Take], ledger: LedgerMetadata, others: int) -> list[steps.Event]:
        """Make bookies take the writer's permission and begin its journal; ask each bookie once.

        Args:
            ledger: as taken over by the recovery.
            others: number of further bookies able to step in.
        """
        joining = Joining.of(
            ledger.ledger_id,
            ledger.quorum,
            term=ledger.term,
            token=self.writer_token,
            digester=self._digester,
        )
        places = {take.index: self._located(take.member) for take in asked}
        begun = enlist(places, joining, needed=len(places) - others)
        self.begun.add(begun)
        begun.require_asked()
        found: list[steps.Event] = []
        for take in asked:
            name, problem = take.member.bookie_id, ""
            if name not in begun.bookie_ids:
                self._cluster.note_failure(take.member)
                problem = told_of(name, begun.failed[name])
            found.append(Took(take, problem))
        return found

    def look_again(self, asked: Sequence[LookAgain], ledger: LedgerMetadata) -> list[steps.Event]:
        """Check for each bookie that the permission and the journal are still there."""
        whose = (ledger.ledger_id, ledger.term, self.writer_token)
        taken = Taken(layout.permission(*whose), layout.journal(*whose))
        clients = [BookieClient(self._located(look.member)) for look in asked]
        answers = ask_all(
            {client: partial(_missing, client.address, taken) for client in clients},
            Timeouts(bookie_client.ANSWER_SECONDS),
            is_usable=_is_told,
            needed=len(clients),
        )
        return [
            Took(look, str(answers[client])) for look, client in zip(asked, clients, strict=True)
        ]

    def open(self, plan: Open, taken: Versioned[LedgerMetadata]) -> steps.Event:
        """Set the ledger OPEN by one CAS.

        Args:
            taken: the ledger as taken over by the recovery.
        """
        update, plan = self._cluster.ledgers.update, replace(plan, now_ms=environment.now_ms())
        try:
            ledger_id = taken.value.ledger_id
            self.seen = update(str(ledger_id), partial(_applied, plan), seen=taken)
        except LedgerFencedError as error:
            return steps.Displaced(str(error.args[0]))
        return Opened(self.seen.value)

    def prune(self, asked: Sequence[Prune]) -> None:
        """Remove unneeded files of earlier writers; log failures and continue."""
        assert self.seen is not None
        opened = self.seen.value
        questions = {
            BookieClient(address): partial(prune, address, plan, opened, self._digester)
            for plan in asked
            for address in [self._located(plan.member)]
        }
        answers = ask_all(questions, Timeouts(bookie_client.ANSWER_SECONDS), is_usable=_is_told)
        for client, answer in answers.items():
            if isinstance(answer, BookieUnavailableError):
                bookie_name, why = client.address.bookie_id, answer.args[0]
                said = "ledger %d: markers of its previous writer stay on bookie %s: %s"
                logger.info(said, opened.ledger_id, bookie_name, why)


def _is_told(_answer: object) -> bool:
    return True


def _missing(address: BookieAddress, taken: Taken) -> str:
    """Describe a missing marker of a bookie in one line; empty if none is missing."""
    with open_bookie(address).open_root() as root:
        missing = taken.missing_in(root)
    return f"bookie {address.bookie_id} lacks {missing}" if missing else ""


def _applied(plan: Open, ledger: LedgerMetadata | None) -> LedgerMetadata:
    if ledger is None:
        raise NoSuchLedgerError("the ledger was deleted and collected during the recovery")
    return plan.applied_to(ledger)
