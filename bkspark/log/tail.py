"""The end of a log, as its only writer opens, continues, rolls and closes it.

**Open**: the steps of BookKeeper's protocol, in its order.

1. Read the list of ledgers.
2. Fence and recover the last two of them, which are the tail.
3. Create a new ledger.
4. Put it on the list, by compare-and-set.

The writer may append only afterwards. After a lost compare-and-set, all steps begin again (RB-20b,
H42). The created ledger is then on no list: the next try uses it, or if there is no next try, the
ledger is dropped and deleted, so that no orphan is left.

**Continue**: a ledger that later writers may continue (``goes_on``) needs no successor when the
writer changes, and the log's list stays the same. The new term fences the old writer, recovery
decides its undecided entries, and the ledger is OPEN again for the new writer
(``ledger.recovery.recover``). So a log whose writers take turns does not get one ledger for each of
them. If an unbounded log has no such ledger, the first of several writers makes it for all of them.

Rule 1. All checks that can refuse the new writer come before the fence. A query's run is also
registered before the fence, so an older run fences no writer. A ledger that cannot store the rows
is not continued: its columns differ, or its rows are inline and the new rows are in entry logs, or
the reverse.

Rule 2. The writer reads the list again after the takeover, and writes only if the ledger is alone
at the log's end. Otherwise another client has opened, rolled, overwritten or deleted the log in
between, and has fenced this writer or will fence it. A newer run of the query also ends this
writer, even if this writer has fenced the newer run: a run that was registered and then paused
before its takeover writes nothing (RB-45). The takeover then leaves an OPEN ledger without a
writer, as after the death of a writer.

The list is also stored again, by compare-and-set. The reason: a deletion of the log fences the
writer first, and a takeover undoes that fence. The new version makes the deletion's own
compare-and-set fail, so the deletion fences this writer too.

Rule 3. Records stay short: a ledger with many fragments is not continued. The next client that
opens the log closes the ledger and adds a new one, which is then continued.

Rule 4. Only closed ledgers are repaired or moved off a bookie. So a ledger is not continued if a
member is gone for good or was closed by an operator. The next roll or takeover closes the ledger,
and its copies can be made on other bookies while the log is written to. Exception: if there are
too few bookies for a new ledger, the old one is used as long as possible. A writer whose bookie
failed does not continue its ledger either (``LogTail._is_left``).

Rule 5. A fragment has as many members as the ledger had when it was created. So the log leaves a
ledger when fewer bookies than that are usable: the ledger is closed, and a smaller one follows. The
log also leaves a ledger that was made on fewer bookies than wanted, once there are enough bookies.

**Roll**: create the next ledger and put it on the list, then close the old ledger. Or begin a
fragment of the ledger, if it may be continued: then neither the list nor a ledger's state changes.

**Close**: give the closed ledger its place on the list.

After another writer has opened the log, the tail is that writer's, and nothing is changed here.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.guards import asking
from bkspark.cluster.password import Password, make_digester
from bkspark.cluster.records import Versioned, back_off
from bkspark.errors import (
    BookKeeperError,
    LedgerClosedError,
    LedgerFencedError,
    MetadataVersionError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    OutcomeUnknownError,
)
from bkspark.format import arrow_schema
from bkspark.ledger.creating import APPEND, STREAM, WRITER, CreatedLedger, stores_inline
from bkspark.log import rolling
from bkspark.log.creating import create_log_ledger, drop_unlisted, schema_after
from bkspark.log.recovering import duel, with_closed_tail
from bkspark.log.rolling import Segment
from bkspark.log.truncation import retain_after_roll
from bkspark.metadata import freshness
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import FIRST, ConfirmedEnd, LedgerMetadata, LedgerState
from bkspark.protocol.log.record import LogRecord, missing_end
from bkspark.protocol.log.stream_run import StreamRun
from bkspark.protocol.log.transactions import remembering

logger = logging.getLogger(__name__)

TRIES_MAX = 200
"""Clients that compete for a log are safe but slow; an operator should look after so many tries."""

CONFIRMATIONS_MAX = 20
"""A writer tries this often to store the list again, then opens the log instead."""


@dataclass(frozen=True, slots=True)
class OpenTail:
    """The open ledger at a log's end, for the writer that opened it.

    Attributes:
        log: the record that lists the ledger, with all earlier ledgers closed. ``end_offset`` is
            the offset of the ledger's entry 0; ``transactions`` are all that were committed before.
        begun: the members' journals; empty for an adopted ledger.
        standing: the ledger's state, if earlier writers have written to it.
        unjoined: ids of bookies that the writer must not ask to join (R19).
    """

    ledger: Versioned[LedgerMetadata]
    log: Versioned[LogRecord]
    begun: Begun = field(default_factory=Begun, compare=False)
    standing: ConfirmedEnd = FIRST
    unjoined: frozenset[str] = frozenset()

    @property
    def began(self) -> ConfirmedEnd:
        """Where the writer begins: no record of the ledger is made before the log's last time."""
        return self.standing.not_before(self.log.value.last_ms)

    @property
    def first_offset(self) -> int:
        """The log offset of the ledger's entry 0."""
        return self.log.value.end_offset


