"""What a committer is asked for, besides adding entries, and what it notices by itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing was sent for as long as a writer is silent about its LAC."""


@dataclass(frozen=True, slots=True)
class Force:
    """Write what was submitted before, also what a deferred sync holds back."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End after what was submitted before."""
