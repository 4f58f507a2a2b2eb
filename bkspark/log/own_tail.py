"""A log's tail as its only writer changes it: list the next ledger, list a closed ledger.

After another writer has opened the log, the tail is that writer's, and nothing is changed here.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned
from bkspark.errors import (
    BookKeeperError,
    LedgerFencedError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.ledger.creating import CreatedLedger
from bkspark.ledger.handles.settings import WriterSettings
from bkspark.ledger.handles.write_handle import WriteHandle
from bkspark.log import roll_log
from bkspark.log.continuing import may_be_smaller, may_go_on
from bkspark.log.idle_watch import IdleWatch
from bkspark.log.opening import drop_unlisted, next_ledger
from bkspark.log.rolling import Filling, RollPolicy, Segment
from bkspark.log.truncation import retain_after_roll
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import FIRST, ConfirmedEnd
from bkspark.protocol.log.record import LogRecord


class OwnTail:
    """Changes the log's record for the writer of the log.

    Args:
        policy, settings: when to roll, and how to write.
        look: called repeatedly while the writer is short of bookies (``IdleWatch``).
    """

    def __init__(
        self,
        cluster: Cluster,
        log_name: str,
        password: Password,
        policy: RollPolicy,
        settings: WriterSettings,
        look: Callable[[], bool],
    ) -> None:
        self.log_name = log_name
        self.watch = IdleWatch(look)
        self._policy = policy
        self._settings = settings
        self._cluster = cluster
        self._password = password
        self._next: CreatedLedger | None = None

    def segment(
        self,
        seen: Versioned[LedgerMetadata],
        begun: Begun,
        first_offset: int,
        standing: ConfirmedEnd = FIRST,
        unjoined: Collection[str] = (),
    ) -> Segment:
        """Open a ledger of the tail for writing."""
        digester = make_digester(seen.value.settings.digest, self._password)
        handle = WriteHandle(
            self._cluster,
            seen,
            digester,
            begun=begun,
            settings=self._settings,
            standing=standing,
            unjoined=unjoined,
        )
        handle.on_failure(self.watch.begin)
        is_small = sizes.wanted(seen.value) != seen.value.quorum
        segment = Segment(handle, first_offset, Filling(self._policy), is_small=is_small)
        if segment.is_short:
            self.watch.begin()
        return segment

    def begin_fragment(self, segment: Segment, reason: str, seconds: float) -> bool:
        """Begin a fragment, unless the log has to move to another ledger.

        The log's list stays the same, and no ledger is closed.

        Args:
            reason: reason of the roll.
            seconds: time limit.

        Returns:
            Whether a fragment was begun.

        Raises:
            NotEnoughBookiesError: too few bookies for a fragment, and no other ledger can be made.
            OutcomeUnknownError: there was no answer in time.
        """
        ledger, begun = segment.handle.metadata, environment.inbox()
        if self._is_left(segment) or not may_go_on(self._cluster, ledger):
            return False
        segment.handle.begin_fragment().add_done_callback(begun.put)
        try:
            first = begun.get(timeout=seconds).result()
        except NotEnoughBookiesError:
            if not self._needs_smaller(ledger):
                raise
            return False
        except environment.Empty:
            raise OutcomeUnknownError(
                f"log {self.log_name}: no new fragment began within {seconds:g} s",
                hint="the writer continues in its old fragment; roll again later",
            ) from None
        roll_log.fragment_begun(
            self.log_name, ledger.ledger_id, segment.first_offset + first, reason
        )
        self._retain()
        return True

    def _needs_smaller(self, ledger: LedgerMetadata) -> bool:
        """Whether the bookies suffice for a smaller ledger, but for no fragment of ``ledger``."""
        size, log = ledger.quorum.ensemble_size, self._cluster.log(self.log_name).value
        count = len(self._cluster.refresh_candidates(enough=size, needed=size))
        return log.quorum.ack_quorum_size <= count < size and may_be_smaller(log)

    def _is_left(self, segment: Segment) -> bool:
        """Whether a roll leaves the ledger because a bookie has failed its writer.

        A writer never uses a failed bookie again. Entries written without the bookie have fewer
        copies until the ledger is closed. So the writer moves to another ledger, on any bookies,
        once there are enough bookies.
        """
        return bool(segment.handle.faults) and self.may_move(segment)

    def may_move(self, segment: Segment) -> bool:
        """Whether there are enough bookies for another ledger of the wanted size.

        False if the ledger guarantees its write quorum and a bookie is missing: such a ledger is
        not closed before it has all copies. After other bookies have replaced the failed ones, each
        roll makes all copies.
        """
        if not segment.handle.may_be_sealed:
            return False
        size = sizes.wanted(segment.handle.metadata).ensemble_size
        return len(self._cluster.refresh_candidates(enough=size, needed=size)) >= size

    def make_next(self) -> CreatedLedger:
        """Return the ledger for the next roll."""
        log = self._cluster.log(self.log_name).value
        self._next = following = next_ledger(self._cluster, log, self._password, self._next)
        return following

    def list_next(self, own: LedgerMetadata) -> None:
        """Put the next ledger on the list after ``own``, the last ledger until now.

        Raises:
            LedgerFencedError: another writer has opened the log.
        """
        assert self._next is not None
        behind = partial(self._listed_behind, own, self._next.seen.value)
        self._cluster.logs.update(self.log_name, behind)
        self._next = None

    def drop_next(self) -> None:
        """Delete the ledger of a failed roll; leave it to the next opener if it is listed."""
        if self._next is not None:
            drop_unlisted(self._cluster, self.log_name, self._next)
            self._next = None

    def list_closed(self, ledger_id: int) -> None:
        """Give a closed ledger its fixed place, unless it has one."""
        listed = self._cluster.logs.update(self.log_name, partial(self._listed_closed, ledger_id))
        retain_after_roll(self._cluster, listed.value)

    def _retain(self) -> None:
        """Apply the log's retention after a new fragment; ignore errors."""
        with suppress(BookKeeperError):
            retain_after_roll(self._cluster, self._cluster.log(self.log_name).value)

    def _listed_behind(
        self, mine: LedgerMetadata, made: LedgerMetadata, record: LogRecord | None
    ) -> LogRecord:
        own = mine.ledger_id
        if record is None or own not in record.tail:
            raise LedgerFencedError(
                f"log {self.log_name} was opened by another writer, overwritten or deleted",
                hint="if this program is still to write, open the log again",
            )
        if mine.goes_on:  # another writer may continue it without a change of the list
            newest = self._cluster.ledger(own).value
            if newest.term > mine.term:
                raise newest.fenced(mine.term)
        log = self._closed_before(record, own)
        # Read after the log: the ledger may have been dropped, collected and forgotten since.
        following = self._cluster.ledger(made.ledger_id).value
        after = log.with_tail(following, own=own)
        return after if after == record else after.stamped(environment.now_ms())

    def _listed_closed(self, ledger_id: int, record: LogRecord | None) -> LogRecord:
        assert record is not None
        if ledger_id not in record.tail:
            return record
        ledger = self._cluster.ledger(ledger_id).value
        log = self._closed_before(record, ledger_id).with_closed(ledger)
        return log.stamped(environment.now_ms())

    def _closed_before(self, log: LogRecord, ledger_id: int) -> LogRecord:
        """Return ``log`` with the ledgers listed as closed that an earlier roll could not list."""
        before = log.tail[: log.tail.index(ledger_id)]
        return log.with_closed(*(self._cluster.ledger(one).value for one in before))
