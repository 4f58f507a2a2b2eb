"""What a log is created with."""

from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.settings import DigestSpec


@dataclass(frozen=True, slots=True)
class LogSettings:
    """What a log is created with: it never changes, and all that is written to it has the same.

    Attributes:
        guarantees_write_quorum: whether its ledgers do.
        is_unbounded: whether the ledger at its end goes on in later terms: each writer takes it
            over from the one before, and none is put behind it.
    """

    quorum: Quorum
    digest: DigestSpec = field(default_factory=DigestSpec)
    guarantees_write_quorum: bool = False
    is_unbounded: bool = False

    def require_unbounded(self, log_name: str, wanted: bool | None) -> None:
        """For a writer who says that the log is unbounded, or is not; None for either.

        Raises:
            InvalidRequestError: it was created the other way.
        """
        if wanted is None or wanted == self.is_unbounded:
            return
        kinds = ("a row of ledgers", "one ledger that goes on")
        raise InvalidRequestError(
            f"log {log_name!r} was created as {kinds[self.is_unbounded]}, not as {kinds[wanted]}",
            hint="leave unbounded out, or write to a new log, which is created the way it says",
        )
