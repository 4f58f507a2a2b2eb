"""How far a ledger that is not closed may be read, by what its bookies say.

Rule 1. A last-add-confirmed (LAC) in any valid record is true: everything up to it is acknowledged.
So entries up to the highest LAC that is seen may be read by whoever asks for them.

Rule 2. It is shown as the end only if some write set has enough members that say as much or more:
so many that nobody who knows how far (rule 3) can miss all of them. So what one reader was shown,
no later reader is denied, whichever bookies answer him.

Rule 3. A member that has not answered, or that may have had more than it shows, may hold any LAC.
Who asks knows how far only if that makes no difference; else he does not know, which is no end.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from bkspark.protocol.ledger.metadata import INVALID_ENTRY_ID
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the answers allow.

    Attributes:
        least: the end that is shown, if none of those without a sure answer says more.
        most: the end that may have been shown to somebody; None if that may be any.
    """

    least: int
    most: int | None

    @property
    def is_known(self) -> bool:
        return self.least == self.most


def witnesses(quorum: Quorum) -> int:
    """How many members of a write set must say a LAC before it is shown.

    At most Qa, so that a LAC in an acknowledged record is; and about half of them, so that most
    bookies may be away, both those that say it and those that do not.
    """
    return min(quorum.ack_quorum_size, (quorum.write_quorum_size + 1) // 2)


def confirmed(
    quorum: Quorum, said: Mapping[int, int], sure: Collection[int], floor: int = INVALID_ENTRY_ID
) -> Confirmed:
    """How far it may be read.

    Args:
        said: the highest LAC by ensemble index, of all that answered; -1 of one that has none.
        sure: the indexes of those that surely had no more.
        floor: the last entry that is known to be confirmed by other means.
    """
    least = _shown(quorum, said)
    highest = max(said.values(), default=floor)
    above = max(highest, floor) + 1  # stands for whatever is not known
    supposed = {
        index: said[index] if index in sure else above for index in range(quorum.ensemble_size)
    }
    most = max(floor, _shown(quorum, supposed))
    return Confirmed(max(floor, least), None if most == above else most)


def _shown(quorum: Quorum, said: Mapping[int, int]) -> int:
    """The highest LAC that enough members of one write set reach."""
    place = witnesses(quorum) - 1
    return max(
        sorted((said.get(index, INVALID_ENTRY_ID) for index in write_set), reverse=True)[place]
        for write_set in quorum.write_sets()
    )
