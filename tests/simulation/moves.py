"""How the metadata of a ledger may change, and what must be on disks when a repair changes them."""

from collections.abc import Collection, Iterator, Mapping

from bkspark.format import journal
from bkspark.format.add_record import Headers
from bkspark.format.digest import Digester
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, LedgerState, Member
from tests.simulation.damage import NAME
from tests.simulation.known import Copy, Ledger, Place, label
from tests.simulation.scheduler import Violation

OPEN, IN_RECOVERY, CLOSED = LedgerState.OPEN, LedgerState.IN_RECOVERY, LedgerState.CLOSED
_MOVES = {(OPEN, OPEN), (OPEN, IN_RECOVERY), (OPEN, CLOSED)} | {
    (IN_RECOVERY, IN_RECOVERY),
    (IN_RECOVERY, CLOSED),
    (IN_RECOVERY, OPEN),
    (CLOSED, CLOSED),
    *((state, LedgerState.DELETING) for state in (OPEN, IN_RECOVERY, CLOSED)),
}


def require_legal_move(before: LedgerMetadata, after: LedgerMetadata) -> None:
    """By the table of moves, in a later term if somebody takes it over (I6)."""
    moves = (before.state, after.state)
    has_same_owner = (before.term, before.token) == (after.term, after.token)
    is_truncated = has_same_owner and before.first_available < after.first_available
    is_takeover = after.state is IN_RECOVERY and not is_truncated
    if (before.state, after.state) == (IN_RECOVERY, OPEN):
        has_same_owner = before.term == after.term and before.token != after.token
        opened = after.last_fragment
        whose = (opened.term, opened.owner, opened.token)
        if not before.goes_on or whose != (after.term, after.term, after.token):
            raise Violation(f"{before} is set open as {after} (I6)")
    if moves not in _MOVES or (not is_takeover and not has_same_owner):
        raise Violation(f"{before.state} of term {before.term} becomes {after} (I6)")
    if is_takeover and (after.term != before.term + 1 or after.token == before.token):
        raise Violation(f"term {before.term} is taken over as term {after.term} (I6)")


def require_fragments(before: LedgerMetadata, after: LedgerMetadata) -> None:
    """They ascend, name distinct bookies, and only the last one changes while it is open (I5)."""
    firsts = [fragment.first_entry_id for fragment in after.fragments]
    older = [fragment for fragment in before.fragments if fragment.first_entry_id >= firsts[0]]
    if firsts != sorted(set(firsts)) or older[0].first_entry_id != firsts[0]:
        raise Violation(f"fragments begin at {firsts} (I5)")
    for fragment in after.fragments:
        names = {member.bookie_id for member in fragment.ensemble}
        if len(names) != after.quorum.ensemble_size:
            raise Violation(f"fragment {fragment.first_entry_id} names {names} (I5)")
    kept = len(older) - 1
    if len(older) < min(2, len(before.fragments)) and after.state is not CLOSED:
        raise Violation(f"its last record is let go of: {before.fragments}, {firsts} (I5)")
    if after.state is not CLOSED and after.fragments[:kept] != tuple(older[:kept]):
        raise Violation(f"old fragments change: {before.fragments} to {after.fragments} (I5)")


def require_owners(ledger: Ledger) -> None:
    """What was acknowledged in a term stays that term's (I4, H43)."""
    for entry_id, term in ledger.owners.items():
        if entry_id >= ledger.metadata.first_available and ledger.owner_of(entry_id) != term:
            owner = ledger.owner_of(entry_id)
            raise Violation(f"entry {entry_id} is acked in term {term}, and is {owner}'s (I4)")


def require_repair(
    ledger: Ledger, before: LedgerMetadata, lost: Collection[tuple[str, str]]
) -> None:
    """One place changes hands, and who gets it has what anybody has of it (I2).

    Of that fragment: in others he may have been slow. Unless he has lost it since, or gets it back
    that he had before: then all is as it was. Who follows one that has lost all may lack what no
    bookie gave just then, as it is no worse so; but not everything.
    """
    after = ledger.metadata
    if (before.last_entry_id, before.length_bytes) != (after.last_entry_id, after.length_bytes):
        raise Violation(f"closed at {before.last_entry_id}, then at {after.last_entry_id} (I1)")
    left = tuple(f for f in before.fragments if f.first_entry_id >= after.first_available)
    if len(left) < len(before.fragments) and left == after.fragments and before.left == after.left:
        return  # nothing but its beginning went
    if before.quorum != after.quorum:
        _require_widening(ledger, before, lost)
        return
    changed = [
        (one.first_entry_id, old, new)
        for one, other in zip(before.fragments, after.fragments, strict=True)
        for old, new in _pairs(one, other)
        if old != new
    ]
    if not changed and before.left < after.left:
        return
    if len(changed) != 1 or before.left != after.left:
        raise Violation(f"a repair changes {changed} at once (I5)")
    first, old, new = changed[0]
    ledger.replaced.add((first, old))
    if (first, new) not in ledger.replaced:
        _require_held(ledger, first, new, lost, is_excused=(old.bookie_id, old.incarnation) in lost)


