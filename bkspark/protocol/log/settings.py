"""What a log is created with."""

from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.settings import DigestSpec


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What a log is created with: all that is written to it has the same, and it never changes.

    Attributes:
        quorum: the sizes wanted of its ledgers.
        guarantees_write_quorum: whether its ledgers do.
        is_unbounded: whether the ledger at its end goes on in later terms: each writer takes it
            over from the one before, and none is put behind it. This alone can be ``converted``;
            what was written before stays as it is.
        is_strict: whether no ledger of it may be made on fewer bookies than wanted.
    """

    quorum: Quorum
    digest: DigestSpec = field(default_factory=DigestSpec)
    guarantees_write_quorum: bool = False
    is_unbounded: bool = False
    is_strict: bool = False

    @classmethod
    def of(cls, ledger: LedgerMetadata, *, is_unbounded: bool) -> "LogSettings":
        """Those of a log that is made for ``ledger``, its first."""
        given = ledger.settings
        like = (sizes.wanted(ledger), given.digest, given.guarantees_write_quorum)
        return cls(*like, is_unbounded, given.is_strict)

    def require_unbounded(self, log_name: str, wanted: bool | None) -> None:
        """For a writer who says that the log is unbounded, or is not; None for either.

        Raises:
            InvalidRequestError: it is the other way.
        """
        if wanted is None or wanted == self.is_unbounded:
            return
        kinds = ("a row of ledgers", "one ledger that goes on")
        raise InvalidRequestError(
            f"log {log_name!r} is {kinds[self.is_unbounded]}, not {kinds[wanted]}",
            hint=f"leave unbounded out, or first: {conversion(log_name, is_unbounded=wanted)}",
        )

    def strictness(self, log_name: str, wanted: bool | None) -> bool:
        """Whether a write to the log, which says ``wanted`` or nothing, makes no smaller ledger.

        Raises:
            InvalidRequestError: the log is strict, and the write is not to be.
        """
        if self.is_strict and wanted is False:
            raise InvalidRequestError(
                f"log {log_name!r} was created strict: no write to it makes a smaller ledger",
                hint="leave strict out",
            )
        return self.is_strict or bool(wanted)

    def way_to_use(self, log_name: str, wanted: "LogSettings") -> str:
        """A hint for who was to create a log of other settings under this log's name."""
        hint = "open it, or choose another name"
        if wanted.is_unbounded and not self.is_unbounded:
            hint += f"; unbounded it is made by {conversion(log_name, is_unbounded=True)}"
        return hint


def conversion(log_name: str, *, is_unbounded: bool) -> str:
    """The command that makes the log so."""
    return f"bkspark log convert {log_name} {'--unbounded' if is_unbounded else '--chained'}"
