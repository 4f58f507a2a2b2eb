"""Finding the record that ends at the last confirmed entry.

A recovery that keeps nothing beyond it needs the record all the same: it alone knows the ledger's
length and transactions up to there.

Where no bookie that is left has it, the entries up to the last confirmed one stay in the ledger all
the same (R14: it is never closed below them); what is known of the ledger then ends at the newest
record in front. That takes the operator's word, because entries that were acknowledged are gone.
"""

from collections.abc import Collection, Mapping

from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.client.recovery.explaining import bring_back
from bkspark.client.recovery.fencing import LookUp, Shown
from bkspark.client.recovery.journal_tail import later
from bkspark.client.recovery.member_tail import MemberTail
from bkspark.client.recovery.running import Runner
from bkspark.errors import NotEnoughBookiesError
from bkspark.protocol.ledger import LedgerMetadata, Member
from bkspark.protocol.record import AddRecord


class RecordSilenceError(NotEnoughBookiesError):
    """No bookie shows the record, and some are silent.

    Args:
        silent: these.
    """

    def __init__(self, message: str, *, hint: str = "", silent: Collection[Member] = ()) -> None:
        super().__init__(message, hint=hint)
        self.silent = tuple(silent)


def confirmed_record(
    cluster: Cluster,
    ledger: LedgerMetadata,
    password: Password,
    tails: Mapping[int, MemberTail],
    entry_id: int,
    run: Runner,
) -> AddRecord | None:
    """The record that ends at ``entry_id``: from what was read, else from its own fragment.

    One that ends in front of it, or None, if every bookie that could show it has answered or was
    declared lost: it is gone then.

    Raises:
        RecordSilenceError: no bookie shows it, and some are silent.
    """
    for tail in tails.values():
        shown = [record for record, _ in tail.answer.records.values()]
        for record in (*shown, tail.confirmed):
            if record is not None and record.last_entry_id == entry_id:
                return record
    newest: AddRecord | None = None
    lost = cluster.lost_members()
    for ensemble in _ensembles(ledger, entry_id):
        found, failed = _newest_on(cluster, ledger, password, ensemble, entry_id, run)
        newest = later(newest, found)
        if newest is not None and newest.last_entry_id == entry_id:
            return newest
        silent = {member: why for member, why in failed.items() if member not in lost}
        if silent:
            raise RecordSilenceError(
                f"ledger {ledger.ledger_id}: no bookie shows the record of the confirmed entry "
                f"{entry_id} ({'; '.join(silent.values())})",
                hint=bring_back(silent, cluster.bookies()),
                silent=silent,
            )
        if newest is not None:
            break
    return newest


def _ensembles(ledger: LedgerMetadata, entry_id: int) -> list[tuple[Member, ...]]:
    """Those of the fragments up to ``entry_id``, the last one first: it alone can have it."""
    fragments = [f for f in ledger.fragments if f.first_entry_id <= entry_id]
    return [fragment.ensemble for fragment in reversed(fragments)]


def _newest_on(
    cluster: Cluster,
    ledger: LedgerMetadata,
    password: Password,
    ensemble: Collection[Member],
    entry_id: int,
    run: Runner,
) -> tuple[AddRecord | None, dict[Member, str]]:
    """The newest record that ``ensemble`` shows, and why members of it may have another."""
    known = cluster.addresses()
    problems = {m: f"{m.bookie_id} was initialised anew" for m in ensemble if m not in known}
    asked = [member for member in ensemble if member in known]
    newest: AddRecord | None = None
    look_ups = [
        LookUp(ledger.ledger_id, known[m], ledger.digest, password, entry_id) for m in asked
    ]
    for member, result in zip(asked, run(look_ups) if look_ups else [], strict=True):
        if isinstance(result, Shown):
            newest = later(newest, result.record)
            if result.problem:
                problems[member] = result.problem
        else:
            problems[member] = str(result)
    return newest, problems
