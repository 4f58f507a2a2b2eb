"""What records prove: which record counts, what was lost, and how far a ledger may be read."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from bkspark.protocol.ledger.metadata import FIRST_TERM, INVALID_ENTRY_ID, Fragment, LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import AddRecord

# --- evidence ------------------------------------------------------------------------------------
# Evidence in records of data that bookies had: a bookie that lacks such data lost it (R14, H20).
#
# Rule 1. A record states for each member the newest record that the member was known to have (see
# ``adding``, rule 7). The named record was durable in the writer's own journal, which only grows.
# So a member with a shorter journal has lost the rest, and its absences prove nothing.
#
# Rule 2. Only the writer's own journal is evidence. Copies made by a recovery lie in the recovery's
# journals, and do not restore a member.
#
# Rule 3. A statement about a place concerns the member of that time. A record whose LAC is later
# than the last entry confirmed when the metadata named the present members was written after that.
# No other record says anything about the present members.
#
# Rule 4. An absence counts against a member only if the member was asked *after* a fence, or asked
# again; otherwise the record may have been stored meanwhile. A record on a single bookie that no
# other record mentions is not missed.


Stored = Mapping[int, int]
"""By ensemble index, an entry of the newest record that the member is known to have had."""


def stored(records: Iterable[AddRecord], last_confirmed: int) -> Stored:
    """Return what ``records`` state about the members of the last fragment.

    Args:
        last_confirmed: the last entry acknowledged when the metadata named the members.
    """
    return together(
        dict(enumerate(record.stored))
        for record in records
        if record.last_add_confirmed > last_confirmed
    )


def together(many: Iterable[Stored]) -> Stored:
    """Return for each member the maximum over ``many``."""
    found: dict[int, int] = {}
    for one in many:
        for index, entry_id in one.items():
            if entry_id > found.get(index, INVALID_ENTRY_ID):
                found[index] = entry_id
    return found


def lacking(had: Stored, reached: Mapping[int, int]) -> dict[int, int]:
    """Return what members had and do not show, by ensemble index.

    Args:
        reached: the last entry of the newest record in the writer's own journal, -1 without any.
    """
    return {
        index: had[index]
        for index, last in reached.items()
        if last < had.get(index, INVALID_ENTRY_ID)
    }


# --- ownership -----------------------------------------------------------------------------------
# Which record of an entry counts: the record of the term that owns the entry's id.
#
# Rule 1. The fragments map ids to terms. A fragment opened by a writer names the writer's token;
# the writer's term owns the ids from the fragment's first entry up to the first fragment of a later
# term. If a recovery reopened the ledger, fragments name their owners themselves.
#
# Rule 2. A record counts only if its term owns every id committed by the record. A record of an
# older term is a leftover: its writer is fenced, and the recovery found the record unacknowledged.
# A record of a later term belongs to a writer unknown to this metadata. Readers ignore both, on any
# bookie, in any journal, and however many copies exist (H43, RB-34). So neither the highest term
# found nor the first decides.
#
# Rule 3. A recovery or a repair copies records unchanged into a journal of its own. So the term of
# a record counts, never the term of the journal. A reader begins with the owner's journals, and
# then reads journals of later terms, unless the owner's journals show a record with all its parts.
# The order says where to look first, never that an entry is absent.
#
# Rule 4. A fragment without a token was made by a recovery that closed the ledger, in a term
# without a writer. Its records belong to an earlier writer. If the fragment replaced that writer's
# own fragment, the metadata does not name the writer. No reader needs the name: a ledger without
# owners has one writer (``metadata``, rule 6), so each id was sent in a single term. There every
# term counts from the term of the last earlier token up to the fragment's own term.
#
# Rule 5. A confirmation always counts: it commits nothing, and its content stays true in all later
# terms.
#
# Rule 6. Before the first remaining fragment no record counts, of any term.


_FIRST = attrgetter("first_entry_id")


def owners(fragments: Sequence[Fragment], entry_id: int) -> range:
    """Return the terms whose records of ``entry_id`` (>= 0) may count; mostly a single term."""
    at = bisect_right(fragments, entry_id, key=_FIRST) - 1
    if at < 0:
        return range(0)
    if fragments[at].owner:
        return range(fragments[at].owner, fragments[at].owner + 1)
    named = (fragments[i].term for i in range(at, -1, -1) if fragments[i].token)
    return range(next(named, FIRST_TERM), fragments[at].term + 1)


def is_owner(fragments: Sequence[Fragment], term: int) -> bool:
    """Whether any record of ``term`` may count.

    Reads only the fragments of ``term`` and of later terms.
    """
    for fragment in reversed(fragments):
        if fragment.term < term:
            return False
        if term in owners(fragments, fragment.first_entry_id):
            return True
    return False


def first_behind(ledger: LedgerMetadata, term: int) -> int | None:
    """Return the first id owned by a later term than ``term``; None without any (rule 1)."""
    later = (f.first_entry_id for f in ledger.fragments if (f.owner or f.term) > term)
    return next(later, None)


def counts(fragments: Sequence[Fragment], record: AddRecord) -> bool:
    """Whether ``record`` counts in a ledger with these fragments, by the record's term."""
    first, last = record.first_entry_id, record.last_entry_id
    if last < first:
        return True
    end = fragments[-1]
    if first >= end.first_entry_id and end.token:  # the common case, answered faster
        return record.term == (end.owner or end.term)
    return record.term in owners(fragments, first) and record.term in owners(fragments, last)