def _require_widening(
    ledger: Ledger, before: LedgerMetadata, lost: Collection[tuple[str, str]]
) -> None:
    """Each fragment gets one member more, at its end, which has all of it."""
    after = ledger.metadata
    size = before.quorum.ensemble_size
    if (after.quorum.ensemble_size, after.quorum.write_quorum_size) != (size + 1, size + 1):
        raise Violation(f"{before.quorum} becomes {after.quorum} (I5)")
    for one, other in zip(before.fragments, after.fragments, strict=True):
        if other.ensemble[:size] != one.ensemble or before.left != after.left:
            raise Violation(f"a widening changes {one} to {other} (I5)")
        _require_held(ledger, one.first_entry_id, other.ensemble[size], lost, is_excused=False)


def _require_held(
    ledger: Ledger,
    first: int,
    new: Member,
    lost: Collection[tuple[str, str]],
    *,
    is_excused: bool,
) -> None:
    """Whoever gets a place in the fragment that begins at ``first`` has what anybody has of it.

    Args:
        is_excused: whether it may lack something, as whose place it gets has lost all.
    """
    member = (new.bookie_id, new.incarnation)
    missing: list[Copy] = []
    has_any = False
    for copy, members in _placed(ledger, first):
        has_any = has_any or (member in members and (copy, *member) in ledger.copies)
        is_cut = member in lost or (copy, *member) in ledger.cut
        others = [one for one in members if one != member]
        is_anywhere = any((copy, *one) in ledger.copies for one in others)
        if (
            member in members
            and is_anywhere
            and not is_cut
            and (copy, *member) not in ledger.copies
        ):
            missing.append(copy)
    if missing and not (has_any and is_excused):
        raise Violation(f"{new.bookie_id} gets a place without {missing[0]} (I2)")


def require_whole(ledger: Ledger, places: Mapping[str, Place], digester: Digester) -> None:
    """Every member has all that it should have, on its disk as it is now (I3)."""
    held: dict[str, set[Copy]] = {}
    for copy, members in _placed(ledger):
        for who, incarnation in members:
            if places[who].incarnation != incarnation:
                raise Violation(f"{who} is named behind a repair, and is gone (I3)")
            if who not in held:
                held[who] = set(_held(places[who], ledger.metadata.ledger_id, digester))
            if copy not in held[who] and not places[who].is_flipped:
                raise Violation(f"{who} has no {copy} behind a repair (I3)")


def _held(place: Place, ledger_id: int, digester: Digester) -> Iterator[Copy]:
    for name, file in place.disk.files.items():
        match = NAME.fullmatch(name)
        if match is None or int(match[1], 16) != ledger_id:
            continue
        if match[2] == "entries":
            attempt, _, stripe = match[3].removesuffix(".arrow").rpartition("-")
            yield ("log", attempt, stripe)
        elif match[2] == "journal":
            yield from _in_journal(bytes(file.data), ledger_id, digester)


def _in_journal(data: bytes, ledger_id: int, digester: Digester) -> Iterator[Copy]:
    """What its heads say, as far as an audit goes: rows are for who reads all."""
    headers = Headers(ledger_id)
    for begin in journal.frame_begins(data, 0):
        record = journal.decode_head(data, begin, digester, headers, position=begin)
        end = begin + (journal.frame_length(data, begin, position=begin) or 0)
        if record is not None and end <= len(data):
            name = label(record)
            yield ("record", name)
            for part in record.parts_of(journal.ensemble_index(data, begin)):
                yield ("part", name, str(part.stripe))


def _pairs(one: Fragment, other: Fragment) -> list[tuple[Member, Member]]:
    return list(zip(one.ensemble, other.ensemble, strict=True))


def _placed(
    ledger: Ledger, fragment_first: int | None = None
) -> list[tuple[Copy, list[tuple[str, str]]]]:
    """What each member should have of a closed ledger, or of one fragment of it."""
    last = ledger.metadata.last_entry_id
    assert last is not None
    groups = [record for record in ledger.groups.values() if record.last_entry_id <= last]
    return [
        placed
        for record in groups
        if fragment_first
        in (None, ledger.metadata.fragment_of(record.first_entry_id).first_entry_id)
        for placed in ledger.placed(record)
    ]
