"""Commands to add a bookie, declare a bookie lost, and sweep bookies; see ``bookie_life``."""

from typing import Annotated

import typer

from bkspark.admin.maintenance import Report
from bkspark.cli import commands
from bkspark.cli.output import Column, note, print_done, print_json, print_rows
from bkspark.cli.session import (
    COMMON,
    AcceptStorageRiskOption,
    LabelOption,
    StoreOption,
    require_consent,
    session_of,
)
from bkspark.quantities import plural

# --- bookie life ---------------------------------------------------------------------------------
# Commands for an existing bookie: close, reopen, mark, label, move, initialise anew, remove.


BookieArgument = Annotated[str, typer.Argument(metavar="ID", help="The bookie's id.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan; change nothing.")]


def _add_life_to(one: typer.Typer) -> None:
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

    A label says for example its rack, zone or host. `bkspark bookies` shows them. Copies are
    spread over regions, zones, racks and hosts; a log may insist on labels (minDistinct).
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
        str,
        typer.Argument(
            metavar="URL", help="New URL of its storage: file://…, s3://…, gs://… or abfss://…."
        ),
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


# --- bookies -------------------------------------------------------------------------------------


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    one = typer.Typer(name="bookie", help="Manage bookies.", rich_markup_mode=None)
    one.command("add", epilog=COMMON)(add)
    one.command("lost", epilog=COMMON)(lost)
    one.command("sweep", epilog=COMMON)(sweep)
    _add_life_to(one)
    commands.add_to(one, "bookie")
    app.add_typer(one)


def add(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="URL of an empty place: file:///directory, s3://bucket/prefix, gs://… or abfss://….",
        ),
    ],
    bookie_id: Annotated[
        str,
        typer.Option(
            "--id",
            metavar="ID",
            help="Id of the bookie; default: bookie-N, with the next free number.",
        ),
    ] = "",
    label: LabelOption = None,
    store: StoreOption = "",
    accept_storage_risk: AcceptStorageRiskOption = False,
) -> None:
    """Make an empty place a bookie of the cluster.

    New ledgers and recoveries use the bookie at once. Repeat the command after an interruption.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        record = cluster.add_bookie(
            bookie_id, url, accepts_risk=accept_storage_risk, labels=label or (), store=store
        )
    print_done(
        {"added_bookie": record.bookie_id, "incarnation": record.incarnation},
        f"added bookie {record.bookie_id}",
        as_json=session.as_json,
    )


def lost(
    context: typer.Context,
    bookie_id: Annotated[str, typer.Argument(metavar="ID", help="The bookie's id.")],
    incarnation: Annotated[
        str,
        typer.Option(metavar="HEX", help="Lost incarnation; default: the registered incarnation."),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Declare that a bookie will never come back. Refused while the bookie answers.

    Recoveries stop waiting for the bookie, and nothing is placed there again. No entry is given up
    yet: `bkspark ledger recover --accept-loss` does so, for one ledger. The declaration cannot be
    taken back.
    """
    from bkspark.admin.absent_bookies import declare_lost

    session = session_of(context)
    with session.cluster() as cluster:
        require_consent(f"Declare bookie {bookie_id} lost for ever, with all its data?", yes=yes)
        member = declare_lost(cluster, bookie_id, incarnation)
    print_done(
        {"lost_bookie": member.bookie_id, "incarnation": member.incarnation},
        f"bookie {member.bookie_id} is lost (incarnation {member.incarnation})",
        as_json=session.as_json,
    )


def sweep(
    context: typer.Context,
    bookie_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Ids of the bookies; default: all."),
    ] = None,
) -> None:
    """Remove unfinished files left by killed writers. Exit status 1 if a bookie fails.

    Only closed or deleted ledgers are swept, so no working writer is disturbed. Files with their
    final name are not touched. Run the command at any time, as often as you like.
    """
    from bkspark.admin.leftovers import sweep_leftovers

    session = session_of(context)
    with session.cluster() as cluster:
        report = sweep_leftovers(cluster, bookie_ids or (), tell=note)
    rows = [
        {"bookie_id": name, "removed_files": count, "problem": report.problems.get(name)}
        for name, count in report.removed.items()
    ]
    print_rows(rows, _SWEPT_COLUMNS, as_json=session.as_json)
    note(f"removed {plural(sum(report.removed.values()), 'unfinished file')}")
    raise typer.Exit(1 if report.problems else 0)


_SWEPT_COLUMNS = (
    Column("bookie", "bookie_id"),
    Column("removed", "removed_files"),
    Column("problem", "problem"),
)
