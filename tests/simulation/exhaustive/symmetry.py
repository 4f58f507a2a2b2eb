"""One schedule for all that are the same but for names.

The bookies that an entry is written to are alike, and so are the clients that take a ledger over.
Of the orders in which those that are alike can come, one is let happen:

- the writer hears for the first time from bookies that are alike in the order of its ensemble;
- the first takeover that succeeds is that of the first recoverer, the next that of the second.

Both are conditions that a step waits for, and they depend only on what that step touches anyway or
is said to touch here. So a search sees a program that lacks the other orders, and can be complete
for it as for any. Every schedule of the whole program becomes one of these by a change of names,
and no promise names anybody: what one of them breaks, the other breaks. This takes for granted that
the client treats alike what is alike; tests compare what both programs end with.
"""

from collections.abc import Sequence

from bkspark.protocol.ledger.metadata import FIRST_TERM, LedgerMetadata, LedgerState
from tests.kit.faulty import METADATA
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.scheduler import Scheduler, Task


class Turns:
    """Lets bookies that are alike answer the writer one after the other.

    Args:
        writer: the name of its process.
        bookie_ids: in the order in which they answer.
    """

    def __init__(self, scheduler: Scheduler, writer: str, bookie_ids: Sequence[str]) -> None:
        self._scheduler = scheduler
        self._writer = writer
        self._ranks = {bookie_id: rank for rank, bookie_id in enumerate(bookie_ids)}
        self._answered = 0

    def wait(self, thing: str, access: Access) -> None:
        """Wait, if whoever is about to touch ``thing`` must not answer yet.

        An answer is brought to the writer under its lock.
        """
        is_answer = access is Access.WAIT and thing.startswith("lock")
        rank = self._rank(self._scheduler.current) if is_answer else None
        if rank is not None and rank >= self._answered:
            if rank:
                self._scheduler.pause(lambda: self._answered == rank)
                self._scheduler.touch(f"turn {rank}", Access.WAIT)
            self._answered = rank + 1
            self._scheduler.touch(f"turn {self._answered}", Access.WRITE)

    def _rank(self, task: Task | None) -> int | None:
        """Of the bookie that ``task`` works on for the writer."""
        if task is None or task.process.name != self._writer:
            return None
        return next((r for name, r in self._ranks.items() if task.name.endswith(f"-{name}")), None)


def is_too_early(rank: int, pending: tuple[str, str, str] | None, ledger: LedgerMetadata) -> bool:
    """Whether a recoverer is about to take ``ledger`` over before one of a lower rank has.

    Args:
        rank: of the recoverer, from 0; 0 for whoever is none.
        pending: the operation that it makes when it goes on: (place, call, name).
    """
    if pending is None or pending[:2] != (METADATA, "put"):
        return False
    takeovers = ledger.term - FIRST_TERM
    return ledger.state is not LedgerState.CLOSED and rank > takeovers
