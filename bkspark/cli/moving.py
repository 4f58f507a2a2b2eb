"""The verbs that give places of ledgers to other bookies, on a shell."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bkspark import verbs
from bkspark.admin.maintenance import Left, Report
from bkspark.cli.maintenance import (
    STEP_COLUMNS,
    DryRunOption,
    NoLeaseOption,
    RateOption,
    SparkOption,
    YesOption,
    show,
    spark_session,
)
from bkspark.cli.output import Column, note, plural, print_table, progress_bar
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, require_consent, session_of
from bkspark.protocol.upkeep.balancing import THRESHOLD

_SHOWN_MAX = 5
_MOVED = (
    Column("ledger", "ledger_id"),
    Column("from entry", "fragment"),
    Column("bookie", "bookie_id"),
    Column("to", "to"),
)
_LEVELS = (
    Column("bookie", "bookie_id"),
    Column("used", "used_bytes"),
    Column("after", "bytes_after"),
    Column("disk", "disk_bytes"),
    Column("takes", "takes"),
)

ForceOption = Annotated[
    bool, typer.Option("--force", help="Though ledgers stand in the way, where others have them.")
]


def add_to_bookie(one: typer.Typer) -> None:
    """Declare what is said of bookies by name."""
    one.command("decommission", epilog=COMMON)(decommission)


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command(epilog=COMMON)(rebalance)


def rebalance(
    context: typer.Context,
    threshold: Annotated[
        float,
        typer.Option(metavar="FRACTION", help="So far a bookie may be from the mean."),
    ] = THRESHOLD,
    dry_run: DryRunOption = False,
    max_bytes_per_second: RateOption = None,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    no_lease: NoLeaseOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Even out how much is on each bookie, after some were added.

    Copies of closed ledgers move, the fullest bookie's first, until none is farther from the mean
    than the threshold, or nothing helps. Reckoned are bytes of ledgers as bookies report them, by
    the size of the disk where all are known. Exit status 1 if something is left.
    """
    del yes
    session = session_of(context)
    with progress_bar("places") as progress:
        report = verbs.rebalance(
            session.metadata_uri,
            threshold=threshold,
            dry_run=dry_run,
            password_file=password_file,
            password_env=password_env,
            max_bytes_per_second=max_bytes_per_second,
            no_lease=no_lease,
            spark=spark_session("bkspark rebalance") if spark else None,
            tell=note,
            progress=progress,
        )
    if dry_run and not session.as_json:
        print_table(report.plan["bookies"], _LEVELS)
        print_table(report.plan["steps"], _MOVED)
    else:
        show(report, "moved", _MOVED, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def decommission(
    context: typer.Context,
    bookie_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Which bookies.")],
    force: ForceOption = False,
    dry_run: DryRunOption = False,
    max_bytes_per_second: RateOption = None,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    spark: SparkOption = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Empty bookies, and remove them from the cluster.

    Nothing new is placed on them, what they have of closed ledgers goes to others, and those that
    no ledger names any more are removed, for ever. What stands in the way is named, and the same
    command goes on later; `bkspark bookie readonly ID --off` takes it back before the end. Exit
    status 1 if something is left.
    """
    session = session_of(context)
    once = partial(
        verbs.decommission,
        session.metadata_uri,
        bookies=bookie_ids,
        password_file=password_file,
        password_env=password_env,
        max_bytes_per_second=max_bytes_per_second,
        spark=spark_session("bkspark bookie decommission") if spark else None,
        tell=note,
    )

    def run(*, force: bool = False, dry_run: bool = False) -> Report:
        with progress_bar("places") as progress:
            return once(progress=progress, force=force, dry_run=dry_run)

    report = run(dry_run=True)
    if dry_run:
        _show_plan(report, as_json=session.as_json)
        raise typer.Exit(0)
    names = ", ".join(report.plan["bookies"])
    places = plural(report.plan["places"], "place")
    if names:
        require_consent(f"Give {places} of {names} to others, and remove them for ever?", yes=yes)
    report = run()
    if report.left and force:
        question = f"Remove {names} all the same, though this is left: {_named(report.left)}?"
        require_consent(question, yes=yes)
        report = run(force=True)
    show(report, "moved", STEP_COLUMNS, as_json=session.as_json)
    raise typer.Exit(report.exit_status)


def _named(left: Sequence[Left]) -> str:
    more = f" and {len(left) - _SHOWN_MAX:,} more" if len(left) > _SHOWN_MAX else ""
    return ", ".join(item.subject for item in left[:_SHOWN_MAX]) + more


def _show_plan(report: Report, *, as_json: bool) -> None:
    if as_json:
        show(report, "", (), as_json=True)
        return
    print_table(report.plan["steps"], STEP_COLUMNS)
    for left in report.plan["blocked"]:
        note(f"in the way: {left['subject']}: {left['reason']} ({left['hint']})")
