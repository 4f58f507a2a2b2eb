"""Takes over a ledger that continues in later terms, in order to write to it.

A takeover is a normal recovery, but it ends with the ledger OPEN in a new term for the caller. If
the writer before left no undecided entry, one look is enough. No list has to name a new ledger, and
the cost does not depend on the number of earlier writers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned
from bkspark.errors import InvalidRequestError, LedgerClosedError
from bkspark.ledger.recovery.notes import RecoveryNotes
from bkspark.ledger.recovery.recover import RecoveryReport, never
from bkspark.ledger.recovery.recoverer import Consent, Recoverer
from bkspark.ledger.recovery.running import Runner, TellingRunner, in_threads
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import ConfirmedEnd
from bkspark.protocol.recovery import steps


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
