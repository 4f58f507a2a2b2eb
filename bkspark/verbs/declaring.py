"""Declare a maintenance command once, as a typed function doing the command's work.

The function takes the opened cluster, the way to run, and the command's own options as keyword
parameters. Each option has an ``Option`` in its annotation. ``verb`` adds the shared options and
makes the Python call. ``bkspark.cli.commands`` makes the shell command from the same declaration,
and ``bkspark.cli.jobs`` the job.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from bkspark.admin.maintenance import Execution, Facts, Report, no_progress
from bkspark.cluster import arguments
from bkspark.quantities import seconds_of, size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from bkspark.cluster.cluster import Cluster
    from bkspark.ledger.recovery.running import Runner


# --- declaring -----------------------------------------------------------------------------------


Ask = Callable[[str], None]
"""Asks the operator a question; raises an error if the answer is no."""

Columns = Mapping[str, str | Callable[[Facts], Any]]
"""The columns of a table by title: keys of a row, or functions of a row."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command.

    Attributes:
        help: a sentence for the operator.
        metavar: name of the value on a shell; empty for a switch.
        shell: name on a shell, if different from Python; "" for an argument by position.
        parse: makes a function from text to value; takes the option's name on a shell.
        check: checks and converts a Python value; takes the option's name in Python.
    """

    help: str
    metavar: str = ""
    shell: str | None = None
    parse: Callable[[str], Callable[[str | float], Any]] | None = None
    check: Callable[[str, Any], Any] = lambda _name, given: given


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the Python call; without an ``option`` only Python has the parameter."""

    name: str
    kind: Any
    default: Any
    option: Option | None = None

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    def checked(self, given: Any) -> Any:
        """Return a Python value, checked and converted.

        Raises:
            InvalidRequestError: the value is not valid.
        """
        if self.option is None:
            return given
        if self.kind is bool:
            given = arguments.yes_or_no(self.name, given=given)
        elif item_of(self.kind) is not None:
            given = arguments.several(self.name, given)
        return self.option.check(self.name, given)

    @property
    def in_python(self) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default, annotation=self.kind)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a report or of a plan for people; ``name`` is their key."""

    name: str
    columns: Columns


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """The shell's output of a report.

    Attributes:
        table: rows of the report shown to people.
        plans: tables of the plan shown to people; empty to show the facts.
        notes: lines about the plan for people.
        notes_done: lines about the work for people, besides the table.
        said: one line for people about the work, replacing the tables.
        document: the JSON document; None to show the report.
    """

    table: Table | None = None
    plans: tuple[Table, ...] = ()
    notes: Callable[[Facts], Iterable[str]] = lambda _plan: ()
    notes_done: Callable[[Report], Iterable[str]] = lambda _report: ()
    said: Callable[[Report], str] | None = None
    document: Callable[[Report], Facts] | None = None


@dataclass(frozen=True, slots=True)
class CommandRun(Execution):
    """How a command runs.

    Attributes:
        ask: asks before data is destroyed for ever; None to skip the question.
        takes_lease: whether to keep other runs of the command away.
    """

    ask: Ask | None = None
    takes_lease: bool = False
    spark: "SparkSession | None" = None


_SHARED = {
    "dry_run": Parameter("dry_run", bool, False, Option("Print the plan; change nothing.")),
    "no_lease": Parameter(
        "no_lease", bool, False, Option("Run even if another run of this command is active.")
    ),
    "password": Parameter("password", str, ""),
    "password_file": Parameter(
        "password_file", str, "", Option("Read the password from this file.", "FILE")
    ),
    "password_env": Parameter(
        "password_env", str, "", Option("Read the password from this environment variable.", "NAME")
    ),
    "spark": Parameter("spark", "SparkSession | None", None),
    "tell": Parameter("tell", "Callable[[str], None] | None", None),
    "progress": Parameter("progress", "Callable[[int, int], None]", no_progress),
}
_SECRET = ("password", "password_file", "password_env")
_PASSWORD = "Password"
_OF_TASKS = ("spark", "tell", "progress")
_NARROWING = ("logs", "ledgers", "stop", "restart", "accept_changes")
"""A run with these takes no lease: the operator wants the result now."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A declared command.

    Attributes:
        opens: name of the class of the opened cluster: ``Cluster`` or ``Survey``.
        unit: unit of the progress; empty for a command without tasks.
        shown: the shell's output.
        group: group of the shell command.
        destroys: what the command destroys for ever; empty for a command without a question.
        all_of: a parameter that may be empty on a shell only with ``--all``.
        can_watch: whether the command can repeat until stopped.
        lease_of: a parameter with the name of a log that has a lease of its own; empty for none.
    """

    name: str
    work: Callable[..., Report]
    opens: str
    parameters: tuple[Parameter, ...]
    unit: str
    shown: ShellOutput
    group: str
    destroys: str
    all_of: str
    can_watch: bool
    lease_of: str = ""

    @property
    def help(self) -> str:
        """The help of the command: the docstring of its work without Raises."""
        return (inspect.getdoc(self.work) or "").partition("\n\nRaises:")[0]

    @property
    def signature(self) -> inspect.Signature:
        """The signature of the Python call."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        uri = inspect.Parameter("metadata_uri", kind, default="", annotation=str)
        found = [uri, *(one.in_python for one in self.parameters)]
        return inspect.Signature(found, return_annotation=Report)

    def run(self, uri: str, given: Mapping[str, Any], ask: Ask | None = None) -> Report:
        """Check the arguments, and do the work.

        Raises:
            TypeError: an option is missing or unknown.
        """
        try:
            bound = self.signature.bind(uri, **given)
        except TypeError as error:
            raise TypeError(f"{self.name}() {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        for one in self.parameters:
            values[one.name] = one.checked(values[one.name])
        from bkspark.admin import lease
        from bkspark.cluster.password import Password

        if "password" in values:
            literal, file, env = (values.pop(name) for name in _SECRET)
            values["password"] = Password(file=file, env=env, literal=literal)
        dry_run, no_lease = values.pop("dry_run"), values.pop("no_lease", True)
        is_narrow = any(values.get(name) for name in _NARROWING)
        how = {name: values.pop(name) for name in _OF_TASKS if name in values}
        how["run"] = _runner_of(how.get("spark"), self.name)
        takes_lease = not (no_lease or dry_run or is_narrow)
        run = CommandRun(dry_run=dry_run, ask=ask, takes_lease=takes_lease, **how)
        uri = arguments.metadata_uri(values.pop("metadata_uri"))
        with _cluster_class(self.opens)(uri) as cluster:
            work = partial(self.work, cluster, run, **values)
            return lease.alone(
                *(cluster, self.name, work),
                of_log=str(values.get(self.lease_of, "")),
                is_wanted=run.takes_lease,
                tell=how.get("tell"),
            )


def _cluster_class(name: str) -> "type[Cluster]":
    from bkspark.admin.survey import Survey
    from bkspark.cluster.cluster import Cluster

    return {"Cluster": Cluster, "Survey": Survey}[name]


def _runner_of(spark: "SparkSession | None", verb: str) -> "Runner | None":
    """Return a runner with tasks of ``spark``; None for threads of this process.

    Raises:
        InvalidRequestError: the driver of ``spark`` is on another machine.
    """
    if spark is None:
        return None
    # Imported here: callers without a session may lack Spark.
    from bkspark.spark.actions import SparkRunner
    from bkspark.spark.connect import require_own_driver

    instead = (
        f"use `bkspark {verb}` on a host with the bookies mounted, or spark-submit jobs/{verb}.py"
    )
    require_own_driver(spark, f"an {verb}" if verb[0] in "aeiou" else f"a {verb}", instead)
    return SparkRunner(spark.sparkContext)


VERBS: dict[str, Verb] = {}
"""All declared commands, by name."""


def verb(
    unit: str,
    shown: ShellOutput,
    *,
    group: str = "",
    destroys: str = "",
    all_of: str = "",
    has_lease: bool = False,
    lease_of: str = "",
    can_watch: bool = False,
) -> Callable[[Callable[..., Report]], Callable[..., Report]]:
    """Declare a command by its work function; see ``Verb`` for the arguments.

    Annotations that are no options are names, so that a declaration loads nothing: ``Cluster`` or
    ``Survey``, and ``Password``.

    Args:
        has_lease: whether two concurrent runs would do the same work twice.
    """

    def declare(work: Callable[..., Report]) -> Callable[..., Report]:
        cluster, _run, *own = inspect.signature(work).parameters.values()
        found = [_own(one) for one in own if one.annotation != _PASSWORD]
        takes_password = any(one.annotation == _PASSWORD for one in own)
        shared = ("dry_run", *(_SECRET if takes_password else ()), *_OF_TASKS[: 3 * bool(unit)])
        found += [
            _SHARED[name] for name in (*shared, *(("no_lease",) if has_lease or lease_of else ()))
        ]
        facts = (unit, shown, group, destroys, all_of, can_watch, lease_of)
        made = Verb(work.__name__, work, cluster.annotation, tuple(found), *facts)
        VERBS[made.name] = made
        return _call_of(made)

    return declare


def _own(one: inspect.Parameter) -> Parameter:
    kind, option = get_args(one.annotation)
    return Parameter(one.name, kind, one.default, option)


def _call_of(made: Verb) -> Callable[..., Report]:
    """Return the Python call, with a signature and a docstring listing all options."""

    def call(metadata_uri: str = "", **given: Any) -> Report:
        return made.run(metadata_uri, given)

    lines = [
        fill(f"    {one.name}: {one.option.help}", 92, subsequent_indent=" " * 8)
        for one in made.parameters
        if one.option is not None
    ]
    _, _, raises = (inspect.getdoc(made.work) or "").partition("\n\nRaises:")
    shared = f"``{__package__}`` describes the arguments shared by all commands."
    args = "\n".join(["Args:", *lines])
    call.__doc__ = f"{made.help}\n\n{shared}\n\n{args}" + (f"\n\nRaises:{raises}" if raises else "")
    call.__name__ = call.__qualname__ = made.name
    call.__module__ = made.work.__module__
    call.__signature__ = made.signature  # type: ignore[attr-defined]
    return call


def item_of(kind: Any) -> Any:
    """Return the item type of a collection parameter, else None."""
    return get_args(kind)[0] if get_origin(kind) is Collection else None


# --- shared --------------------------------------------------------------------------------------
# Options shared by several commands.


def ids(_name: str, given: Collection[int]) -> list[int]:
    """Check ledger ids."""
    return [arguments.whole_number("a ledger id", number) for number in given]


def rate(name: str, given: float | None) -> float | None:
    """Check a rate in bytes per second."""
    if given is not None:
        arguments.require_number(name, given, hint="give bytes, for example 50000000")
    return given


def seconds(name: str, given: float) -> float:
    """Check seconds, 0 or more."""
    return arguments.duration(name, given, hint="give seconds", may_be_0=True)


def some_seconds(name: str, given: float | None) -> float | None:
    return None if given is None else seconds(name, given)


def time_option(help_: str, check: Any = seconds) -> Option:
    """Return an option for a time; a shell takes the time with a unit."""
    return Option(help_, "TIME", parse=seconds_of, check=check)


Logs = Annotated[
    Collection[str], Option("Work on this log only; may be repeated.", "NAME", "--log")
]
Ledgers = Annotated[
    Collection[int],
    Option("Work on this ledger only; may be repeated.", "ID", "--ledger", check=ids),
]
Rate = Annotated[
    float | None,
    Option(
        "Read from and write to each bookie at most this many bytes per second, for example 50MB; "
        "default: unlimited.",
        "SIZE",
        parse=size_of,
        check=rate,
    ),
]
OpenGrace = Annotated[
    float,
    time_option(
        "Recover an open ledger after this many seconds without a change; on a shell also 1h."
    ),
]
LogName = Annotated[str, Option("Name of the log.", "LOG", "")]


# --- tables --------------------------------------------------------------------------------------
# The columns of reports' tables for people.


COPIES: Columns = {
    "ledger": "ledger_id",
    "entries": lambda row: f"{row['first_entry_id']} to {row['last_entry_id']}",
    "bookie": "bookie_id",
    "copies": "copies",
    "missing": "missing",
    "reason": "reason",
}
FREED: Columns = {
    "ledger": "ledger_id",
    "log": "log",
    "files": "files",
    "bytes": "bytes",
    "bookie": "bookie_id",
    "reason": "reason",
}
COMPACTED: Columns = {
    "new ledger": "ledger_id",
    "first offset": "first_offset",
    "entries": "entries",
    "bytes": "bytes",
    "in place of ledgers": "ledgers",
}
DAMAGE: Columns = {
    "ledger": "ledger_id",
    "bookie": "bookie_id",
    "file": "file",
    "offset": "offset",
    "block": "block",
    "reason": "reason",
}
STEPS: Columns = {
    "ledger": "ledger_id",
    "from entry": "fragment",
    "bookie": "bookie_id",
    "copies left": "copies_left",
    "way": "way",
    "reason": "reason",
}
RECOVERED: Columns = {
    "ledger": "ledger_id",
    "last entry": "last_entry_id",
    "state": "state",
    "groups kept": "groups_kept",
    "losses": "losses",
}
MOVED: Columns = {
    "ledger": "ledger_id",
    "from entry": "fragment",
    "bookie": "bookie_id",
    "to": "to",
}
LEVELS: Columns = {
    "bookie": "bookie_id",
    "used": "used_bytes",
    "after": "bytes_after",
    "disk": "disk_bytes",
    "takes": "takes",
}
