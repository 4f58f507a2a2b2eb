"""The position of a streaming query in a log, and where the query continues.

Rule 1. An offset has a meaning only within its generation: an overwritten log, or a log deleted and
made anew, counts from 0 again. So a position has both.

Rule 2. Ends are exclusive: a batch ``[start, end)`` has the same rows in every run, and the next
batch begins at ``end``.

Rule 3. A query never skips lost rows silently: the query gets an error or, on request, a reported
skip.

Rule 4. A position has a meaning only within its cluster: another cluster's log of the same name has
other rows at the same offsets.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from bkspark.errors import InvalidRequestError, NoSuchEntryError


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """The first unread offset, in its generation."""

    generation: int
    offset: int


@dataclass(frozen=True, slots=True)
class Extent:
    """The range of a log that can be read now.

    Attributes:
        has_open_end: more entries may be confirmed, because not every bookie of the tail answers.
    """

    log_name: str
    generation: int
    first_offset: int
    end_offset: int
    has_open_end: bool = False


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where to continue.

    Attributes:
        loss: the lost rows between the old position and this position, in one line; mostly empty.
        skipped: number of lost entries; None if unknown, because their generation is gone.
    """

    begin: Position
    loss: str = ""
    skipped: int | None = 0


def begin_at(offset: int, extent: Extent) -> Position:
    """Return the position of ``offset``, requested by a new query.

    Raises:
        NoSuchEntryError: the offset is after the log's end.
    """
    if offset > extent.end_offset:
        raise NoSuchEntryError(
            f"log {extent.log_name!r} ends at offset {extent.end_offset}, and a query cannot "
            f"start after that, at {offset}",
            hint="set startingOffsets to latest",
        )
    return Position(extent.generation, offset)


def resume(start: Position, extent: Extent, *, fails_on_loss: bool) -> Resumption:
    """Return where to continue from ``start`` in the log as of now.

    Raises:
        NoSuchEntryError: rows after ``start`` are lost, and this query treats loss as an error.
        InvalidRequestError: ``start`` is not a position of this log.
    """
    _require_reached(start, extent)
    first = Position(extent.generation, extent.first_offset)
    if start >= first:
        return Resumption(start)
    if start.generation < extent.generation:
        loss = (
            f"log {extent.log_name!r} was overwritten, or deleted and created again: the "
            f"query is at offset {start.offset} of generation {start.generation}, and the log "
            f"has only generation {extent.generation}"
        )
        hint = "the first of its new rows"
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
            hint=f"begin with a new checkpoint, or set failOnDataLoss=false to continue at {hint}",
        )
    return Resumption(first, loss, skipped)


def batch_end(begin: int, end: int, lost: Iterable[tuple[int, int]]) -> int:
    """Return the end of a batch ``[begin, end)`` that has no lost offsets, or nothing else.

    So a query reads all entries before a lost place, and passes the whole place in one batch.

    Args:
        lost: ranges of lost offsets within the batch, in order.
    """
    for first, past in lost:
        return first if begin < first else past
    return end


def require_order(start: Position, end: Position) -> None:
    """Check that a batch does not end before its start.

    Raises:
        InvalidRequestError: the batch ends before its start.
    """
    if end < start:
        raise InvalidRequestError(
            f"a batch begins at offset {start.offset} of generation {start.generation} and ends "
            f"before it, at {end.offset} of generation {end.generation}",
            hint="the checkpoint is damaged; begin with a new one",
        )


def require_cluster(found: str, cluster_id: str, log_name: str) -> None:
    """Check that a checkpoint's position is of the cluster that is read.

    Args:
        found: the cluster's id in the checkpoint; empty if the checkpoint does not have it.

    Raises:
        InvalidRequestError: the position is of another cluster.
    """
    if found not in ("", cluster_id):
        raise InvalidRequestError(
            f"the checkpoint is of log {log_name!r} in cluster {found}, and the query reads from "
            f"cluster {cluster_id}",
            hint="begin with a new checkpoint to read this cluster, or give the query the metadata "
            "URI of the other one",
        )


def _require_reached(position: Position, extent: Extent) -> None:
    end = Position(extent.generation, extent.end_offset)
    is_perhaps_unseen = extent.has_open_end and position.generation == extent.generation
    if position > end and not is_perhaps_unseen:
        raise InvalidRequestError(
            f"log {extent.log_name!r} ends at offset {end.offset} of generation "
            f"{end.generation}, and the query is past that, at {position.offset} of "
            f"generation {position.generation}",
            hint="the checkpoint belongs to another log, or an old copy of the cluster's "
            "metadata was restored; begin with a new checkpoint",
        )
