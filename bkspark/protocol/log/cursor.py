"""A cursor: a named, durable position in a log, for readers that are not streaming queries.

Rule 1. A position is the next offset to read. It belongs to one generation of the log: after an
overwrite, or when the log was deleted and made again, the same number means another entry.

Rule 2. It goes forward only, never past the log's end, and only from the position that its mover
has seen (by compare-and-set): of two readers that share it by mistake, one is told.

Rule 3. Truncation by hand, or by a retention that was told not to respect cursors, may pass one; so
may any truncation whose cursor's maker died before the log's record showed that there is a cursor.
It stays where it is: reading from there is an error, and its reader decides to advance it.
"""

from dataclasses import dataclass, replace

from bkspark.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """One version of a cursor's record.

    Attributes:
        offset: the next one to read, >= 0.
        is_deleted: there is no such cursor; the record stays, because names are not used again.
    """

    log_name: str
    name: str
    generation: int
    offset: int
    is_deleted: bool = False

    def __post_init__(self) -> None:
        if self.offset < 0:
            raise InvalidRequestError(f"cursor {self.name}: its offset is below 0")

    def advanced(self, offset: int, end_offset: int) -> "CursorRecord":
        """Return the cursor at ``offset``.

        Args:
            end_offset: of the log, behind the last entry that may be read.

        Raises:
            InvalidRequestError: that is backwards, or past the log's end.
        """
        if not self.offset <= offset <= end_offset:
            back = "a cursor goes forward; make another one to read again"
            past = f"what is not there yet cannot be done: advance it to {end_offset} at most"
            raise InvalidRequestError(
                f"cursor {self.name} of log {self.log_name} is at offset {self.offset} and the log "
                f"ends at {end_offset}, so it cannot go to {offset}",
                hint=back if offset < self.offset else past,
            )
        return replace(self, offset=offset)

    def problem(self, generation: int, first_offset: int) -> str:
        """Why the log, as it is now, cannot be read from here, in one line; empty if it can.

        Args:
            generation, first_offset: of the log.
        """
        if generation != self.generation:
            return f"of generation {self.generation}, and the log is at {generation}: delete it"
        if self.offset < first_offset:
            return (
                f"offsets {self.offset} to {first_offset - 1} are truncated: "
                f"move it to {first_offset}"
            )
        return ""

    def deleted(self) -> "CursorRecord":
        """Return the record of a cursor that is no more."""
        return replace(self, is_deleted=True)
