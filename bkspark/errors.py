"""Every error raised on purpose, told apart by what the caller does next.

    BookKeeperError                      one base for all of them
    ├── InvalidRequestError (ValueError)   fix the call: quorum sizes, option, name, URI, schema
    ├── NoSuchLedgerError (LookupError)    no such ledger or log
    ├── NoSuchEntryError (LookupError)     the entry does not exist, or is past the end
    ├── LedgerExistsError                  choose another id or name
    ├── LedgerClosedError                  open a new ledger
    ├── NotEnoughBookiesError              add bookies or wait; nothing was acknowledged
    ├── BookieUnavailableError             this bookie's answer is UNKNOWN, never "absent"
    ├── MetadataVersionError               compare-and-set lost; read again and retry
    ├── UnauthorizedError                  wrong or missing ledger password
    ├── OutcomeUnknownError                it may or may not have happened; recover, then decide
    │   ├── NothingSentError                 it did not happen: this process could not even ask
    │   └── LedgerFencedError              another client took over
    │       └── InvalidTermError             and it is known in which term
    └── CorruptDataError                   digest or format mismatch; names the file

A message says what happened, to which ids; ``hint`` says what to do next. Both survive pickling,
because Spark carries errors from executors to the driver.
"""

from typing import Self


class BookKeeperError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: one line that says what happened and to what.
        hint: what the caller can do next; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def reworded(self, message: str, *, hint: str) -> Self:
        """The same error in other words; what else it says stays."""
        told = type(self)(message)
        vars(told).update(vars(self), hint=hint)
        return told

    def __str__(self) -> str:
        message = str(self.args[0]) if self.args else ""
        return f"{message}; {self.hint}" if self.hint else message


class InvalidRequestError(BookKeeperError, ValueError):
    """The call itself is wrong; nothing was written."""


class NoSuchLedgerError(BookKeeperError, LookupError):
    """The ledger or log does not exist or is being deleted."""


class NoSuchEntryError(BookKeeperError, LookupError):
    """The entry is beyond the last readable one, or was truncated."""


class LedgerExistsError(BookKeeperError):
    """The ledger id or log name is taken by somebody else."""


class LedgerClosedError(BookKeeperError):
    """The ledger is sealed; open a new one."""


class NotEnoughBookiesError(BookKeeperError):
    """Too few usable bookies for the quorum; nothing was acknowledged."""


class BookieUnavailableError(BookKeeperError):
    """A bookie cannot be reached, is not the one expected, or gave no sure answer."""


class MetadataVersionError(BookKeeperError):
    """Somebody else changed the record first; read it again."""


class UnauthorizedError(BookKeeperError):
    """The ledger password is wrong or missing."""


class OutcomeUnknownError(BookKeeperError):
    """The request may or may not have taken effect; only recovery or a read-back decides."""


class NothingSentError(OutcomeUnknownError):
    """The storage was not asked: no permission, no file descriptor left. Nothing was changed.

    What is stored stays as unknown as after any other failure, hence the base.
    """


class LedgerFencedError(OutcomeUnknownError):
    """Another client took over the ledger; recovery decides about entries without an ack."""

    @staticmethod
    def by(message: str, *, hint: str, term: int, newer_term: int) -> "LedgerFencedError":
        """An ``InvalidTermError`` if ``newer_term`` is later than that of the writer, from 1 on."""
        if 1 <= term < newer_term:
            return InvalidTermError(message, hint=hint, term=term, newer_term=newer_term)
        return LedgerFencedError(message, hint=hint)


class InvalidTermError(LedgerFencedError):
    """A later term has begun; its writer stops, and goes on only as a new one in a term of its own.

    Attributes:
        term: of the writer that was overtaken.
        newer_term: what it was overtaken by. A bookie says only that the next term has begun: then
            it is that one, or one behind it.
    """

    def __init__(self, message: str, *, hint: str = "", term: int = 0, newer_term: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.term = term
        self.newer_term = newer_term


class CorruptDataError(BookKeeperError):
    """Stored bytes fail their digest or format check; they were not used."""


USERS_MISTAKES = (InvalidRequestError, NoSuchLedgerError, NoSuchEntryError, UnauthorizedError)
"""What a call has to be changed for: exit status 2 of commands and jobs; other errors are 1."""
