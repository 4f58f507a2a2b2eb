"""Finds how far a ledger may be read: to its end if CLOSED, else to its confirmed entries.

Of an open ledger only the ends of journals are read; no writer is fenced or disturbed.
``protocol/confirmed`` decides which answers count. The caller supplies the way to ask its bookies.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import BookieUnavailableError
from bkspark.ledger.journals.member_journals import MemberEnd
from bkspark.metadata import freshness
from bkspark.protocol.ledger import evidence
from bkspark.protocol.ledger.evidence import Confirmed, confirmed
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import UNKNOWN, CommitTimes, LedgerMetadata, Member
from bkspark.protocol.ledger.record import AddRecord

PAUSES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.3, 0.3, 0.3)
"""Seconds before bookies with different answers are asked again; mostly they soon agree."""


@dataclass(frozen=True, slots=True)
class Readable:
    """The readable part of a ledger.

    Attributes:
        ledger: the metadata to read with.
        last_entry_id: the last readable entry, -1 without one.
        length_bytes: payload up to there; approximate for an open ledger.
        times: when entries up to there were committed, perhaps with later entries of an open
            ledger; ``UNKNOWN`` if the last record states no entry.
    """

    ledger: LedgerMetadata
    last_entry_id: int
    length_bytes: int
    times: CommitTimes


@dataclass(frozen=True, slots=True)
class MemberAnswers:
    """Answers of the members of a ledger's last fragment.

    Attributes:
        ends: of members that answered in time.
        silent: why the rest did not answer, in one line each.
    """

    ends: Mapping[Member, MemberEnd]
    silent: Mapping[Member, str]

    @property
    def problems(self) -> Mapping[Member, str]:
        """Why members did not answer, or may have had more than they show."""
        return {**self.silent, **{m: end.problem for m, end in self.ends.items() if end.problem}}


IsEnough = Callable[[Mapping[Member, MemberEnd]], bool]
Ask = Callable[[LedgerMetadata, IsEnough], MemberAnswers]
"""Asks all members of the last fragment at once; returns early once the answers are enough."""

LAST_SEEN_SECONDS = 2.0
"""A bookie that older metadata names may hang, and the writer may have replaced it since."""


class LastSeen:
    """The metadata of an open ledger that the look before has found to be the newest."""

    def __init__(self) -> None:
        self._kept: tuple[float, Versioned[LedgerMetadata]] | None = None

    def take(self, ledger_id: int) -> Versioned[LedgerMetadata] | None:
        """Return the metadata of ``ledger_id``, once, unless it was found long ago."""
        kept = self._kept
        if kept is None or kept[1].value.ledger_id != ledger_id:
            return None
        self._kept = None
        return kept[1] if environment.monotonic() - kept[0] < LAST_SEEN_SECONDS else None

    def keep(self, seen: Versioned[LedgerMetadata]) -> None:
        """Keep ``seen`` for the next look."""
        self._kept = environment.monotonic(), seen


def look(
    cluster: Cluster,
    ledger_id: int,
    ask: Ask,
    note: Callable[[MemberAnswers], None],
    *,
    enough: int | None = None,
    last_seen: LastSeen | None = None,
) -> Readable:
    """Find the readable part of a ledger.

    The metadata must still be the newest after the bookies have answered: the metadata names an
    ensemble and a term before any entry is acknowledged in them. If an answer as of the begin of a
    block is enough (``freshness``), the metadata must be the newest as of then: all entries that
    were acknowledged before are in its ensemble. What looks like damage is compared with the newest
    metadata in any case.

    Args:
        note: called with answers that belong to the newest metadata. Compared with an older
            version, members may seem to lack or exceed data changed by a later writer.
        enough: an entry id; stop once this entry is known to be readable.
        last_seen: metadata of the look before: its bookies are asked without reading it again.

    Raises:
        NoSuchLedgerError: the ledger does not exist, or was deleted meanwhile.
        BookieUnavailableError: the ledger is not closed, and too few members of its last fragment
            show how far it may be read: unknown is never absent.
    """
    last_seen = last_seen or LastSeen()
    seen = last_seen.take(ledger_id) or cluster.ledger(ledger_id)
    before, pauses = dict[Member, MemberEnd](), iter(PAUSES)
    while seen.value.last_entry_id is None:
        state = _Look(seen.value, before)
        state.take(ask(seen.value, state.is_enough))
        is_current = _is_newest(cluster, seen, state)
        if is_current:
            note(state.answers)
        if is_current and (state.is_known or state.may_be_read(enough)):
            last_seen.keep(seen)
            return state.readable()
        pause = next(pauses, None)
        if pause is None or (is_current and not state.may_change):
            raise state.unknown() if is_current else _overtaken(ledger_id)
        before = {**before, **state.answers.ends}
        environment.sleep(pause)
        if not is_current:
            with freshness.now():
                seen, before = cluster.ledger(ledger_id), {}
    closed, last = seen.value, seen.value.last_entry_id
    return Readable(closed, last, closed.length_bytes or 0, closed.times)


def _is_newest(cluster: Cluster, seen: Versioned[LedgerMetadata], state: "_Look") -> bool:
    ledger_id = str(seen.value.ledger_id)
    is_current = cluster.ledgers.is_current(ledger_id, seen)
    if is_current and freshness.needed() is not None and not state.is_plain:
        with freshness.now():
            is_current = cluster.ledgers.is_current(ledger_id, seen)
    return is_current


class _Look:
    """One look at a ledger that is not closed.

    Args:
        before: earlier answers of the same search.
    """

    def __init__(self, ledger: LedgerMetadata, before: Mapping[Member, MemberEnd]) -> None:
        self.answers = MemberAnswers({}, {})
        self._known: Confirmed
        self._ledger = ledger
        self._before = before

    def take(self, answers: MemberAnswers) -> None:
        """Take the answers of all members, once."""
        self.answers = answers
        self._known = self._confirmed(answers.ends)

    @property
    def is_known(self) -> bool:
        return self._known.is_known

    @property
    def is_plain(self) -> bool:
        """Whether the answers tell how far the ledger may be read, and of no damage."""
        return self.is_known and not self.answers.problems

    @property
    def may_change(self) -> bool:
        """Whether members may soon show enough: a member lags, or an append is running."""
        ends = self.answers.ends
        return (
            self._known.most is not None
            or any(not end.problem and not end.is_sure(None) for end in ends.values())
            or bool(self._behind(ends))
        )

    def is_enough(self, ends: Mapping[Member, MemberEnd]) -> bool:
        return self._confirmed(ends).is_known

    def may_be_read(self, entry_id: int | None) -> bool:
        """Return whether ``entry_id`` is confirmed, even if a silent bookie may know of later
        entries.
        """
        return entry_id is not None and self._highest >= entry_id

    def readable(self) -> Readable:
        known = self._known
        last = known.least if known.is_known else self._highest
        record = self._last_record
        if record is None:
            return Readable(self._ledger, last, 0, UNKNOWN)
        share = min(1.0, (last + 1) / max(1, record.last_entry_id + 1))
        # The journals of earlier fragments were not asked: a header says nothing of them.
        times = record.times if record.last_add_confirmed >= last else UNKNOWN
        return Readable(self._ledger, last, int(record.length_bytes * share), times)

    def unknown(self) -> BookieUnavailableError:
        lost = self._lost(self.answers.ends)
        said = [_said(m, end, lost.get(m)) for m, end in self.answers.ends.items()]
        reasons = "; ".join([*self.answers.silent.values(), *said])
        return BookieUnavailableError(
            f"the last confirmed entry of ledger {self._ledger.ledger_id} is not known: {reasons}",
            hint="bring back these bookies, or read closed ledgers only, or recover the ledger: "
            + self._recovering,
        )

    @property
    def _recovering(self) -> str:
        """The effect of a recovery, for the hint: an unbounded log continues in the ledger
        afterwards.
        """
        if not self._ledger.goes_on:
            return "a recovery fences its writer and closes it"
        return (
            f"a recovery fences its writer; `bkspark ledger recover {self._ledger.ledger_id} "
            "--seal` also closes it"
        )

    @property
    def _floor(self) -> int:
        # All entries before the last fragment were acknowledged when the fragment was made.
        return self._ledger.last_confirmed

    @property
    def _highest(self) -> int:
        record = self._last_record
        return self._floor if record is None else max(self._floor, record.last_add_confirmed)

    @property
    def _last_record(self) -> AddRecord | None:
        records = (end.last_record for end in self.answers.ends.values())
        return max(
            (record for record in records if record is not None),
            key=lambda record: record.last_add_confirmed,
            default=None,
        )

    def _confirmed(self, ends: Mapping[Member, MemberEnd]) -> Confirmed:
        ensemble = Locations(self._ledger).last.members
        doubted = {*self._lost(ends), *self._behind(ends)}
        sure = {
            ensemble.index(member)
            for member, end in ends.items()
            if member not in doubted and end.is_sure(self._before.get(member))
        }
        lacs = {ensemble.index(member): end.last_add_confirmed for member, end in ends.items()}
        return confirmed(self._ledger.quorum, lacs, sure, self._floor)

    def _lost(self, ends: Mapping[Member, MemberEnd]) -> Mapping[Member, int]:
        """Return members that lack entries stated before they were asked: lost data (R14)."""
        return self._lacking(ends, self._before.values())

    def _behind(self, ends: Mapping[Member, MemberEnd]) -> set[Member]:
        """Return members that lack entries stated now, but may have got them after the question.

        A member whose journal has grown since the look before is left out: an append is running.
        """
        return {
            member
            for member in self._lacking(ends, ends.values()).keys() - self._lost(ends)
            if not (before := self._before.get(member)) or ends[member].reached <= before.reached
        }

    def _lacking(
        self, ends: Mapping[Member, MemberEnd], by: Iterable[MemberEnd]
    ) -> Mapping[Member, int]:
        """Return the entries that members lack according to ``by``, answers of any members."""
        ensemble = Locations(self._ledger).last.members
        had = evidence.together(end.had(self._ledger.last_confirmed) for end in by)
        reached = {ensemble.index(member): end.reached for member, end in ends.items()}
        lacking = evidence.lacking(had, reached)
        return {ensemble[index]: entry_id for index, entry_id in lacking.items()}


def _overtaken(ledger_id: int) -> BookieUnavailableError:
    """Return the error for answers that belong only to older metadata: they prove nothing."""
    return BookieUnavailableError(
        f"the last confirmed entry of ledger {ledger_id} is not known: other clients changed "
        f"its metadata during each of {len(PAUSES) + 1} attempts",
        hint="read again",
    )


def _said(member: Member, end: MemberEnd, had: int | None) -> str:
    bookie, last = f"bookie {member.bookie_id}", end.last_add_confirmed
    confirmed_to = "nothing is confirmed" if last < 0 else f"entry {last} is confirmed"
    cut = "" if end.is_sure(None) else ", and its journal ends in an incomplete record"
    if had is not None:
        cut = f", and has lost data: it had entry {had}"
    return end.problem or f"{bookie} says that {confirmed_to}{cut}"
