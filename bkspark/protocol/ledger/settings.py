"""What a ledger is made with, beside its quorum."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
class LedgerSettings:
    """What a ledger was made with: it never changes.

    Attributes:
        schema: Arrow schema of the entries as an IPC schema message; opaque here.
        custom_metadata: what its maker notes of it.
        created_ms: when that was, for people.
        guarantees_write_quorum: whether each entry of it is to have Qw copies ("metadata", rule 6).
    """

    schema: bytes = b""
    digest: DigestSpec = DigestSpec()
    custom_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    created_ms: int = 0
    guarantees_write_quorum: bool = False
