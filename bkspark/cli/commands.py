"""Shell commands made from the declarations of maintenance commands (``bkspark.verbs``)."""

import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark import environment
from bkspark.admin.maintenance import Report
from bkspark.cli.output import Bar, json_line, note, outcome, print_report, visible
from bkspark.cli.session import COMMON, require_consent, session_of
from bkspark.cluster.arguments import duration
from bkspark.errors import USERS_MISTAKES, BookKeeperError, InvalidRequestError
from bkspark.quantities import seconds_of
from bkspark.verbs.declaring import VERBS, Option, Parameter, Verb, item_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# --- watching ------------------------------------------------------------------------------------
# Repeat a verb, with one line a round, until an operator stops it.
#
# Rule 1. A failed round is reported once and the rounds go on: the next round looks again. Only a
# wrong call ends the watch, and only in the first round: in a later round the cluster has changed,
# for example an unmounted metadata store.
#
# Rule 2. SIGTERM and SIGINT end the watch at any point, as every verb may be killed anywhere. Its
# exit status is the status of the last finished round: 1 if the round failed or no round has
# finished.


WATCH = "--watch"
SECONDS = 600.0
RETRY_SECONDS = 30.0
"""Time between the beginnings of a failed round and the next round."""


def spelled_out(words: Sequence[str]) -> list[str]:
    """Insert the default seconds after ``--watch`` if no time follows."""
    found = list(words)
    if WATCH not in found:
        return found
    after = found.index(WATCH) + 1
    if not (found[after:] and found[after][:1].isdecimal()):
        found.insert(after, f"{SECONDS:g}")
    return found


def watch(
    once: Callable[[], Report],
    seconds: float,
    tell: Callable[[str], None],
    *,
    as_json: bool,
    dry_run: bool = False,
) -> int:
    """Run ``once`` every ``seconds``; return the exit status when stopped.

    Args:
        tell: receives a line about each new failure.
        as_json: whether a round is shown as one line of JSON.
        dry_run: whether the verb would only plan, which is refused.

    Raises:
        InvalidRequestError: the seconds are invalid, or the first round finds the call wrong.
    """
    if dry_run:
        raise InvalidRequestError(
            "--watch and --dry-run contradict each other", hint="leave one of them out"
        )
    seconds = duration("watch", seconds, hint="give seconds, for example 600")
    watch = _Watch(once, tell, as_json=as_json)
    with ended_by_signals():
        try:
            while True:
                began = environment.monotonic()
                pause = seconds if watch.round() else min(seconds, RETRY_SECONDS)
                environment.sleep(max(0.0, began + pause - environment.monotonic()))
        except KeyboardInterrupt:
            tell("bkspark: stopped")
    return watch.status


class _Watch:
    """Runs rounds, and keeps the status of the last round."""

    def __init__(
        self, once: Callable[[], Report], tell: Callable[[str], None], *, as_json: bool
    ) -> None:
        self.status = 1
        self._once = once
        self._tell = tell
        self._as_json = as_json
        self._is_first = True
        self._problem = ""

    def round(self) -> bool:
        """Run a round; return whether the round finished.

        Raises:
            BookKeeperError: the call is wrong, in the first round.
        """
        try:
            report = self._once()
        except BookKeeperError as error:
            if self._is_first and isinstance(error, USERS_MISTAKES):
                raise
            self._is_first, self.status = False, 1
            if type(error).__name__ != self._problem:
                self._tell(f"bkspark: {error}; trying again until it works")
            self._problem = type(error).__name__
            return False
        if self._problem:
            self._tell("bkspark: continuing")
        self._is_first, self._problem = False, ""
        self.status = report.exit_status
        print(json_line(report.document) if self._as_json else _line(report), flush=True)
        return True


def _line(report: Report) -> str:
    """Return the time, the work done, and the first remaining problem."""
    from bkspark.quantities import timestamp

    said = [outcome(report)] if report.done else []
    said += [f"{left.subject}: {left.reason}" for left in report.left[:1]]
    return visible(f"{timestamp(environment.now_ms()):%Y-%m-%d %H:%M:%S}Z {'; '.join(said)}")


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM act like SIGINT, if run in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --- commands ------------------------------------------------------------------------------------


Given = dict[str, Any]

_ALL = Parameter(
    "is_all", bool, False, Option("Recover all ledgers whose writer has ended.", "", "--all")
)
_WATCH_HELP = f"Repeat the command after this time; default: {SECONDS:g} seconds."
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
        needs_own = verb.name == "offload"  # a session with Delta, which it makes
        values["spark"] = (
            spark_session(app_name(verb)) if values["spark"] and not needs_own else None
        )
    is_planned, as_json = values["dry_run"], session.as_json
    if seconds is not None:
        once = partial(verb.run, session.metadata_uri, values)
        how = {"as_json": as_json, "dry_run": is_planned}
        raise typer.Exit(watch(once, seconds, note, **how))
    with Bar(verb.unit) as bar:

        def ask(question: str) -> None:
            bar.stop()
            require_consent(question, yes=answer)
            bar.start()

        more: Mapping[str, Any] = {"progress": bar} if verb.unit else {}
        report = verb.run(session.metadata_uri, {**values, **more}, ask)
    print_report(verb, report, as_json=as_json, is_planned=is_planned)
    raise typer.Exit(report.exit_status)


def app_name(verb: Verb) -> str:
    """Return the name of a command in Spark's lists of applications."""
    return " ".join(filter(None, ("bkspark", verb.group, verb.name)))


def spark_session(name: str) -> "SparkSession":
    """Return the active session, or a new session of this name.

    Raises:
        InvalidRequestError: Spark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InvalidRequestError(
            f"{name} needs Spark, which is not installed", hint="pip install 'bkspark[spark]'"
        ) from error
    return SparkSession.builder.appName(name).getOrCreate()
