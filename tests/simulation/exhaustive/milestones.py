"""What a recoverer goes on with at some points of its way: all else it may forget.

It comes to each of them in many ways, and what it does behind it is the same, as little of what it
has seen can make a difference there:

- It takes the ledger over, or was displaced: what it has seen before is looked at anew.
- Somebody else got ahead of its change to the metadata: it is where it was before the change.
- It has taken the ledger over: the metadata that it stored, whatever was there before.
- It has decided: what it keeps, where that ends, and the rows to write back; not who showed them,
  as nobody is asked again. Who was looked at before it was fenced (R16) is forgotten with that, so
  the oracle looks here already, and not only when the ledger is closed.
- It closes: the same, and where the rows are now.

So what is named here must be all that the client has in its hands there. Tests let every step that
is known of those who remember everything be compared with those of whoever has forgotten.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bkspark.client import records
from bkspark.client.cluster import Cluster
from bkspark.client.recovery import recover, replication
from bkspark.client.recovery.fencing import RecoveredGroup
from bkspark.client.recovery.member_tail import MemberTail
from bkspark.client.recovery.one_term import Recovery
from bkspark.client.recovery.replication import Replication
from bkspark.protocol.ledger import LedgerMetadata
from bkspark.protocol.record import AddRecord

GoOn = Callable[[object], None]
"""Told all that whoever runs now goes on with; None: what it went on with the last time."""

Decided = Callable[[LedgerMetadata], None]
"""Told what whoever runs now has taken over, when it has decided."""

_MEANS = ("note", "_cluster", "_password", "_run")
"""What a recovery works with, and never changes."""


def milestones(go_on: GoOn, decided: Decided) -> list[tuple[object, str, object]]:
    """Replacements of parts of the client that do the same, and tell ``go_on`` and ``decided``."""
    take_over, decide, close = recover._take_over, Recovery.decide, Recovery.close
    recovered, back_off = Replication._recovered, records.back_off

    def told_take_over(*arguments: Any) -> Recovery:
        go_on("takes over")
        work = take_over(*arguments)
        go_on(("has taken over", _found_by(work)))
        return work

    def told_decide(
        work: Recovery, tails: dict[int, MemberTail], **options: Any
    ) -> tuple[list[AddRecord], int]:
        kept, end = decide(work, tails, **options)
        decided(work._metadata)
        shown = [_shown_of(group, tails) for group in kept]
        go_on(("has decided", _found_by(work), kept, end, shown, sorted(tails)))
        return kept, end

    def told_close(work: Recovery, groups: Sequence[AddRecord], end: int) -> LedgerMetadata:
        go_on(("closes", _found_by(work), groups, end))
        return close(work, groups, end)

    def recovered_from_nobody(
        work: Replication, group: AddRecord, tails: Mapping[int, MemberTail]
    ) -> RecoveredGroup:
        """Only who copies entry logs asks for them where they are."""
        found = recovered(work, group, tails)
        return found if group.attempts else replace(found, sources=())

    def look_once(cluster: Cluster, ledger_id: int, _displaced_before: int) -> LedgerMetadata:
        """In place of a wait for the one that displaced it, and of trying again."""
        go_on("is displaced")
        return cluster.ledger(ledger_id).value

    def told_back_off(attempt: int) -> None:
        """Others get ahead of nothing but the ledger's metadata, when it takes over or closes."""
        back_off(attempt)
        go_on(None)

    return [
        (recover, "_take_over", told_take_over),
        (recover, "wait_for_others", look_once),
        (Recovery, "decide", told_decide),
        (Recovery, "close", told_close),
        (Replication, "_recovered", recovered_from_nobody),
        (records, "back_off", told_back_off),
    ]


def _found_by(work: Recovery) -> dict[str, object]:
    """All that a recovery holds, but for what it was given by its caller as a means."""
    return {name: value for name, value in vars(work).items() if name not in _MEANS}


def _shown_of(group: AddRecord, tails: Mapping[int, MemberTail]) -> object:
    """What of the answers is looked at again to write ``group`` back."""
    first = group.first_entry_id
    holders = [index for index, tail in tails.items() if first in tail.answer.records]
    return replication._all_parts(group, tails), holders if group.attempts else ()
