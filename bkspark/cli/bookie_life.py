"""Commands about the life of a bookie that is there already: closed to new ledgers, and open."""

from typing import Annotated

import typer

from bkspark.admin.bookies import moving, reinitialising, removing
from bkspark.admin.bookies.closing import set_marks, set_read_only
from bkspark.admin.maintenance import Report
from bkspark.cli.output import note, print_json
from bkspark.cli.session import COMMON, AcceptStorageRiskOption, require_consent, session_of

BookieArgument = Annotated[str, typer.Argument(metavar="ID", help="The bookie's id.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")
]


def add_to(one: typer.Typer) -> None:
    """Declare the commands."""
    one.command("readonly", epilog=COMMON)(readonly)
    one.command("marks", epilog=COMMON)(marks)
    one.command("move", epilog=COMMON)(move)
    one.command("reinit", epilog=COMMON)(reinit)
    one.command("remove", epilog=COMMON)(remove)


def readonly(
    context: typer.Context,
    bookie_id: BookieArgument,
    off: Annotated[bool, typer.Option("--off", help="Place new ledgers on it again.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Place no new ledgers on a bookie.

    What it has is read as before. Whoever writes to it already goes on until his ledger ends or
    is rolled.
    """
    with session_of(context).cluster() as cluster:
        report = set_read_only(cluster, bookie_id, off=off, dry_run=dry_run)
    _end(context, report)


def marks(
    context: typer.Context,
    bookie_id: BookieArgument,
    high: Annotated[
        float | None,
        typer.Option(metavar="FRACTION", help="Above it nothing new is placed there."),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option(metavar="FRACTION", help="Below it something is, once that was passed."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """How full the disk of a bookie may get.

    Above one mark nothing new is placed on it until less is used than the other says. They are
    0.95 and 0.9 if nothing else was said; 1 is never passed.
    """
    with session_of(context).cluster() as cluster:
        report = set_marks(cluster, bookie_id, high=high, low=low, dry_run=dry_run)
    _end(context, report)


def move(
    context: typer.Context,
    bookie_id: BookieArgument,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Where its storage is now: file://… or s3://….")
    ],
    accept_storage_risk: AcceptStorageRiskOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Say that a bookie's storage is at another URL.

    The new place must show the bookie's very cookie, and the old one must be gone or be the same
    storage by another name. Nothing is copied.
    """
    with session_of(context).cluster() as cluster:
        report = moving.move(
            cluster, bookie_id, url, accepts_risk=accept_storage_risk, dry_run=dry_run
        )
    _end(context, report)


def reinit(
    context: typer.Context,
    bookie_id: BookieArgument,
    accept_storage_risk: AcceptStorageRiskOption = False,
    make_folder: Annotated[
        bool,
        typer.Option(
            "--make-folder",
            help="Begin it although its folder is missing, or is on the root disk and was not.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Begin a bookie anew whose place was emptied.

    It keeps its id. What ledgers say of it is about what it was before, which is lost. Refused
    while its place has a cookie, or anything else, and while its disk seems not to be mounted.
    """
    accepted = {"accepts_risk": accept_storage_risk, "makes_folder": make_folder}
    with session_of(context).cluster() as cluster:
        if not dry_run:
            planned = reinitialising.reinit(cluster, bookie_id, **accepted, dry_run=True)
            require_consent(f"To do: {'; '.join(planned.plan['steps'])}. Go on?", yes=yes)
        report = reinitialising.reinit(cluster, bookie_id, **accepted, dry_run=dry_run)
    _end(context, report)


def remove(
    context: typer.Context,
    bookie_id: BookieArgument,
    force: Annotated[
        bool,
        typer.Option("--force", help="Though ledgers name it: one that was declared lost."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Take a bookie out of the cluster that no ledger names.

    Exit status 1 if ledgers do, or may be about to. Its storage is not touched, and its id is
    never used again.
    """
    with session_of(context).cluster() as cluster:
        report = removing.remove(cluster, bookie_id, force=force, dry_run=True)
        if report.plan["steps"] and not dry_run:
            require_consent(f"Remove bookie {bookie_id} from the cluster, for ever?", yes=yes)
            report = removing.remove(cluster, bookie_id, force=force)
    _end(context, report)


def _end(context: typer.Context, report: Report) -> None:
    """Show what was done, would be, or is left, and exit with what that means."""
    if session_of(context).as_json:
        print_json(report.document)
    else:
        steps = report.plan["steps"]
        for step in steps if report.done or not report.left else ():
            note(f"done: {step}" if report.done else f"would {step}")
        for left in report.left:
            note(f"left: {left.subject}: {left.reason} ({left.hint})")
        if not (steps or report.left):
            note("nothing is left to do")
    raise typer.Exit(report.exit_status)
