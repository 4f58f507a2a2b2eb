"""Recover one ledger of any kind of log.

Rule 1. A recovery closes a ledger for good, except the active tail of an unbounded log. That ledger
is fenced and recovered like others, and no acknowledged entry is lost, but afterwards it is OPEN
again, in the next term, for the log's next writer. Until then it has no writer.

Rule 2. The operator may ask to close the active tail too (*sealed*). Its copies can then be
repaired and moved, and the log's next writer adds a new ledger.

Rule 3. The active tail is also closed if the operator accepts the loss of entries: its last record
may be lost, and without that record no writer can continue the ledger. No writer can ask the
operator to accept a loss.

Rule 4. The log's record decides whether a ledger is the open end of an unbounded log. If the record
cannot be read, nothing is done.
"""

from collections.abc import Callable
from dataclasses import replace

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import LedgerClosedError
from bkspark.ledger.creating import log_of
from bkspark.ledger.recovery.recover import RecoveryReport, never, recover, take_over
from bkspark.ledger.recovery.recoverer import Consent
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState


def recover_ledger(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    seals: bool = False,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: Consent = never,
) -> RecoveryReport:
    """Fence the ledger's writer; close the ledger at the last possibly acknowledged entry.

    The open end of an unbounded log is OPEN again after that entry (``report.is_open``), unless
    entries are given up.

    Args:
        seals: whether the open end of an unbounded log is closed too.
        run, tell, accepts_loss: see ``recover``.

    Raises:
        As ``recover`` and ``take_over``.
    """
    accepts = _asked_once(accepts_loss)
    opened: RecoveryReport | None = None
    if not seals and is_gone_on_with(cluster, cluster.ledger(ledger_id).value):
        try:
            taken = take_over(
                cluster, ledger_id, password, run=run, tell=tell, accepts_loss=accepts
            )
        except LedgerClosedError:  # sealed meanwhile: its record has the end
            pass
        else:
            taken.begun.close()
            opened = taken.report
            if opened.lost_from is None:
                return opened
    closed = recover(cluster, ledger_id, password, run=run, tell=tell, accepts_loss=accepts)
    if opened is None:
        return closed
    end, notes = closed.last_entry_id, [*opened.notes, *closed.notes]
    return replace(opened, last_entry_id=end, notes=notes, is_open=False)


def _asked_once(accepts_loss: Consent) -> Consent:
    """Wrap ``accepts_loss`` so that an accepted loss is not asked about again."""
    accepted: set[str] = set()

    def accepts(loss: str) -> bool:
        if loss not in accepted and accepts_loss(loss):
            accepted.add(loss)
        return loss in accepted

    return accepts


def is_gone_on_with(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether the log's next writer continues this ledger.

    Raises:
        BookKeeperError: the log's record cannot be read.
    """
    name = log_of(ledger)
    if name is None or not ledger.goes_on or ledger.state is LedgerState.CLOSED:
        return False
    seen = cluster.logs.get(name)
    return seen is not None and seen.value.is_unbounded and ledger.ledger_id in seen.value.tail
