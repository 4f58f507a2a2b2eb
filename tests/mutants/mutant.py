"""One rule of the source, broken."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One rule broken.

    Attributes:
        name: says what the mutant does wrong.
        place: where it stands, by a name (``places``).
        old: what says the rule, as it is written there; it occurs exactly once.
        new: what replaces it.
        killers: node ids of tests that all must fail.
    """

    name: str
    place: str
    old: str
    new: str
    killers: tuple[str, ...]
