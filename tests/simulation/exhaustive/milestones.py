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

from collections.abc import Callable

from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery import recoverer
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.recovering import Closing, LedgerRecovery, WritingBack
from bkspark.protocol.ledger.recovery_steps import Close, Event, Instruction, TakenOver, TakeOver

GoOn = Callable[[object], None]
"""Told all that whoever runs now goes on with; None: what it went on with the last time."""

Decided = Callable[[LedgerMetadata], None]
"""Told what whoever runs now has taken over, when it has decided."""


def milestones(go_on: GoOn, decided: Decided) -> list[tuple[object, str, object]]:
    """Replacements of parts of the client that do the same, and tell ``go_on`` and ``decided``."""
    receive = LedgerRecovery.receive

    def told_receive(machine: LedgerRecovery, event: Event) -> tuple[Instruction, ...]:
        before, instructions = machine.state, receive(machine, event)
        state = machine.state
        if TakeOver() in instructions:
            go_on("takes over")
        elif isinstance(event, TakenOver):
            go_on(("has taken over", state))
        elif isinstance(state, WritingBack | Closing):
            if not isinstance(before, WritingBack | Closing):
                decided((state if isinstance(state, Closing) else state.closing).term.ledger)
                go_on(("has decided", state))
            if any(isinstance(instruction, Close) for instruction in instructions):
                go_on(("closes", state))
        return instructions

    def look_once(cluster: Cluster, ledger_id: int, _displaced_before: int) -> LedgerMetadata:
        """In place of a wait for the one that displaced it, and of trying again."""
        go_on("is displaced")
        return cluster.ledger(ledger_id).value

    return [
        (LedgerRecovery, "receive", told_receive),
        (recoverer, "wait_for_others", look_once),
    ]
