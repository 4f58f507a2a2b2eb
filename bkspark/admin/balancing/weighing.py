"""Measure ledgers on bookies, and derive the weight of each place.

A bookie reports its bytes of a ledger, not of a place. A bookie may have more bytes than its places
need (left by a removed place), or fewer (after a loss). So the weight of an entry is the median
over the ledger's bookies, and the weight of a place is the weight of its entries. The same facts
give the same weights, also during a move.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median_low

from bkspark.admin.auditing.holding import known_fragments
from bkspark.admin.collecting.freeing import MeasureFiles
from bkspark.bookie.contract import BookieAddress
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member

LEDGERS_AT_ONCE = 2000
"""Ledgers measured by one instruction."""

Weights = Mapping[tuple[int, int], float]
"""Weight of a place in bytes, by ledger id and first entry id of the fragment."""


def weigh(
    ledgers: Sequence[LedgerMetadata], addresses: Collection[BookieAddress], run: Runner
) -> Weights:
    """Return the weight of each place of closed ledgers, by the answering bookies."""
    found: dict[tuple[int, int], float] = {}
    for begin in range(0, len(ledgers), LEDGERS_AT_ONCE):
        some = ledgers[begin : begin + LEDGERS_AT_ONCE]
        asked = {address: tuple(_naming(some, address.member)) for address in addresses}
        weighs = [MeasureFiles(address, ids) for address, ids in asked.items() if ids]
        said: dict[tuple[int, Member], int] = {}
        for instruction, answer in zip(weighs, run(weighs), strict=True):
            for ledger_id, usage in answer.items() if isinstance(answer, Mapping) else ():
                said[ledger_id, instruction.address.member] = usage.bytes
        for ledger in some:
            found |= dict(_places(ledger, said))
    return found


def _naming(ledgers: Sequence[LedgerMetadata], member: Member) -> Iterator[int]:
    for ledger in ledgers:
        if any(member in fragment.ensemble for fragment in ledger.fragments):
            yield ledger.ledger_id


def _places(
    ledger: LedgerMetadata, said: Mapping[tuple[int, Member], int]
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the weight of a place, for each fragment with entries."""
    own: dict[Member, int] = {}
    for fragment, (first, last) in known_fragments(ledger):
        for member in fragment.ensemble:
            own[member] = own.get(member, 0) + last - first + 1
    known = [
        said[ledger.ledger_id, member] / count
        for member, count in own.items()
        if (ledger.ledger_id, member) in said
    ]
    each = median_low(known) if known else 0.0
    for fragment, (first, last) in known_fragments(ledger):
        yield (ledger.ledger_id, fragment.first_entry_id), each * (last - first + 1)
