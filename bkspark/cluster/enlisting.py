"""A bookie takes a permission and a journal before the metadata names it for a writer.

Rule 1. Both are durable on the bookie before the metadata names the bookie. The journal begins with
a *header*, a record without entries. So a member that lacks the permission, or lacks a journal with
at least the header, has lost data of the ledger, and its missing entries do not count as absent
(R18).

Rule 2. A bookie that may not have taken both is not asked again for this writer: a delayed request
could recreate lost files (R19).

Rule 3. A writer's journal is made only here, and handed over once, as an open file. The appending
code never recreates a journal, so a lost journal is noticed.

Rule 4. A member that left the ensemble with all sent data stored gives its journal back. Before
another fragment names the member, a post-check shows the permission and the journal; the member is
not asked to take either anew.

A ledger made in one process and filled in another has no journals until the other process makes
them; the bookies refuse a second journal (R2). A batch's journals are made with its one record. A
stream's tail takes many micro-batches: the run that adopts the tail begins all journals, and
records so, before the first micro-batch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bkspark.bookie.checks import TooManyOpenFilesError
from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie, root_of
from bkspark.cluster import bookie_client
from bkspark.cluster.bookie_client import BookieClient
from bkspark.cluster.fan_out import Timeouts, ask_all
from bkspark.errors import BookieUnavailableError
from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.format.journal import EncodedRecord
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import header


@dataclass(frozen=True, slots=True)
class Joining:
    """The files that bookies take for one writer.

    Attributes:
        permission: the writer's marker; empty if taken before, since bookies are asked once (R19).
        journal: the name of the writer's journal; empty if another process will write and make the
            journals.
        header: the first record of the journal.
        fence: the marker that ends the writer.
    """

    permission: str
    journal: str = ""
    header: EncodedRecord | None = None
    fence: str = ""

    @classmethod
    def of(
        cls, ledger_id: int, quorum: Quorum, *, term: int, token: str, digester: Digester | None
    ) -> "Joining":
        """Make the ``Joining`` of the writer ``token`` of ``term``.

        Args:
            digester: None to begin no journal.
        """
        permission = layout.permission(ledger_id, term, token)
        fence = layout.term_marker(ledger_id, term + 1)
        if digester is None:
            return cls(permission, fence=fence)
        record = header(ledger_id=ledger_id, term=term, token=token, quorum=quorum)
        name = layout.journal(ledger_id, term, token)
        return cls(permission, name, journal.encode(record, digester), fence)

    @classmethod
    def last_writer(cls, ledger: LedgerMetadata, digester: Digester) -> "Joining":
        """Make the ``Joining`` of the last fragment's writer, as its members have taken it."""
        fragment = ledger.last_fragment
        return cls.of(
            ledger.ledger_id,
            ledger.quorum,
            term=fragment.term,
            token=fragment.token,
            digester=digester if fragment.has_headers else None,
        )

    def taken_by(
        self, address: BookieAddress, ensemble_index: int, *, is_found: bool = False
    ) -> Journal | None:
        """Make a bookie, not yet named for this writer, take the files; return the begun journal.

        Args:
            is_found: whether the caller has just found the bookie. Where that took a request, the
                bookie is not looked for again: the files count after a post-check only.

        Raises:
            BookieUnavailableError: the bookie may have taken a file, or none.
        """
        with root_of(address, is_found=is_found) as root:
            if self.permission:
                root.put_new(self.permission, b"", once=True)
            if self.header is None:
                return None
            return root.open_journal(self.journal, self.header.frame(ensemble_index, 0))

    def require_shown(self, address: BookieAddress, journal: Journal) -> None:
        """Return if a bookie shows all files it has taken, and no fence (rule 4).

        Raises:
            BookieUnavailableError: a file is missing.
        """
        is_shown = open_bookie(address).post_check(
            journal, fence=self.fence, permission=self.permission
        )
        if not is_shown:
            raise BookieUnavailableError(
                f"bookie {address.bookie_id} has lost data that it had stored"
            )


