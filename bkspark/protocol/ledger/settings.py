"""What a ledger is made with, beside its quorum."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import Quorum


@dataclass(frozen=True, slots=True)
class DigestSpec:
    """How a ledger's bytes are protected.

    Attributes:
        digest_type: "CRC32C" (accidents) or "MAC" (HMAC-SHA256, forgery too).
        salt: hex, with the password it gives the key; empty for CRC32C.
        check: hex, shows whether a password is the right one; empty for CRC32C.
    """

    digest_type: str = "CRC32C"
    salt: str = ""
    check: str = ""


@dataclass(frozen=True, slots=True)
class MadeSmaller:
    """A ledger that was made on fewer bookies than were wanted ("quorum", rule 4).

    Attributes:
        made: the sizes that it was made with; its records name these for ever.
        wanted: the sizes that it was to have.
    """

    made: Quorum
    wanted: Quorum

    def __post_init__(self) -> None:
        wanted, size = self.wanted, self.made.ensemble_size
        if size >= wanted.ensemble_size or self.made != wanted.on_fewer(size):
            raise InvalidRequestError("a smaller ledger keeps what it can of the sizes wanted")

    def may_be(self, now: Quorum, *, is_closed: bool) -> bool:
        """Whether the ledger may have the sizes ``now``.

        It has those that it was made with. A closed one may have got further members, up to the
        write quorum wanted. A striped one has none: its write quorum is the one wanted.
        """
        made, size = self.made, now.ensemble_size
        if now == made:
            return True
        grown = Quorum(size, size, made.ack_quorum_size)
        is_between = made.ensemble_size < size <= self.wanted.write_quorum_size
        return is_closed and is_between and now == grown


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """What a ledger was made with: it never changes.

    Attributes:
        schema: Arrow schema of the entries as an IPC schema message; opaque here.
        custom_metadata: what its maker notes of it.
        created_ms: when that was, for people.
        guarantees_write_quorum: whether each entry of it is to have Qw copies ("metadata", rule 6).
        smaller: its sizes, if it was made on fewer bookies than were wanted; else None.
        is_strict: whether its maker refused that.
    """

    schema: bytes = b""
    digest: DigestSpec = DigestSpec()
    custom_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_ms: int = 0
    guarantees_write_quorum: bool = False
    smaller: MadeSmaller | None = None
    is_strict: bool = False
