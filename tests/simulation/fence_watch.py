"""Whether recoveries close on what they saw behind their fences (R16).

Rule: where a process was told that a fence could not be made, it may look all the same: what the
bookie lacks then is no absence, and whether it was taken for one shows by what is lost.
"""

from dataclasses import dataclass, field
from re import Match

from bkspark.protocol.ledger.metadata import LedgerMetadata
from tests.simulation.damage import NAME
from tests.simulation.scheduler import Violation

Fence = tuple[str, str, int, int]
"""Of a process on a bookie: a ledger's id, and the term that the marker names."""


@dataclass
class FenceWatch:
    """Who has fenced which bookie, and looked at it, at which step first."""

    _fenced: dict[Fence, int] = field(default_factory=dict)
    _refused: set[Fence] = field(default_factory=set)
    _looked: dict[tuple[str, int, int], dict[str, tuple[int, Fence]]] = field(default_factory=dict)

    def made(self, step: int, process: str, bookie_id: str, name: str) -> None:
        """``process`` has made ``name``, or found it in place."""
        fence = _fence(process, bookie_id, NAME.fullmatch(name))
        if fence is not None:
            self._fenced.setdefault(fence, step)
            self._refused.discard(fence)

    def failed(self, process: str, bookie_id: str, name: str) -> None:
        """``process`` was told that it could not make ``name``, whatever became of it."""
        fence = _fence(process, bookie_id, NAME.fullmatch(name))
        if fence is not None:
            self._refused.add(fence)

    def looked(self, step: int, process: str, bookie_id: str, ledger: LedgerMetadata) -> None:
        """``process`` has looked what there is of the ledger."""
        fence = (process, bookie_id, ledger.ledger_id, ledger.last_fragment.term + 1)
        if fence not in self._refused:
            seen = self._looked.setdefault((process, ledger.ledger_id, ledger.term), {})
            seen.setdefault(bookie_id, (step, fence))

    def require(self, process: str, ledger_id: int, term: int) -> None:
        """Every bookie that ``process`` looked at in ``term`` had been fenced by it by then."""
        for bookie_id, (step, fence) in self._looked.get((process, ledger_id, term), {}).items():
            if self._fenced.get(fence, step) >= step:
                raise Violation(f"{process} closes on what {bookie_id} showed unfenced (R16)")


def _fence(process: str, bookie_id: str, match: Match[str] | None) -> Fence | None:
    """The fence that ``NAME`` has matched; None if it is something else."""
    if match is None or match[2] != "terms" or "-" in match[3]:
        return None
    return process, bookie_id, int(match[1], 16), int(match[3], 16)
