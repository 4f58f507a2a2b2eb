"""A log: ledgers in a row, under one compare-and-set record.

Rule 1. ``ledgers`` are CLOSED, so their ends are known and offsets behind them are fixed (design:
"no log CAS may put something behind a ledger unless it is CLOSED"). Behind them come up to two
ledgers whose end is not fixed yet, the *tail*: the one that is written to, and, while its writer
rolls, the one before it. So whoever opens the log fences all of the tail (RB-20: the last two).

Rule 2. A ledger that was dropped never joins: a commit that hung and wakes late finds itself
refused, whatever it does (reliability H5).

Rule 3. An application's transaction version only grows; a splice that carries one not above the
last is already done (as in Delta): it changes nothing but that its ledger is dropped. Versions are
never forgotten: applications should keep their names, for each is a line of the record.

Rule 4. Overwriting starts a new generation with offsets from 0; transactions survive it.

Rule 5. A name whose log was deleted, or whose first write was aborted, keeps a *vacant* record: no
log for anybody who asks, but it remembers the generations and the dropped ledgers. The first splice
founds the log (anew), or somebody who wants it empty.

Rule 6. Truncation hides whole offsets at once, and never goes past a ledger that is not CLOSED. The
last ledger stays. A sealed log takes nothing any more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bkspark.errors import (
    InvalidRequestError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    OutcomeUnknownError,
)
from bkspark.protocol.ledger import INVALID_ENTRY_ID, DigestSpec, LedgerMetadata, LedgerState
from bkspark.protocol.quorum import Quorum
from bkspark.protocol.record import Transaction
from bkspark.protocol.stream_run import StreamRun, Streams, with_run

TAIL_MAX = 2
"""The ledger that is written to, and the one before it while its writer rolls."""


@dataclass(frozen=True, slots=True)
class LoggedLedger:
    """A closed ledger's place in a log: offsets ``[first_offset, first_offset + entry_count)``.

    Attributes:
        closed_ms: when it was first seen among the closed ones, which only retention by age looks
            at; 0 if that was not noted.
    """

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int
    closed_ms: int = 0

    @property
    def end_offset(self) -> int:
        return self.first_offset + self.entry_count


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One version of a log's record.

    Attributes:
        is_vacant: there is no such log (rule 5).
        generation: of the contents; one more after each overwrite and each founding.
        ledgers: in offset order, without gaps.
        first_offset: first readable offset; entries below are truncated.
        schema: Arrow schema of the log as an IPC schema message; opaque here.
        quorum, digest: settings the log was created with.
        transactions: last committed version per application.
        dropped: ledgers that must never join the list (again), until they are deleted.
        tail: ids of the ledgers behind ``ledgers``; the first of them begins at ``end_offset``.
        is_sealed: nothing joins any more.
        streams: per streaming query the runs that have written, the current one last.
        retention_bytes, retention_ms: how much to keep, and how long; None for ever.
    """

    name: str
    quorum: Quorum
    digest: DigestSpec
    schema: bytes
    is_vacant: bool = False
    generation: int = 1
    ledgers: tuple[LoggedLedger, ...] = ()
    first_offset: int = 0
    transactions: Mapping[str, int] = field(default_factory=dict)
    dropped: tuple[int, ...] = ()
    created_ms: int = 0
    changed_ms: int = 0
    tail: tuple[int, ...] = ()
    is_sealed: bool = False
    streams: Streams = field(default_factory=dict)
    retention_bytes: int | None = None
    retention_ms: int | None = None

    def __post_init__(self) -> None:
        expected = self.ledgers[0].first_offset if self.ledgers else 0
        for ledger in self.ledgers:
            if ledger.first_offset != expected or ledger.entry_count < 1:
                raise InvalidRequestError(f"log {self.name}: offsets are not dense")
            expected = ledger.end_offset
        begin = self.ledgers[0].first_offset if self.ledgers else self.first_offset
        if not 0 <= begin <= self.first_offset <= self.end_offset:
            raise InvalidRequestError(
                f"log {self.name}: first offset {self.first_offset} is outside of its ledgers, "
                f"{begin} to {self.end_offset}"
            )
        known = [*self.listed_ids, *self.dropped]
        if len(set(known)) != len(known):
            raise InvalidRequestError(f"log {self.name}: a ledger is listed or dropped twice")
        if len(self.tail) > TAIL_MAX or (self.tail and (self.is_sealed or self.is_vacant)):
            raise InvalidRequestError(f"log {self.name}: it cannot have the tail {self.tail}")
        if min(self.retention_bytes or 0, self.retention_ms or 0) < 0:
            raise InvalidRequestError(f"log {self.name}: retention cannot be negative")

    # --- looking ---------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """The offset behind the closed ledgers, where the tail begins."""
        return self.ledgers[-1].end_offset if self.ledgers else self.first_offset

    @property
    def length_bytes(self) -> int:
        """Payload bytes of the closed ledgers."""
        return sum(ledger.length_bytes for ledger in self.ledgers)

    @property
    def listed_ids(self) -> tuple[int, ...]:
        """All ledgers of the log in order, the tail's included."""
        return (*(ledger.ledger_id for ledger in self.ledgers), *self.tail)

    def has_committed(self, transaction: Transaction | None) -> bool:
        """Whether this write of the application, or a later one, is in the log already."""
        if transaction is None:
            return False
        last = self.transactions.get(transaction.app_id)
        return last is not None and last >= transaction.version

    # --- a closed ledger joins -----------------------------------------------------------------

    def spliced(
        self,
        ledger: LedgerMetadata,
        *,
        schema: bytes,
        transaction: Transaction | None,
        overwrite: bool = False,
    ) -> "LogRecord":
        """Return the log with ``ledger`` at its end, or alone in a new generation.

        A vacant record becomes a log with the ledger's quorum and digest.

        Does nothing to a log that has the ledger already, so that a repeated call is harmless.
        Only drops the ledger if its transaction has committed (rule 3), overwrite or not.

        Args:
            ledger: read after this version of the log was, so that one whose deletion took it off
                ``dropped`` is seen to be DELETING.

        Raises:
            OutcomeUnknownError: the ledger was dropped meanwhile, so its rows will never be read.
            InvalidRequestError: the ledger is not CLOSED, or the log's tail is not (rule 1).
            LedgerClosedError: the log is sealed.
        """
        if any(logged.ledger_id == ledger.ledger_id for logged in self.ledgers):
            return self
        if self.has_committed(transaction):
            return self.without(ledger.ledger_id)
        self._require_joinable(ledger)
        _require_closed(ledger, self.name)
        if self.tail:
            raise InvalidRequestError(f"log {self.name}: the ledgers {self.tail} are not closed")
        base = self._base_for(ledger, overwrite=overwrite)
        done = {} if transaction is None else {transaction.app_id: transaction.version}
        return replace(base, schema=schema)._joined(ledger, done)

    def without(self, ledger_id: int) -> "LogRecord":
        """Return the log with ``ledger_id`` dropped for ever, unless it has joined already."""
        is_known = ledger_id in self.dropped or ledger_id in self.listed_ids
        return self if is_known else replace(self, dropped=(*self.dropped, ledger_id))

    # --- the tail ------------------------------------------------------------------------------

    def with_tail(
        self, ledger: LedgerMetadata, *, schema: bytes | None = None, own: int | None = None
    ) -> "LogRecord":
        """Return the log with the OPEN ``ledger`` as its last; only then may it be written to.

        Does nothing to a log whose tail has the ledger already.

        Args:
            ledger: read after this version of the log was.
            schema: of the log from now on, if it changes.
            own: for a roll, the one tail ledger, which its own writer will close after this.

        Raises:
            LedgerFencedError: somebody else has opened the log since, or taken ``ledger`` over.
            OutcomeUnknownError: the ledger was dropped.
            LedgerClosedError: the log is sealed.
            InvalidRequestError: the ledger has another digest type than the log.
        """
        if ledger.ledger_id in self.tail:
            return self
        self._require_joinable(ledger)
        if self.tail != (() if own is None else (own,)):
            raise LedgerFencedError(
                f"log {self.name} was opened by another writer",
                hint="open it again to go on, if you are still the one who should write",
            )
        if ledger.state is not LedgerState.OPEN:
            raise LedgerFencedError(
                f"ledger {ledger.ledger_id} is {ledger.state.value}: it was taken over before it "
                f"joined log {self.name}"
            )
        self._require_digest_of(ledger)
        return replace(self, tail=(*self.tail, ledger.ledger_id), schema=schema or self.schema)

    def settled(self, *ledgers: LedgerMetadata) -> "LogRecord":
        """Return the log with these CLOSED ``ledgers`` moved from its tail to their fixed places.

        Those that are in the tail no more are left alone. Empty ones take no place (RB-21).

        Raises:
            InvalidRequestError: one is not CLOSED, or one before it is not among them (rule 1).
        """
        known = {ledger.ledger_id: ledger for ledger in ledgers}
        log = self
        while log.tail and log.tail[0] in known:
            ledger = known[log.tail[0]]
            _require_closed(ledger, self.name)
            log = replace(log, tail=log.tail[1:])._joined(ledger, ledger.transactions)
        if known.keys() & set(log.tail):
            raise InvalidRequestError(f"log {self.name}: ledger {log.tail[0]} is not closed yet")
        return log

    def with_stream(self, run: StreamRun) -> "LogRecord":
        """Return the log with ``run`` as the current one of its query (see ``stream_run``).

        Raises:
            LedgerFencedError: a newer run has taken over.
        """
        streams = with_run(self.streams, run)
        return self if streams == self.streams else replace(self, streams=streams)

    # --- the log as a whole --------------------------------------------------------------------

    def truncated(self, before_offset: int) -> "LogRecord":
        """Return the log without its entries below ``before_offset``; never gives any back.

        Ledgers that lie below as a whole are dropped, but not the last of the log.

        Raises:
            InvalidRequestError: past the end of the closed ledgers (rule 6).
        """
        if before_offset > self.end_offset:
            raise InvalidRequestError(
                f"log {self.name} can be truncated up to offset {self.end_offset}, "
                f"not {before_offset}",
                hint="the ledger behind it is still open: roll it first" if self.tail else "",
            )
        if before_offset <= self.first_offset:
            return self
        kept = tuple(ledger for ledger in self.ledgers if ledger.end_offset > before_offset)
        if not kept and not self.tail:
            kept = self.ledgers[-1:]
        gone = tuple(x.ledger_id for x in self.ledgers[: len(self.ledgers) - len(kept)])
        return replace(
            self, ledgers=kept, first_offset=before_offset, dropped=(*self.dropped, *gone)
        )

    def sealed(self) -> "LogRecord":
        """Return the log at its end for ever.

        Raises:
            InvalidRequestError: its tail is not closed.
        """
        return replace(self, is_sealed=True)

    def founded(self, quorum: Quorum, digest: DigestSpec, schema: bytes) -> "LogRecord":
        """Return an empty log with these settings, made of a vacant record.

        Raises:
            LedgerExistsError: there is a log of this name.
        """
        if not self.is_vacant:
            raise LedgerExistsError(
                f"there is a log {self.name!r} already", hint="open it, or choose another name"
            )
        return replace(
            self,
            is_vacant=False,
            generation=self.generation + 1,
            quorum=quorum,
            digest=digest,
            schema=schema,
        )

    def forgetting(self, deleted: Iterable[int]) -> "LogRecord":
        """Return the record without dropped ledgers that are DELETING: those cannot join anyway."""
        gone = set(deleted)
        return replace(self, dropped=tuple(x for x in self.dropped if x not in gone))

    def stamped(self, changed_ms: int) -> "LogRecord":
        """Return the record with the time of its change, for people and for retention by age."""
        return replace(
            self,
            changed_ms=changed_ms,
            created_ms=self.created_ms or changed_ms,
            ledgers=tuple(
                x if x.closed_ms else replace(x, closed_ms=changed_ms) for x in self.ledgers
            ),
        )

    def vacated(self) -> "LogRecord":
        """Return the record of a deleted log: all its ledgers dropped, all else forgotten."""
        return replace(
            self._emptied(),
            is_vacant=True,
            schema=b"",
            transactions={},
            streams={},
            is_sealed=False,
            retention_bytes=None,
            retention_ms=None,
        )

    @classmethod
    def vacant(cls, name: str, quorum: Quorum) -> "LogRecord":
        """The record of a name that never had a log."""
        return cls(name, quorum, DigestSpec(), schema=b"", is_vacant=True, generation=0)

    # --- parts of the above --------------------------------------------------------------------

    def _require_joinable(self, ledger: LedgerMetadata) -> None:
        if ledger.ledger_id in self.dropped:
            raise OutcomeUnknownError(
                f"ledger {ledger.ledger_id} was dropped from log {self.name}, by an abort, a "
                "truncation or an overwrite",
                hint="nothing of this write is in the log now; find out what removed it before "
                "it is run again",
            )
        if self.is_sealed:
            raise LedgerClosedError(
                f"log {self.name} is sealed", hint="it only can be read; write to another log"
            )

    def _require_digest_of(self, ledger: LedgerMetadata) -> None:
        if ledger.digest.digest_type != self.digest.digest_type:
            raise InvalidRequestError(
                f"log {self.name} has digestType {self.digest.digest_type}, "
                f"not {ledger.digest.digest_type}: somebody else founded it meanwhile",
                hint="nothing of this write is in the log; run it again",
            )

    def _base_for(self, ledger: LedgerMetadata, *, overwrite: bool) -> "LogRecord":
        if self.is_vacant:
            return self.founded(ledger.quorum, ledger.digest, self.schema)
        self._require_digest_of(ledger)
        if overwrite:
            return replace(self._emptied(), generation=self.generation + 1)
        return self

    def _joined(self, ledger: LedgerMetadata, done: Mapping[str, int]) -> "LogRecord":
        """The closed ``ledger``, with what is ``done`` by it, behind the others.

        One without entries is only dropped.
        """
        merged = dict(self.transactions)
        for app_id, version in done.items():
            merged[app_id] = max(version, merged.get(app_id, version))
        log = replace(self, transactions=merged)
        if ledger.last_entry_id is None or ledger.last_entry_id == INVALID_ENTRY_ID:
            return replace(log, dropped=(*log.dropped, ledger.ledger_id))
        place = LoggedLedger(
            ledger.ledger_id, self.end_offset, ledger.last_entry_id + 1, ledger.length_bytes or 0
        )
        return replace(log, ledgers=(*log.ledgers, place))

    def _emptied(self) -> "LogRecord":
        dropped = (*self.dropped, *self.listed_ids)
        return replace(self, ledgers=(), tail=(), first_offset=0, dropped=dropped)


def _require_closed(ledger: LedgerMetadata, log_name: str) -> None:
    if ledger.state is not LedgerState.CLOSED:
        raise InvalidRequestError(
            f"ledger {ledger.ledger_id} is {ledger.state.value}, and only a CLOSED one can "
            f"join log {log_name}"
        )
