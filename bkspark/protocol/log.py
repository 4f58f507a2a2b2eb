"""A log: ledgers in a row, under one compare-and-set record.

Rule 1. A ledger joins the list only when it is CLOSED, so its end is known and offsets behind it
are fixed (design: "no log CAS may put something behind a ledger unless it is CLOSED").

Rule 2. A ledger that was dropped never joins: a commit that hung and wakes late finds itself
refused, whatever it does (reliability H5).

Rule 3. An application's transaction version only grows; a splice that carries one not above the
last is already done (as in Delta): it changes nothing but that its ledger is dropped.

Rule 4. Overwriting starts a new generation with offsets from 0; transactions survive it.

Rule 5. A name whose log was deleted, or whose first write was aborted, keeps a *vacant* record: no
log for anybody who asks, but it remembers the generations and the dropped ledgers. The first splice
founds the log (anew).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from bkspark.errors import InvalidRequestError, OutcomeUnknownError
from bkspark.protocol.ledger import DigestSpec, LedgerMetadata, LedgerState
from bkspark.protocol.quorum import Quorum
from bkspark.protocol.record import Transaction


@dataclass(frozen=True, slots=True)
class LoggedLedger:
    """A closed ledger's place in a log: offsets ``[first_offset, first_offset + entry_count)``."""

    ledger_id: int
    first_offset: int
    entry_count: int
    length_bytes: int

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
        known = [*(ledger.ledger_id for ledger in self.ledgers), *self.dropped]
        if len(set(known)) != len(known):
            raise InvalidRequestError(f"log {self.name}: a ledger is listed or dropped twice")

    @property
    def end_offset(self) -> int:
        """The offset that the next entry gets."""
        return self.ledgers[-1].end_offset if self.ledgers else self.first_offset

    @property
    def length_bytes(self) -> int:
        return sum(ledger.length_bytes for ledger in self.ledgers)

    def has_committed(self, transaction: Transaction | None) -> bool:
        """Whether this write of the application, or a later one, is in the log already."""
        if transaction is None:
            return False
        last = self.transactions.get(transaction.app_id)
        return last is not None and last >= transaction.version

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
            InvalidRequestError: the ledger is not CLOSED (rule 1).
        """
        if any(logged.ledger_id == ledger.ledger_id for logged in self.ledgers):
            return self
        if self.has_committed(transaction):
            return self.without(ledger.ledger_id)
        if ledger.ledger_id in self.dropped:
            raise OutcomeUnknownError(
                f"ledger {ledger.ledger_id} was dropped from log {self.name}, by an abort, a "
                "truncation or an overwrite",
                hint="nothing of this write is in the log now; find out what removed it before "
                "it is run again",
            )
        if ledger.state is not LedgerState.CLOSED or ledger.last_entry_id is None:
            raise InvalidRequestError(
                f"ledger {ledger.ledger_id} is {ledger.state.value}, and only a CLOSED one can "
                f"join log {self.name}"
            )
        base = self._base_for(ledger, overwrite=overwrite)
        entry_count = ledger.last_entry_id + 1
        joined = LoggedLedger(
            ledger.ledger_id, base.end_offset, entry_count, ledger.length_bytes or 0
        )
        return replace(
            base._with_transaction(transaction),
            schema=schema,
            ledgers=(*base.ledgers, joined) if entry_count else base.ledgers,
            dropped=base.dropped if entry_count else (*base.dropped, ledger.ledger_id),
        )

    def without(self, ledger_id: int) -> "LogRecord":
        """Return the log with ``ledger_id`` dropped for ever, unless it has joined already."""
        known = ledger_id in self.dropped or any(x.ledger_id == ledger_id for x in self.ledgers)
        return self if known else replace(self, dropped=(*self.dropped, ledger_id))

    def stamped(self, changed_ms: int) -> "LogRecord":
        """Return the record with the time of its change, which is for people only."""
        return replace(self, changed_ms=changed_ms, created_ms=self.created_ms or changed_ms)

    def vacated(self) -> "LogRecord":
        """Return the record of a deleted log: its ledgers dropped, its transactions forgotten."""
        emptied = self._emptied()
        return replace(emptied, is_vacant=True, schema=b"", transactions={})

    def _base_for(self, ledger: LedgerMetadata, *, overwrite: bool) -> "LogRecord":
        if self.is_vacant:
            return replace(
                self,
                is_vacant=False,
                generation=self.generation + 1,
                quorum=ledger.quorum,
                digest=ledger.digest,
            )
        if ledger.digest.digest_type != self.digest.digest_type:
            raise InvalidRequestError(
                f"log {self.name} has digestType {self.digest.digest_type}, "
                f"not {ledger.digest.digest_type}: somebody else founded it meanwhile",
                hint="nothing of this write is in the log; run it again",
            )
        if overwrite:
            return replace(self._emptied(), generation=self.generation + 1)
        return self

    def _emptied(self) -> "LogRecord":
        gone = tuple(ledger.ledger_id for ledger in self.ledgers)
        return replace(self, ledgers=(), first_offset=0, dropped=(*self.dropped, *gone))

    @classmethod
    def vacant(cls, name: str, quorum: Quorum) -> "LogRecord":
        """The record of a name that never had a log."""
        return cls(name, quorum, DigestSpec(), schema=b"", is_vacant=True, generation=0)

    def _with_transaction(self, transaction: Transaction | None) -> "LogRecord":
        if transaction is None:
            return self
        done = {**self.transactions, transaction.app_id: transaction.version}
        return replace(self, transactions=done)
