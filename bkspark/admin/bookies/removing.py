"""Remove a bookie from the cluster once no ledger names it.

A writer or a repair may be adding the bookie to a ledger at the same moment: it chooses the bookie
first and stores the ledger's record later. The two clients share two records. Each client writes
its own record before it reads the other's, so at least one of them sees the other's write:

* The remover stores ``is_leaving`` in the bookie's record, then reads all ledgers.
* A client that names a bookie in a new or open ledger then reads the bookie's record, before any
  entry counts there (``Cluster.is_going``). If the bookie is leaving, the client abandons a new
  ledger for another one; in an open ledger it treats the bookie as failed and replaces it.

So if a bookie acknowledged an entry, the entry's ledger named the bookie before the remover read
all ledgers. The remover finds that ledger and keeps the bookie. A ledger may still name a removed
bookie, as after a loss, but no entry of that ledger ever counted there.

A recovery names bookies when it closes a ledger, too late for such a check. But it chooses them
after taking over the ledger, so the ledger's state shows an earlier choice: while any ledger is
IN_RECOVERY, no bookie is removed.

A repair gives a place back to the previous member if the new member is leaving. The previous member
must not be removed in between. Its remover reads all ledgers after the repair's compare-and-set,
and the new member was marked as leaving before it. So while a closed ledger names a leaving or
removed bookie, other bookies are removed by force only: repair such ledgers first.

An unreadable record may name any bookie; it stops the removal, and the report names it. The removal
also stops if another client changes the bookie's record between the first and last step.
"""

from dataclasses import replace

from bkspark.admin.absent_bookies import note_lost
from bkspark.admin.bookies.reinitialising import naming
from bkspark.admin.maintenance import Left, Report, report_of
from bkspark.admin.views import all_ledgers
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import leave_out
from bkspark.cluster.records import Versioned
from bkspark.errors import CorruptDataError, InvalidRequestError, MetadataVersionError
from bkspark.format.cluster import BookieRecord
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerState, Member

_SHOWN_MAX = 5


def remove(
    cluster: Cluster, bookie_id: str, *, force: bool = False, dry_run: bool = False
) -> Report:
    """Remove a bookie from the cluster, or report why the bookie must stay.

    The bookie's storage is not touched, and its id is never used again. Repeat the call after an
    interrupted removal to finish, or undo the removal with ``set_read_only`` and ``off``.

    Args:
        force: also remove a bookie named by ledgers, if declared lost and not answering.

    Raises:
        InvalidRequestError: no such bookie, or ``force`` does not apply to the bookie.
        CorruptDataError: the bookie's record cannot be read.
    """
    before = cluster.bookie(bookie_id)
    if force:
        _require_lost(cluster, before.value)
    else:
        left = _in_the_way(cluster, bookie_id)
        if left:
            return report_of("remove", before.value, left=left)
    steps = (f"remove {bookie_id} from the cluster for ever",)
    if dry_run:
        return report_of("remove", before.value, steps)
    left = _take_out(cluster, before.value, force=force)
    return report_of("remove", before.value, steps, is_done=not left, left=left)


def give_up(cluster: Cluster, bookie_id: str) -> tuple[Left, ...]:
    """Remove an answering bookie still named by ledgers; return the obstacles.

    The bookie is declared lost first: a removed bookie can no longer be declared lost, and
    recoveries would wait for it. The caller has checked that all copies exist elsewhere
    (``protocol.upkeep.draining``, rule 3).

    Raises:
        InvalidRequestError: no such bookie.
    """
    before = cluster.bookie(bookie_id).value
    note_lost(cluster, Member(bookie_id, before.incarnation))
    return _take_out(cluster, before, force=True)


def _take_out(cluster: Cluster, before: BookieRecord, *, force: bool) -> tuple[Left, ...]:
    """Remove a bookie for ever, or restore its record and return the obstacles."""
    bookie_id = before.bookie_id
    leaving = cluster.registrations.update(bookie_id, _leaving)
    left = () if force else _in_the_way(cluster, bookie_id)
    if left:
        _take_back(cluster, leaving, before)
        return left
    gone = replace(leaving.value, is_leaving=False, is_removed=True)
    try:
        cluster.registrations.replace(bookie_id, gone, leaving)
    except MetadataVersionError:
        return (Left("record", "another client changed it first", "look at it, then try again"),)
    return ()


