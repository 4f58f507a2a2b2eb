"""When a fragment was begun, and how much of its ledger lies in front of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beginning:
    """Of a fragment behind the first, for whoever decides what is kept; nothing else goes by it.

    Attributes:
        began_ms: milliseconds since 1970, by the clock of who began it.
        length_bytes: sum of the payload bytes of all entries in front of it.
    """

    began_ms: int
    length_bytes: int

    def __post_init__(self) -> None:
        if min(self.began_ms, self.length_bytes) < 0:
            raise ValueError("no fragment begins before 1970, or behind less than nothing")

    @classmethod
    def known(cls, began_ms: int | None, length_bytes: int | None) -> "Beginning | None":
        """What is known as a whole, else nothing."""
        if began_ms is None or length_bytes is None:
            return None
        return cls(began_ms, length_bytes)
