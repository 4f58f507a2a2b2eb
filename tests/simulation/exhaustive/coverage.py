"""What looking at all states of a scope showed."""

from dataclasses import dataclass

from tests.simulation.exhaustive.memory import odds
from tests.simulation.exhaustive.run import Exhausted


@dataclass
class Coverage(Exhausted):
    """What the states of a scope showed.

    Attributes:
        prints: fingerprints that the states are told apart by; 0 if by all that is in them.
        steps: from state to state.
        runs: schedules that were run to learn from, and to every end.
    """

    states: int = 0
    prints: int = 0
    steps: int = 0
    runs: int = 0

    def __str__(self) -> str:
        how = "all" if self.is_complete else "not all"
        told = (
            f"{self.scope}: {self.states} states ({how}), {self.steps} steps between them, learnt "
            f"from {self.runs} schedules with {self.operations} operations, "
            f"{self.ends} different ends"
        )
        if self.prints:
            told += f"; one may be taken for another by a chance of {odds(self.prints):.1g}"
        return told
