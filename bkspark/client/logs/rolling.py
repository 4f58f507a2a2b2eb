"""When a log writer closes its ledger and goes on in a new one."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa

from bkspark.errors import InvalidRequestError

Entries: TypeAlias = "Sequence[bytes] | pa.Table"


@dataclass(frozen=True, slots=True)
class RollPolicy:
    """Limits of one ledger; None for no limit. Nothing depends on them but how ledgers are cut.

    Attributes:
        max_bytes, max_entries: added to the ledger.
        max_seconds: since the writer began it; looked at when something is added.

    Raises:
        InvalidRequestError: a limit is not positive.
    """

    max_bytes: int | None = None
    max_entries: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        limits = (self.max_bytes, self.max_entries, self.max_seconds)
        if any(limit is not None and limit <= 0 for limit in limits):
            raise InvalidRequestError(
                "a limit for rolling must be above 0", hint="None is no limit"
            )


NEVER = RollPolicy()


@dataclass(slots=True)
class Filling:
    """How full a ledger is, as far as a policy asks."""

    byte_count: int = 0
    entry_count: int = 0
    began: float = field(default_factory=time.monotonic)

    def add(self, entry_count: int, byte_count: int) -> None:
        self.entry_count += entry_count
        self.byte_count += byte_count

    def is_full(self, policy: RollPolicy) -> bool:
        return (
            (policy.max_bytes is not None and self.byte_count >= policy.max_bytes)
            or (policy.max_entries is not None and self.entry_count >= policy.max_entries)
            or (policy.max_seconds is not None and self._age() >= policy.max_seconds)
        )

    def _age(self) -> float:
        return time.monotonic() - self.began


def size_of(entries: Entries) -> int:
    """How many bytes ``entries`` count as."""
    if isinstance(entries, pa.Table):
        return int(entries.nbytes)
    return sum(len(value) for value in entries if isinstance(value, bytes))
