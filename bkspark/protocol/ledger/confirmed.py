"""How far a ledger that is not closed may be read, decided from its bookies' answers.

Rule 1. A last-add-confirmed (LAC) in any valid record is true: everything up to it is acknowledged.
So a reader may read requested entries up to the highest LAC seen.

Rule 2. A reader reports a LAC as the end only if enough members of some write set state that LAC or
a later LAC. Enough means: no reader with a known end (rule 3) can miss all these members. So an end
shown to one reader is shown to every later reader, whichever bookies answer.

Rule 3. A silent member, or a member that may have held more than it shows, may hold any LAC. The
end is known only if missing answers cannot change it; otherwise the end is unknown.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The end according to the answers.

    Attributes:
        least: the end if no uncertain member states more.
        most: the highest end that another reader may have seen; None without a bound.
    """

    least: int
    most: int | None

    @property
    def is_known(self) -> bool:
        return self.least == self.most


def witnesses(quorum: Quorum) -> int:
    """Return how many members of a write set must state a LAC before a reader reports the LAC.

    The number is at most Qa, so every LAC in an acknowledged record has enough. The number is about
    half of the write set, so that as many bookies as possible may be away, with or without the LAC.
    """
    return min(quorum.ack_quorum_size, (quorum.write_quorum_size + 1) // 2)


def confirmed(
    quorum: Quorum, said: Mapping[int, int], sure: Collection[int], floor: int = INVALID_ENTRY_ID
) -> Confirmed:
    """Compute how far the ledger may be read.

    Args:
        said: the highest LAC by ensemble index, for all members that answered; -1 without a LAC.
        sure: the indexes of the members that surely had no later LAC.
        floor: the last entry known to be confirmed by other means.
    """
    least = _shown(quorum, said)
    highest = max(said.values(), default=floor)
    above = max(highest, floor) + 1  # stands for an unknown LAC
    supposed = {
        index: said[index] if index in sure else above for index in range(quorum.ensemble_size)
    }
    most = max(floor, _shown(quorum, supposed))
    return Confirmed(max(floor, least), None if most == above else most)


def _shown(quorum: Quorum, said: Mapping[int, int]) -> int:
    """Return the highest LAC reached by enough members of one write set."""
    place = witnesses(quorum) - 1
    return max(
        sorted((said.get(index, INVALID_ENTRY_ID) for index in write_set), reverse=True)[place]
        for write_set in quorum.write_sets()
    )
