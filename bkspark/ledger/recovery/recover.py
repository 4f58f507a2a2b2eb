"""Fences and recovers a ledger of another writer: closes the ledger, or takes it over."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned
from bkspark.errors import InvalidRequestError, LedgerClosedError
from bkspark.ledger.recovery.recoverer import Consent, Recoverer, RecoveryNotes
from bkspark.ledger.recovery.running import Runner, TellingRunner, in_threads
from bkspark.protocol.ledger.metadata import (
    INVALID_ENTRY_ID,
    ConfirmedEnd,
    LedgerMetadata,
    LedgerState,
)
from bkspark.protocol.recovery import steps

# --- recover -------------------------------------------------------------------------------------
# Fences and recovers: closes a ledger of another writer without losing an acknowledged entry.
#
# ``recovering`` decides the steps and the conclusions; ``Recoverer`` carries the steps out. A
# recovery can be killed at any point and run again. Any number of recoveries may run at once: the
# closing CAS decides. Work on bookies is a list of picklable instructions, run by a thread pool or
# by Spark.


@dataclass(slots=True)
class RecoveryReport:
    """Result of a recovery.

    Attributes:
        last_entry_id: the ledger's last entry; -1 if the ledger is empty.
        kept: number of groups found after the last-add-confirmed and copied.
        notes: one line for each step, and for each bookie that could not help.
        lost_from: the first entry given up with the operator's consent, though it may have been
            acknowledged; None without a loss.
        losses: one line for each range of confirmed entries with certain or possible loss, because
            too many bookies were declared lost or initialised anew, or have damaged journals.
        is_open: whether the ledger is OPEN again, for the next writer of an unbounded log.
    """

    ledger_id: int
    last_entry_id: int = INVALID_ENTRY_ID
    kept: int = 0
    notes: list[str] = field(default_factory=list)
    lost_from: int | None = None
    losses: list[str] = field(default_factory=list)
    is_open: bool = False

    @property
    def state(self) -> LedgerState:
        """The ledger's state after the recovery."""
        return LedgerState.OPEN if self.is_open else LedgerState.CLOSED

    @property
    def facts(self) -> dict[str, Any]:
        """The report without its notes, as values for JSON."""
        facts: dict[str, Any] = {
            "ledger_id": self.ledger_id,
            "state": self.state.value,
            "last_entry_id": self.last_entry_id,
            "groups_kept": self.kept,
        }
        if self.lost_from is not None:
            facts["lost_from"] = self.lost_from
        return {**facts, "losses": self.losses}


def never(_loss: str) -> bool:
    """Refuse every loss."""
    return False


def recover(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: Consent = never,
    seen: Versioned[LedgerMetadata] | None = None,
) -> RecoveryReport:
    """Close ledger ``ledger_id`` at the last entry that may have been acknowledged.

    Args:
        run: how to carry out instructions on bookies; None for threads in this process.
        tell: called with each new note.
        accepts_loss: called when the only evidence is on lost or damaged bookies; True accepts the
            named loss. Never called while a bookie is silent.
        seen: the ledger as the caller has just read it; None to read it.

    Raises:
        NotEnoughBookiesError: a decision is not possible yet. The message names the awaited
            bookies, the entry in doubt, and what would help. The ledger stays IN_RECOVERY, and
            ``bkspark status`` shows the reason.
        OutcomeUnknownError: other recoveries took over again and again, and none has finished.
        NoSuchLedgerError: there is no such ledger.
        UnauthorizedError: the password is missing or wrong; no writer was fenced.
    """
    note = RecoveryNotes(ledger_id, tell)
    runner: Runner = partial(in_threads, tell=note)
    if run is not None:
        runner = run.telling(note) if isinstance(run, TellingRunner) else run
    end = Recoverer(cluster, ledger_id, password, runner, note, accepts_loss, seen=seen).recover()
    return RecoveryReport(
        ledger_id, end.last_entry_id, end.kept, note.lines, end.lost_from, list(end.losses)
    )


# --- taking over ---------------------------------------------------------------------------------
# Takes over a ledger that continues in later terms, in order to write to it.
#
# A takeover is a normal recovery, but it ends with the ledger OPEN in a new term for the caller. If
# the writer before left no undecided entry, one look is enough. No list has to name a new ledger,
# and the cost does not depend on the number of earlier writers.


@dataclass(frozen=True, slots=True)
class LedgerTakeover:
    """A ledger OPEN for the caller, in the caller's own term.

    Attributes:
        begun: the journals of its members, to be passed to the writer, or closed.
        standing: end of the ledger; ``record_count`` is unknown.
        unjoined: ids of bookies that the writer must not ask (R19).
        report: of the recovery.
    """

    seen: Versioned[LedgerMetadata]
    begun: Begun
    standing: ConfirmedEnd
    unjoined: frozenset[str]
    report: RecoveryReport


def take_over(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: Consent = never,
) -> LedgerTakeover:
    """Fence the writer of ledger ``ledger_id``, recover its entries, and become the ledger's
    writer.

    Args:
        run, tell, accepts_loss: see ``recover``.

    Raises:
        InvalidRequestError: the ledger does not continue in later terms; no writer was fenced.
        LedgerClosedError: the ledger is closed for good.
        NotEnoughBookiesError: no decision yet, as in ``recover``; or too few bookies accept writes,
            and the recovered ledger stays IN_RECOVERY.
        OutcomeUnknownError: other recoveries took over again and again; or the ledger may or may
            not be OPEN, and the next takeover finds out.
        NoSuchLedgerError, UnauthorizedError: as in ``recover``.
    """
    ledger = cluster.ledger(ledger_id).value
    if not ledger.goes_on:
        raise InvalidRequestError(
            f"ledger {ledger_id} takes no second writer", hint="write to a new ledger"
        )
    note = RecoveryNotes(ledger_id, tell)
    runner = run or partial(in_threads, tell=note)
    if isinstance(runner, TellingRunner):
        runner = runner.telling(note)
    recoverer = Recoverer(cluster, ledger_id, password, runner, note, accepts_loss, opens=True)
    opener = recoverer.opener
    assert opener is not None
    try:
        end = recoverer.recover()
    except BaseException:
        opener.begun.close()
        raise
    if end.opened is None or opener.seen is None:
        opener.begun.close()
        raise LedgerClosedError(
            f"ledger {ledger_id} is closed at entry {end.last_entry_id}",
            hint="read it, or write to a new ledger",
        )
    found = (end.last_entry_id, end.kept, note.lines, end.lost_from, list(end.losses))
    report = RecoveryReport(ledger_id, *found, is_open=True)
    return LedgerTakeover(opener.seen, opener.begun, _standing(end), end.unjoined, report)


def _standing(end: steps.EndRecovery) -> ConfirmedEnd:
    """Return where the ledger ends. Without a last record only the last entry id is known."""
    if end.last is None:
        return ConfirmedEnd(end.last_entry_id)
    told = (end.last.length_bytes, 0, end.last.transactions, end.last.times)
    return ConfirmedEnd(end.last_entry_id, *told)