def _in_the_way(cluster: Cluster, bookie_id: str) -> tuple[Left, ...]:
    """Return the reasons to keep the bookie; an unreadable record may name the bookie."""
    try:
        return _named(cluster, bookie_id)
    except CorruptDataError as error:
        hint = "`bkspark metadata damaged` says what to do"
        return (Left("metadata", f"it may name {bookie_id}: {error.args[0]}", hint),)


def _named(cluster: Cluster, bookie_id: str) -> tuple[Left, ...]:
    named = [str(ledger.ledger_id) for ledger in naming(cluster, bookie_id)]
    recovering = [
        str(ledger.ledger_id)
        for ledger in all_ledgers(cluster, None)
        if ledger.state is LedgerState.IN_RECOVERY and str(ledger.ledger_id) not in named
    ]
    left = []
    for other, ledger_id in _may_give_back(cluster, bookie_id):
        hint = f"run `bkspark repair`, or `bkspark bookie remove {other}` again; then try again"
        reason = (
            f"ledger {ledger_id} names {other}, which is removed or being removed: "
            f"{bookie_id} may get back its places there"
        )
        left.append(Left("repairs", reason, hint))
    if named:
        hint = (
            "run `bkspark repair` after the bookie was emptied (`bkspark bookie "
            "decommission`), or delete the ledgers"
        )
        left.append(Left("ledgers", f"{_counted(named)} it: {_some(named)}", hint))
    if recovering:
        hint = "`bkspark ledger recover ID` ends a recovery"
        reason = f"a recovery may be about to name it: {_some(recovering)}"
        left.append(Left("recoveries", reason, hint))
    return tuple(left)


def _may_give_back(cluster: Cluster, bookie_id: str) -> list[tuple[str, int]]:
    """Return other leaving or removed bookies, each with a closed ledger that names it."""
    named = dict[Member, int]()
    for ledger in all_ledgers(cluster, None):
        if ledger.state is LedgerState.CLOSED:
            named |= dict.fromkeys(Locations(ledger).members, ledger.ledger_id)
    # Read after all ledgers: a new member of a place that is leaving was marked before the scan.
    others = [one for one in named if one.bookie_id != bookie_id]
    going = sorted((one.bookie_id, named[one]) for one in others if cluster.is_going(one))
    return going[:_SHOWN_MAX]


def _require_lost(cluster: Cluster, record: BookieRecord) -> None:
    bookie_name, member = record.bookie_id, Member(record.bookie_id, record.incarnation)
    if not cluster.is_lost(member):
        raise InvalidRequestError(
            f"bookie {bookie_name} was not declared lost, so it cannot be removed by force",
            hint=f"`bkspark bookie lost {bookie_name}` declares that it will never come back",
        )
    statuses = cluster.probe(step_over=leave_out)
    if any(not one.problem for one in statuses if one.record.bookie_id == bookie_name):
        raise InvalidRequestError(
            f"bookie {bookie_name} was declared lost, but can be read: it may have the last "
            "copy of entries",
            hint="keep it until all its ledgers have their copies on other bookies",
        )


def _leaving(record: BookieRecord | None) -> BookieRecord:
    assert record is not None  # registrations are never removed
    return replace(record, is_read_only=True, is_leaving=True)


def _take_back(cluster: Cluster, leaving: Versioned[BookieRecord], before: BookieRecord) -> None:
    """Restore the bookie's record, unless another client changed the record meanwhile."""

    def staying(now: BookieRecord | None) -> BookieRecord:
        assert now is not None
        if now != leaving.value:
            return now
        return replace(now, is_read_only=before.is_read_only, is_leaving=False)

    cluster.registrations.update(before.bookie_id, staying)


def _counted(ids: list[str]) -> str:
    return "1 ledger names" if len(ids) == 1 else f"{len(ids):,} ledgers name"


def _some(ids: list[str]) -> str:
    return ", ".join(ids[:_SHOWN_MAX]) + (" …" if len(ids) > _SHOWN_MAX else "")
