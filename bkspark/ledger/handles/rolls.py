"""Who waits for a new fragment, and is told once what became of it."""

from collections.abc import Callable

from bkspark.errors import NotEnoughBookiesError
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.teller import Teller


class Rolls:
    """Of one writer; whoever uses it holds the writer's lock.

    Args:
        leave: has the writer's own task do something.
        told: called behind callbacks, locked: what was added meanwhile waits for their end.
    """

    def __init__(
        self,
        ledger_id: int,
        teller: Teller,
        leave: Callable[[Callable[[], None]], None],
        told: Callable[[], None],
    ) -> None:
        self._ledger_id = ledger_id
        self._teller = teller
        self._leave = leave
        self._told = told
        self._promises: list[Promise] = []

    def ask(self) -> Promise:
        """One more waits: for the first entry of the fragment."""
        self._promises.append(Promise())
        return self._promises[-1]

    def begun(self, first_entry_id: int) -> None:
        """It is in use."""
        self._teller.tell(((promise, first_entry_id) for promise in self.taken()), self._told)

    def refused(self, reason: str) -> None:
        """There is none."""
        error = NotEnoughBookiesError(
            f"ledger {self._ledger_id}: no new fragment was begun: {reason}",
            hint="the one before is in use; ask again later",
        )
        told = [(promise, error) for promise in self.taken()]
        self._leave(lambda: self._teller.fail(told))

    def taken(self) -> list[Promise]:
        """Who waits, and is told by the caller."""
        promises, self._promises = self._promises, []
        return promises
