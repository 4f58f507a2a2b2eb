"""How a client shows itself to the servers of ZooKeeper: credentials and TLS, given by reference.

The process that connects reads the variables. Where a variable would be shown, as Spark shows
``spark.executorEnv.*``, the password belongs into a file.
"""

import contextlib
import os
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bkspark.errors import InvalidRequestError


@dataclass(frozen=True)
class SessionAccess:
    """What a connection is made with. A connection serves only stores whose access is equal."""

    hosts: str
    credentials: str | None = field(repr=False)
    encryption: tuple[tuple[str, Any], ...]


def session_access(hosts: str) -> SessionAccess:
    """What a connection to ``hosts`` is made with now.

    Raises:
        InvalidRequestError: as ``credentials`` and ``encryption``.
    """
    return SessionAccess(hosts, credentials(), tuple(sorted(encryption().items())))


# --- credentials ---------------------------------------------------------------------------------
# ``BKSPARK_ZOOKEEPER_AUTH_FILE`` names a file, ``BKSPARK_ZOOKEEPER_AUTH`` is the variable itself;
# either holds ``user:password`` for ZooKeeper's digest scheme.


VARIABLE = "BKSPARK_ZOOKEEPER_AUTH"
FILE_VARIABLE = "BKSPARK_ZOOKEEPER_AUTH_FILE"
HINT = f"set {VARIABLE}, or {FILE_VARIABLE}, to the user:password that made the store"


def credentials() -> str | None:
    """``user:password``, None if neither variable is set.

    Raises:
        InvalidRequestError: both are set, or the credentials are not of this form.
    """
    literal, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if literal and file:
        raise InvalidRequestError(f"set only one of {VARIABLE} and {FILE_VARIABLE}")
    if not literal and not file:
        return None
    found = _read(file) if file else literal
    user, colon, password = found.partition(":")
    if not user or not colon or not password or not found.isprintable():
        # The value itself is not shown: it may be the password alone.
        raise InvalidRequestError(
            f"the value of {(FILE_VARIABLE if file else VARIABLE)} does not look like user:password"
        )
    return found


def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        raise InvalidRequestError(
            f"{FILE_VARIABLE}={file} cannot be read: {type(error).__name__}"
        ) from None


# --- TLS -----------------------------------------------------------------------------------------


CA_VARIABLE = "BKSPARK_ZOOKEEPER_CA_FILE"
CERTIFICATE_VARIABLE = "BKSPARK_ZOOKEEPER_CERTIFICATE_FILE"
_HANDSHAKE_SECONDS = 2.0


def encryption() -> dict[str, Any]:
    """What kazoo needs for connections by TLS; empty if ``BKSPARK_ZOOKEEPER_CA_FILE`` is not set.

    The servers' certificates must be signed by one of that file and name the hosts of the address.
    ``BKSPARK_ZOOKEEPER_CERTIFICATE_FILE`` is for servers that ask for one: a PEM file with the
    client's certificate and its key.

    Raises:
        InvalidRequestError: a file cannot be used, or a certificate is given without authorities.
    """
    authorities, certificate = _files()
    if not authorities:
        return {}
    _client_context(authorities, certificate)
    own = {"certfile": certificate, "keyfile": certificate} if certificate else {}
    return {"use_ssl": True, "ca": authorities, "check_hostname": True, **own}


def trouble(hosts: str) -> str:
    """Why no connection by TLS comes about, in the words of a handshake; "" if it is not that."""
    authorities, certificate = _files()
    if not authorities:
        return f"; if the servers take TLS alone, set {CA_VARIABLE}"
    context = _client_context(authorities, certificate)
    for host in hosts.split(","):
        name, _, port = host.rpartition(":")
        try:
            _shake_hands(context, name.strip("[]"), int(port))
        except ssl.SSLError as error:
            return f"; {host} was asked by TLS: {_reason(error, certificate)}"
        except (OSError, ValueError):
            continue
    return ""


def _shake_hands(context: ssl.SSLContext, name: str, port: int) -> None:
    with (
        socket.create_connection((name, port), timeout=_HANDSHAKE_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=name) as connected,
        contextlib.suppress(TimeoutError),
    ):
        connected.recv(1)  # with TLS 1.3 a server refuses a client after the handshake


def _reason(error: ssl.SSLError, certificate: str) -> str:
    verified = getattr(error, "verify_message", "")
    if not verified and not certificate and "CERTIFICATE" in (error.reason or ""):
        return f"it wants a certificate; set {CERTIFICATE_VARIABLE}"
    return verified or error.reason or type(error).__name__


def _files() -> tuple[str, str]:
    authorities = os.environ.get(CA_VARIABLE, "")
    certificate = os.environ.get(CERTIFICATE_VARIABLE, "")
    if certificate and not authorities:
        raise InvalidRequestError(f"{CERTIFICATE_VARIABLE} needs {CA_VARIABLE}")
    return authorities, certificate


def _client_context(authorities: str, certificate: str) -> ssl.SSLContext:
    """The client's side of a connection, as kazoo makes it."""
    variable, file = CA_VARIABLE, authorities
    try:
        context = ssl.create_default_context(cafile=file)
        context.load_default_certs()
        if certificate:
            variable, file = CERTIFICATE_VARIABLE, certificate
            context.load_cert_chain(file)
    except OSError as error:  # of SSL too
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise InvalidRequestError(
            f"{variable}={file} cannot be used: {reason}",
            hint="it must be a PEM file with "
            + ("a certificate and its key" if file == certificate else "certificates"),
        ) from None
    return context
