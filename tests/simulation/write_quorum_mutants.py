"""Rules of ledgers that guarantee their write quorum, broken in the real code."""

from bkspark.ledger.recovery.fencing import Since
from bkspark.protocol.ledger.record import AddRecord
from bkspark.protocol.recovery.conclusions import Evidence
from bkspark.protocol.recovery.replication import Replication
from bkspark.protocol.writer.adding import Lagging, PendingAdd, PendingAdds
from tests.simulation.mutants import Change, always


def advance_to_the_lac(self: Lagging) -> list[PendingAdd]:
    """As the specification works it out: from the LAC, not from the LAFR before."""
    if not any(add.is_fully_replicated for add in self.adds):
        return []
    done = list(self.adds)
    self.adds.clear()
    self.last_add_fully_replicated = done[-1].last_entry_id
    return done


def from_the_lafr_on(self: PendingAdds, _index: int) -> int:
    """A fragment that takes copies away on which acknowledgements rest."""
    lagging = self.lagging
    return (self.last_add_confirmed if lagging is None else lagging.last_add_fully_replicated) + 1


def to_the_lac(self: Since, record: AddRecord) -> int:
    return max(self.after, record.last_add_confirmed)


MUTANTS: dict[str, tuple[Change, ...]] = {
    "a close does not wait for the last copies": (
        (PendingAdd, "is_fully_replicated", property(always)),
    ),
    "the LAFR is worked out by the specification's formula": (
        (Lagging, "advance", advance_to_the_lac),
    ),
    "a fragment begins at the LAFR, whatever its predecessor has": (
        (PendingAdds, "fragment_without", from_the_lafr_on),
    ),
    "a recovery writes back to Qa": (
        (Replication, "_needed", property(lambda self: self.ledger.quorum)),
    ),
    "a recovery leaves alone what is confirmed": ((Evidence, "lagging", lambda *_: ((), ())),),
    "a recovery reads journals back to the LAC only": ((Since, "said_by", to_the_lac),),
}
