"""Fence and recover: close a ledger that somebody else was writing, without losing an ack.

The steps are those of the protocol document, "Recovery", in the order of R16:

1. CAS to IN_RECOVERY in the next term. The ensemble of this very version is the one to ask.
2. On every bookie of the last fragment: first the fence, durably, then look what is there, and then
   for the writer's marker, which a bookie that has lost data lacks.
3. Decide group by group, from the highest LAC on (``bkspark.protocol.recovery``).
4. Write what is kept back, byte-identical, to every member of its write sets; Qa at least, with
   spares in the place of members that fail (``replication``).
5. CAS to CLOSED, once, with everything this recovery found out.

It can be killed at any point and run again; any number may run at once, the closing CAS decides.
Steps 2 and 4 are lists of picklable instructions: a thread pool carries them out, or Spark.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from bkspark import environment
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password, make_digester
from bkspark.client.recovery.displacement import TAKEOVERS_MAX, DisplacedError, wait_for_others
from bkspark.client.recovery.notes import Notes
from bkspark.client.recovery.one_term import Consent, Recovery
from bkspark.client.recovery.running import Runner, TellingRunner, in_threads
from bkspark.errors import LedgerClosedError, NotEnoughBookiesError
from bkspark.protocol.ledger import INVALID_ENTRY_ID, LedgerMetadata, LedgerState


@dataclass(slots=True)
class RecoveryReport:
    """What a recovery did.

    Attributes:
        last_entry_id: where the ledger is closed, -1 if it is empty.
        kept: groups beyond the LAC that were found and written back.
        notes: one line for each step and each bookie that could not help.
        lost_from: first entry that was lost on the operator's word, though it was or may have
            been acknowledged; None if nothing was.
        losses: a line for each set of confirmed entries that is, or may be, lost because so many
            bookies were declared lost or initialised anew, or have damaged journals.
    """

    ledger_id: int
    last_entry_id: int = INVALID_ENTRY_ID
    kept: int = 0
    notes: list[str] = field(default_factory=list)
    lost_from: int | None = None
    losses: list[str] = field(default_factory=list)


def never(_loss: str) -> bool:
    """Nothing is given up."""
    return False


def recover(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    *,
    run: Runner | None = None,
    tell: Callable[[str], None] | None = None,
    accepts_loss: Consent = never,
) -> RecoveryReport:
    """Close ledger ``ledger_id`` at the last entry that may have been acknowledged.

    Args:
        run: how to carry out instructions on bookies; None for threads in this process.
        tell: called with each note as it is made.
        accepts_loss: asked for the operator's word where only what was declared lost, or is
            damaged, could tell what was acknowledged. Never asked while a bookie is silent.

    Raises:
        NotEnoughBookiesError: it cannot be decided yet; says which bookies are waited for, which
            entry is in doubt and what would help. The ledger stays IN_RECOVERY, and
            ``bkspark status`` shows the reason.
        OutcomeUnknownError: others took over again and again, and none has finished.
        NoSuchLedgerError: there is no such ledger.
        UnauthorizedError: the password is missing or wrong; nothing was fenced.
    """
    note = Notes(ledger_id, tell)
    report = RecoveryReport(ledger_id, notes=note.lines)
    metadata = cluster.ledger(ledger_id).value
    runner = run or partial(in_threads, tell=note)
    if isinstance(runner, TellingRunner):
        runner = runner.telling(note)
    for takeover in range(TAKEOVERS_MAX):
        if metadata.state is LedgerState.CLOSED:
            break
        make_digester(metadata.digest, password)  # a wrong password must not fence anybody
        try:
            work = _take_over(cluster, ledger_id, password, runner, note)
            _close(work, report, accepts_loss=accepts_loss)
            return report
        except LedgerClosedError:
            metadata = cluster.ledger(ledger_id).value
        except DisplacedError as error:
            note(f"displaced: {error.args[0]}")
            metadata = wait_for_others(cluster, ledger_id, takeover)
    if metadata.state is not LedgerState.CLOSED:
        raise DisplacedError(
            f"ledger {ledger_id} is being recovered by somebody else",
            hint="wait for it, or recover again",
        )
    report.last_entry_id = _end_of(metadata)
    note(f"ledger {ledger_id} is CLOSED at entry {report.last_entry_id} already")
    return report


def _take_over(
    cluster: Cluster,
    ledger_id: int,
    password: Password,
    run: Runner,
    note: Notes,
) -> Recovery:
    taken = cluster.ledgers.update(str(ledger_id), _taken_over(environment.token())).value
    note(f"ledger {ledger_id} is IN_RECOVERY in term {taken.term}")
    return Recovery(cluster, taken, password, run, note)


def _close(work: Recovery, report: RecoveryReport, *, accepts_loss: Consent) -> None:
    """Steps 2 to 5; a recovery that cannot finish leaves its reason behind."""
    try:
        tails = work.fence_and_read()
        groups, end = work.decide(tails, accepts_loss=accepts_loss)
        work.write_back(groups, tails)
        closed = work.close(groups, end)
    except NotEnoughBookiesError as error:
        work.require_current()
        work.leave_reason(error)
        raise
    report.last_entry_id = _end_of(closed)
    report.kept = len(groups)
    report.lost_from = work.lost_from
    report.losses = work.losses
    work.note(f"ledger {report.ledger_id} is CLOSED at entry {report.last_entry_id}")
    work.tell_given_up()


def _taken_over(token: str) -> Callable[[LedgerMetadata | None], LedgerMetadata]:
    def transform(metadata: LedgerMetadata | None) -> LedgerMetadata:
        assert metadata is not None
        is_mine = metadata.state is LedgerState.IN_RECOVERY and metadata.token == token
        return metadata if is_mine else metadata.in_recovery(token)

    return transform


def _end_of(metadata: LedgerMetadata) -> int:
    return INVALID_ENTRY_ID if metadata.last_entry_id is None else metadata.last_entry_id
