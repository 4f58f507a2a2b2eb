"""A cursor: a named, durable position in a log, for readers other than streaming queries.

Rule 1. A position is the next offset to read, in one generation of the log: after an overwrite, or
after a deletion and new creation, the same number means another entry.

Rule 2. A cursor moves forward only, never past the log's end, and only from the position seen by
its reader (by compare-and-set). If two readers share a cursor by mistake, one of them gets an
error.

Rule 3. A manual truncation, or a retention that ignores cursors, may pass a cursor. So may any
truncation if the client that made the cursor died before the log's record showed a cursor. The
cursor stays unchanged: reading from there is an error, and its reader decides to advance the
cursor.
"""

from dataclasses import dataclass, replace

from bkspark.errors import InvalidRequestError


@dataclass(frozen=True, slots=True)
class CursorRecord:
    """One version of a cursor's record.

    Attributes:
        offset: the next offset to read, >= 0.
        is_deleted: there is no such cursor; the record stays, because names are not reused.
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
            end_offset: the log's end, exclusive.

        Raises:
            InvalidRequestError: ``offset`` is backwards, or past the log's end.
        """
        if not self.offset <= offset <= end_offset:
            back = "a cursor moves forward only; make another cursor to read again"
            past = f"advance it to offset {end_offset} at most"
            raise InvalidRequestError(
                f"cursor {self.name} of log {self.log_name} is at offset {self.offset} and the log "
                f"ends at {end_offset}, so it cannot go to {offset}",
                hint=back if offset < self.offset else past,
            )
        return replace(self, offset=offset)

    def problem(self, generation: int, first_offset: int) -> str:
        """Explain in one line why the log cannot be read from here; empty if it can.

        Args:
            generation, first_offset: of the log now.
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
        """Return the record of the deleted cursor."""
        return replace(self, is_deleted=True)
