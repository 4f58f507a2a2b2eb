"""Remembers which ledgers a command need not look at again.

Rule 1. A ledger is *settled* for a command if the command has nothing to do for it, now and in each
later state of the ledger. For ``recover`` these are ledgers that are CLOSED, DELETING, or gone: the
state of no such ledger becomes OPEN or IN_RECOVERY again. For ``repair`` these are ledgers that are
DELETING or gone, and CLOSED ledgers with all copies that they want on members that answer: a place
of a closed ledger changes only to a member with verified copies ("repairing", rules 3 and 5). For
``collect`` these are CLOSED ledgers, named by their log if they were made for one, of which no
bookie has a file that is not needed.

Rule 2. Ledger ids are given out in ascending order. So a note has one number, below which ledgers
are settled, and the ids of the exceptions. A ledger with a higher id is not settled.

Rule 3. A look settles only ledgers that it has read, and ids that it knows to be without a ledger.
A recent id whose record is absent may belong to a ledger in creation, and stays an exception for
``UNBORN_SECONDS``.

Rule 4. A note never claims more than is true. So it needs no part in the creation, the closing or
the deletion of a ledger. A lost or an older note costs further looks, and nothing else.

Rule 5. Copies may be lost after a look, and a silent bookie may have files that are not needed. So
a note of ``repair`` or ``collect`` is about the bookies that were there during the look. If since
then a bookie was added, removed, set up again or declared lost, or became silent or not silent, no
ledger is settled.

Rule 6. A client that finds or makes something to do for a ledger doubts it, afterwards: the ledger
is an exception from then on. Doubts are counted. A look that began before the doubt does not settle
the ledger, because it may have read the ledger before.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

UNBORN_SECONDS = 86_400.0
"""A client creates the record of a ledger within seconds after it took the id."""

EXCEPTIONS_MAX = 15_000
"""Keeps the note below 768 kB."""


@dataclass(frozen=True, slots=True)
class LedgersSeen:
    """What a look at ledgers has found.

    Attributes:
        begin, end: each ledger with an id in this range was looked at, or has no record.
        read: ids of all ledgers that were looked at.
        unsettled: ids of those that are not settled; their records may be unreadable or absent.
        now_ms: time of the look.
        members: the bookies that were there (rule 5); empty if they do not matter.
        doubts: how often ledgers had been doubted when the look began (rule 6).
    """

    begin: int
    end: int
    read: frozenset[int]
    unsettled: frozenset[int]
    now_ms: int
    members: str = ""
    doubts: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled ledgers.

    Attributes:
        below: ledgers with lower ids are settled, without the exceptions.
        exceptions: since when each is known not to be settled, by ledger id.
        members: the bookies that were there (rule 5); empty if they do not matter.
        doubts: how often ledgers were doubted (rule 6).
        doubted: exceptions that no look has read since their doubt, with the number of the doubt.
        forgotten: the number of the last doubt that had no room; looks that began before it settle
            nothing.
    """

    below: int = 0
    exceptions: Mapping[int, int] = field(default_factory=dict)
    members: str = ""
    doubts: int = 0
    doubted: Mapping[int, int] = field(default_factory=dict)
    forgotten: int = 0

    def has(self, ledger_id: int) -> bool:
        return ledger_id < self.below and ledger_id not in self.exceptions

    def is_given_up(self, ledger_id: int, now_ms: int) -> bool:
        """Return whether the id has been without a record for so long that none will come."""
        since_ms = self.exceptions.get(ledger_id)
        return since_ms is not None and now_ms - since_ms >= UNBORN_SECONDS * 1000

    def among(self, members: str) -> "Settled":
        """Return the settled ledgers if these bookies are there: none if others were (rule 5)."""
        return self if members == self.members else replace(self, below=0, members=members)

    def after(self, look: LedgersSeen) -> "Settled":
        """Return the settled ledgers after a look.

        The look may have begun at another note: what it has not read stays as it is (rule 3).
        """
        known = self.among(look.members)
        if look.begin > known.below or look.doubts < self.forgotten:
            return self
        below = max(known.below, look.end)
        late = {i: number for i, number in self.doubted.items() if number > look.doubts}
        settled = look.read - look.unsettled - late.keys()
        unread = {i: number for i, number in self.doubted.items() if i not in look.read}
        doubted = {**unread, **late}
        known_ms = self.exceptions.items()
        kept = {i: ms for i, ms in known_ms if i in doubted or (i not in settled and i < below)}
        found = (i for i in look.unsettled if known.below <= i < below)
        exceptions = {**dict.fromkeys(found, look.now_ms), **kept}
        return replace(known, below=below, exceptions=exceptions, doubted=doubted).bounded()

    def doubting(self, ledger_ids: Collection[int], now_ms: int) -> "Settled":
        """Return the settled ledgers without some (rule 6)."""
        number = self.doubts + 1
        exceptions = {**dict.fromkeys(ledger_ids, now_ms), **self.exceptions}
        doubted = {**self.doubted, **dict.fromkeys(ledger_ids, number)}
        return replace(self, exceptions=exceptions, doubts=number, doubted=doubted).bounded()

    def bounded(self) -> "Settled":
        """Return the same; beyond ``EXCEPTIONS_MAX`` exceptions, later ledgers count as new."""
        if len(self.exceptions) <= EXCEPTIONS_MAX:
            return self
        ids = sorted(self.exceptions)
        kept = {ledger_id: self.exceptions[ledger_id] for ledger_id in ids[:EXCEPTIONS_MAX]}
        doubted = {i: number for i, number in self.doubted.items() if i in kept}
        return replace(
            self,
            below=min(self.below, ids[EXCEPTIONS_MAX]),
            exceptions=kept,
            doubted=doubted,
            forgotten=self.doubts if len(doubted) < len(self.doubted) else self.forgotten,
        )
