"""Records for manners and for people: nothing is lost with one, so none holds anybody up.

Rule. What cannot be read of a note is as never noted, and written over by who notes next. What
would be lost by that is no note, but a record: unknown is never absent (``records``).
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
    """One kind of note."""

    def get(self, name: str) -> Versioned[T] | None:
        """The newest one; None if there is none, or none that can be read."""
        try:
            return super().get(name)
        except (CorruptDataError, NothingSentError, OutcomeUnknownError) as error:
            logger.warning("note %s cannot be read: %s", self.key(name), error.args[0])
            return None

    def note(self, name: str, value: T) -> None:
        """Store ``value``, whatever was there.

        Raises:
            MetadataVersionError: others did the same all the time.
            OutcomeUnknownError: it may not have been stored.
        """
        for attempt in range(UPDATE_TRIES_MAX):
            try:
                self.write_over(name, value)
                return
            except MetadataVersionError:
                back_off(attempt)
        raise MetadataVersionError(f"{self.key(name)} kept changing while it was noted")

    def try_to_note(self, name: str, value: T) -> str:
        """As ``note``; why it was not stored for sure, in one line, or nothing."""
        try:
            self.note(name, value)
        except BookKeeperError as error:
            logger.warning("%s was not noted: %s", self.key(name), error.args[0])
            return str(error.args[0])
        return ""
