"""Committing a micro-batch, exactly once.

Spark runs every commit in whatever process is at hand, may run it again after a restart, and may
lose its answer. So the batch's mark, (query id, batch id), is part of the very record that commits
its rows. "Not committed yet" is believed only of a tail that this process holds: from its own
memory, or from the log's record after taking the tail over. A commit that finds itself displaced,
by a batch append or by the same query in another process, takes the tail over in its turn, looks
the batch up, and only then writes it. It ends when a newer run of the query has taken over.
"""

from collections.abc import Sequence
from contextlib import suppress

from bkspark.client.batch.plan import WriteRequest
from bkspark.client.cluster import Cluster
from bkspark.client.records import back_off
from bkspark.client.streams.micro_batch import MicroBatch, StreamPart
from bkspark.client.streams.tail_writer import RollLimits, TailWriter, drop_private
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
    OutcomeUnknownError,
)

DISPLACEMENTS_MAX = 20
"""A log whose tail changes hands this often during one commit has too many writers."""

_Key = tuple[str, str, str]


class HeldTails:
    """The tails that one process holds, by cluster, log and query.

    Spark keeps a process while the query is busy, and ends one that was idle for about a minute;
    the next one takes over. So with triggers further apart each batch has a ledger of its own, a
    place on the log's list until retention lets it go, and costs ten times as many operations. To
    open the same ledger in the next term would save the place, but not the recovery, which costs
    the most.
    """

    def __init__(self, limits: RollLimits | None = None) -> None:
        self._limits = limits or RollLimits()
        self._tails: dict[_Key, TailWriter] = {}

    def commit(self, request: WriteRequest, batch: MicroBatch) -> bool:
        """Put the rows of ``batch`` into the log, all at once.

        Returns whether it was this call that did; False also if there are no rows.

        Raises:
            LedgerFencedError: a newer run of the query has taken over.
            LedgerClosedError: the log is sealed.
            NotEnoughBookiesError, OutcomeUnknownError: bookies or the metadata store do not do
                their part, or too many writers fight. The query has to be restarted; the batch is
                run again then and found, or not, in the log.
        """
        if not batch.row_count:
            return False
        key = (request.metadata_uri, request.log_name, batch.run.query_id)
        adopts = True
        problem: BookKeeperError | None = None
        for number in range(DISPLACEMENTS_MAX):
            tail: TailWriter | OutcomeUnknownError | None = self._held(key, batch)
            if tail is None:
                tail = self._opened(key, request, batch, adopts=adopts)
                adopts = False
            if isinstance(tail, OutcomeUnknownError):
                problem = tail
                back_off(number)
                continue
            try:
                is_new = tail.commit(batch)
            except (LedgerFencedError, LedgerClosedError, NoSuchLedgerError) as error:
                problem = error
                self._let_go(key)
                continue
            except BaseException:
                self._let_go(key)
                raise
            self._roll_if_full(key, tail)
            return is_new
        raise OutcomeUnknownError(
            f"the tail of log {request.log_name!r} could not be held while micro-batch "
            f"{batch.batch_id} was committed, in {DISPLACEMENTS_MAX} tries: {problem}",
            hint="see to it that fewer writers share the log, then restart the query",
        ) from problem

    def _held(self, key: _Key, batch: MicroBatch) -> TailWriter | None:
        """The tail held for the run of ``batch``; one held for another run is let go."""
        held = self._tails.get(key)
        if held is not None and held.run == batch.run:
            return held
        self._let_go(key)
        return None

    def _opened(
        self, key: _Key, request: WriteRequest, batch: MicroBatch, *, adopts: bool
    ) -> TailWriter | OutcomeUnknownError:
        """The tail, taken over; or an error that may pass.

        Args:
            adopts: whether to try the batch's own ledger, which is done once.
        """
        try:
            opened = TailWriter(request, batch, adopts=adopts)
        except OutcomeUnknownError as error:
            if isinstance(error, LedgerFencedError) and not adopts:
                raise  # a newer run
            return error
        self._tails[key] = opened
        return opened

    def _roll_if_full(self, key: _Key, tail: TailWriter) -> None:
        """Close a ledger that is full, behind its own last record; the next planning makes another.

        The batch is committed by now, so whatever goes wrong here is the next commit's to find.
        """
        if tail.is_full(self._limits):
            with suppress(BookKeeperError):
                tail.close_ledger()
            self._let_go(key)

    def _let_go(self, key: _Key) -> None:
        held = self._tails.pop(key, None)
        if held is not None:
            held.close()


HELD_TAILS = HeldTails()
"""Of this process."""


def abort(request: WriteRequest, parts: Sequence[StreamPart | None]) -> None:
    """See to it that ledgers which were made for a batch that failed are not used any more.

    Deletes nothing: the commit may have happened, and its answer been lost (reliability R7, H5).
    """
    homes = {part.home for part in parts if part is not None}
    with Cluster(request.metadata_uri) as cluster:
        for home in homes:
            drop_private(cluster, request, home)
