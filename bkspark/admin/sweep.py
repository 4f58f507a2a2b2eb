"""A sweep over ledgers: batch by batch, by member, with instructions for all bookies at once.

Rule 1. Records are read first, bookies afterwards. A finding counts only if the ledger's record is
unchanged after the answers. Ledgers that changed are examined again, a few times.

Rule 2. A silent bookie gives no answer about its ledgers, and no conclusion is drawn from that.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from bkspark.admin.maintenance import Progress, no_progress
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery.running import Instruction, Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member

LOOKS_MAX = 3
"""Attempts to examine a ledger whose record keeps changing."""

T = TypeVar("T")
Asked = TypeVar("Asked", bound=Instruction[Any])


def batches(
    items: Sequence[T], size: int, progress: Progress = no_progress, *, total: int | None = None
) -> Iterator[Sequence[T]]:
    """Yield ``items`` in batches; tell ``progress`` how many are done, before and after each.

    Args:
        total: the number of all items, if others follow.
    """
    count = len(items) if total is None else total
    progress(0, count)
    for begin in range(0, len(items), size):
        batch = items[begin : begin + size]
        yield batch
        progress(begin + len(batch), count)


def looked_at(
    look: Callable[[Sequence[int]], Sequence[int]],
    ledger_ids: Sequence[int],
    *,
    looks: int = LOOKS_MAX,
) -> Sequence[int]:
    """Call ``look`` with the ids, then with the ids that it returns; return the ids left.

    Args:
        look: examines ledgers; returns the ids of the ledgers that changed meanwhile (rule 1).
    """
    again = ledger_ids
    for _ in range(looks):
        again = look(again) if again else again
    return again


def read_ledgers(cluster: Cluster, ledger_ids: Iterable[int]) -> dict[int, LedgerMetadata]:
    """Return the records of ledgers, without those that are missing or cannot be read."""
    found = cluster.ledgers.present(map(str, ledger_ids))
    return {seen.value.ledger_id: seen.value for seen in found}


def has_changed(cluster: Cluster, ledger: LedgerMetadata) -> bool:
    """Whether the record of ``ledger`` is another one now, or is gone."""
    now = cluster.ledgers.get(str(ledger.ledger_id))
    return now is None or now.value != ledger


def all_members(ledger: LedgerMetadata) -> Iterable[Member]:
    return Locations(ledger).members


def last_members(ledger: LedgerMetadata) -> Iterable[Member]:
    """The members of the last fragment."""
    return Locations(ledger).last.members


def by_member(
    ledgers: Iterable[LedgerMetadata],
    members: Callable[[LedgerMetadata], Iterable[Member]] = all_members,
) -> dict[Member, list[LedgerMetadata]]:
    """Return the ledgers of each member."""
    found: dict[Member, list[LedgerMetadata]] = {}
    for ledger in ledgers:
        for member in dict.fromkeys(members(ledger)):
            found.setdefault(member, []).append(ledger)
    return found


def answers(run: Runner, instructions: Sequence[Asked]) -> Iterator[tuple[Asked, Any]]:
    """Carry out instructions on all bookies at once; yield each with its answer."""
    yield from zip(instructions, run(instructions), strict=True)


def answers_by_ledger(
    run: Runner, instructions: Sequence[Instruction[Any]]
) -> Iterator[tuple[Member, int, Any]]:
    """Carry out instructions; yield the member, the ledger id and the answer about the ledger.

    A bookie answers with a mapping by ledger id. Other answers are skipped (rule 2).
    """
    for asked, answer in answers(run, instructions):
        for ledger_id, one in answer.items() if isinstance(answer, Mapping) else ():
            yield asked.address.member, ledger_id, one
