"""Advisory records: losing a note loses no data, so a failing note stops no work.

Rule. An unreadable note counts as absent, and the next note replaces it. Data for which that would
be a loss belongs in a record, where unknown is never absent (``records``).
"""

import logging
from typing import TypeVar

from bkspark.cluster.records import UPDATE_TRIES_MAX, Records, Versioned, back_off
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    MetadataVersionError,
    NothingSentError,
    OutcomeUnknownError,
)

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Notes(Records[T]):
    """Notes of one kind."""

    def get(self, name: str) -> Versioned[T] | None:
        """The newest note; None if there is none, or no readable note."""
        try:
            return super().get(name)
        except (CorruptDataError, NothingSentError, OutcomeUnknownError) as error:
            logger.warning("note %s cannot be read: %s", self.key(name), error.args[0])
            return None

    def note(self, name: str, value: T) -> None:
        """Store ``value`` in place of any earlier note.

        Raises:
            MetadataVersionError: other clients kept changing the note.
            OutcomeUnknownError: the note may not have been stored.
        """
        for attempt in range(UPDATE_TRIES_MAX):
            try:
                self.write_over(name, value)
                return
            except MetadataVersionError:
                back_off(attempt)
        raise MetadataVersionError(
            f"other clients changed {self.key(name)} in each attempt to note something there"
        )

    def try_to_note(self, name: str, value: T) -> str:
        """Note ``value``; return why it may not be stored, in one line, or an empty text."""
        try:
            self.note(name, value)
        except BookKeeperError as error:
            logger.warning("%s could not be stored: %s", self.key(name), error.args[0])
            return str(error.args[0])
        return ""
