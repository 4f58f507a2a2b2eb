"""Recovering one ledger, whatever kind of log it belongs to.

Rule 1. A recovery closes a ledger for good, but not the one that an unbounded log goes on in: that
is fenced and recovered as any other, nothing that was acknowledged is lost, and it is OPEN again
then, in the next term, for whoever writes to the log next. Nobody writes to it until then.

Rule 2. Who asks for it has that one closed too (*sealed*): its copies can be repaired and moved
then, and whoever writes to the log next makes it another one behind it.

Rule 3. So is one of which entries are given up on the operator's word: its last record may be among
them, without which no writer can go on, and none of those can be asked for the word.

Rule 4. Whether a ledger is the open end of an unbounded log is for the log's record to say. Where
that cannot be read nothing is done.
"""

from collections.abc import Callable
from dataclasses import replace

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import LedgerClosedError
from bkspark.ledger.creating import log_of
from bkspark.ledger.recovery.recover import RecoveryReport, never, recover
from bkspark.ledger.recovery.recoverer import Consent
from bkspark.ledger.recovery.running import Runner
from bkspark.ledger.recovery.taking_over import take_over
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
    """Fence the ledger's writer, and close it at the last entry that may have been acknowledged.

    The open end of an unbounded log is OPEN again behind that entry (``report.is_open``), unless
    something is given up.

    Args:
        seals: whether that one is closed too.
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
        except LedgerClosedError:  # somebody has sealed it meanwhile: it says where it ends
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
    """The same, which asks nobody a second time about what was accepted."""
    accepted: set[str] = set()

    def accepts(loss: str) -> bool:
        if loss not in accepted and accepts_loss(loss):
            accepted.add(loss)
        return loss in accepted

    return accepts


def is_gone_on_with(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether whoever writes to its log next goes on in this ledger.

    Raises:
        BookKeeperError: the log's record cannot be read.
    """
    name = log_of(ledger)
    if name is None or not ledger.goes_on or ledger.state is LedgerState.CLOSED:
        return False
    seen = cluster.logs.get(name)
    return seen is not None and seen.value.is_unbounded and ledger.ledger_id in seen.value.tail
