"""How a maintenance command is declared: once, as a typed function that does its work.

The function takes the opened cluster, how to run, and the command's own options as parameters by
keyword. Each of these has an ``Option`` in its annotation. ``verb`` adds the options that commands
share, and makes the Python call. The shell command is made of the same declaration by
``bkspark.cli.commands``, and the job by ``bkspark.cli.jobs``.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, get_args, get_origin

from bkspark.admin import lease
from bkspark.admin.maintenance import Facts, Progress, Report, Tell
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.ledger.recovery.running import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Ask = Callable[[str], None]
"""Asks the operator a question, and raises an error if the answer is no."""

Columns = Mapping[str, str | Callable[[Facts], Any]]
"""The columns of a table by title: each is a key of a row, or a function of a row."""


def no_progress(_done: int, _total: int) -> None:
    """For callers that do not ask how far a command is."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command.

    Attributes:
        help: a sentence for the operator.
        metavar: the name of its value on a shell; empty for a switch.
        shell: its name on a shell if Python has another one; "" for an argument by position.
        parse: makes the function from text to value, for the option's name on a shell.
        check: makes the value of what Python gives, for the option's name in Python.
    """

    help: str
    metavar: str = ""
    shell: str | None = None
    parse: Callable[[str], Callable[[str | float], Any]] | None = None
    check: Callable[[str, Any], Any] = lambda _name, given: given


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the Python call; without an ``option`` it is of Python alone."""

    name: str
    kind: Any
    default: Any
    option: Option | None = None

    @property
    def is_required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def in_python(self) -> inspect.Parameter:
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default, annotation=self.kind)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of a report or of a plan, as people see them; ``name`` is their key."""

    name: str
    columns: Columns


@dataclass(frozen=True, slots=True)
class Shown:
    """What a shell shows of a report.

    Attributes:
        table: the rows of the report that people see.
        plans: the tables of its plan that people see; the facts if there is none.
        notes: lines about its plan for people.
        said: what was or would be done, in a line for people that replaces all this.
        document: what is shown as JSON; None for the report.
    """

    table: Table | None = None
    plans: tuple[Table, ...] = ()
    notes: Callable[[Facts], Iterable[str]] = lambda _plan: ()
    said: Callable[[Report], str] | None = None
    document: Callable[[Report], Facts] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """How a command runs.

    Attributes:
        ask: asks before something is destroyed for ever; None if nobody is asked.
        takes_lease: whether another run of the same command is to be kept away.
    """

    dry_run: bool
    ask: Ask | None
    takes_lease: bool
    runner: Runner | None = None
    spark: "SparkSession | None" = None
    tell: Tell | None = None
    progress: Progress = no_progress

    @property
    def how(self) -> dict[str, Any]:
        """What the functions of ``bkspark.admin`` take by name."""
        how = {"run": self.runner, "tell": self.tell, "progress": self.progress}
        return {"dry_run": self.dry_run, **how}


_SHARED = {
    "dry_run": Parameter("dry_run", bool, False, Option("Print the plan; change nothing.")),
    "no_lease": Parameter(
        "no_lease", bool, False, Option("Run also beside another run of this command.")
    ),
    "password": Parameter("password", str, ""),
    "password_file": Parameter("password_file", str, "", Option("Holds the password.", "FILE")),
    "password_env": Parameter(
        "password_env", str, "", Option("Environment variable that holds the password.", "NAME")
    ),
    "spark": Parameter("spark", "SparkSession | None", None),
    "tell": Parameter("tell", "Callable[[str], None] | None", None),
    "progress": Parameter("progress", "Callable[[int, int], None]", no_progress),
}
_SECRET = ("password", "password_file", "password_env")
_OF_TASKS = ("spark", "tell", "progress")
_NARROWING = ("logs", "ledgers")
"""A run of named logs or ledgers takes no lease: somebody wants these now."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A declared command.

    Attributes:
        opens: how it opens the cluster.
        unit: what its progress counts; empty for a command that runs no tasks.
        shown: what a shell shows of its report.
        group: the group of commands that has it on a shell.
        destroys: what it destroys for ever; empty for one that never asks.
        all_of: the parameter that may be empty on a shell only if ``--all`` is given.
        can_watch: whether it can be repeated until it is stopped.
    """

    name: str
    work: Callable[..., Report]
    opens: type[Cluster]
    parameters: tuple[Parameter, ...]
    unit: str
    shown: Shown
    group: str
    destroys: str
    all_of: str
    can_watch: bool

    @property
    def help(self) -> str:
        """What it does."""
        return (inspect.getdoc(self.work) or "").partition("\n\nRaises:")[0]

    @property
    def signature(self) -> inspect.Signature:
        """Of its Python call."""
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        uri = inspect.Parameter("metadata_uri", kind, default="", annotation=str)
        found = [uri, *(one.in_python for one in self.parameters)]
        return inspect.Signature(found, return_annotation=Report)

    def run(self, uri: str, given: Mapping[str, Any], ask: Ask | None = None) -> Report:
        """Check what is given, and do the work.

        Raises:
            TypeError: an option is missing, or there is none of that name.
        """
        try:
            bound = self.signature.bind(uri, **given)
        except TypeError as error:
            raise TypeError(f"{self.name}() {error}") from None
        bound.apply_defaults()
        values = bound.arguments
        for one in self.parameters:
            if one.option is not None:
                values[one.name] = one.option.check(one.name, values[one.name])
        if "password" in values:
            literal, file, env = (values.pop(name) for name in _SECRET)
            values["password"] = Password(file=file, env=env, literal=literal)
        dry_run, no_lease = values.pop("dry_run"), values.pop("no_lease", True)
        is_narrow = any(values.get(name) for name in _NARROWING)
        how = {name: values.pop(name) for name in _OF_TASKS if name in values}
        runner = _runner_of(how.get("spark"), self.name)
        run = Run(dry_run, ask, not (no_lease or dry_run or is_narrow), runner, **how)
        with self.opens(arguments.metadata_uri(values.pop("metadata_uri"))) as cluster:
            work = partial(self.work, cluster, run, **values)
            return lease.alone(
                cluster, self.name, work, is_wanted=run.takes_lease, tell=how.get("tell")
            )


def _runner_of(spark: "SparkSession | None", verb: str) -> Runner | None:
    """Tasks of ``spark``; None for threads of this process.

    Raises:
        InvalidRequestError: the driver of ``spark`` is elsewhere.
    """
    if spark is None:
        return None
    # Imported here: a caller without a session need not have Spark.
    from bkspark.spark.actions import SparkRunner
    from bkspark.spark.connect import require_own_driver

    instead = f"use `bkspark {verb}` where the bookies are mounted, or spark-submit jobs/{verb}.py"
    require_own_driver(spark, f"an {verb}" if verb[0] in "aeiou" else f"a {verb}", instead)
    return SparkRunner(spark.sparkContext)


VERBS: dict[str, Verb] = {}
"""All declared commands, by name."""


def verb(
    unit: str,
    shown: Shown,
    *,
    group: str = "",
    destroys: str = "",
    all_of: str = "",
    has_lease: bool = False,
    can_watch: bool = False,
) -> Callable[[Callable[..., Report]], Callable[..., Report]]:
    """Declare a command by the function that does its work; see ``Verb`` for the arguments.

    Args:
        has_lease: whether two runs of it at once would do the same work twice.
    """

    def declare(work: Callable[..., Report]) -> Callable[..., Report]:
        cluster, _run, *own = inspect.signature(work).parameters.values()
        found = [_own(one) for one in own if one.annotation is not Password]
        takes_password = any(one.annotation is Password for one in own)
        shared = ("dry_run", *(_SECRET if takes_password else ()), *_OF_TASKS[: 3 * bool(unit)])
        found += [_SHARED[name] for name in (*shared, *(("no_lease",) if has_lease else ()))]
        facts = (unit, shown, group, destroys, all_of, can_watch)
        made = Verb(work.__name__, work, cluster.annotation, tuple(found), *facts)
        VERBS[made.name] = made
        return _call_of(made)

    return declare


def _own(one: inspect.Parameter) -> Parameter:
    kind, option = get_args(one.annotation)
    return Parameter(one.name, kind, one.default, option)


def _call_of(made: Verb) -> Callable[..., Report]:
    """The Python call, with a signature and a text that show all its options."""

    def call(metadata_uri: str = "", **given: Any) -> Report:
        return made.run(metadata_uri, given)

    lines = [
        fill(f"    {one.name}: {one.option.help}", 92, subsequent_indent=" " * 8)
        for one in made.parameters
        if one.option is not None
    ]
    _, _, raises = (inspect.getdoc(made.work) or "").partition("\n\nRaises:")
    args = "\n".join(["Args:", *lines, f"    The rest is that of all commands: ``{__package__}``."])
    call.__doc__ = f"{made.help}\n\n{args}" + (f"\n\nRaises:{raises}" if raises else "")
    call.__name__ = call.__qualname__ = made.name
    call.__module__ = made.work.__module__
    call.__signature__ = made.signature  # type: ignore[attr-defined]
    return call


def item_of(kind: Any) -> Any:
    """The type of the values of a parameter that takes several, else None."""
    return get_args(kind)[0] if get_origin(kind) is Collection else None
