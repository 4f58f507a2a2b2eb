"""What may be removed from disks, by whomever, and what a ledger's record may say of who has left.

Rule: of a ledger that is not closed nothing goes, but for markers of writers behind whom another
goes on, and journals of theirs in which nothing counts; of one that is closed all that a bookie has
goes once the record says that it has left, and entry logs that no group of it names (R12, RB-30).
Who has left stays so, and has no place.
"""

from collections.abc import Mapping, Set

from bkspark.format import journal, layout
from bkspark.format.digest import Digester
from bkspark.protocol.ledger.evidence import counts
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from tests.simulation.damage import NAME
from tests.simulation.known import Copy, Ledger, Place, label
from tests.simulation.scheduler import Violation


def require_left(before: LedgerMetadata, after: LedgerMetadata) -> None:
    """Nobody who has left is forgotten, or has a place."""
    if not before.left <= after.left:
        raise Violation(f"{before.left - after.left} had left, and that is forgotten (RB-30)")
    for fragment in after.fragments:
        named = after.left.intersection(fragment.ensemble)
        if named:
            raise Violation(f"{named} had left, and gets a place (RB-30)")


def removed(
    ledgers: Mapping[int, Ledger], digester: Digester, bookie_id: str, place: Place
) -> None:
    """Note what is gone from a disk that was there a step ago, and ask whether it might go."""
    member = Member(bookie_id, place.incarnation)
    for name in sorted(place.names.keys() - place.disk.files.keys()):
        data = place.names.pop(name)
        place.withheld.pop(name, None)
        match = NAME.fullmatch(name)
        if match is None:
            continue
        ledger = ledgers.get(int(match[1], 16))
        if ledger is None:
            raise Violation(f"{name} is removed from {bookie_id}, of a ledger never made (R11)")
        is_gone = ledger.metadata.state is LedgerState.DELETING or name in place.damaged
        is_gone = is_gone or _is_overtaken(ledger, place, match[2], match[3])
        is_gone = is_gone or _is_of_none(ledger.metadata, digester, match[2], match[3], data)
        if not is_gone:
            _require_unwanted(ledger, member, name, match[2], match[3])
        gone = _copies(ledger, digester, match[2], match[3], data)
        ledger.copies -= {(copy, bookie_id, place.incarnation) for copy in gone}


def _is_overtaken(ledger: Ledger, place: Place, folder: str, last: str) -> bool:
    """Whether it is a marker of a writer behind whom another goes on; the fence goes last (R20).

    Permissions of tokens that the metadata never named are nobody's: a bookie was not sure, and the
    ledger was made with another one.
    """
    metadata = ledger.metadata
    if folder != "terms" or not metadata.goes_on:
        return False
    term, _, token = last.partition("-")
    if token:
        return int(term, 16) < _newest(metadata)
    his = f"{layout.term_marker(metadata.ledger_id, int(term, 16) - 1)}-"
    is_last = not any(f"{his}{token}" in place.names for token in ledger.writers)
    return is_last and int(term, 16) <= _newest(metadata)


def _newest(ledger: LedgerMetadata) -> int:
    """The newest term in which it was open; behind a fragment without entries, perhaps."""
    is_closed = ledger.state is LedgerState.CLOSED
    return ledger.term if is_closed else ledger.last_fragment.term


def _is_of_none(
    ledger: LedgerMetadata, digester: Digester, folder: str, last: str, data: bytes
) -> bool:
    """Whether it is a journal behind whose writer another goes on, and no record in it counts."""
    if folder != "journal" or not ledger.goes_on:
        return False
    frames = journal.decode_journal(data, digester, ledger_id=ledger.ledger_id).frames
    adds = [frame.record for frame in frames if not frame.record.is_confirmation]
    is_old = layout.journal_term(last) < _newest(ledger)
    return is_old and not any(counts(ledger.fragments, record) for record in adds)


def require_tidy(ledger: LedgerMetadata, places: Mapping[str, Place], registered: Set[str]) -> None:
    """Nothing of the ledger is where it has left, of bookies that are of the cluster still."""
    folder = f"{layout.ledger_folder(ledger.ledger_id)}/"
    for bookie_id in sorted(registered & places.keys()):
        place = places[bookie_id]
        files = place.disk.files
        if Member(bookie_id, place.incarnation) in ledger.left and layout.COOKIE in files:
            names = [name for name in files if name.startswith(folder)]
            if names:
                raise Violation(f"{names} stay on {bookie_id}, which has left (I9)")


def _require_unwanted(ledger: Ledger, member: Member, name: str, folder: str, last: str) -> None:
    metadata, who = ledger.metadata, member.bookie_id
    if metadata.state is not LedgerState.CLOSED:
        raise Violation(f"{name} is removed from {who}, it is {metadata.state.value} (R12)")
    end = metadata.last_entry_id or 0
    live = [record for record in ledger.groups.values() if record.first_entry_id <= end]
    logs = [log for one in live for attempt in one.attempts for log in attempt.entry_logs]
    if folder == "entries" and last not in {f"{x.attempt_id}-{x.stripe}.arrow" for x in logs}:
        return
    if any(member in fragment.ensemble for fragment in metadata.fragments):
        raise Violation(f"{name} is removed from {who}, which has a place (R12)")
    if member not in metadata.left:
        raise Violation(f"{name} is removed from {who}, which has not left yet (RB-30)")


def _copies(ledger: Ledger, digester: Digester, folder: str, last: str, data: bytes) -> set[Copy]:
    """What was in the file."""
    if folder == "entries":
        attempt, _, stripe = last.removesuffix(".arrow").rpartition("-")
        return {("log", attempt, stripe)}
    if folder != "journal":
        return set()
    frames = journal.decode_journal(data, digester, ledger_id=ledger.metadata.ledger_id).frames
    firsts = {label(one.record) for one in frames if not one.record.is_confirmation}
    return {copy for copy, *_ in ledger.copies if copy[0] != "log" and copy[1] in firsts}
