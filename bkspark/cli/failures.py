"""Report why a command failed: in one line for people, and with --json as the document.

A command already printing its document cannot take the document back: the printed part stays cut,
and only the line on stderr and the exit status report the failure.
"""

import sys
from dataclasses import asdict, dataclass

from bkspark.cli.output import ForPeople, note, print_json
from bkspark.errors import USERS_MISTAKES, BookKeeperError

USAGE = 2

_OF_PARSERS = "Value error, "
"""Typer's prefix to messages of an option's own parser."""


@dataclass(frozen=True, slots=True)
class CommandFailure:
    """Why a command failed.

    Attributes:
        type: name of the error's class; ``UsageError`` for words that form no command.
        hint: the next step; may be empty.
        exit_status: 2 for the user's mistakes, else 1.
    """

    type: str
    message: str
    hint: str
    exit_status: int


def report(error: Exception, *, as_json: bool) -> int:
    """Report ``error``; return the exit status."""
    failure = _failure(error)
    hint = f"; {failure.hint}" if failure.hint else ""
    note(f"bkspark: {failure.message}{hint}")
    has_begun = isinstance(sys.stdout, ForPeople) and sys.stdout.has_text
    if as_json and not has_begun:
        print_json({"error": asdict(failure)})
    return failure.exit_status


def is_usage(error: Exception) -> bool:
    """Return whether the error is about words that form no command."""
    return hasattr(error, "format_message")


def _failure(error: Exception) -> CommandFailure:
    name = type(error).__name__
    if isinstance(error, BookKeeperError):
        status = USAGE if isinstance(error, USERS_MISTAKES) else 1
        return CommandFailure(name, str(error.args[0]), error.hint, status)
    if is_usage(error):  # the class is private to typer or click
        context = getattr(error, "ctx", None)
        path = "bkspark" if context is None else context.command_path
        message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        message = message.replace(_OF_PARSERS, "")
        return CommandFailure("UsageError", message, f"see `{path} --help`", USAGE)
    first_line = (str(error).splitlines() or [""])[0]
    return CommandFailure(
        name, f"{name}: {first_line}", "run again with --debug for the traceback", 1
    )
