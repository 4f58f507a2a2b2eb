"""The maintenance verbs on a shell: one command each, with what all of them have in common."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bkspark import verbs
from bkspark.admin.collecting.run import ABANDONED_AFTER_SECONDS
from bkspark.admin.draining.run import VERB as DECOMMISSION
from bkspark.admin.maintenance import Report
from bkspark.admin.recovering.plan import OPEN_GRACE_SECONDS
from bkspark.cli.output import (
    Column,
    note,
    plural,
    print_json,
    print_pairs,
    print_table,
    progress_bar,
)
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, session_of
from bkspark.errors import InvalidRequestError
from bkspark.protocol.log.compaction import TARGET_BYTES
from bkspark.quantities import seconds_of, size_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan; change nothing.")]
LogsOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only this log. May be repeated.")
]
LedgersOption = Annotated[
    list[int] | None, typer.Option(metavar="ID", help="Only this ledger. May be repeated.")
]
RateOption = Annotated[
    float | None,
    typer.Option(
        "--max-bytes-per-second",
        metavar="SIZE",
        parser=size_of("--max-bytes-per-second"),
        help="No more than that of each bookie, for example 50MB.",
    ),
]
NoLeaseOption = Annotated[
    bool, typer.Option("--no-lease", help="Run also beside another run of this command.")
]
YesOption = Annotated[
    bool,
    typer.Option(
        "--yes", "-y", help="Taken by every verb; this one deletes nothing and never asks."
    ),
]
OpenGraceOption = Annotated[
    float,
    typer.Option(
        metavar="TIME",
        parser=seconds_of("--open-grace"),
        help="How long an open ledger must be seen unchanged, for example 1h.",
    ),
]
SparkOption = Annotated[
    bool, typer.Option("--spark", help="By tasks of a Spark session, not by threads.")
]

_COPIES = (
    Column("ledger", "ledger_id"),
    Column("entries", lambda row: f"{row['first_entry_id']} to {row['last_entry_id']}"),
    Column("bookie", "bookie_id"),
    Column("copies", "copies"),
    Column("missing", "missing"),
    Column("reason", "reason"),
)
_FREED = (
    Column("ledger", "ledger_id"),
    Column("log", "log"),
    Column("files", "files"),
    Column("bytes", "bytes"),
    Column("bookie", "bookie_id"),
    Column("reason", "reason"),
)
_COMPACTED = (
    Column("new ledger", "ledger_id"),
    Column("first offset", "first_offset"),
    Column("entries", "entries"),
    Column("bytes", "bytes"),
    Column("in place of ledgers", "ledgers"),
)
_DAMAGE = (
    Column("ledger", "ledger_id"),
    Column("bookie", "bookie_id"),
    Column("file", "file"),
    Column("offset", "offset"),
    Column("block", "block"),
    Column("reason", "reason"),
)
STEP_COLUMNS = (
    Column("ledger", "ledger_id"),
    Column("from entry", "fragment"),
    Column("bookie", "bookie_id"),
    Column("copies left", "copies_left"),
    Column("way", "way"),
    Column("reason", "reason"),
)
_RECOVERED = (
    Column("ledger", "ledger_id"),
    Column("last entry", "last_entry_id"),
    Column("state", "state"),
    Column("groups kept", "groups_kept"),
    Column("losses", "losses"),
)
_LEFT_MAX = 5


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command(epilog=COMMON)(audit)
    app.command(epilog=COMMON)(collect)
    app.command(epilog=COMMON)(compact)
    app.command(epilog=COMMON)(recover)
    app.command(epilog=COMMON)(scrub)


def audit(
    context: typer.Context,
    log: LogsOption = None,
    ledger: LedgersOption = None,
    dry_run: DryRunOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Missing copies, and ledgers that wait for recovery.

    Says which, on which bookies, and why. Reads records and looks at files, and no rows. Exit
    status 1 if something is not well.
    """
    del yes
    session = session_of(context)
    with progress_bar("ledgers") as progress:
        report = verbs.audit(
            session.metadata_uri,
            logs=log or (),
            ledgers=ledger or (),
            dry_run=dry_run,
            spark=spark_session("bkspark audit") if spark else None,
            tell=note,
            progress=progress,
        )
    show(report, "copies", _COPIES, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def collect(
    context: typer.Context,
    abandoned_after: Annotated[
        float,
        typer.Option(
            metavar="TIME",
            parser=seconds_of("--abandoned-after"),
            help="Time before an unfinished write counts as abandoned; a longer write fails at "
            "commit.",
        ),
    ] = ABANDONED_AFTER_SECONDS,
    dry_run: DryRunOption = False,
    no_lease: NoLeaseOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Free the space of what was deleted, and of what nobody wants.

    Of deleted ledgers and logs, of what retention, truncation and overwriting let go of, of
    writes that were aborted or killed, and of closed ledgers where they have no place any more, or
    no record names a file. Can be killed at any point and run again, beside anything
    else. A bookie that is away is owed it until it is back. Exit status 1 if something is left.
    """
    del yes
    session = session_of(context)
    with progress_bar("ledgers") as progress:
        report = verbs.collect(
            session.metadata_uri,
            abandoned_after=abandoned_after,
            dry_run=dry_run,
            no_lease=no_lease,
            spark=spark_session("bkspark collect") if spark else None,
            tell=note,
            progress=progress,
        )
    show(report, "ledgers", _FREED, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def compact(
    context: typer.Context,
    log: Annotated[str, typer.Argument(metavar="LOG", help="The log's name.")],
    target_bytes: Annotated[
        int,
        typer.Option(
            metavar="SIZE",
            parser=size_of("--target-bytes", least=1),
            help="A large ledger, for example 512MB. Those of up to half of it are small.",
        ),
    ] = TARGET_BYTES,
    dry_run: DryRunOption = False,
    max_bytes_per_second: RateOption = None,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Make large ledgers of a log's small ones.

    Offsets, and what is at each, stay as they are; _ledger_id and _entry_id name the new ledgers.
    Nobody who reads or writes is disturbed, and it can be killed at any point and run again.
    `bkspark collect` frees the old ledgers once readers had a day. Exit status 1 if something is
    left; it says what and why.
    """
    del yes
    session = session_of(context)
    with progress_bar("ledgers") as progress:
        report = verbs.compact(
            session.metadata_uri,
            log=log,
            target_bytes=target_bytes,
            dry_run=dry_run,
            password_file=password_file,
            password_env=password_env,
            max_bytes_per_second=max_bytes_per_second,
            spark=spark_session("bkspark compact") if spark else None,
            progress=progress,
        )
    show(report, "compacted", _COMPACTED, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def recover(
    context: typer.Context,
    ledger: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="These, whoever writes to them.")
    ] = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="Every ledger whose writer is gone.")
    ] = False,
    open_grace: OpenGraceOption = OPEN_GRACE_SECONDS,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    dry_run: DryRunOption = False,
    no_lease: NoLeaseOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Close many ledgers in one run.

    No acknowledged entry is lost. With --all those that wait for a recovery, and open ones that
    were seen unchanged for --open-grace; what is seen is remembered from run to run. What cannot
    be decided yet is left with the reason, and holds up no other. Exit status 1 if something is.
    The ledger that an unbounded log goes on in is OPEN again then; --all leaves it alone if
    nothing was written since it was the last time.
    """
    del yes
    if bool(ledger) is is_all:
        raise InvalidRequestError(
            "neither ledgers nor --all were given" if not ledger else "--all goes without ledgers",
            hint="name the ledgers, or give --all for every one whose writer is gone",
        )
    session = session_of(context)
    with progress_bar("ledgers") as progress:
        report = verbs.recover(
            session.metadata_uri,
            ledgers=ledger or (),
            open_grace=open_grace,
            dry_run=dry_run,
            password_file=password_file,
            password_env=password_env,
            no_lease=no_lease,
            spark=spark_session("bkspark recover") if spark else None,
            tell=note,
            progress=progress,
        )
    show(report, "recovered", _RECOVERED, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def scrub(
    context: typer.Context,
    log: LogsOption = None,
    ledger: LedgersOption = None,
    sample: Annotated[
        float, typer.Option(metavar="FRACTION", help="So much of the files, drawn by chance.")
    ] = 1.0,
    max_bytes_per_second: RateOption = None,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    dry_run: DryRunOption = False,
    no_lease: NoLeaseOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Read every copy and check every byte.

    What is damaged is named and marked: an audit counts it as missing until it was made again.
    Without a ledger's password only what needs none is checked of it. Exit status 1 if something
    is damaged or could not be read.
    """
    del yes
    session = session_of(context)
    with progress_bar("ledgers") as progress:
        report = verbs.scrub(
            session.metadata_uri,
            logs=log or (),
            ledgers=ledger or (),
            sample=sample,
            max_bytes_per_second=max_bytes_per_second,
            password_file=password_file,
            password_env=password_env,
            dry_run=dry_run,
            no_lease=no_lease,
            spark=spark_session("bkspark scrub") if spark else None,
            tell=note,
            progress=progress,
        )
    show(report, "damage", _DAMAGE, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def spark_session(name: str) -> "SparkSession":
    """The session that is there, or a new one.

    Raises:
        InvalidRequestError: Spark is not installed.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InvalidRequestError(
            "--spark needs Spark, which is not installed", hint="pip install 'bkspark[spark]'"
        ) from error
    return SparkSession.builder.appName(name).getOrCreate()


def show(report: Report, table: str, columns: Sequence[Column], *, as_json: bool) -> None:
    """The whole report as JSON; for people its table, and what is left in a few lines."""
    if as_json:
        print_json(report.document)
        return
    if not report.done:
        print_pairs(report.plan)
        for left in report.left:  # why it was not begun
            note(f"{left.subject}: {left.reason}; {left.hint}")
        return
    if report.details[table] or not sys.stdout.isatty():
        print_table(report.details[table], columns)
    for left in report.left[:_LEFT_MAX]:
        hint = f" ({left.hint})" if left.hint and report.verb == DECOMMISSION else ""
        note(f"{left.subject}: {left.reason}{hint}")
    if len(report.left) > _LEFT_MAX:
        note(f"and {len(report.left) - _LEFT_MAX:,} more; --json lists them all")
    note(outcome(report))


def outcome(report: Report) -> str:
    """What was done and found, in a line for people."""
    done = ", ".join(plural(count, what.removesuffix("s")) for what, count in report.done.items())
    return f"{report.verb}: {done}: {report.verdict}"
