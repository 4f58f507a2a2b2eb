"""When a fragment began, and how many bytes of its ledger come before."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beginning:
    """When and where a later fragment began; only retention uses this.

    Attributes:
        began_ms: milliseconds since 1970, by the clock of the client that began the fragment.
        length_bytes: sum of the payload bytes of all entries before the fragment.
    """

    began_ms: int
    length_bytes: int

    def __post_init__(self) -> None:
        if min(self.began_ms, self.length_bytes) < 0:
            raise ValueError("no fragment begins before 1970, or behind less than nothing")

    @classmethod
    def known(cls, began_ms: int | None, length_bytes: int | None) -> "Beginning | None":
        """Return the beginning if both values are known, else None."""
        if began_ms is None or length_bytes is None:
            return None
        return cls(began_ms, length_bytes)
