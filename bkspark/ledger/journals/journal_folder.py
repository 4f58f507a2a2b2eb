"""What lies among a ledger's journals on one bookie, and what of it may be believed.

Rule. Only journals of ours belong there. Whatever else is found, a link or a folder that stands
where a journal was, a file that a tool has left, a journal that was listed and is gone, may be all
that is to be seen of records that were acknowledged. So what such a bookie lacks is unknown; what
its good journals show counts, and the other bookies decide.
"""

from dataclasses import dataclass

from bkspark.bookie.contract import ReadableRoot
from bkspark.errors import CorruptDataError
from bkspark.format import layout

_SHOWN_MAX = 3
_SHOWN_LENGTH_MAX = 80


@dataclass(frozen=True, slots=True)
class JournalFolder:
    """The journals of one ledger on one bookie.

    Attributes:
        names: of the journals, as the bookie knows them, sorted.
        problem: why what they lack may have been there all the same, in one line; mostly empty.
    """

    names: tuple[str, ...]
    problem: str = ""


def find_journals(root: ReadableRoot, bookie_id: str, ledger_id: int) -> JournalFolder:
    """List the journals of a ledger.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    folder = layout.journal_folder(ledger_id)
    found = root.list(folder)
    names = tuple(f"{folder}/{name}" for name in found if layout.is_journal(name))
    strange = [name for name in found if not layout.is_journal(name)]
    return JournalFolder(names, _problem(strange, bookie_id, folder) if strange else "")


def journal_size(root: ReadableRoot, name: str) -> int:
    """Length in bytes of a journal that was listed.

    Raises:
        CorruptDataError: it is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    size = root.size(name)
    if size is None:
        raise _gone(name)
    return size


def read_journal(root: ReadableRoot, name: str, begin: int, length: int) -> bytes:
    """``length`` bytes of a journal that was listed, from ``begin`` on, fewer at its end.

    Raises:
        CorruptDataError: it is gone.
        BookieUnavailableError: the bookie gives no sure answer.
    """
    data = root.read(name, begin, length)
    if data is None:
        raise _gone(name)
    return data


def _gone(name: str) -> CorruptDataError:
    return CorruptDataError(f"journal {name} was listed and is gone")


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
