"""Check by an audit whether other bookies hold all copies of the leaving bookies.

Force never gives up a possible last copy. To give up such a copy, the operator first removes the
disk, which makes the case an ordinary loss: `bookie lost`, `ledger recover --accept-loss` and
`bookie remove --force` then name the loss, one ledger at a time.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from bkspark.admin.auditing.audit import Audit
from bkspark.admin.auditing.audit_plan import plan_of_some
from bkspark.admin.draining.drain_plan import Known
from bkspark.admin.maintenance import Left
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import Fragment, LedgerMetadata, Member
from bkspark.protocol.upkeep import draining
from bkspark.protocol.upkeep.repairing import MemberState


@dataclass(frozen=True, slots=True)
class LastCopyCheck:
    """The arguments of a check."""

    cluster: Cluster
    run: Runner
    known: Known


def last_copies(
    verdict: LastCopyCheck, ledgers: Sequence[LedgerMetadata], bookie_ids: Collection[str]
) -> Iterator[Left]:
    """Yield ledgers that may have the last copy of an entry on these bookies."""
    names = sorted(verdict.cluster.bookies())
    plan = plan_of_some([ledger.ledger_id for ledger in ledgers], names)
    audit = Audit(verdict.cluster, plan, verdict.run, ())
    audit.carry_out(lambda _done, _total: None)
    found = audit.findings
    short = {(gap.ledger_id, gap.fragment_first_entry_id, gap.member) for gap in found.gaps}
    waited_for = {
        (waiting.ledger_id, name) for waiting in found.waiting for name in waiting.waiting_for
    }
    changing = set(found.changing)

    def lacks(ledger: LedgerMetadata, fragment: Fragment, member: Member) -> bool:
        return (
            member.bookie_id in bookie_ids
            or ledger.ledger_id in changing
            or verdict.known.standing(member) is not MemberState.ANSWERS
            or member in verdict.known.lost
            or (ledger.ledger_id, fragment.first_entry_id, member) in short
            or (ledger.ledger_id, member.bookie_id) in waited_for
        )

    for ledger in ledgers:

        def lacking(fragment: Fragment, ledger: LedgerMetadata = ledger) -> list[int]:
            places = enumerate(fragment.ensemble)
            return [index for index, member in places if lacks(ledger, fragment, member)]

        if not draining.is_kept_without(ledger, lacking):
            yield Left(
                f"ledger {ledger.ledger_id}",
                "the bookies to be removed may have the last copy of entries: --force does "
                "not give that up",
                "run `bkspark repair` and `bkspark recover --all` first, or delete the ledger",
            )
