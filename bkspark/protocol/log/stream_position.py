"""Where a streaming query stands in a log, and how it goes on from there.

Rule 1. An offset means something only within its generation: an overwritten log, or one that was
deleted and made anew, counts from 0 again. So a position is both.

Rule 2. Offsets end exclusively: a batch ``[start, end)`` has the same rows whenever it is run, and
the next one begins at ``end``.

Rule 3. Rows that are gone are never stepped over in silence: it is an error, or, if the query asked
for it, a skip that is reported.
"""

from dataclasses import dataclass

from bkspark.errors import InvalidRequestError, NoSuchEntryError


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The first offset that was not read yet, in its generation."""

    generation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Extent:
    """What of a log can be read now.

    Attributes:
        has_open_end: more may be confirmed than is seen: not every bookie of the tail answers.
    """

    log_name: str
    generation: int
    first_offset: int
    end_offset: int
    has_open_end: bool = False


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where to go on.

    Attributes:
        loss: what is gone between the old position and this one, in one line; mostly empty.
        skipped: how many entries are gone; None if nobody knows, because their log is gone too.
    """

    begin: Position
    loss: str = ""
    skipped: int | None = 0


def begin_at(offset: int, extent: Extent) -> Position:
    """The position of ``offset``, which a new query asks for.

    Raises:
        NoSuchEntryError: it is behind the log's end.
    """
    if offset > extent.end_offset:
        raise NoSuchEntryError(
            f"log {extent.log_name!r} ends at offset {extent.end_offset}, and a query cannot start "
            f"behind it, at {offset}",
            hint="set startingOffsets to latest",
        )
    return Position(extent.generation, offset)


def resume(start: Position, extent: Extent, *, fails_on_loss: bool) -> Resumption:
    """Go on from ``start`` in the log as it is now.

    Raises:
        NoSuchEntryError: rows behind ``start`` are gone, and that is an error for this query.
        InvalidRequestError: ``start`` is not a position of this log.
    """
    _require_reached(start, extent)
    first = Position(extent.generation, extent.first_offset)
    if start >= first:
        return Resumption(start)
    if start.generation < extent.generation:
        loss = (
            f"log {extent.log_name!r} was overwritten, or deleted and made anew: the query is at "
            f"offset {start.offset} of generation {start.generation}, and there is only "
            f"generation {extent.generation}"
        )
        hint = "its new rows, from their start on"
        skipped = None
    else:
        loss = (
            f"log {extent.log_name!r} is truncated below offset {extent.first_offset}, and the "
            f"query is at {start.offset}"
        )
        hint = f"offset {extent.first_offset}"
        skipped = extent.first_offset - start.offset
    if fails_on_loss:
        raise NoSuchEntryError(
            loss,
            hint=f"begin with a new checkpoint, or set failOnDataLoss=false to go on at {hint}",
        )
    return Resumption(first, loss, skipped)


def require_order(start: Position, end: Position) -> None:
    """Check that a batch does not end before its start.

    Raises:
        InvalidRequestError: it does.
    """
    if end < start:
        raise InvalidRequestError(
            f"a batch begins at offset {start.offset} of generation {start.generation} and ends "
            f"before it, at {end.offset} of generation {end.generation}",
            hint="the checkpoint is damaged; begin with a new one",
        )


def _require_reached(position: Position, extent: Extent) -> None:
    end = Position(extent.generation, extent.end_offset)
    is_perhaps_unseen = extent.has_open_end and position.generation == extent.generation
    if position > end and not is_perhaps_unseen:
        raise InvalidRequestError(
            f"log {extent.log_name!r} ends at offset {end.offset} of generation {end.generation}, "
            f"and the query is behind it, at {position.offset} of generation "
            f"{position.generation}",
            hint="the checkpoint is of another log, or the cluster's metadata went back; begin "
            "with a new checkpoint",
        )
