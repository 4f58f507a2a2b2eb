"""Remembers which ledgers a command need not look at again.

Rule 1. A ledger is *settled* for a command if the command has nothing to do for it, now and in each
later state of the ledger. For ``recover`` these are ledgers that are CLOSED, DELETING, or gone: the
state of no such ledger becomes OPEN or IN_RECOVERY again.

Rule 2. Ledger ids are given out in ascending order. So a note has one number, below which ledgers
are settled, and the ids of the exceptions. A ledger with a higher id is not settled.

Rule 3. A look settles only ledgers that it has read, and ids that it knows to be without a ledger.
A recent id whose record is absent may belong to a ledger in creation, and stays an exception for
``UNBORN_SECONDS``.

Rule 4. A note never claims more than is true. So it needs no part in the creation, the closing or
the deletion of a ledger. A lost or an older note costs further looks, and nothing else.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

UNBORN_SECONDS = 86_400.0
"""A client creates the record of a ledger within seconds after it took the id."""

EXCEPTIONS_MAX = 20_000
"""Keeps the note below 768 kB."""


@dataclass(frozen=True, slots=True)
class LedgersSeen:
    """What a look at ledgers has found.

    Attributes:
        begin, end: each ledger with an id in this range was looked at, or has no record.
        read: ids of all ledgers that were looked at.
        unsettled: ids of those that are not settled; their records may be unreadable or absent.
        now_ms: time of the look.
    """

    begin: int
    end: int
    read: frozenset[int]
    unsettled: frozenset[int]
    now_ms: int


@dataclass(frozen=True, slots=True)
class Settled:
    """The settled ledgers.

    Attributes:
        below: ledgers with lower ids are settled, without the exceptions.
        exceptions: since when each is known not to be settled, by ledger id.
    """

    below: int = 0
    exceptions: Mapping[int, int] = field(default_factory=dict)

    def has(self, ledger_id: int) -> bool:
        return ledger_id < self.below and ledger_id not in self.exceptions

    def is_given_up(self, ledger_id: int, now_ms: int) -> bool:
        """Return whether the id has been without a record for so long that none will come."""
        since_ms = self.exceptions.get(ledger_id)
        return since_ms is not None and now_ms - since_ms >= UNBORN_SECONDS * 1000

    def after(self, look: LedgersSeen) -> "Settled":
        """Return the settled ledgers after a look.

        The look may have begun at another note: what it has not read stays as it is (rule 3).
        """
        if look.begin > self.below:
            return self
        kept = {i: ms for i, ms in self.exceptions.items() if i not in look.read - look.unsettled}
        below = max(self.below, look.end)
        found = (i for i in look.unsettled if self.below <= i < below)
        exceptions = {**dict.fromkeys(found, look.now_ms), **kept}
        return replace(self, below=below, exceptions=exceptions).bounded()

    def doubting(self, ledger_ids: Collection[int], now_ms: int) -> "Settled":
        """Return the settled ledgers without some."""
        wrong = (ledger_id for ledger_id in ledger_ids if self.has(ledger_id))
        more = dict.fromkeys(wrong, now_ms)
        return replace(self, exceptions={**self.exceptions, **more}).bounded()

    def bounded(self) -> "Settled":
        """Return the same; beyond ``EXCEPTIONS_MAX`` exceptions, later ledgers count as new."""
        if len(self.exceptions) <= EXCEPTIONS_MAX:
            return self
        ids = sorted(self.exceptions)
        kept = {ledger_id: self.exceptions[ledger_id] for ledger_id in ids[:EXCEPTIONS_MAX]}
        return Settled(ids[EXCEPTIONS_MAX], kept)
