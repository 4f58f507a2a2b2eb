"""How far ledgers may be read, for readers of rows: through the bookies that they have open."""

from bkspark.bookie.contract import ReadableRoot
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password, make_digester
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.handles.how_far import Answers, IsEnough, Readable, look
from bkspark.ledger.journals.journal_end import JournalEnds
from bkspark.ledger.journals.member_end import MemberEnd, member_end
from bkspark.log.reading.ledger_files import OpenBookies
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member


def readable(
    bookies: OpenBookies,
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    known: JournalEnds | None = None,
    *,
    enough: int | None = None,
) -> Readable:
    """What of a ledger may be read now.

    Args:
        known: remembers, from one call to the next, how far each journal was read.
        enough: an entry; who knows that it may be read needs to know of no later one.

    Raises:
        NoSuchLedgerError: it is not there, or not any more.
        BookieUnavailableError: it is not closed, and too few members of its last fragment tell how
            far it may be read: unknown is never absent.
        UnauthorizedError: the password is missing or wrong.
    """
    ends = known or JournalEnds()

    def ask(ledger: LedgerMetadata, _is_enough: IsEnough) -> Answers:
        digester = make_digester(ledger.digest, password)

        def question(root: ReadableRoot, member: Member) -> MemberEnd:
            return member_end(root, member, ledger, digester, ends)

        found = bookies.ask(ledger.last_fragment.ensemble, question)
        silent = {m: str(e) for m, e in found.items() if isinstance(e, BookieUnavailableError)}
        heard = {m: e for m, e in found.items() if isinstance(e, MemberEnd)}
        for member, why in (silent | {m: e.problem for m, e in heard.items()}).items():
            bookies.step_over(member, ledger_id, [why] if why else [])
        return Answers(heard, silent)

    return look(cluster, ledger_id, ask, enough=enough)
