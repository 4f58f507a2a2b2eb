"""What a bookie takes before the metadata names it for a writer: his permission and his journal.

Rule 1. Both are durable there before the metadata names the bookie. The journal begins with a
*header*, a record that says nothing. So a member that lacks the permission, or the journal with
something in it, has lost data of the ledger, and nothing that it lacks is taken for absent (R18).

Rule 2. A bookie that did not surely take both is not asked again for this writer: a request that is
still on its way could make anew what was lost (R19).

Rule 3. A writer's journal is made here and nowhere else, and handed over once, open as it is.
Whoever appends to it never makes it anew: what is gone is missed.

Rule 4. One that left, and has stored all that it was sent, gives its journal back. Before another
fragment names it, it shows what it took, by a post-check, and is not asked to take it anew.

A ledger that is made in one process and filled in another has no journals until the other process
makes them; the bookies refuse a second one (R2). A batch's are made with its one record. The tail
of a stream takes many: who adopts it begins them all, and says so, before the first one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bkspark.bookie.contract import BookieAddress, Journal
from bkspark.bookie.uri import open_bookie
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
    """What bookies take for one writer.

    Attributes:
        permission: his marker; empty if it was taken before, as it is not asked for twice (R19).
        journal: the name of his journal; empty if it is another process that will write, which
            makes the journals itself.
        header: what the journal begins with.
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
        """For the writer ``token`` of ``term``.

        Args:
            digester: None if no journal is to be begun.
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
        """For the writer of the last fragment, as its members have taken it."""
        fragment = ledger.last_fragment
        return cls.of(
            ledger.ledger_id,
            ledger.quorum,
            term=fragment.term,
            token=fragment.token,
            digester=digester if fragment.has_headers else None,
        )

    def taken_by(self, address: BookieAddress, ensemble_index: int) -> Journal | None:
        """Have a bookie take it, which no metadata names for this writer; the journal it began.

        Raises:
            BookieUnavailableError: it may have taken something, or nothing.
        """
        with open_bookie(address).open_root() as root:
            if self.permission:
                root.put_new(self.permission, b"", once=True)
            if self.header is None:
                return None
            return root.open_journal(self.journal, self.header.frame(ensemble_index, 0))

    def require_shown(self, address: BookieAddress, journal: Journal) -> None:
        """Return if a bookie shows all that it has taken, and no fence (rule 4).

        Raises:
            BookieUnavailableError: it does not.
        """
        is_shown = open_bookie(address).post_check(
            journal, fence=self.fence, permission=self.permission
        )
        if not is_shown:
            raise BookieUnavailableError(f"bookie {address.bookie_id} lacks what it has taken")


class Begun:
    """Journals that bookies have begun for one writer, each to be handed over once.

    Used by the writer's tasks, of which only one at a time adds to it.

    Attributes:
        bookie_ids: of those that have taken all that they were asked to.
        failed: the others that were asked, each with the reason.
    """

    def __init__(
        self,
        journals: Mapping[str, Journal | None] | None = None,
        failed: Mapping[str, str] | None = None,
    ) -> None:
        self.failed = dict(failed or {})
        self._journals = {who: begun for who, begun in (journals or {}).items() if begun}
        self.bookie_ids = frozenset(journals or ())
        self._is_closed = False

    def add(self, other: "Begun") -> None:
        """Take over what ``other`` has."""
        self.bookie_ids |= other.bookie_ids
        self.failed |= other.failed
        self._journals |= other._journals
        other._journals = {}

    def hand_over(self, bookie_id: str) -> Journal | None:
        """The journal on a bookie, to be closed by the caller; None if there is none any more."""
        return self._journals.pop(bookie_id, None)

    def give_back(self, bookie_id: str, journal: Journal) -> None:
        """Take a journal back, all of which is stored (rule 4)."""
        self._journals[bookie_id] = journal
        if self._is_closed:
            self.close()

    @property
    def lent(self) -> frozenset[str]:
        """Ids of bookies that have taken it all, and whose journals are handed over."""
        return self.bookie_ids.difference(self._journals)

    def close(self) -> None:
        """Close those that nobody took."""
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
) -> Begun:
    """Have bookies take ``joining``: those that have done so, durably and in time.

    Args:
        places: by ensemble index.
        needed: if fewer have, those that are silent get more time.
        held: journals that were given back; a bookie with one of them shows what it took (rule 4).
    """
    clients = {index: BookieClient(address) for index, address in places.items()}

    def taking(index: int) -> Callable[[], Journal | None]:
        client = clients[index]
        given_back = held.hand_over(client.address.bookie_id) if held else None

        def take() -> Journal | None:
            begun = given_back or joining.taken_by(client.address, index)
            if begun is not None:
                client.cleanup.callback(begun.close)  # of one that answers late
            if given_back is not None:
                joining.require_shown(client.address, given_back)
            return begun

        return take

    questions = {client: taking(index) for index, client in clients.items()}
    answers = ask_all(
        questions,
        Timeouts(bookie_client.ANSWER_SECONDS),
        is_usable=lambda _begun: True,
        needed=needed,
    )
    taken: dict[str, Journal | None] = {}
    failed: dict[str, str] = {}
    for client, answer in answers.items():
        if isinstance(answer, BookieUnavailableError):
            client.begin_close()
            failed[client.address.bookie_id] = str(answer.args[0])
        else:
            client.cleanup.pop_all()
            taken[client.address.bookie_id] = answer
    return Begun(taken, failed)


def journal_on(address: BookieAddress, ledger: LedgerMetadata, begun: Begun) -> Journal:
    """The journal of the last fragment's writer on a bookie: as it was begun, or made now.

    It is made only where no bookie has begun one: whoever wants to know what is lost does not look
    for it then. The bookie refuses whoever comes second (R2).

    Raises:
        BookieUnavailableError: it was begun, and is not in ``begun``; or it cannot be made.
    """
    who, fragment = address.bookie_id, ledger.last_fragment
    file = begun.hand_over(who)
    if file is None and fragment.has_headers:
        raise BookieUnavailableError(
            f"bookie {who} has no journal of this writer of ledger {ledger.ledger_id}"
        )
    if file is None:
        with open_bookie(address).open_root() as root:
            file = root.open_journal(
                layout.journal(ledger.ledger_id, fragment.term, fragment.token)
            )
    return file
