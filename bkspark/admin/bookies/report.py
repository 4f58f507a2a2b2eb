"""What a call about one bookie says of itself."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Left:
    """Something that was not done, and why, in one line each."""

    what: str
    reason: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class BookieReport:
    """What was to be done with a bookie, what was done, and what is left.

    Attributes:
        plan: steps, in order; empty if nothing is to be done.
        done: those that were; none of a dry run.
    """

    verb: str
    bookie_id: str
    incarnation: str
    plan: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    @property
    def exit_status(self) -> int:
        return 1 if self.left else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "verb": self.verb,
            "bookie_id": self.bookie_id,
            "incarnation": self.incarnation,
            "plan": list(self.plan),
            "done": list(self.done),
            "left": [
                {"what": left.what, "reason": left.reason, "hint": left.hint} for left in self.left
            ],
        }
