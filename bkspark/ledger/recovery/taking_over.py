"""Taking over a ledger that goes on in later terms, to write to it.

It is a recovery as any other, whatever the writer before has left undecided, but that it ends with
the ledger OPEN in its own term for the caller: one look, where nothing is undecided. Nothing is
made that a list would have to name, and what it costs does not depend on how many came before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.enlisting import Begun
from bkspark.cluster.password import Password
from bkspark.cluster.records import Versioned
from bkspark.errors import InvalidRequestError, LedgerClosedError
from bkspark.ledger.recovery.notes import Notes
from bkspark.ledger.recovery.recover import RecoveryReport, never
from bkspark.ledger.recovery.recoverer import Consent, Recoverer
from bkspark.ledger.recovery.running import Runner, TellingRunner, in_threads
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.standing import Standing
from bkspark.protocol.recovery import steps


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A ledger that is OPEN for the caller, in a term of his own.

    Attributes:
        begun: the journals of its members, to be handed over to the writer, or closed.
        standing: where it stands; ``record_count`` is not known.
        unjoined: ids of bookies that the writer must not ask (R19).
        report: what the recovery did.
    """

    seen: Versioned[LedgerMetadata]
    begun: Begun
    standing: Standing
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
) -> TakenOver:
    """Fence the writer of ledger ``ledger_id``, recover what he left, and become its writer.

    Args:
        run, tell, accepts_loss: see ``recover``.

    Raises:
        InvalidRequestError: it does not go on in later terms; nobody was fenced.
        LedgerClosedError: it was closed for good.
        NotEnoughBookiesError: it cannot be decided yet, as in ``recover``; or too few bookies can
            be written to, and it stays IN_RECOVERY, as it is recovered.
        OutcomeUnknownError: others took over again and again, or whether it is OPEN is not known:
            whoever takes it over next finds out.
        NoSuchLedgerError, UnauthorizedError: as in ``recover``.
    """
    ledger = cluster.ledger(ledger_id).value
    if not ledger.goes_on:
        raise InvalidRequestError(
            f"ledger {ledger_id} has one writer, who made it", hint="write to a new one"
        )
    note = Notes(ledger_id, tell)
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
            hint="it can be read; write to a new one",
        )
    found = (end.last_entry_id, end.kept, note.lines, end.lost_from, list(end.losses))
    report = RecoveryReport(ledger_id, *found, is_open=True)
    return TakenOver(opener.seen, opener.begun, _standing(end), end.unjoined, report)


def _standing(end: steps.End) -> Standing:
    """A ledger without entries has no last record; where that is lost, what is known of it."""
    if end.last is None:
        return Standing(end.last_entry_id)
    return Standing(end.last_entry_id, end.last.length_bytes, 0, end.last.transactions)
