"""The top of the command line: common options, exit status, and errors in one line.

Exit status: 0 done, 1 something is wrong, 2 bad usage or bad input.
"""

import gc
import io
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bkspark._version import VERSION
from bkspark.cli import (
    INTERRUPTED,
    agent,
    bench,
    bookies,
    cluster,
    commands,
    ledgers,
    logs,
    metrics,
    output,
    records,
)
from bkspark.cli.output import note, outputs_for_people
from bkspark.cli.session import CommandSession
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.errors import InvalidRequestError

app = typer.Typer(
    name="bkspark",
    help="Replicated logs for Spark: clusters, bookies, logs and ledgers.",
    epilog="Exit status: 0 done, 1 something is wrong, 2 wrong usage or input.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMON = ("metadata", "json", "debug")
_FLAGS = ("--json", "--debug")
_COMPLETION_VARIABLE = "_BKSPARK_COMPLETE"


GARBAGE_THRESHOLDS = 100_000, 50, 100
"""Python looks for garbage more rarely: each look goes through all records of a large cluster."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    if arguments is None:  # a process of its own: what it reads stays until its end
        gc.set_threshold(*GARBAGE_THRESHOLDS)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the terminal may lack a character
            stream.reconfigure(errors="backslashreplace")
    with outputs_for_people():
        return _main(sys.argv[1:] if arguments is None else list(arguments))


def _main(given: list[str]) -> int:
    is_debug = "--debug" in given
    is_json = "--json" in takewhile(lambda word: word != "--", given)
    _set_up_logging(is_debug)
    try:
        status = _run(commands.spelled_out(_common_first(given)))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output has closed the pipe. Python would complain again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        note("bkspark: stopped")
        return INTERRUPTED
    except Exception as error:
        if is_debug:
            traceback.print_exc()
        return output.report_failure(error, as_json=is_json)
    return status


@app.callback(invoke_without_command=True)
def top(
    context: typer.Context,
    metadata: Annotated[
        str, typer.Option(metavar="URI", envvar=METADATA_URI_VARIABLE, help="Which cluster.")
    ] = "",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document on stdout.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    del debug  # read by main() before any failure
    if version:
        print(VERSION)
        raise typer.Exit()
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit()
    context.obj = CommandSession(metadata, json)


def _run(arguments: Sequence[str]) -> int:
    if _COMPLETION_VARIABLE in os.environ:  # a shell asks for completions
        command = typer.main.get_command(app)
        common = [option for option in command.params if option.name in _COMMON]
        try:
            _offer(common, command)
            command.main(prog_name="bkspark")
        except SystemExit as error:
            return int(error.code or 0)
    return invoke(app, "bkspark", arguments)


def invoke(commands: typer.Typer, name: str, arguments: Sequence[str]) -> int:
    """Run one of ``commands``; return its exit status, or raise its error."""
    try:
        # Without colours: typer's coloured messages would show escapes.
        command = _built(commands)
        with command.make_context(name, list(arguments), color=False) as context:
            command.invoke(context)
    except SystemExit as error:  # typer ends shell completion this way
        return int(error.code or 0)
    except typer.Exit as error:
        return error.exit_code
    except typer.Abort:
        raise KeyboardInterrupt from None
    return 0


@cache
def _built(commands: typer.Typer) -> Any:
    """Build all commands: that takes longer than many of them run."""
    command = typer.main.get_command(commands)
    _convert_only_other_kinds(command)
    return command


def _convert_only_other_kinds(command: Any) -> None:
    """Keep from typer the values that need no conversion.

    Typer converts with pydantic, which takes longer to load than most commands run.
    """
    command.get_params = partial(_parameters, command.get_params)
    for one in getattr(command, "commands", {}).values():
        _convert_only_other_kinds(one)


def _parameters(found: Callable[[Any], list[Any]], context: Any) -> list[Any]:
    """Return the parameters of a command, with that of its help."""
    parameters = found(context)
    for one in parameters:
        if not isinstance(one.process_value, partial):
            one.process_value = partial(_processed, one, one.process_value)
    return parameters


def _processed(parameter: Any, process: Callable[..., Any], context: Any, value: object) -> Any:
    kind = getattr(parameter, "type_descriptor", None)  # a typer without it has no pydantic
    if kind is None or _needs_conversion(parameter, kind, value):
        return process(context, value)
    answer = parameter.callback
    return value if answer is None else answer(context, parameter, value)


def _needs_conversion(parameter: Any, kind: Any, value: object) -> bool:
    if value is None:
        return bool(parameter.required)
    is_parsed = isinstance(value, str) and kind.parameter_info.parser is not None
    return is_parsed or type(value) is not kind.annotation


def _offer(common: Sequence[Any], behind: object) -> None:
    """Let shells complete the common options after every command of a group."""
    if isinstance(behind, TyperGroup):
        for command in behind.commands.values():
            command.params.extend(common)
            _offer(common, command)


def _common_first(arguments: list[str]) -> list[str]:
    """Move the common options, allowed anywhere, to the front, where typer expects them."""
    common: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*common, *rest, word, *words]
        if word in _FLAGS or word.startswith("--metadata="):
            common.append(word)
        elif word == "--metadata":
            value = next(words, None)
            if value is None:
                raise InvalidRequestError("--metadata needs a URI after it")
            common += [word, value]
        else:
            rest.append(word)
    return [*common, *rest]


def _set_up_logging(is_debug: bool) -> None:
    """Show library logs with --debug only: commands report by themselves."""
    if is_debug:
        logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    elif not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())


cluster.add_to(app)
bookies.add_to(app)
logs.add_to(app)
ledgers.add_to(app)
commands.add_to(app)
metrics.add_to(app)
agent.add_to(app)
records.add_to(app)
bench.add_to(app)
