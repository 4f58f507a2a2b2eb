"""The settings of a new log."""

from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.settings import DigestSpec


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The settings a log is created with, for all its ledgers; only ``is_unbounded`` can change.

    Attributes:
        quorum: the sizes wanted for the log's ledgers.
        guarantees_write_quorum: whether the log's ledgers guarantee their write quorum.
        is_unbounded: whether the log's last ledger continues in later terms: each writer takes the
            ledger over from the previous writer, and adds no further ledger. Only this setting can
            be ``converted``; earlier ledgers stay unchanged.
        is_strict: whether no ledger of the log may be made on fewer bookies than wanted.
    """

    quorum: Quorum
    digest: DigestSpec = field(default_factory=DigestSpec)
    guarantees_write_quorum: bool = False
    is_unbounded: bool = False
    is_strict: bool = False

    @classmethod
    def of(cls, ledger: LedgerMetadata, *, is_unbounded: bool) -> "LogSettings":
        """Return the settings of a log made for ``ledger``, its first ledger."""
        given = ledger.settings
        like = (sizes.wanted(ledger), given.digest, given.guarantees_write_quorum)
        return cls(*like, is_unbounded, given.is_strict)

    def require_unbounded(self, log_name: str, wanted: bool | None) -> None:
        """Check that the log is unbounded, or chained, as the writer ``wanted``; None for either.

        Raises:
            InvalidRequestError: the log is of the other kind.
        """
        if wanted is None or wanted == self.is_unbounded:
            return
        kinds = ("chained (a row of ledgers)", "unbounded (one ledger)")
        raise InvalidRequestError(
            f"log {log_name!r} is {kinds[self.is_unbounded]}, not {kinds[wanted]}",
            hint="leave unbounded out, or convert the log first: "
            f"{conversion(log_name, is_unbounded=wanted)}",
        )

    def strictness(self, log_name: str, wanted: bool | None) -> bool:
        """Whether a write that says ``wanted`` (or None) must make no smaller ledger.

        Raises:
            InvalidRequestError: the log is strict, and the write asked for the opposite.
        """
        if self.is_strict and wanted is False:
            raise InvalidRequestError(
                f"log {log_name!r} was created strict: no write to it makes a smaller ledger",
                hint="leave strict out",
            )
        return self.is_strict or bool(wanted)

    def way_to_use(self, log_name: str, wanted: "LogSettings") -> str:
        """Return a hint for a client that wanted a new log of this name with other settings."""
        hint = "open it, or choose another name"
        if wanted.is_unbounded and not self.is_unbounded:
            hint += f"; {conversion(log_name, is_unbounded=True)} makes it unbounded"
        return hint


def conversion(log_name: str, *, is_unbounded: bool) -> str:
    """Return the command that makes the log unbounded, or chained."""
    return f"bkspark log convert {log_name} {'--unbounded' if is_unbounded else '--chained'}"
