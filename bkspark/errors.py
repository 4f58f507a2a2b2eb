"""Every error raised on purpose by bkspark. The class tells the caller's next action.

    BookKeeperError                      the common base
    ├── InvalidRequestError (ValueError)   fix the call: quorum sizes, option, name, URI, schema
    ├── NoSuchLedgerError (LookupError)    there is no such ledger or log
    ├── NoSuchEntryError (LookupError)     there is no such entry, or not yet
    ├── LedgerExistsError                  choose a new id or name
    ├── LedgerClosedError                  open a new writer or ledger
    ├── NotEnoughBookiesError              add bookies or wait; nothing was acknowledged
    ├── BookieUnavailableError             the bookie's data is UNKNOWN, never "absent"
    ├── MetadataVersionError               another client changed the record; read again
    ├── NotLeaderError                     another process leads; enter the election again
    ├── UnauthorizedError                  give the right ledger password
    ├── NothingSentError                   nothing was changed: the process could not ask
    ├── OutcomeUnknownError                the outcome is unknown; recover, then decide
    │   └── LedgerFencedError                another client took over
    │       └── InvalidTermError             another client took over, and its term is known
    ├── NoSuchTableError (LookupError)     there is no table at that place
    ├── TableUnavailableError              the table's rows are UNKNOWN, never "absent"; try again
    ├── UnsupportedTableError              the table needs a feature that this release cannot read
    ├── TableChangedError                  the table does not have the log's rows as they were
    └── CorruptDataError                   a digest or format is wrong; names the file

The message names the event and the ids. ``hint`` tells the next action. Both survive
pickling, because Spark carries errors from executors to the driver.
"""

from typing import Self


class BookKeeperError(Exception):
    """Base of all errors raised on purpose by bkspark.

    Args:
        message: one line with the event and its object.
        hint: the caller's next action; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def reworded(self, message: str, *, hint: str) -> Self:
        """The same error with a new message and hint. All other attributes stay."""
        told = type(self)(message)
        vars(told).update(vars(self), hint=hint)
        return told

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        return f"{message}; {self.hint}" if self.hint else message


class InvalidRequestError(BookKeeperError, ValueError):
    """The call itself is wrong. Nothing was written."""


class NoSuchLedgerError(BookKeeperError, LookupError):
    """The ledger or log does not exist, or is being deleted."""


class NoSuchEntryError(BookKeeperError, LookupError):
    """The entry is after the last readable entry, or was truncated."""


class LedgerExistsError(BookKeeperError):
    """The ledger id or log name is taken."""


class LedgerClosedError(BookKeeperError):
    """The writer, ledger or log takes no more entries. Open a new writer or ledger."""


class NotEnoughBookiesError(BookKeeperError):
    """Too few bookies can be used. Nothing was acknowledged."""


class BookieUnavailableError(BookKeeperError):
    """A bookie cannot be reached, is a different bookie, or gave no certain answer."""


class MetadataVersionError(BookKeeperError):
    """Another client changed the record first. Read the record again."""


class NotLeaderError(BookKeeperError):
    """This process does not lead the election. Nothing was changed."""


class UnauthorizedError(BookKeeperError):
    """The ledger password is wrong or missing."""


class NothingSentError(BookKeeperError):
    """This process could not ask the storage, so nothing was changed.

    The cause is a missing permission, a read-only mount, a full disk, or too many open files.
    """

    def in_doubt(self, what: str) -> "OutcomeUnknownError":
        """The error of ``what`` if an earlier request of the same call was sent."""
        reason = str(self.args[0]).removesuffix("; nothing was sent")
        told = OutcomeUnknownError(f"{what}: {reason}", hint=self.hint)
        told.__cause__ = self
        return told


class OutcomeUnknownError(BookKeeperError):
    """The request may or may not have taken effect. Recover or read to find out."""


class LedgerFencedError(OutcomeUnknownError):
    """Another client took over the ledger.

    A recovery decides which unacknowledged entries are in the ledger.
    """

    @staticmethod
    def by(message: str, *, hint: str, term: int, newer_term: int) -> "LedgerFencedError":
        """An ``InvalidTermError`` if ``newer_term`` is later than ``term`` (known, >= 1)."""
        if 1 <= term < newer_term:
            return InvalidTermError(message, hint=hint, term=term, newer_term=newer_term)
        return LedgerFencedError(message, hint=hint)


class InvalidTermError(LedgerFencedError):
    """Another client took over the ledger in a later term. Open a new writer to continue.

    Attributes:
        term: the term of the writer that was replaced.
        newer_term: the later term. A bookie shows only that the next term has begun. Then this is
            the next term, and the newest may be later still.
    """

    def __init__(self, message: str, *, hint: str = "", term: int = 0, newer_term: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.term = term
        self.newer_term = newer_term


class NoSuchTableError(BookKeeperError, LookupError):
    """There is no table at that place."""


class TableUnavailableError(BookKeeperError):
    """A table's storage gave no certain answer. Try again."""


class CommitsGoneError(TableUnavailableError):
    """The table no longer has commits of its log, which were cleaned up."""


class UnsupportedTableError(BookKeeperError):
    """A table needs a feature that this release cannot read."""


class TableChangedError(BookKeeperError):
    """A table does not have a log's rows as they were written to it.

    Attributes:
        missing: ranges ``(begin, end)`` of offsets that the table lacks.
        doubled: the first of the offsets that the table has more than once.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        missing: tuple[tuple[int, int], ...] = (),
        doubled: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message, hint=hint)
        self.missing = missing
        self.doubled = doubled


class CorruptDataError(BookKeeperError):
    """Stored bytes fail their digest or format check, and were not used."""


USERS_MISTAKES = (InvalidRequestError, NoSuchLedgerError, NoSuchEntryError, UnauthorizedError)
"""The user must change the call: exit status 2 of commands and jobs; other errors give 1."""