class Begun:
    """Journals that bookies have begun for one writer, each to be handed over once.

    Shared by the writer's tasks; one task at a time adds journals.

    Attributes:
        bookie_ids: bookies that have taken all requested files.
        failed: bookies that have not, each with the reason.
        own_fault: why this process could not ask a bookie at all, if so.
        places: where the bookies that have taken all files were found.
    """

    def __init__(
        self,
        journals: Mapping[str, Journal | None] | None = None,
        failed: Mapping[str, str] | None = None,
        own_fault: TooManyOpenFilesError | None = None,
        places: Iterable[BookieAddress] = (),
    ) -> None:
        self.places = {address.member: address for address in places}
        self.failed = dict(failed or {})
        self._journals = {
            bookie_name: begun for bookie_name, begun in (journals or {}).items() if begun
        }
        self.bookie_ids = frozenset(journals or ())
        self.own_fault = own_fault
        self._is_closed = False

    def add(self, other: "Begun") -> None:
        """Take over all journals of ``other``."""
        self.bookie_ids |= other.bookie_ids
        self.failed |= other.failed
        self.own_fault = self.own_fault or other.own_fault
        self.places |= other.places
        self._journals |= other._journals
        other._journals = {}

    def require_asked(self) -> None:
        """Close all journals and raise if this process could not ask a bookie.

        Raises:
            NothingSentError: it could not, and no other bookie will do.
        """
        if self.own_fault is not None:
            self.close()
            raise self.own_fault.nothing_sent()

    def hand_over(self, bookie_id: str) -> Journal | None:
        """The journal on a bookie, to be closed by the caller; None if there is none any more."""
        return self._journals.pop(bookie_id, None)

    def give_back(self, bookie_id: str, journal: Journal) -> None:
        """Take back a journal whose data is all stored (rule 4)."""
        self._journals[bookie_id] = journal
        if self._is_closed:
            self.close()

    @property
    def lent(self) -> frozenset[str]:
        """Ids of bookies that have taken all files and whose journals are handed over."""
        return self.bookie_ids.difference(self._journals)

    def close(self) -> None:
        """Close all journals that were not handed over."""
        self._is_closed = True
        for bookie_id in list(self._journals):
            if (left := self.hand_over(bookie_id)) is not None:
                left.close()


def enlist(
    places: Mapping[int, BookieAddress],
    joining: Joining,
    *,
    needed: int = 0,
    held: Begun | None = None,
    are_found: bool = False,
) -> Begun:
    """Make bookies take ``joining``; return the bookies that did so durably and in time.

    Args:
        places: by ensemble index.
        needed: if fewer succeed, silent bookies get more time.
        held: returned journals; a bookie with a returned journal shows its files (rule 4).
        are_found: whether the caller has just found all the bookies.
    """
    clients = {index: BookieClient(address) for index, address in places.items()}

    def taking(index: int) -> Callable[[], Journal | None]:
        client = clients[index]
        given_back = held.hand_over(client.address.bookie_id) if held else None

        def take() -> Journal | None:
            begun = given_back or joining.taken_by(client.address, index, is_found=are_found)
            if begun is not None:
                client.cleanup.callback(begun.close)  # closes the journal of a late answer
            if given_back is not None:
                joining.require_shown(client.address, given_back)
            return begun

        return take

    questions = {client: taking(index) for index, client in clients.items()}
    limit = Timeouts(bookie_client.ANSWER_SECONDS)
    answers = ask_all(questions, limit, is_usable=lambda _begun: True, needed=needed)
    taken: dict[str, Journal | None] = {}
    failed: dict[str, str] = {}
    own_fault: TooManyOpenFilesError | None = None
    for client, answer in answers.items():
        if isinstance(answer, BookieUnavailableError):
            client.begin_close()
            failed[client.address.bookie_id] = str(answer.args[0])
            own_fault = answer if isinstance(answer, TooManyOpenFilesError) else own_fault
        else:
            client.cleanup.pop_all()
            taken[client.address.bookie_id] = answer
    found = [address for address in places.values() if address.bookie_id in taken]
    return Begun(taken, failed, own_fault, found)


def journal_on(address: BookieAddress, ledger: LedgerMetadata, begun: Begun) -> Journal:
    """The journal of the last fragment's writer on a bookie: as begun, or made now.

    A journal is made only where the ledger's bookies have begun none; recovery does not search such
    ledgers for lost journals. The bookie refuses a second writer (R2).

    Raises:
        BookieUnavailableError: the journal was begun but is not in ``begun``, or cannot be made.
    """
    bookie_name, fragment = address.bookie_id, ledger.last_fragment
    file = begun.hand_over(bookie_name)
    if file is None and fragment.has_headers:
        raise BookieUnavailableError(
            f"bookie {bookie_name} has no journal of this writer of ledger {ledger.ledger_id}"
        )
    if file is None:
        with open_bookie(address).open_root() as root:
            file = root.open_journal(
                layout.journal(ledger.ledger_id, fragment.term, fragment.token)
            )
    return file
