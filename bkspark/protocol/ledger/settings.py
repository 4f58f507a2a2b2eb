"""The settings of a new ledger besides its quorum."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class DigestSpec:
    """How a ledger's bytes are protected.

    Attributes:
        digest_type: "CRC32C" (accidents) or "MAC" (HMAC-SHA256, forgery too).
        salt: hex; the key is made from the password and the salt. Empty for CRC32C.
        check: hex, shows whether a password is the right one; empty for CRC32C.
    """

    digest_type: str = "CRC32C"
    salt: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class MadeSmaller:
    """The sizes of a ledger made on fewer bookies than wanted ("quorum", rule 4).

    Attributes:
        made: the sizes when made; the ledger's records name these for ever.
        wanted: the sizes wanted then.
    """

    made: Quorum
    wanted: Quorum

    def __post_init__(self) -> None:
        wanted, size = self.wanted, self.made.ensemble_size
        if size >= wanted.ensemble_size or self.made != wanted.on_fewer(size):
            raise InvalidRequestError("a smaller ledger keeps what it can of the sizes wanted")

    def may_be(self, now: Quorum, *, is_closed: bool) -> bool:
        """Whether the ledger may have the sizes ``now``.

        A ledger keeps the sizes it was made with, except after its close. A closed ledger may have
        got further members, up to the wanted write quorum. A striped ledger never gets any: its
        write quorum is already the wanted one.
        """
        made, size = self.made, now.ensemble_size
        if now == made:
            return True
        grown = Quorum(size, size, made.ack_quorum_size)
        is_between = made.ensemble_size < size <= self.wanted.write_quorum_size
        return is_closed and is_between and now == grown


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The settings a ledger was made with; they never change.

    Attributes:
        schema: Arrow schema of the entries as an IPC schema message; opaque here.
        custom_metadata: notes of the application that made the ledger.
        created_ms: when the ledger was made, for display only.
        guarantees_write_quorum: whether each entry is to have Qw copies ("metadata", rule 6).
        smaller: the sizes, if the ledger was made on fewer bookies than wanted; else None.
        is_strict: whether the application refused fewer bookies.
    """

    schema: bytes = b""
    digest: DigestSpec = DigestSpec()
    custom_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_ms: int = 0
    guarantees_write_quorum: bool = False
    smaller: MadeSmaller | None = None
    is_strict: bool = False
