"""What every command has: the options that are the same for all, and the cluster they name."""

import sys
from dataclasses import dataclass

import typer

from bkspark.client.arguments import METADATA_URI_VARIABLE
from bkspark.client.cluster import Cluster
from bkspark.client.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.metadata.names import shown_uri

COMMON = "--metadata URI, --json and --debug may be given with every command."
"""Epilog of every command's help."""


@dataclass(frozen=True, slots=True)
class Session:
    """The common options.

    Attributes:
        metadata_uri: empty if none is named.
    """

    metadata_uri: str = ""
    as_json: bool = False

    def cluster(self) -> Cluster:
        """The cluster that is named; use it in a ``with`` block.

        Raises:
            InvalidRequestError: none is named, or there is none.
        """
        if not self.metadata_uri:
            raise InvalidRequestError(
                "no cluster is named", hint=f"give --metadata URI or set {METADATA_URI_VARIABLE}"
            )
        return Cluster(self.metadata_uri)

    @property
    def shown_uri(self) -> str:
        return shown_uri(self.metadata_uri)


def session_of(context: typer.Context) -> Session:
    """The session that the top of the command line made."""
    found = context.find_object(Session)
    return found or Session()


def require_consent(question: str, *, yes: bool) -> None:
    """Return if the user wants it: said so by ``--yes``, or says so now.

    Raises:
        InvalidRequestError: nobody can be asked.
        typer.Exit: they said no.
    """
    if not has_consent(question, yes=yes):
        raise typer.Exit(1)


def has_consent(question: str, *, yes: bool) -> bool:
    """Whether the user wants it.

    Raises:
        InvalidRequestError: nobody can be asked.
    """
    if not (yes or (sys.stdin.isatty() and sys.stderr.isatty())):
        raise InvalidRequestError(f"nobody is here to answer: {question}", hint="give --yes")
    return yes or typer.confirm(question, err=True)


def password_of(file: str, env: str) -> Password:
    """The password options of a reading command."""
    return Password(file=file, env=env)
