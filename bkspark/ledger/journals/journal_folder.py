"""Lists a ledger's journals on one bookie, and reports foreign files among them.

Rule. Only bkspark's journals belong in the folder. Any other finding may be the only trace of
acknowledged records: a link or folder in place of a journal, a file of some tool, a listed journal
that is gone. Then missing records on such a bookie prove nothing. Its good journals count, and the
other bookies decide.

A listing is a hint (H21): some stores leave out new names for a while. So journals named by the
metadata are looked up by name, and no absence rests on a listing alone. A listing may still leave
out copies made by a recovery that did not close the ledger.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member

_SHOWN_MAX = 3
_SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class JournalFolder:
    """The journals of one ledger on one bookie.

    Attributes:
        names: of the journals, as the bookie knows them, sorted.
        problem: why missing records may have been there before, in one line; mostly empty.
    """

    names: tuple[str, ...]
    problem: str = ""


class JournalGoneError(CorruptDataError):
    """There is no such journal."""


def journals_of(ledger: LedgerMetadata, member: Member) -> tuple[str, ...]:
    """Return the journal names on ``member`` that follow from the metadata.

    They belong to the writers of the member's fragments and, unless a recovery is running, to the
    client whose token the record has: the present writer, or the recovery that closed the ledger.
    """
    owners = [(f.term, f.token) for f in ledger.fragments if member in f.ensemble and f.token]
    if ledger.state is not LedgerState.IN_RECOVERY:
        owners.append((ledger.term, ledger.token))
    return tuple(dict.fromkeys(layout.journal(ledger.ledger_id, *owner) for owner in owners))


def find_journals(
    root: ReadableRoot, bookie_id: str, ledger_id: int, known: Iterable[str]
) -> JournalFolder:
    """Find the journals of a ledger.

    Args:
        known: names to look up directly (``journals_of``).

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    folder = layout.journal_folder(ledger_id)
    found = root.list(folder)
    listed = {f"{folder}/{name}" for name in found if layout.is_journal(name)}
    # A known name that is listed with another type is strange; the problem reports it.
    seen = listed | {f"{folder}/{name.removesuffix('/')}" for name in found}
    unlisted = {name for name in known if name not in seen and root.size(name) is not None}
    names = tuple(sorted(listed | unlisted))
    strange = [name for name in found if not layout.is_journal(name)]
    return JournalFolder(names, _problem(strange, bookie_id, folder) if strange else "")


def journal_size(root: ReadableRoot, name: str) -> int:
    """Return the length in bytes of a listed journal.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    size = root.size(name)
    if size is None:
        raise _gone(name)
    return size


def read_journal(root: ReadableRoot, name: str, begin: int, length: int) -> bytes:
    """Read ``length`` bytes of a listed journal from ``begin`` on, fewer at its end.

    Raises:
        CorruptDataError: the journal is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    data = root.read(name, begin, length)
    if data is None:
        raise _gone(name)
    return data


def _gone(name: str) -> JournalGoneError:
    return JournalGoneError(f"journal {name} was listed and is gone")


def _problem(strange: list[str], bookie_id: str, folder: str) -> str:
    lost = [name for name in strange if layout.is_journal(name.removesuffix("/"))]
    shown = ", ".join(_shown(name) for name in (lost or strange)[:_SHOWN_MAX])
    more = len(lost or strange) - _SHOWN_MAX
    shown += f" and {more} more" if more > 0 else ""
    if lost:
        return (
            f"bookie {bookie_id}: {folder} holds {shown} where a journal should be "
            "(bring the journal back; if it is gone for good, make its storage read-only, then "
            f"`bkspark bookie lost {bookie_id}`)"
        )
    return f"bookie {bookie_id}: {folder} holds {shown}, which is no journal (move it elsewhere)"


def _shown(name: str) -> str:
    return ascii(name[:_SHOWN_LENGTH_MAX])
