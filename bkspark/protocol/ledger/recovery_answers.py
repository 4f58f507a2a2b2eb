"""What a bookie answers to a recovery beside its tail: a record, a copy, or why it cannot tell."""

from dataclasses import dataclass

from bkspark.protocol.ledger.record import AddRecord, Piece


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a bookie gave no sure answer, in one line."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class Silence(Failure):
    """It gave none at all in all the time that it was waited for."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The newest record that a bookie shows up to some entry; None if it shows none.

    Attributes:
        problem: why there may be another one, in one line; empty if there surely is none.
    """

    record: AddRecord | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class WrittenBack:
    """Every group given is durable on this bookie, but for what is damaged there.

    Attributes:
        damaged: entry logs of which it has a damaged copy, each with the reason in one line.
    """

    group_count: int
    damaged: tuple[tuple[Piece, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """No holder of an entry log gives it any more, in one line; the target is not to blame."""

    reason: str


@dataclass(frozen=True, slots=True)
class Displaced:
    """What this recovery has decided does not hold any more, in one line: another took over."""

    reason: str
