"""One rule of the source, broken."""

from dataclasses import dataclass

from .change import Change, Text


@dataclass(frozen=True, init=False)
class Mutant:
    """One rule broken.

    Attributes:
        name: says what the mutant does wrong.
        place: where it stands, by a name (``places``).
        changes: how the code changes there, in this order.
        killers: node ids of tests that all must fail.
    """

    name: str
    place: str
    changes: tuple[Change, ...]
    killers: tuple[str, ...]

    def __init__(self, name: str, place: str, *changes_and_killers: object) -> None:
        """Make one of ``name, place, change, killers``.

        Two texts in the place of ``change`` are the old text and the new one: a change for code
        that has no pattern.
        """
        match changes_and_killers:
            case (str() as old, str() as new, tuple() as killers):
                changes: tuple[Change, ...] = (Text(old, new),)
            case (tuple() as changes, tuple() as killers):
                pass
            case (Change() as change, tuple() as killers):
                changes = (change,)
            case _:
                raise TypeError(f"{name!r} needs a change and killers")
        values = {"name": name, "place": place, "changes": changes, "killers": killers}
        for field, value in values.items():
            object.__setattr__(self, field, value)
