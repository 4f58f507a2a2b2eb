"""Shell commands made from the declarations of maintenance commands (``bkspark.verbs``)."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark.cli import watching
from bkspark.cli.output import Bar, note
from bkspark.cli.reports import show
from bkspark.cli.session import COMMON, require_consent, session_of
from bkspark.errors import InvalidRequestError
from bkspark.quantities import seconds_of
from bkspark.verbs.declaring import VERBS, Option, Parameter, Verb, item_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Given = dict[str, Any]

_ALL = Parameter(
    "is_all", bool, False, Option("Recover all ledgers whose writer has ended.", "", "--all")
)
_WATCH_HELP = f"Repeat the command after this time; default: {watching.SECONDS:g} seconds."
_WATCH = Parameter("watch", float | None, None, Option(_WATCH_HELP, "[TIME]", parse=seconds_of))
_SPARK = Parameter(
    "spark", bool, False, Option("Do the work in tasks of a Spark session instead of threads.")
)
NEVER_ASKS = "Accepted by every command; this command never asks."


def add_to(app: typer.Typer, group: str = "") -> None:
    """Add the declared commands of a group."""
    for verb in VERBS.values():
        if verb.group == group:
            extra = [*([_SPARK] if verb.unit else []), yes(verb, "Do not ask.")]
            app.command(verb.name, epilog=COMMON)(typed(verb, partial(_run, verb), *extra))


def yes(verb: Verb, help_: str) -> Parameter:
    """Return the option ``--yes``; ``help_`` is its help in a command that asks."""
    option = Option(help_ if verb.destroys else NEVER_ASKS, "", "--yes -y")
    return Parameter("yes", bool, False, option)


def typed(
    verb: Verb, work: Callable[[typer.Context, Given], None], *extra: Parameter
) -> Callable[..., None]:
    """Return ``work`` with the verb's options as its signature, as typer needs."""

    def command(context: typer.Context, **given: Any) -> None:
        work(context, given)

    own = (*([_ALL] if verb.all_of else []), *([_WATCH] if verb.can_watch else []))
    found = [one for one in (*verb.parameters, *own, *extra) if one.option is not None]
    kind = inspect.Parameter.KEYWORD_ONLY
    context = inspect.Parameter("context", kind, annotation=typer.Context)
    command.__signature__ = inspect.Signature([context, *map(_typed, found)])  # type: ignore[attr-defined]
    command.__doc__ = verb.help
    return command


def _typed(one: Parameter) -> inspect.Parameter:
    """Return a parameter in typer's form."""
    option, kind, default = one.option, one.kind, one.default
    assert option is not None
    names = [f"--{one.name.replace('_', '-')}"] if option.shell is None else option.shell.split()
    if (item := item_of(kind)) is not None:
        kind = list[item] if one.is_required else list[item] | None  # type: ignore[valid-type]
        default = default or None if not one.is_required else default
    how: Given = {"help": option.help, "metavar": option.metavar or None}
    if option.parse is not None:
        how["parser"] = option.parse(names[0])
    info = typer.Option(*names, **how) if names else typer.Argument(**how)
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def values_of(verb: Verb, given: Given) -> Given:
    """Convert shell options to arguments of the Python call.

    Raises:
        InvalidRequestError: neither ``--all`` nor the names it replaces are given, or both.
    """
    if verb.all_of and bool(given[verb.all_of]) is given.pop("is_all"):
        what = verb.all_of
        raise InvalidRequestError(
            f"--all and {what} contradict each other"
            if given[what]
            else f"no {what} and no --all were given",
            hint=f"give the {what}, or --all for every ledger whose writer has ended",
        )
    several = {one.name for one in verb.parameters if item_of(one.kind) is not None}
    return {
        name: () if name in several and value is None else value for name, value in given.items()
    }


def _run(verb: Verb, context: typer.Context, given: Given) -> None:
    session = session_of(context)
    answer, seconds = given.pop("yes"), given.pop("watch", None)
    values = values_of(verb, given)
    if verb.unit:
        values["tell"] = note
        values["spark"] = spark_session(verb) if values["spark"] else None
    is_planned, as_json = values["dry_run"], session.as_json
    if seconds is not None:
        once = partial(verb.run, session.metadata_uri, values)
        how = {"as_json": as_json, "dry_run": is_planned}
        raise typer.Exit(watching.watch(once, seconds, note, **how))
    with Bar(verb.unit) as bar:

        def ask(question: str) -> None:
            bar.stop()
            require_consent(question, yes=answer)
            bar.start()

        more: Mapping[str, Any] = {"progress": bar} if verb.unit else {}
        report = verb.run(session.metadata_uri, {**values, **more}, ask)
    show(verb, report, as_json=as_json, is_planned=is_planned)
    raise typer.Exit(report.exit_status)


def spark_session(verb: Verb) -> "SparkSession":
    """Return the active session or a new session.

    Raises:
        InvalidRequestError: Spark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InvalidRequestError(
            "--spark needs Spark, which is not installed", hint="pip install 'bkspark[spark]'"
        ) from error
    name = " ".join(filter(None, ("bkspark", verb.group, verb.name)))
    return SparkSession.builder.appName(name).getOrCreate()
