"""What is known of the contents of a log, and of which generation a reader's rows are."""

from dataclasses import dataclass, field

from bkspark.protocol.log.record import LogRecord


def value_of(client: str, number: int) -> bytes:
    """What ``client`` submits as its ``number``-th value."""
    return b"%s %d" % (client.encode(), number)


@dataclass
class Contents:
    """What one generation of the log holds, by offset.

    Attributes:
        told: what somebody was told is there: writers by acks, readers by what they read.
        placed: values of closed ledgers, those that are truncated as well.
        at: value -> offset of ``placed``.
        last: client -> the highest number of its values in ``placed``.
        seen: the offset behind ``placed``.
        gone: values of earlier generations that must not come again.
        ever: all values of earlier generations.
        shown: the offset behind all that a reader was given.
    """

    told: dict[int, bytes] = field(default_factory=dict)
    placed: dict[int, bytes] = field(default_factory=dict)
    at: dict[bytes, int] = field(default_factory=dict)
    last: dict[bytes, int] = field(default_factory=dict)
    seen: int = 0
    gone: frozenset[bytes] = frozenset()
    ever: frozenset[bytes] = frozenset()
    shown: int = 0

    @property
    def had(self) -> frozenset[bytes]:
        """All values that are, or were, surely in this generation."""
        return frozenset(self.at) | set(self.told.values())


@dataclass
class Reading:
    """What one reader is given: all of it is of one generation.

    Attributes:
        first: the log's generation when the reader had not looked yet.
        least: where the log began then.
        generations: those that it may be of; None while nothing was read.
    """

    first: int
    least: int
    generations: set[int] | None = None

    @classmethod
    def beginning(cls, record: LogRecord) -> "Reading":
        """By somebody who is going to look at the log, which is at ``record``."""
        return cls(record.generation, record.first_offset)

    @classmethod
    def of(cls, generation: int) -> "Reading":
        """By somebody who holds on to one generation."""
        return cls(generation, 0, {generation})
