"""Commands to add a bookie, declare a bookie lost, and sweep bookies; see ``bookie_life``."""

from typing import Annotated

import typer

from bkspark.cli import bookie_life, commands
from bkspark.cli.output import Column, note, print_done, print_rows
from bkspark.cli.session import (
    COMMON,
    AcceptStorageRiskOption,
    LabelOption,
    StoreOption,
    require_consent,
    session_of,
)
from bkspark.quantities import plural


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    one = typer.Typer(name="bookie", help="Manage bookies.", rich_markup_mode=None)
    one.command("add", epilog=COMMON)(add)
    one.command("lost", epilog=COMMON)(lost)
    one.command("sweep", epilog=COMMON)(sweep)
    bookie_life.add_to(one)
    commands.add_to(one, "bookie")
    app.add_typer(one)


def add(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="URL of an empty place: file:///directory or s3://bucket/prefix."
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
