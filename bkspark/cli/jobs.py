"""Jobs for spark-submit, made from the declarations of maintenance commands (``bkspark.verbs``)."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer

import bkspark
from bkspark.cli import commands, output
from bkspark.cli.commands import NEVER_ASKS, Given, app_name, spark_session, typed, values_of, yes
from bkspark.cli.output import PasswordEnvOption, PasswordFileOption, note
from bkspark.cli.program import invoke
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.errors import InvalidRequestError
from bkspark.spark.job import run_job
from bkspark.verbs.declaring import VERBS, Option, Parameter, Verb

Job = Callable[[Sequence[str]], int]

_EPILOG = (
    "Prints the report as one JSON line: plan, work done, work left with reasons, counters. "
    "It can be killed at any time and run again. Exit status: 0 nothing is left, 1 something "
    "is left, 2 wrong usage."
)
_WHERE = f"Metadata URI of the cluster; default: {METADATA_URI_VARIABLE}."
_METADATA = Parameter("metadata", str, "", Option(_WHERE, "URI"))
_OF_ONE = ("--accept-loss", "--seal")
_ONE_HINT = "With --ledger ID it recovers one ledger, and accepts --accept-loss and --seal."


def job_of(name: str) -> Job:
    """Return the job of a declared command: a function from its words to its exit status."""
    verb = VERBS[name]
    agree = f"{verb.destroys[:1].upper()}{verb.destroys[1:]}, without a question."
    command = typed(verb, partial(_run, verb), _METADATA, yes(verb, agree))
    return partial(run_job, partial(_invoked, name, command), tell=note)


def _invoked(name: str, command: Callable[..., None], words: Sequence[str]) -> int:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    epilog = f"{_EPILOG} {_ONE_HINT}" if name == "recover" else _EPILOG
    app.command(name, epilog=epilog)(command)
    try:
        return invoke(app, f"{name}.py", commands.spelled_out(words))
    except Exception as error:
        if not output.is_usage(error):
            raise
        return output.report_failure(error, as_json=False)


def recover_job(words: Sequence[str]) -> int:
    """Run the job of ``recover``; with ``--ledger`` recover one ledger, step by step."""
    options = {word.partition("=")[0] for word in words}
    if "--ledger" in options:
        return run_job(partial(_invoked, "recover", _recover_one), words, note)
    if options.isdisjoint(_OF_ONE):
        return job_of("recover")(words)
    what = f"{' and '.join(_OF_ONE)} apply to one ledger"
    error = InvalidRequestError(what, hint="give --ledger ID, or leave the option out")
    return output.report_failure(error, as_json=False)


def _recover_one(
    ledger: Annotated[int, typer.Option(metavar="ID", help="Which ledger.")],
    metadata: Annotated[str, typer.Option(metavar="URI", help=_WHERE)] = "",
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Close the ledger even if entries are lost that no bookie can bring back.",
        ),
    ] = False,
    seal: Annotated[
        bool,
        typer.Option("--seal", help="Close the ledger also if an unbounded log continues in it."),
    ] = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help=NEVER_ASKS)] = False,
) -> None:
    """Recover a ledger: fence its writer and close it, losing no acknowledged entry."""
    del yes
    done = bkspark.recover_ledger(
        spark_session(app_name(VERBS["recover"])),
        metadata,
        ledger,
        password_file=password_file,
        password_env=password_env,
        tell=note,
        accepts_loss=accept_loss,
        seal=seal,
    )
    print(json.dumps(done.facts))


def _run(verb: Verb, _context: typer.Context, given: Given) -> None:
    uri, answer, seconds = (given.pop(name, None) for name in ("metadata", "yes", "watch"))
    values = values_of(verb, given)
    if verb.destroys and not (answer or values["dry_run"]):
        raise InvalidRequestError(
            f"{verb.destroys}: give --yes", hint="or --dry-run to see the plan"
        )
    if verb.unit:
        values |= {"tell": note, "spark": spark_session(app_name(verb))}
    once = partial(verb.run, uri, values)
    if seconds is not None:
        how = {"as_json": True, "dry_run": values["dry_run"]}
        raise typer.Exit(commands.watch(once, seconds, note, **how))
    report = once()
    print(json.dumps(report.document))
    raise typer.Exit(report.exit_status)
