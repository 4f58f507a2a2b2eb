"""Commands for unreadable metadata records."""

from dataclasses import asdict
from typing import Annotated

import typer

from bkspark.cli.logs import DryRunOption, YesOption
from bkspark.cli.output import Column, print_done, print_rows
from bkspark.cli.session import (
    COMMON,
    CommandSession,
    StoreOption,
    require_consent,
    session_of,
)
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.storage.address import with_store

_COLUMNS = (
    Column("record", "key"),
    Column("reason", "reason"),
    Column("all that needs the record", "rests"),
    Column("way out", "way_out"),
)


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    one = typer.Typer(name="metadata", help="Records of the metadata store.", rich_markup_mode=None)
    one.command("damaged", epilog=COMMON)(damaged)
    one.command("set-aside", epilog=COMMON)(set_aside)
    app.add_typer(one)


def damaged(context: typer.Context) -> None:
    """List unreadable metadata records, and what needs each record.

    Exit status 1 if any exist. Reads all records.
    """
    from bkspark.admin import damaged_records

    session = session_of(context)
    with session.cluster() as cluster:
        rows = [asdict(one) for one in damaged_records.find_damaged(cluster)]
    print_rows(rows, _COLUMNS, as_json=session.as_json)
    raise typer.Exit(1 if rows else 0)


def set_aside(
    context: typer.Context,
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="Key of the record, as `bkspark metadata damaged` shows it."
        ),
    ],
    url: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the bookie whose record is restored; for cluster: URL of any bookie.",
        ),
    ] = "",
    store: StoreOption = "",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Set an unreadable metadata record aside, to continue without the record.

    The record's bytes are kept under another key. No rows are deleted on bookies. A ledger or log
    whose record is set aside counts as absent. A bookie's record is restored from the cookie at
    --url; nothing new is placed there until `bkspark bookie readonly ID --off`. The record
    `cluster` is restored from the cookie of any bookie.
    """
    session = session_of(context)
    url = with_store(url, store)
    if dry_run:
        rests = _rests(session, record)
        facts = {"record": record, "rests": rests}
        print_done(
            facts, f"would set {record} aside; on it rests: {rests}", as_json=session.as_json
        )
        return
    if record == layout.CLUSTER_KEY:
        require_consent(
            "All of the cluster depends on this record. Make it again from the cookie?", yes=yes
        )
        from bkspark.admin import damaged_records

        kept = damaged_records.set_cluster_aside(session.named_uri(), url)
    else:
        kept = _set_aside(session, record, url, yes=yes)
    print_done(
        {"record": record, "kept": kept},
        f"set {record} aside; the metadata store keeps its bytes as {kept}",
        as_json=session.as_json,
    )


def _rests(session: CommandSession, record: str) -> str:
    """Return what needs the record.

    Raises:
        InvalidRequestError: the record is not one that can be set aside.
    """
    if record == layout.CLUSTER_KEY:
        return "everything"
    from bkspark.admin import damaged_records

    with session.cluster() as cluster:
        found = damaged_records.look_at(cluster, record)
    if found is None or not found.can_be_set_aside:
        way_out = "`bkspark metadata damaged` lists those that cannot be read"
        raise InvalidRequestError(
            f"metadata record {record!r} is not set aside",
            hint=way_out if found is None else found.way_out,
        )
    return found.rests


def _set_aside(session: CommandSession, record: str, url: str, *, yes: bool) -> str:
    from bkspark.admin import damaged_records

    with session.cluster() as cluster:
        found = damaged_records.look_at(cluster, record)
        if found is not None:
            require_consent(f"{found.rests} depends on {record}. Set it aside?", yes=yes)
        return damaged_records.set_aside(cluster, record, url=url)
