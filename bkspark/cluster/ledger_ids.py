"""Ids of new ledgers, from one counter that all clients of a cluster raise.

Ids are given out in ascending order, and no id twice. A client takes one id at a time. While other
clients raise the counter too, a client that loses a compare-and-set takes more ids at once and uses
them for its next ledgers, so that many clients do not wait for one record. Ids that are not used
soon are left out.
"""

from functools import partial

from bkspark import environment
from bkspark.cluster.records import Records
from bkspark.format import cluster as cluster_format
from bkspark.format import layout
from bkspark.metadata.contract import MetadataStore

IDS_MAX = 64
"""Ids that a client takes at once."""
KEPT_SECONDS = 60.0
"""For how long a client uses ids that it has taken; far below ``settling.UNBORN_SECONDS``."""


class LedgerIds:
    """The ids that one client of a cluster takes; any of its threads may ask.

    Attributes:
        counters: the counter, by its key.
    """

    def __init__(self, store: MetadataStore, cluster_id: str) -> None:
        self.counters: Records[int] = Records(
            store,
            cluster_id,
            lambda name: name,
            partial(cluster_format.encode_counter, layout.LEDGER_COUNTER_KEY),
            cluster_format.decode_counter,
            guesses=True,
        )
        self._lock = environment.lock()  # held while the store is asked
        self._left: list[int] = []
        self._until = 0.0
        self._size = 1

    def new(self) -> int:
        """An id that no ledger has had or will have again."""
        with self._lock:
            if not self._left or environment.monotonic() >= self._until:
                self._take()
            return self._left.pop()

    def next(self) -> int | None:
        """An id above all ids given out so far; None if none was, or a survey cannot tell."""
        seen = self.counters.get(layout.LEDGER_COUNTER_KEY)
        return None if seen is None else seen.value

    def _take(self) -> None:
        """Take ids at once: twice as many after each attempt that lost, and fewer the next time."""
        until = environment.monotonic() + KEPT_SECONDS
        attempts, size = 0, max(self._size // 2, 1)

        def raised(value: int | None) -> int:
            nonlocal attempts, size
            attempts += 1
            # The first loss may only show that this client knew an older counter.
            size = min(2 * size, IDS_MAX) if attempts > 2 else size
            return (value or 0) + size

        end = self.counters.update(layout.LEDGER_COUNTER_KEY, raised).value
        self._size, self._until = size, until
        self._left = list(range(end - 1, end - 1 - size, -1))
