"""Whether it can be known what a bookie has lost: what cannot is beyond the promise.

A bookie whose journal ends exactly behind a record, be it the header that it begins with, looks as
if it had never got what was behind; only what other bookies have of the ledger tells. So a loss
that leaves such a journal is within the promise if, whoever answers, those who do either show what
is gone, or say that the bookie had more, or are too few to say that it never was.

Rule: this is worked out here once more, for every set of bookies that may answer, and not with the
functions of the client. What a recovery that is under way has seen is what was counted before it
began; so nothing that came later is taken for known.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations

from bkspark.format import journal, layout
from bkspark.format.add_record import Headers
from bkspark.format.digest import Digester
from bkspark.protocol.ledger.evidence import confirmed
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from bkspark.protocol.ledger.record import AddRecord
from tests.simulation.known import Ledger, label, labelled

_DIGESTER = Digester(DigestSpec(), None)
_SETTLED = (LedgerState.CLOSED, LedgerState.DELETING)

Files = Mapping[str, bytes]
"""What is durable on a bookie, by name."""


@dataclass(frozen=True)
class _Member:
    """What one member of the last fragment shows to everybody who may ask.

    Attributes:
        lost: first entries of the records that it had at some time, and has no more.
        held: those that it surely shows to whoever asks.
        records: all that it surely shows to whoever asks.
        reached: the last entry in the writer's own journal.
        looks_whole: whether nothing but others' word tells that it has lost anything.
        ends_whole: the same for who looks at the end of its journal only, as readers do.
    """

    index: int
    lost: frozenset[int]
    held: frozenset[int]
    records: tuple[AddRecord, ...]
    reached: int
    looks_whole: bool
    ends_whole: bool

    @property
    def last_add_confirmed(self) -> int:
        return max((record.last_add_confirmed for record in self.records), default=-1)


def is_knowable(ledger: Ledger, disks: Mapping[tuple[str, str], Files]) -> bool:
    """Whether whoever needs to know of a ledger's losses can, as its bookies are now.

    Args:
        disks: of the bookies that answer, by id and incarnation.
    """
    if ledger.metadata.state in _SETTLED:
        return True
    members = [*_members(ledger, disks)]
    if not any(member.lost for member in members):
        return True
    return not any(_is_misled(ledger, members, answering) for answering in _subsets(members))


def who_must_be_silent(
    ledger: Ledger, disks: Mapping[tuple[str, str], Files]
) -> frozenset[str] | None:
    """Bookies without which the others would be misled, if nobody listened to what records say.

    None if nothing of the kind is lost: then it is for nothing that records say anything.
    """
    if ledger.metadata.state in _SETTLED:
        return None
    members = [*_members(ledger, disks)]
    everybody = ledger.metadata.last_fragment.ensemble
    if any(member.lost for member in members):
        for answering in _subsets(members):
            if _is_misled(ledger, members, answering, listens=False):
                heard = {everybody[member.index].bookie_id for member in answering}
                return frozenset(member.bookie_id for member in everybody) - heard
    return None


def _members(ledger: Ledger, disks: Mapping[tuple[str, str], Files]) -> Iterator[_Member]:
    fragment = ledger.metadata.last_fragment
    for index, member in enumerate(fragment.ensemble):
        files = disks.get((member.bookie_id, member.incarnation))
        if files is not None:
            yield _member(ledger, index, files)


def _member(ledger: Ledger, index: int, files: Files) -> _Member:
    fragment, ledger_id = ledger.metadata.last_fragment, ledger.metadata.ledger_id
    member = fragment.ensemble[index]
    own = layout.journal(ledger_id, fragment.term, fragment.token)
    shown = journal.decode_journal(files.get(own, b""), _DIGESTER, ledger_id=ledger_id)
    journals = [data for n, data in files.items() if layout.journal_folder(ledger_id) in n]
    owner = fragment.owner
    present = {number for data in journals for number in _firsts(data, ledger_id, owner)}
    had = [
        labelled(copy[1])
        for copy, *place in ledger.copies
        if copy[0] == "record" and place == [member.bookie_id, member.incarnation]
    ]
    ever = {number for number, term in had if owner in (0, term)}
    end = _end(files.get(own, b""), ledger_id)
    is_behind_damage = end is not None and not end.is_confirmation and end not in shown.records
    records = (*shown.records, end) if end and is_behind_damage else shown.records
    sure = [
        record
        for record in records
        if (step := ledger.checked.get((label(record), member.bookie_id))) is not None
        and (ledger.left_open is None or step < ledger.left_open)
    ]
    is_begun = bool(shown.frames) or not fragment.has_headers
    has_all_else = layout.permission(ledger_id, fragment.term, fragment.token) in files and is_begun
    return _Member(
        index,
        frozenset(number for number in ever - present if number >= fragment.first_entry_id),
        frozenset(record.first_entry_id for record in sure),
        tuple(sure),
        max((record.last_entry_id for record in (*shown.records, *sure)), default=-1),
        has_all_else and shown.tail is journal.Tail.CLEAN,
        has_all_else and (end is not None or shown.tail is journal.Tail.CLEAN),
    )


def _end(data: bytes, ledger_id: int) -> AddRecord | None:
    """The record that a journal ends with, whatever is in front of it."""
    length = journal.last_frame_length(data, len(data))
    if length is None:
        return None
    begin = len(data) - length
    frame = journal.decode_frame(data[begin:], _DIGESTER, Headers(ledger_id), position=begin)
    return None if frame is None else frame.record


def _firsts(data: bytes, ledger_id: int, owner: int) -> Iterator[int]:
    for record in journal.decode_journal(data, _DIGESTER, ledger_id=ledger_id).records:
        if owner in (0, record.term):
            yield record.first_entry_id


def _is_misled(
    ledger: Ledger,
    members: Collection[_Member],
    answering: Collection[_Member],
    *,
    listens: bool = True,
) -> bool:
    """Whether those that answer make what is lost look as if it had never been."""
    quorum, fragment = ledger.metadata.quorum, ledger.metadata.last_fragment
    floor = max(fragment.first_entry_id - 1, fragment.confirmed)
    records = [record for member in answering for record in member.records]
    had: dict[int, int] = {}
    for record in records:
        if listens and record.last_add_confirmed > floor:
            for index, entry_id in enumerate(record.stored):
                had[index] = max(entry_id, had.get(index, -1))
    has_all = [m for m in answering if m.reached >= had.get(m.index, -1)]
    said = {member.index: member.last_add_confirmed for member in answering}
    read = [member for member in has_all if member.ends_whole]
    end = confirmed(quorum, said, {member.index for member in read}, floor)
    before = {m.index: ledger.acked if m.lost else m.last_add_confirmed for m in members}
    is_shorter = end.least < confirmed(quorum, before, before, floor).least
    if any(member.lost for member in read) and end.is_known and is_shorter:
        return True
    believed = [member for member in has_all if member.looks_whole]
    known = max([floor, *said.values()])
    shown = {number for member in answering for number in member.held}
    for number in {number for member in believed for number in member.lost} - shown:
        record = ledger.groups[number]
        absences = [member.index for member in believed]
        is_absent = any(quorum.is_absent(ws, absences) for ws in record.write_sets())
        if record.last_entry_id > known and is_absent:
            return True
    return False


def _subsets(members: list[_Member]) -> Iterable[tuple[_Member, ...]]:
    return chain.from_iterable(combinations(members, n) for n in range(1, len(members) + 1))