def counts_in(ledger: LedgerMetadata, record: AddRecord) -> bool:
    """Whether ``record`` counts in ``ledger``, by the record's term."""
    return counts(ledger.fragments, record)


# --- confirmed -----------------------------------------------------------------------------------
# How far a ledger that is not closed may be read, decided from its bookies' answers.
#
# Rule 1. A last-add-confirmed (LAC) in any valid record is true: everything up to it is
# acknowledged. So a reader may read requested entries up to the highest LAC seen.
#
# Rule 2. A reader reports a LAC as the end only if enough members of some write set state that LAC
# or a later LAC. Enough means: no reader with a known end (rule 3) can miss all these members. So
# an end shown to one reader is shown to every later reader, whichever bookies answer.
#
# Rule 3. A silent member, or a member that may have held more than it shows, may hold any LAC. The
# end is known only if missing answers cannot change it; otherwise the end is unknown.


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The end according to the answers.

    Attributes:
        least: the end if no uncertain member states more.
        most: the highest end that another reader may have seen; None without a bound.
    """

    least: int
    most: int | None

    @property
    def is_known(self) -> bool:
        return self.least == self.most


def witnesses(quorum: Quorum) -> int:
    """Return how many members of a write set must state a LAC before a reader reports the LAC.

    The number is at most Qa, so every LAC in an acknowledged record has enough. The number is about
    half of the write set, so that as many bookies as possible may be away, with or without the LAC.
    """
    return min(quorum.ack_quorum_size, (quorum.write_quorum_size + 1) // 2)


def confirmed(
    quorum: Quorum, said: Mapping[int, int], sure: Collection[int], floor: int = INVALID_ENTRY_ID
) -> Confirmed:
    """Compute how far the ledger may be read.

    Args:
        said: the highest LAC by ensemble index, for all members that answered; -1 without a LAC.
        sure: the indexes of the members that surely had no later LAC.
        floor: the last entry known to be confirmed by other means.
    """
    least = _shown(quorum, said)
    highest = max(said.values(), default=floor)
    above = max(highest, floor) + 1  # stands for an unknown LAC
    supposed = {
        index: said[index] if index in sure else above for index in range(quorum.ensemble_size)
    }
    most = max(floor, _shown(quorum, supposed))
    return Confirmed(max(floor, least), None if most == above else most)


def _shown(quorum: Quorum, said: Mapping[int, int]) -> int:
    """Return the highest LAC reached by enough members of one write set."""
    place = witnesses(quorum) - 1
    return max(
        sorted((said.get(index, INVALID_ENTRY_ID) for index in write_set), reverse=True)[place]
        for write_set in quorum.write_sets()
    )