@dataclass(frozen=True, slots=True)
class RowsToWrite:
    """The rows that the writer of a tail will write.

    Attributes:
        schema: schema of the rows in entry logs; None for inline rows with the log's schema.
        merges_schema: whether the log takes the new columns of ``schema``.
        is_strict: whether a smaller ledger is forbidden, even if the log is not strict.
    """

    schema: bytes | None = None
    merges_schema: bool = False
    is_strict: bool = False


INLINE = RowsToWrite()


class LogTail:
    """The end of one log, for the client that becomes its only writer.

    Args:
        run: the run of the streaming query that will write, registered by a compare-and-set; an
            older run is refused before the fence.
        adopted: use this OPEN ledger, which is on no list and has the caller's token, not a new
            one.
        ask: called by ``open`` before each change of a record, and so before it fences; raises to
            refuse.
    """

    def __init__(
        self,
        cluster: Cluster,
        log_name: str,
        password: Password,
        rows: RowsToWrite = INLINE,
        *,
        run: StreamRun | None = None,
        adopted: int | None = None,
        ask: Callable[[], None] | None = None,
    ) -> None:
        self.log_name = log_name
        self._cluster = cluster
        self._password = password
        self._rows = rows
        self._run = run
        self._ask = ask
        self._adopted = adopted
        self._made: CreatedLedger | None = None  # and on no list yet
        self._made_for = 0
        self._continues = adopted is None and run is None and rows.schema is None

    # --- open ----------------------------------------------------------------------------------

    def open(self) -> OpenTail:
        """Become the only writer of the log; fence the previous writer.

        Raises:
            NoSuchLedgerError: there is no such log.
            LedgerClosedError: the log is sealed.
            LedgerFencedError: a newer run took over, or another client closed the adopted ledger.
            NotEnoughBookiesError: the tail cannot be recovered, or too few bookies for a ledger.
            InvalidRequestError: the rows' schema does not fit.
            UnauthorizedError: the password is missing or wrong; nothing was fenced.
            BookKeeperError: as raised by ``ask``.
        """
        try:
            for attempt in range(TRIES_MAX):
                with asking(self._ask):
                    found = self._try_open()
                if found is not None:
                    logger.info(
                        "log %s: taken over, and its previous writer is fenced; ledger %d is its "
                        "tail, from offset %d on",
                        self.log_name,
                        found.ledger.value.ledger_id,
                        found.first_offset,
                    )
                    return found
                back_off(attempt)
            raise duel(self.log_name)
        except BookKeeperError:
            self.drop_made()
            raise

    def _try_open(self) -> OpenTail | None:
        """Run all steps; None if another client changed the list or the outcome is unknown."""
        seen = self._cluster.log(self.log_name)
        log = self._checked(seen.value)
        self._drop_made_unless_usable(log)
        if (tail := self._to_continue(log)) is not None:
            return self._continued(seen, tail)
        if self._mine in log.tail:  # the last try succeeded, and its answer was lost (RB-27)
            return self._opened(seen)
        try:
            closed = with_closed_tail(self._cluster, log, self._password)
        except NoSuchLedgerError as error:  # another client closed it, and found it empty
            if self._cluster.logs.is_current(self.log_name, seen):
                raise missing_end(self.log_name, error) from error
            return None
        ledger = self._provide_ledger(closed)
        after = closed.with_tail(ledger.value, schema=self._log_schema(closed))
        try:
            joined = self._cluster.logs.replace(
                self.log_name, after.stamped(environment.now_ms()), seen
            )
        except (MetadataVersionError, OutcomeUnknownError):
            return None
        return self._opened(joined)

    def _checked(self, log: LogRecord) -> LogRecord:
        """Check all that can refuse the writer, before any fence; return ``log`` with the run."""
        if log.is_sealed:
            raise LedgerClosedError(
                f"log {self.log_name} is sealed", hint="it can only be read; write to another log"
            )
        make_digester(log.digest, self._password)
        self._log_schema(log)
        return log if self._run is None else log.with_stream(self._run)

    def _log_schema(self, log: LogRecord) -> bytes:
        if self._rows.schema is None:
            return log.schema
        rows = arrow_schema.decode(self._rows.schema)
        return schema_after(rows, log, self._rows.merges_schema, is_overwrite=False)

    def _to_continue(self, log: LogRecord) -> LedgerMetadata | None:
        """Return the ledger of another writer that this writer of an unbounded log continues."""
        is_anothers = self._continues and self._mine not in log.tail
        return going_on(self._cluster, log) if log.is_unbounded and is_anothers else None

    def _continued(self, seen: Versioned[LogRecord], ledger: LedgerMetadata) -> OpenTail | None:
        self.drop_made()
        try:
            return self._continue_in(seen, ledger)
        except NotEnoughBookiesError:
            if not seen.value.settings.permits_smaller:
                raise
            self._continues = False  # the next try closes it and makes a smaller ledger
            return None

    def _opened(self, log: Versioned[LogRecord]) -> OpenTail:
        ledger, made = self._provide_ledger(log.value), self._made
        self._made = None
        return OpenTail(ledger, log, Begun() if made is None else made.begun)

    # --- continue ------------------------------------------------------------------------------

    def continue_ledger(self) -> OpenTail | None:
        """Become the only writer of the ledger at the log's end, in its next term.

        Returns:
            The open tail. None if the log has no ledger to continue, or if the log changed
            meanwhile: the caller then opens the log.

        Raises:
            LedgerFencedError: a newer run of the query has taken over. No writer was fenced, unless
                the newer run came in between; the newer run then has to take over again.
            NotEnoughBookiesError: the tail cannot be recovered, or there are too few bookies for a
                fragment and no smaller ledger may follow.
            NoSuchLedgerError: there is no such log.
            UnauthorizedError: the password is missing or wrong; no writer was fenced.
            OutcomeUnknownError: other clients took over repeatedly, or the outcome of this takeover
                is unknown.
        """
        schema = None if self._rows.schema is None else arrow_schema.decode(self._rows.schema)
        seen = self._cluster.log(self.log_name)
        ledger = going_on(self._cluster, seen.value, schema)
        if ledger is None:
            return None
        try:
            return self._continue_in(seen, ledger)
        except NotEnoughBookiesError:
            if not seen.value.settings.permits_smaller:
                raise
            return None

    def _continue_in(self, seen: Versioned[LogRecord], ledger: LedgerMetadata) -> OpenTail | None:
        """Become the only writer of ``ledger``, the tail of the log version ``seen``."""
        from bkspark.ledger.recovery.recover import take_over  # only for a tail that goes on

        make_digester(seen.value.digest, self._password)
        if self._run is not None and not self._register_run(seen, self._run):
            return None
        try:
            taken = take_over(self._cluster, ledger.ledger_id, self._password)
        except (LedgerClosedError, NoSuchLedgerError):  # another client opened the log in between
            return None
        try:
            log = self._confirm_in_log_record(ledger.ledger_id, taken.standing.transactions)
        except BaseException:
            taken.begun.close()
            raise
        if log is None:
            taken.begun.close()
            return None
        return OpenTail(taken.seen, log, taken.begun, taken.standing, taken.unjoined)

    def _register_run(self, log: Versioned[LogRecord], run: StreamRun) -> bool:
        """Make ``run`` the query's current run; False if the log changed or on unknown outcome."""
        after = log.value.with_stream(run)
        if after == log.value:
            return True
        try:
            self._cluster.logs.replace(self.log_name, after.stamped(environment.now_ms()), log)
        except (MetadataVersionError, OutcomeUnknownError):
            return False
        return True

    def _confirm_in_log_record(
        self, ledger_id: int, done: Mapping[str, int]
    ) -> Versioned[LogRecord] | None:
        """Store the log's record again, if the ledger is alone at the log's end; None if not.

        Args:
            done: transactions of the ledger. The log's record keeps them from now on, since records
                of rows remember fewer.
        """
        for attempt in range(CONFIRMATIONS_MAX):
            seen, run = self._cluster.log(self.log_name), self._run
            is_current = run is None or seen.value.with_stream(run) == seen.value
            if seen.value.tail != (ledger_id,) or not is_current:
                return None
            log = seen.value
            known = replace(log.committed, transactions=remembering(log.transactions, done))
            after = replace(log, committed=known).stamped(environment.now_ms())
            try:
                return self._cluster.logs.replace(self.log_name, after, seen)
            except (MetadataVersionError, OutcomeUnknownError):
                back_off(attempt)
        return None

    # --- a ledger for the list -----------------------------------------------------------------

    @property
    def _mine(self) -> int | None:
        return self._adopted if self._made is None else self._made.seen.value.ledger_id

    def _provide_ledger(self, log: LogRecord) -> Versioned[LedgerMetadata]:
        """Return the ledger to put on the list; the caller has read the list before."""
        if self._adopted is not None:
            return self._still_there(self._adopted)
        return self._provide_made(log).seen

    def _provide_made(self, log: LogRecord, new_id: int | None = None) -> CreatedLedger:
        if self._made is None:
            is_stream = self._run is not None
            self._made = create_log_ledger(
                self._cluster,
                log,
                self._password,
                self._log_schema(log),
                STREAM if is_stream else WRITER if self._rows.schema is None else APPEND,
                goes_on=is_stream or log.is_unbounded,
                is_strict=self._rows.is_strict,
                new_id=new_id,
            )
            self._made_for = log.generation
        return self._made

    def _drop_made_unless_usable(self, log: LogRecord) -> None:
        """Keep the ledger of a failed try or roll only if it is unchanged (RB-20b, RB-27).

        The log must also have the same generation: a log that was overwritten, or deleted and made
        anew, may have other settings.

        The last compare-and-set may have succeeded although its answer was lost. Then other clients
        may have taken the ledger over, dropped it because it was empty, and deleted it, and the
        list shows no trace of the ledger.
        """
        if self._made is None:
            return
        seen = self._made.seen
        is_as_made = self._cluster.ledgers.is_current(str(seen.value.ledger_id), seen)
        is_dropped = log.has_dropped(seen.value.ledger_id)
        if not is_as_made or is_dropped or self._made_for != log.generation:
            self.drop_made()

    def drop_made(self) -> None:
        """Drop and delete a ledger made here, unless it is on the list after all."""
        made, self._made = self._made, None
        if made is not None:
            drop_unlisted(self._cluster, self.log_name, made)

    def _still_there(self, adopted: int) -> Versioned[LedgerMetadata]:
        try:
            return self._cluster.ledger(adopted)
        except NoSuchLedgerError as error:
            raise LedgerFencedError(
                f"another client took over ledger {adopted} and deleted it as an empty ledger"
            ) from error

    # --- roll ----------------------------------------------------------------------------------

    def roll(self, own: LedgerMetadata) -> CreatedLedger:
        """Make a ledger and put it on the list after ``own``, which this writer then closes.

        Raises:
            LedgerFencedError: another writer has opened the log.
            NotEnoughBookiesError: no ledger can be made.
        """
        with freshness.from_here():
            # The change of the counter makes the look at the log new enough.
            new_id = self._cluster.new_ledger_id() if self._made is None else None
            log = self._cluster.log(self.log_name).value
            self._drop_made_unless_usable(log)
            made = self._provide_made(log, new_id)
        self._cluster.logs.update(self.log_name, partial(self._listed_after, own, made.seen.value))
        self._made = None
        return made

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
        rolling.fragment_begun(
            self.log_name, ledger.ledger_id, segment.first_offset + first, reason
        )
        self._retain()
        return True

    def _needs_smaller(self, ledger: LedgerMetadata) -> bool:
        """Whether the bookies suffice for a smaller ledger, but for no fragment of ``ledger``."""
        size, log = ledger.quorum.ensemble_size, self._cluster.log(self.log_name).value
        count = len(self._cluster.refresh_candidates(enough=size, needed=size))
        return log.quorum.ack_quorum_size <= count < size and log.settings.permits_smaller

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

    def _retain(self) -> None:
        """Apply the log's retention after a new fragment; ignore errors."""
        with suppress(BookKeeperError):
            retain_after_roll(self._cluster, self._cluster.log(self.log_name).value)

    def _listed_after(
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

    # --- close ---------------------------------------------------------------------------------

    def close(self, ledger_id: int, began: freshness.Freshness | None = None) -> None:
        """Give a closed ledger its fixed place on the list, unless it has one.

        Args:
            began: how new the look at the ledger must be; it shows the close in any case.
        """
        listed_closed = partial(self._listed_closed, ledger_id)
        with freshness.at(began):
            listed = self._cluster.logs.update(self.log_name, listed_closed)
        retain_after_roll(self._cluster, listed.value)

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


# --- which ledgers are continued -----------------------------------------------------------------


def takes(ledger: LedgerMetadata, schema: pa.Schema | None) -> bool:
    """Whether ``ledger`` can store rows of ``schema`` in entry logs (None: inline rows)."""
    if schema is None:
        return stores_inline(ledger)
    stored = arrow_schema.decode(ledger.settings.schema)
    return not stores_inline(ledger) and arrow_schema.fits(stored, schema)


def going_on(
    cluster: Cluster, log: LogRecord, schema: pa.Schema | None = None
) -> LedgerMetadata | None:
    """Return the only ledger at the log's end, if a new writer may continue it with these rows.

    None if the ledger is closed, does not take the rows, or needs a successor (``may_go_on``).
    """
    if len(log.tail) != 1 or log.is_sealed:
        return None
    try:
        ledger = cluster.ledger(log.tail[0]).value
    except NoSuchLedgerError:
        return None
    is_open = ledger.state is not LedgerState.CLOSED
    return ledger if is_open and takes(ledger, schema) and may_go_on(cluster, ledger) else None


def may_go_on(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether ``ledger`` may be continued with another fragment (rules 3 to 5)."""
    if not (ledger.goes_on and ledger.has_room):
        return False
    size = sizes.wanted(ledger).ensemble_size
    is_full_size = ledger.quorum.ensemble_size == size
    is_lasting = is_full_size and Locations(ledger).names_only(cluster.lasting_members())
    return is_lasting or len(cluster.refresh_candidates(enough=size, needed=size)) < size
