"""Marks of damaged copies: scrubs make marks, audits count marked copies as missing.

A reader of marks takes an unmarked copy as good. So a lost mark costs only time, and an outdated
mark concerns only files no client needs any more.
"""

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import tell
from bkspark.cluster.records import Records
from bkspark.errors import BookKeeperError
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import FILES_MAX, LEDGERS_MAX, DamagedCopies, Mark, bounded
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member

logger = logging.getLogger(__name__)

Marks = Mapping[tuple[Member, int], Mark]
"""By the member holding the copies, and ledger id."""


@dataclass(frozen=True, slots=True)
class News:
    """A scrub's findings about the copies of one bookie.

    Attributes:
        found: marks of damage, by ledger id.
        partial: ids of ledgers read by sample only; their old marks stay.
        good: ids of ledgers whose marks are removed.
    """

    member: Member
    found: Mapping[int, Mark]
    partial: Collection[int] = ()
    good: Collection[int] = ()


class NotedDamage:
    """The marks of a cluster.

    For readers of marks an unreadable record has no marks, at no risk. Updates of an unreadable
    record are refused.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._records: Records[DamagedCopies] = _records(cluster)
        self._shown: Records[DamagedCopies] = _records(cluster)
        self._shown.step_over = cluster.upkeep.reports.step_over or _pass_over

    def marks(self, members: Iterable[Member]) -> Marks:
        """Return all marks of ``members``."""
        found: dict[tuple[Member, int], Mark] = {}
        for member in members:
            seen = self._shown.get(member.bookie_id)
            for ledger_id, mark in seen.value.marks.items() if seen is not None else ():
                if mark.incarnation == member.incarnation:
                    found[member, ledger_id] = mark
        return found

    def note(self, news: News) -> int:
        """Update the marks of one bookie; return the number of ledgers without room.

        Raises:
            CorruptDataError: the bookie's record cannot be read.
        """
        name, left_out = news.member.bookie_id, 0

        def changed(before: DamagedCopies | None) -> DamagedCopies:
            nonlocal left_out
            marks = _after({} if before is None else before.marks, news)
            kept = dict(sorted(marks.items())[:LEDGERS_MAX])
            left_out = len(marks) - len(kept)
            return DamagedCopies(name, kept)

        seen = self._records.get(name)
        if seen is not None or news.found:
            self._records.update(name, changed, seen=seen)
        for number, mark in news.found.items():
            said = "ledger %d: its copy on %s is marked: %s"
            first = mark.entries[0][0] if mark.entries else None
            tell(
                logger,
                said,
                *(number, name, mark.reason),
                level=logging.WARNING,
                ledger_id=number,
                entry_id=first,
                bookie_id=name,
            )
        return left_out


def _pass_over(key: str, error: BookKeeperError) -> None:
    logger.warning(
        "no copies count as damaged, because record %s is missing: %s", key, error.args[0]
    )


def marks_of(marks: Marks, member: Member, ledgers: Iterable[LedgerMetadata]) -> dict[int, Mark]:
    """Return the marks of ``ledgers`` on ``member``, by ledger id."""
    if not marks:
        return {}
    keys = ((member, ledger.ledger_id) for ledger in ledgers)
    return {key[1]: marks[key] for key in keys if key in marks}


def _records(cluster: Cluster) -> Records[DamagedCopies]:
    return Records(
        cluster.store,
        cluster.cluster_id,
        layout.damaged_key,
        upkeep_records.encode_damage,
        upkeep_records.decode_damage,
    )


def _after(before: Mapping[int, Mark], news: News) -> dict[int, Mark]:
    incarnation = news.member.incarnation
    marks = {i: mark for i, mark in before.items() if mark.incarnation == incarnation}
    for ledger_id in news.good:
        marks.pop(ledger_id, None)
    for ledger_id, mark in news.found.items():
        old = marks.get(ledger_id) if ledger_id in news.partial else None
        marks[ledger_id] = mark if old is None else _both(old, mark)
    return marks


def _both(one: Mark, other: Mark) -> Mark:
    def joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*first, *second)))[:FILES_MAX]

    return replace(
        other,
        journals=joined(one.journals, other.journals),
        entries=bounded(sorted({*one.entries, *other.entries})),
        entry_logs=joined(one.entry_logs, other.entry_logs),
    )
