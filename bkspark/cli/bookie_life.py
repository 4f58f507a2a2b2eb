"""Commands for an existing bookie: close, reopen, mark, label, move, initialise anew, remove."""

from typing import Annotated

import typer

from bkspark.admin.maintenance import Report
from bkspark.cli.output import note, print_json
from bkspark.cli.session import (
    COMMON,
    AcceptStorageRiskOption,
    StoreOption,
    require_consent,
    session_of,
)

BookieArgument = Annotated[str, typer.Argument(metavar="ID", help="The bookie's id.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan; change nothing.")]


def add_to(one: typer.Typer) -> None:
    """Declare the commands."""
    one.command("readonly", epilog=COMMON)(readonly)
    one.command("marks", epilog=COMMON)(marks)
    one.command("label", epilog=COMMON)(label)
    one.command("move", epilog=COMMON)(move)
    one.command("reinit", epilog=COMMON)(reinit)
    one.command("remove", epilog=COMMON)(remove)


def readonly(
    context: typer.Context,
    bookie_id: BookieArgument,
    off: Annotated[
        bool, typer.Option("--off", help="Place new ledgers on the bookie again.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Place no new ledgers on a bookie.

    Its data stays readable. Current writers use the bookie until their ledger ends or is rolled.
    """
    from bkspark.admin.bookies.closing import set_read_only

    with session_of(context).cluster() as cluster:
        report = set_read_only(cluster, bookie_id, off=off, dry_run=dry_run)
    _end(context, report)


def marks(
    context: typer.Context,
    bookie_id: BookieArgument,
    high: Annotated[
        float | None,
        typer.Option(
            metavar="FRACTION", help="Place no new ledgers above this used fraction of the disk."
        ),
    ] = None,
    low: Annotated[
        float | None,
        typer.Option(metavar="FRACTION", help="Place new ledgers again below this used fraction."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Set how full the disk of a bookie may get.

    Above --high nothing new is placed on the bookie until less than --low is used. Defaults: 0.95
    and 0.9. 1 is never exceeded.
    """
    from bkspark.admin.bookies.closing import set_marks

    with session_of(context).cluster() as cluster:
        report = set_marks(cluster, bookie_id, high=high, low=low, dry_run=dry_run)
    _end(context, report)


def label(
    context: typer.Context,
    bookie_id: BookieArgument,
    labels: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="Labels to set, such as zone=eu-1."),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Remove this label; may be repeated."),
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Set and remove labels of a bookie.

    A label says for example its rack, zone or host. `bkspark bookies` shows them. Placement does
    not use them yet: it spreads copies over failure domains.
    """
    from bkspark.admin.bookies.closing import set_labels

    with session_of(context).cluster() as cluster:
        report = set_labels(
            cluster, bookie_id, labels=labels or (), remove=remove or (), dry_run=dry_run
        )
    _end(context, report)


def move(
    context: typer.Context,
    bookie_id: BookieArgument,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="New URL of its storage: file://… or s3://….")
    ],
    store: StoreOption = "",
    accept_storage_risk: AcceptStorageRiskOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Register a new URL for a bookie's storage, or a new store.

    The new place must show the bookie's own cookie, and the old place must be gone or be the same
    storage under another name. Nothing is copied.
    """
    from bkspark.admin.bookies import moving

    how = {"accepts_risk": accept_storage_risk, "dry_run": dry_run}
    with session_of(context).cluster() as cluster:
        report = moving.move(cluster, bookie_id, url, **how, store=store)
    _end(context, report)


def reinit(
    context: typer.Context,
    bookie_id: BookieArgument,
    accept_storage_risk: AcceptStorageRiskOption = False,
    make_folder: Annotated[
        bool,
        typer.Option(
            "--make-folder",
            help="Make the bookie even if its folder is missing, or has moved to the root disk.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Initialise a bookie anew after its place was emptied.

    The bookie keeps its id. Ledgers count its former data as lost. The command is refused while the
    place has a cookie or any other file, and while its disk seems not mounted.
    """
    from bkspark.admin.bookies import reinitialising

    accepted = {"accepts_risk": accept_storage_risk, "makes_folder": make_folder}
    with session_of(context).cluster() as cluster:
        if not dry_run:
            planned = reinitialising.reinit(cluster, bookie_id, **accepted, dry_run=True)
            require_consent(f"Do this: {'; '.join(planned.plan['steps'])}?", yes=yes)
        report = reinitialising.reinit(cluster, bookie_id, **accepted, dry_run=dry_run)
    _end(context, report)


def remove(
    context: typer.Context,
    bookie_id: BookieArgument,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Remove a bookie that was declared lost, even if ledgers name it."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Remove a bookie no ledger names from the cluster.

    Exit status 1 if a ledger names the bookie, or may be about to. Its storage is not touched, and
    its id is never used again.
    """
    from bkspark.admin.bookies import removing

    with session_of(context).cluster() as cluster:
        report = removing.remove(cluster, bookie_id, force=force, dry_run=True)
        if report.plan["steps"] and not dry_run:
            require_consent(f"Remove bookie {bookie_id} from the cluster for ever?", yes=yes)
            report = removing.remove(cluster, bookie_id, force=force)
    _end(context, report)


def _end(context: typer.Context, report: Report) -> None:
    """Show the report and exit with its status."""
    if session_of(context).as_json:
        print_json(report.document)
    else:
        steps = report.plan["steps"]
        for step in steps if report.done or not report.left else ():
            note(f"done: {step}" if report.done else f"would {step}")
        for left in report.left:
            note(f"left: {left.subject}: {left.reason} ({left.hint})")
        if not (steps or report.left):
            note("nothing to do")
    raise typer.Exit(report.exit_status)
