"""Taking a bookie out of the cluster that no ledger names any more.

A ledger may be about to name it at this very moment: somebody has chosen it, and stores the record
that says so a little later. Two records are written and read by two clients, so each writes its own
first and reads the other's then, and at least one of them sees what the other has written:

* Who removes a bookie says so in its record (``is_leaving``), and then looks at all ledgers.
* Who has a ledger name a bookie, a new one or an open one, looks at the bookie's record behind
  that, before anything counts there (``Cluster.is_going``). If it is leaving, a new ledger is
  given up for another, and in an open one the bookie counts as failed, and is replaced.

So an entry that has been acknowledged by a bookie is of a ledger that named it before it was to
leave, or before the look at all ledgers: that look finds it, and nothing is removed. What may be
left is a ledger that names a bookie which is gone, as after a loss, and on which nothing of it was
ever counted. Recoveries
name bookies in the instant in which they close a ledger, when it is too late to look. But they
choose them after they have taken their ledger over, so one that chose before the bookie was to
leave is seen by the state of its ledger: while any ledger is being recovered, nothing is removed.

A repair that finds that who got a place is going gives it back to who had it, so that one must not
go in between. Whoever removes it looks behind the compare-and-set that gave the place away, and the
other was leaving before that. So while a closed ledger names a bookie that is going, no other is
removed but by force: what is named and gone is repaired first.

A record that cannot be read may name anything, and stops this, and is named. A bookie whose record
was changed by anybody between the first step and the last is not removed.
"""

from dataclasses import replace

from bkspark.admin.bookies.reinitialising import naming
from bkspark.admin.bookies.report import report_of
from bkspark.admin.lost_bookies import note_lost
from bkspark.admin.maintenance import Left, Report
from bkspark.admin.views.sharing import all_ledgers
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Versioned
from bkspark.errors import CorruptDataError, InvalidRequestError, MetadataVersionError
from bkspark.format.cluster import BookieRecord
from bkspark.protocol.ledger.deletion import members_of
from bkspark.protocol.ledger.metadata import LedgerState, Member

_SHOWN_MAX = 5


def remove(
    cluster: Cluster, bookie_id: str, *, force: bool = False, dry_run: bool = False
) -> Report:
    """Take a bookie out of the cluster, unless something is in the way, which is left then.

    Its storage is not touched. Its id is never used again. What was killed half-way is finished by
    the same call, or taken back by ``set_read_only`` with ``off``.

    Args:
        force: also if ledgers name it, for one that was declared lost and does not answer.

    Raises:
        InvalidRequestError: there is no such bookie, or ``force`` is not for this one.
        CorruptDataError: the bookie's record cannot be read.
    """
    before = cluster.bookie(bookie_id)
    if force:
        _require_lost(cluster, before.value)
    else:
        left = _in_the_way(cluster, bookie_id)
        if left:
            return report_of("remove", before.value, left=left)
    steps = (f"remove {bookie_id} from the cluster, for ever",)
    if dry_run:
        return report_of("remove", before.value, steps)
    left = _taken_out(cluster, before.value, force=force)
    return report_of("remove", before.value, steps, is_done=not left, left=left)


def give_up(cluster: Cluster, bookie_id: str) -> tuple[Left, ...]:
    """Take a bookie out though ledgers name it and it answers; what was in the way.

    It is declared lost first: no recovery may wait for one that can be declared lost no more. The
    caller has seen that others have what it has (``protocol.upkeep.draining``, rule 3).

    Raises:
        InvalidRequestError: there is no such bookie.
    """
    before = cluster.bookie(bookie_id).value
    note_lost(cluster, Member(bookie_id, before.incarnation))
    return _taken_out(cluster, before, force=True)


def _taken_out(cluster: Cluster, before: BookieRecord, *, force: bool) -> tuple[Left, ...]:
    """Remove a bookie for ever; what was in the way, and then it is as before."""
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
        return (Left("record", "somebody else has changed it meanwhile", "look, and try again"),)
    return ()


def _in_the_way(cluster: Cluster, bookie_id: str) -> tuple[Left, ...]:
    """What the bookie is needed for, or may be; an unreadable record may name it."""
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
        hint = f"`bkspark repair`, or `bkspark bookie remove {other}` again; then try again"
        reason = f"ledger {ledger_id} names {other}, which is gone or going: it may get places back"
        left.append(Left("repairs", reason, hint))
    if named:
        hint = "it can go when their copies are elsewhere, or they are deleted"
        left.append(Left("ledgers", f"{_counted(named)} it: {_some(named)}", hint))
    if recovering:
        hint = "`bkspark ledger recover ID` ends them"
        reason = f"a recovery may be about to name it: {_some(recovering)}"
        left.append(Left("recoveries", reason, hint))
    return tuple(left)


def _may_give_back(cluster: Cluster, bookie_id: str) -> list[tuple[str, int]]:
    """Other bookies that are going, each with a closed ledger that names it."""
    named = dict[Member, int]()
    for ledger in all_ledgers(cluster, None):
        if ledger.state is LedgerState.CLOSED:
            named |= dict.fromkeys(members_of(ledger), ledger.ledger_id)
    # Behind all ledgers: who got a place of one and is going was leaving by then.
    others = [one for one in named if one.bookie_id != bookie_id]
    going = sorted((one.bookie_id, named[one]) for one in others if cluster.is_going(one))
    return going[:_SHOWN_MAX]


def _require_lost(cluster: Cluster, record: BookieRecord) -> None:
    who, member = record.bookie_id, Member(record.bookie_id, record.incarnation)
    if member not in cluster.lost_members():
        raise InvalidRequestError(
            f"bookie {who} was not declared lost, so it is not removed by force",
            hint=f"`bkspark bookie lost {who}` says that it will never come back",
        )
    if any(not s.problem for s in cluster.probe() if s.record.bookie_id == who):
        raise InvalidRequestError(
            f"bookie {who} was declared lost, and can be read: what it has may be the last copy",
            hint="leave it until every ledger that names it has its copies elsewhere",
        )


def _leaving(record: BookieRecord | None) -> BookieRecord:
    assert record is not None  # registrations are never removed
    return replace(record, is_read_only=True, is_leaving=True)


def _take_back(cluster: Cluster, leaving: Versioned[BookieRecord], before: BookieRecord) -> None:
    """Let the bookie be as it was, unless somebody else has said something of it meanwhile."""

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
