"""Finds how far a ledger may be read, by the journals of one bookie."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bkspark.bookie.contract import ReadableRoot, told_of
from bkspark.errors import CorruptDataError
from bkspark.format import layout
from bkspark.format.digest import Digester
from bkspark.ledger.journals.journal_end import JournalEnd, JournalEnds, JournalName
from bkspark.ledger.journals.journal_folder import find_journals, journals_of
from bkspark.ledger.journals.member_loss import Taken
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Stored
from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID, LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord


@dataclass(frozen=True, slots=True)
class MemberEnd:
    """The ends of a ledger's journals on one bookie.

    Attributes:
        ends: journal name -> end.
        problem: why the bookie may have had more than it shows, in one line; mostly empty.
    """

    ends: Mapping[str, JournalEnd] = field(default_factory=dict)
    problem: str = ""

    @property
    def last_record(self) -> AddRecord | None:
        """The last record with the highest LAC."""
        records = (end.record for end in self.ends.values() if end.record is not None)
        return max(records, key=lambda record: record.last_add_confirmed, default=None)

    @property
    def last_add_confirmed(self) -> int:
        """The highest LAC; -1 if no record has a LAC."""
        record = self.last_record
        return INVALID_ENTRY_ID if record is None else record.last_add_confirmed

    @property
    def reached(self) -> int:
        """The last entry of the newest record in the writer's own journal, -1 without a record.

        Other journals hold copies of the writer's records.
        """
        own = (
            end.record.last_entry_id
            for name, end in self.ends.items()
            if end.record is not None and name == _journal_of(end.record)
        )
        return max(own, default=INVALID_ENTRY_ID)

    def had(self, last_confirmed: int) -> Stored:
        """Return the last entries on the last fragment's members, as the last records here state
        them.

        Args:
            last_confirmed: the LAC at the time when the metadata named the members.
        """
        records = (end.record for end in self.ends.values() if end.record is not None)
        return evidence.stored(records, last_confirmed)

    def is_sure(self, before: "MemberEnd | None") -> bool:
        """Return whether the bookie surely had no more records, now or at the look ``before``.

        A journal may have bytes after its last record if the last record has moved on since
        ``before``: an append was running then.
        """
        return not self.problem and all(
            end.is_whole or (before is not None and _grew(before.ends.get(name), end))
            for name, end in self.ends.items()
        )


def _journal_of(record: AddRecord) -> str:
    return layout.journal(record.ledger_id, record.term, record.token)


def _grew(before: JournalEnd | None, now: JournalEnd) -> bool:
    return before is not None and before.end < now.end


def member_end(
    root: ReadableRoot,
    member: Member,
    ledger: LedgerMetadata,
    digester: Digester,
    known: JournalEnds,
) -> MemberEnd:
    """Return how far ``ledger`` may be read, by the journals of ``member`` of its last fragment.

    Journals of terms before that fragment's are skipped: the fragment's beginning says as much.

    Args:
        known: ends that were read before.

    Raises:
        BookieUnavailableError: the bookie gives no sure answer.
    """
    base = ledger.last_fragment.term
    known_names = journals_of(ledger, member)
    found = find_journals(root, member.bookie_id, ledger.ledger_id, known_names)
    problem = found.problem
    ends: dict[str, JournalEnd] = {}
    for name in found.names:
        if layout.journal_term(name) >= base:
            source = JournalName(ledger.ledger_id, member, name, digester)
            try:
                ends[name] = _believed(known.look(root, source), ledger)
            except CorruptDataError as error:
                problem = problem or told_of(member.bookie_id, error.args[0])
    if not problem:
        problem = _lost(root, member, ledger, ends)
    return MemberEnd(ends, problem)


def _believed(end: JournalEnd, ledger: LedgerMetadata) -> JournalEnd:
    """Return ``end``; raise if its record's term is not open yet in the metadata.

    A LAC counts only with metadata in which its term is open.
    """
    if end.record is not None and end.record.term > ledger.term:
        raise CorruptDataError(f"a record is of term {end.record.term}, which has not begun yet")
    return end


def _lost(
    root: ReadableRoot, member: Member, ledger: LedgerMetadata, ends: Mapping[str, JournalEnd]
) -> str:
    """Return why the bookie may have had more than it shows: a marker of its first step is missing.

    Records written there since by a recovery are copies, and do not show all former records. A
    remaining journal may have lost its end together with the marker (R18).
    """
    taken = Taken.of(ledger)
    own = ends.get(taken.journal)
    missing = taken.missing_in(root, is_begun=own is not None and own.record is not None)
    if not missing:
        return ""
    return (
        f"bookie {member.bookie_id} has lost data of ledger {ledger.ledger_id}: it lacks {missing}"
    )
