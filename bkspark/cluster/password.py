"""Ledger passwords, best by reference: a file or an environment variable.

A reference travels in place of the secret, and only the process that needs the secret resolves the
reference. A literal password must itself travel. No function here shows a password.
"""

import os
from dataclasses import dataclass, field
from functools import lru_cache

from bkspark.errors import InvalidRequestError
from bkspark.format.digest import CRC32C, Digester, require_whole_characters
from bkspark.protocol.ledger.metadata import DigestSpec
from bkspark.protocol.log.record import LogRecord

_FILE_BYTES_MAX = 2**16
"""A device or a large file named by mistake gives an error instead of exhausting memory."""


@dataclass(frozen=True, slots=True)
class Password:
    """The source of a ledger password; at most one of the three is given.

    Raises:
        InvalidRequestError: two sources are given, or a source is no text or has the character NUL.
    """

    file: str = ""
    env: str = ""
    literal: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if sum(map(bool, (self.file, self.env, self.literal))) > 1:
            raise InvalidRequestError("give only one of passwordFile, passwordEnv and password")
        for given in (self.file, self.env, self.literal):
            if not isinstance(given, str):  # not shown: the value may be the secret
                raise InvalidRequestError(
                    "a password, its file name or its variable must be a text, not "
                    f"{type(given).__name__}",
                    hint=".decode() makes text of bytes",
                )
        for what, name in (("passwordFile", self.file), ("passwordEnv", self.env)):
            require_whole_characters(what, name)
            if "\0" in name:
                raise InvalidRequestError(
                    f"the character NUL is not allowed in {what}", hint="leave it out"
                )

    @property
    def is_given(self) -> bool:
        return bool(self.file or self.env or self.literal)

    def resolve(self) -> str | None:
        """The password, or None if no source is given.

        Raises:
            InvalidRequestError: the file or variable is missing or empty, or is not UTF-8.
        """
        if not self.is_given:
            return None
        secret = self.literal or _without_line_end(
            self._read() if self.file else os.environ.get(self.env, "")
        )
        if not secret:
            raise InvalidRequestError(
                f"passwordFile {self.file} is empty"
                if self.file
                else f"the environment variable {self.env} named by passwordEnv is not set"
            )
        if not _is_utf8(secret):
            of = f" that passwordFile {self.file} holds" if self.file else ""
            of = f" that passwordEnv {self.env} names" if self.env else of
            raise InvalidRequestError(
                f"the password{of} is no text in UTF-8", hint="store it as UTF-8, or choose another"
            )
        return secret

    def _read(self) -> str:
        """Read the file, perhaps a pipe; bytes that are not UTF-8 become surrogates."""
        try:
            with open(self.file, "rb") as file:
                data = file.read(_FILE_BYTES_MAX + 1)
        except (OSError, ValueError) as error:
            raise InvalidRequestError(
                f"passwordFile {self.file} cannot be read: {type(error).__name__}"
            ) from None
        if len(data) > _FILE_BYTES_MAX:
            raise InvalidRequestError(
                f"passwordFile {self.file} holds more than {_FILE_BYTES_MAX} bytes",
                hint="give a file that holds the password and nothing else",
            )
        return data.decode("utf-8", "surrogateescape")


def _without_line_end(text: str) -> str:
    """``text`` without a final line end, as added by editors and ``echo``: file and variable then
    hold the same secret.
    """
    return text.rstrip("\r\n")


def _is_utf8(secret: str) -> bool:
    """Whether the secret can be encoded; bytes of the environment outside UTF-8 cannot."""
    try:
        secret.encode()
    except UnicodeEncodeError:
        return False
    return True


def require_of_use(log: LogRecord, password: Password) -> None:
    """Refuse to write with a password that protects nothing.

    Raises:
        InvalidRequestError: a password is given, and the log has none.
    """
    if password.is_given and log.digest.digest_type == CRC32C:
        raise InvalidRequestError(
            f"log {log.name!r} has digestType {CRC32C}, which no password protects",
            hint="leave the password out, or write to a log with digestType MAC",
        )


@lru_cache(maxsize=64)
def make_digester(spec: DigestSpec, password: Password) -> Digester:
    """The digester of a ledger; cached, because deriving a key is slow on purpose.

    Raises:
        UnauthorizedError: the password is missing or wrong.
    """
    return Digester(spec, password.resolve() if spec.digest_type != CRC32C else None)
