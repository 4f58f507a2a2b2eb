"""Common options of every command, and the cluster they name."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bkspark.cli.output import note
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.errors import InvalidRequestError

if TYPE_CHECKING:
    from bkspark.admin.survey import Survey
    from bkspark.cluster.cluster import Cluster
    from bkspark.cluster.password import Password

LabelOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE",
        help="Label of the new bookies, such as rack=r7 or zone=eu-1; may be repeated.",
    ),
]
AcceptStorageRiskOption = Annotated[
    bool,
    typer.Option(
        "--accept-storage-risk",
        help="Use storage that fails the test; `bkspark status` keeps warning about it.",
    ),
]

_NAMED_MAX = 5

StoreOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Name of the object store that the URL is in, as the file of BKSPARK_STORES has it; "
        "default: the store that the AWS variables name.",
    ),
]

COMMON = "--metadata URI, --json and --debug work with every command."
"""Epilog of every command's help."""


@dataclass(frozen=True, slots=True)
class CommandSession:
    """The common options.

    Attributes:
        metadata_uri: empty if not given.
    """

    metadata_uri: str = ""
    as_json: bool = False

    def cluster(self) -> "Cluster":
        """Open the named cluster, for a ``with`` block.

        Raises:
            InvalidRequestError: no cluster is named, or none exists there.
        """
        from bkspark.cluster.cluster import Cluster

        return Cluster(self.named_uri())

    def survey(self) -> "Survey":
        """Open the named cluster for showing; raise the errors of ``cluster``."""
        from bkspark.admin.survey import Survey

        return Survey(self.named_uri())

    def named_uri(self) -> str:
        """Return the URI of the named cluster.

        Raises:
            InvalidRequestError: no cluster is named.
        """
        if not self.metadata_uri.strip():
            raise InvalidRequestError(
                "no cluster is named", hint=f"give --metadata URI or set {METADATA_URI_VARIABLE}"
            )
        return self.metadata_uri

    @property
    def shown_uri(self) -> str:
        from bkspark.storage.address import shown_url

        return shown_url(self.metadata_uri)


def session_of(context: typer.Context) -> CommandSession:
    """Return the session made at the top of the command line."""
    found = context.find_object(CommandSession)
    return found or CommandSession()


def note_unreadable(cluster: "Cluster") -> int:
    """Print the records a listing left out; return 1 if any, else 0."""
    for key, reason in list(cluster.unreadable.items())[:_NAMED_MAX]:
        note(f"bkspark: metadata record {key} cannot be read: {reason}")
    return 1 if cluster.unreadable else 0


def require_consent(question: str, *, yes: bool) -> None:
    """Return if the user consents, by ``--yes`` or when asked.

    Raises:
        InvalidRequestError: no terminal to ask on.
        typer.Exit: the user refused.
    """
    if not has_consent(question, yes=yes):
        raise typer.Exit(1)


def has_consent(question: str, *, yes: bool) -> bool:
    """Return whether the user consents.

    Raises:
        InvalidRequestError: no terminal to ask on.
    """
    if not (yes or (sys.stdin.isatty() and sys.stderr.isatty())):
        raise InvalidRequestError(f"cannot ask (no terminal): {question}", hint="give --yes")
    return yes or typer.confirm(question, err=True)


def password_of(file: str, env: str) -> "Password":
    """Return the password options of a reading command."""
    from bkspark.cluster.password import Password

    return Password(file=file, env=env)
