"""Keeps the callers that wait for a new fragment, and tells each the outcome once."""

from collections.abc import Callable

from bkspark.errors import NotEnoughBookiesError
from bkspark.ledger.handles.promise import Promise
from bkspark.ledger.handles.teller import Teller


class Rolls:
    """The waiting callers of one writer. All methods need the writer's lock.

    Args:
        leave: runs a function on the writer's own task.
        told: called after the callbacks, under the lock: entries added meanwhile wait for their
            end.
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
        """Add a waiting caller; return the promise of the fragment's first entry."""
        self._promises.append(Promise())
        return self._promises[-1]

    def begun(self, first_entry_id: int) -> None:
        """Tell all callers that the fragment is in use."""
        self._teller.tell(((promise, first_entry_id) for promise in self.taken()), self._told)

    def refused(self, reason: str) -> None:
        """Fail all callers: no fragment was begun."""
        error = NotEnoughBookiesError(
            f"ledger {self._ledger_id}: no new fragment was begun: {reason}",
            hint="the writer continues in its old fragment; roll again later",
        )
        told = [(promise, error) for promise in self.taken()]
        self._leave(lambda: self._teller.fail(told))

    def taken(self) -> list[Promise]:
        """Take the promises of all waiting callers; the caller must settle them."""
        promises, self._promises = self._promises, []
        return promises
