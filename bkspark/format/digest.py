"""Digests: CRC32C against accidents, HMAC-SHA256 against forgery too.

A digest covers a *context* (the expected identity of the bytes: ledger, attempt, position) and the
bytes, so bytes in the wrong place fail. The digest is checked before any parsing: Arrow alone
silently reads nine in ten single-bit flips as other data.
"""

import hashlib
import hmac
import json
import re

from fastcrc.crc32 import iscsi

from bkspark import environment
from bkspark.errors import InvalidRequestError, UnauthorizedError
from bkspark.protocol.ledger.metadata import DigestSpec

Buffer = bytes | bytearray | memoryview

crc32c = iscsi
"""``crc32c(data, initial) -> int``"""

CRC32C = "CRC32C"
MAC = "MAC"

_WORD = re.compile(r"[A-Za-z0-9-]{1,32}")
_HEX = re.compile(r"(?:[0-9a-f]{2}){0,64}")
_KEY_CONSTANT = b"bkspark key check v1"
_HOW_TO_GIVE_IT = (
    "give the password of the ledger: password=… in Python, passwordFile or passwordEnv in Spark, "
    "--password-file or --password-env on a shell"
)


class Digester:
    """Computes and checks the digests of one ledger.

    Args:
        spec: from the ledger's metadata.
        password: needed for MAC, else ignored.

    Raises:
        UnauthorizedError: the password is missing or not the ledger's.
    """

    def __init__(self, spec: DigestSpec, password: str | None = None) -> None:
        self.spec = spec
        self._key = b""
        if spec.digest_type == MAC:
            self._key = _checked_key(spec, password)
        elif spec.digest_type != CRC32C:
            raise InvalidRequestError(f"digestType {spec.digest_type!r} is unknown")

    def __repr__(self) -> str:
        return f"Digester({self.spec.digest_type})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("a digester holds a key and is not pickled; make it where it is needed")

    def digest(self, context: str, *parts: Buffer) -> str:
        """Return the hex digest of ``parts`` as ``context``: 8 digits for CRC32C, 64 for MAC."""
        head = f"{len(context)}:{context}:".encode()
        if not self._key:
            value = crc32c(head, 0)
            for part in parts:
                value = crc32c(part, value)
            return f"{value:08x}"
        mac = hmac.new(self._key, head, hashlib.sha256)
        for part in parts:
            mac.update(part)
        return mac.hexdigest()

    def matches(self, expected: str, context: str, *parts: Buffer) -> bool:
        """Return whether ``parts`` as ``context`` have digest ``expected``."""
        found = self.digest(context, *parts)
        if not self._key:
            return found == expected  # no secret that timing could reveal
        return hmac.compare_digest(found.encode(), expected.encode())


class TrustingDigester(Digester):
    """Accepts every digest of a ledger with a password.

    Only for displays without the password, which decide nothing about entries. The data may be
    forged, but a forger could also have removed the data.
    """

    def __init__(self, spec: DigestSpec) -> None:
        self.spec = spec
        self._key = b""

    def matches(self, expected: str, context: str, *parts: Buffer) -> bool:
        del expected, context, parts
        return True


def for_showing(spec: DigestSpec) -> Digester:
    """Return a digester that checks as much as possible without a password.

    Raises:
        InvalidRequestError: there is no such type.
    """
    return TrustingDigester(spec) if spec.digest_type == MAC else Digester(spec)


def new_spec(digest_type: str, password: str | None) -> DigestSpec:
    """Return settings for a new ledger or log. They do not help to find the password.

    Raises:
        InvalidRequestError: there is no such type, or the type does not use the password.
        UnauthorizedError: the password is missing.
    """
    if digest_type == CRC32C:
        if password:
            raise InvalidRequestError(
                "a password needs digestType MAC",
                hint='give digestType MAC (digest_type="MAC" in Python, --digest-type MAC on '
                "a shell), or leave the password out: with CRC32C it would protect "
                "nothing",
            )
        return DigestSpec()
    if digest_type != MAC:
        raise InvalidRequestError(
            f"digestType {digest_type!r} is unknown", hint="use CRC32C, or MAC with a password"
        )
    salt = environment.token()
    key = _derive_key(salt, password)
    return DigestSpec(MAC, salt, _key_check(key))


def checked_spec(spec: DigestSpec) -> DigestSpec:
    """Return ``spec``, which came out of storage, if its form is possible.

    Raises:
        InvalidRequestError: the type, salt or check value is malformed.
    """
    if not (_WORD.fullmatch(spec.digest_type) and _HEX.fullmatch(spec.salt + spec.check)):
        raise InvalidRequestError("digest settings are malformed")
    return spec


def encode_spec(spec: DigestSpec) -> dict[str, str]:
    """Encode ``spec`` as JSON values."""
    return {"type": spec.digest_type, "salt": spec.salt, "check": spec.check}


def _checked_key(spec: DigestSpec, password: str | None) -> bytes:
    key = _derive_key(spec.salt, password)
    if not hmac.compare_digest(_key_check(key), spec.check):
        raise UnauthorizedError("the ledger password is wrong", hint=_HOW_TO_GIVE_IT)
    return key


def _derive_key(salt: str, password: str | None) -> bytes:
    if not password:
        raise UnauthorizedError(
            "this ledger is protected by a password, and no password was given",
            hint=_HOW_TO_GIVE_IT,
        )
    return hashlib.scrypt(password.encode(), salt=bytes.fromhex(salt), n=2**14, r=8, p=1, dklen=32)


def _key_check(key: bytes) -> str:
    return hmac.new(key, _KEY_CONSTANT, hashlib.sha256).hexdigest()


def canonical_json(value: object) -> bytes:
    """Return the only spelling of ``value`` used for digests.

    Raises:
        InvalidRequestError: a text has half a character, which no reader can decode.
    """
    text = _CANONICAL.encode(value)
    if "\\ud" in text:  # otherwise no string holds half a surrogate pair
        require_whole_characters("what is to be stored", json.dumps(value, ensure_ascii=False))
    return text.encode()


def require_whole_characters(what: str, text: str) -> None:
    """Refuse a ``text`` with half a surrogate pair, which UTF-8 cannot encode.

    Raises:
        InvalidRequestError: names the text as ``what``.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"{what} has half a character, {text[error.start]!r}", hint="leave that character out"
        ) from None


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
