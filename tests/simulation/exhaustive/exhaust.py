"""All schedules of a small scope, each of them run.

Behind each end that was not seen before a last recovery must close the ledger, and a reader must
read all of it. For scopes with too many schedules there is ``tests.simulation.states``.
"""

from dataclasses import dataclass

from tests.simulation.exhaustive.explorer import Explorer
from tests.simulation.exhaustive.run import FATE_TASK, Exhausted, Scope, ScopeRun
from tests.simulation.scheduler import Violation


@dataclass
class Exhaustion(Exhausted):
    """What the schedules of a scope showed.

    Attributes:
        redundant: given up when it came out that they are the same as others.
    """

    schedules: int = 0
    redundant: int = 0

    def __str__(self) -> str:
        how = "all" if self.is_complete else "not all"
        return (
            f"{self.scope}: {self.schedules} schedules ({how}; {self.redundant} more given up as "
            f"the same), {self.operations} operations, {self.ends} different ends"
        )


def exhaust(scope: Scope, limit: int | None = None, *, uses_symmetry: bool = True) -> Exhaustion:
    """Run every schedule of ``scope``, or the first ``limit``; ends at the first violation.

    Args:
        uses_symmetry: one stands for all that are the same but for names (``symmetry``).
    """
    result = Exhaustion(scope)
    seen: set[bytes] = set()

    def execute(explorer: Explorer) -> None:
        run = ScopeRun(scope, explorer, uses_symmetry=uses_symmetry)
        try:
            with run.in_place():
                run.play()
                end = run.end()
                result.shapes.add(run.shape())
                if end not in seen:
                    seen.add(end)
                    run.finish()
        except Violation as violation:
            result.failed = run.outcome(str(violation))
            raise
        finally:
            result.operations += run.storage.operations

    explorer = Explorer(execute, frozenset({FATE_TASK}))
    try:
        result.is_complete = explorer.run(limit)
    except Violation:
        result.is_complete = False
    result.schedules, result.redundant, result.ends = (
        explorer.schedules,
        explorer.redundant,
        len(seen),
    )
    return result
