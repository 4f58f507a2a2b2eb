"""How much bookies have of ledgers: what they say, made to what each place weighs.

A bookie tells how many bytes it has of a ledger, not of which place; and it may have more than it
should, what a place left behind that is gone, or less, what it lost. So an entry of a ledger weighs
what the middle one of its bookies says, and a place as much as its entries. Twice the same facts
give twice the same weights, also in the middle of a move.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import median_low

from bkspark.admin.auditing.holding import known_fragments
from bkspark.admin.collecting.freeing import Weigh
from bkspark.bookie.contract import BookieAddress
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member

LEDGERS_AT_ONCE = 2000
"""So many are asked about in one instruction."""

Weights = Mapping[tuple[int, int], float]
"""What a place weighs, in bytes, by ledger id and first entry of the fragment."""


def weigh(
    ledgers: Sequence[LedgerMetadata], addresses: Collection[BookieAddress], run: Runner
) -> Weights:
    """What each place of closed ledgers weighs, as the bookies that answer report."""
    found: dict[tuple[int, int], float] = {}
    for begin in range(0, len(ledgers), LEDGERS_AT_ONCE):
        some = ledgers[begin : begin + LEDGERS_AT_ONCE]
        asked = {address: tuple(_naming(some, address.member)) for address in addresses}
        weighs = [Weigh(address, ids) for address, ids in asked.items() if ids]
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
    """Of each fragment that has entries, what a place of it weighs."""
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
