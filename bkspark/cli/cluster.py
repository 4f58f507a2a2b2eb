"""Commands for the whole cluster: init, demo, doctor, bookies, status."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark.cli import output
from bkspark.cli.output import Column, note, print_json, print_rows, visible
from bkspark.cli.session import (
    COMMON,
    AcceptStorageRiskOption,
    LabelOption,
    StoreOption,
    note_unreadable,
    session_of,
)
from bkspark.cluster.arguments import METADATA_URI_VARIABLE
from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM
from bkspark.quantities import plural

if TYPE_CHECKING:
    from bkspark.protocol.bookies import Candidate

_BOOKIE_COLUMNS = (
    Column("bookie", "bookie_id"),
    Column("state", lambda row: _state(row)),
    Column("free", "free_bytes", is_size=True),
    Column("domain", "domain"),
    Column("url", "url"),
    Column("store", "store"),
    Column("problem", "problem"),
    Column("agent", lambda row: _agent(row["agent"])),
    Column("labels", lambda row: " ".join(f"{n}={v}" for n, v in row["labels"].items())),
)

GroupOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|GID",
        help="Share the cluster with the members of this operating system group; default: all "
        "folders and files belong to one user.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command(epilog=COMMON)(init)
    app.command(epilog=COMMON)(demo)
    app.command(epilog=COMMON)(doctor)
    app.command(epilog=COMMON)(bookies)
    app.command(epilog=COMMON)(status)


def init(
    context: typer.Context,
    uri: Annotated[
        str,
        typer.Argument(
            metavar="URI",
            help="The metadata store: /directory (or file://…), s3://…, gs://…, abfss://… or zk://….",
        ),
    ],
    bookie: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="A bookie: /directory (or file://…), s3://bucket/prefix, gs://… or abfss://…. "
            "Repeat for each bookie.",
        ),
    ] = None,
    group: GroupOption = None,
    label: LabelOption = None,
    store: StoreOption = "",
    accept_storage_risk: AcceptStorageRiskOption = False,
) -> None:
    """Make a new cluster: metadata, and a cookie on every bookie.

    --store holds for the bookies. A URL may also name a store itself: s3://bucket/prefix?store=NAME.
    Repeat the command after an interruption.
    """
    from bkspark.admin import views
    from bkspark.cluster.cluster import Cluster, init_cluster

    init_cluster(
        uri,
        bookie or [],
        accepts_risk=accept_storage_risk,
        group=group,
        labels=label or (),
        store=store,
    )
    with Cluster(uri) as cluster:
        uri = cluster.uri
        if session_of(context).as_json:
            rows = views.bookies(cluster, None)
            print_json({"metadata_uri": uri, "cluster_id": cluster.cluster_id, "bookies": rows})
        else:
            print(f"export {METADATA_URI_VARIABLE}={shlex.quote(uri)}")
        candidates = cluster.refresh_candidates()
    _warn_of_shared_domains(candidates)
    note(_tolerance(len(candidates)))
    if not bookie:
        note(_next_step(uri))


def _next_step(uri: str) -> str:
    return (
        f"next: add at least {DEFAULT_QUORUM.ensemble_size} bookies, each an empty directory on "
        f"its own disk: `bkspark bookie add URL --metadata {shlex.quote(uri)}`"
    )


def _warn_of_shared_domains(candidates: "Sequence[Candidate]") -> None:
    from bkspark.protocol.bookies import shared_domains

    shared = shared_domains(candidates)
    if shared:
        together = "; ".join(f"{', '.join(ids)} on {where}" for where, ids in shared.items())
        note(
            f"warning: bookies share a failure domain and will be lost together: {together}; "
            "for more than a trial, give each bookie its own disk"
        )


def _tolerance(count: int) -> str:
    """Describe the absences and losses tolerated by ``count`` bookies with default quorum sizes."""
    quorum = DEFAULT_QUORUM
    sizes = f"{quorum.ensemble_size}/{quorum.write_quorum_size}/{quorum.ack_quorum_size}"
    least, lost = quorum.ack_quorum_size, quorum.losses_max
    told = f"with the default sizes {sizes} (ensembleSize/writeQuorumSize/ackQuorumSize)"
    if count < least:
        return f"{plural(count, 'bookie')}: {told} writes need at least {least}"
    away = min(count - least, lost)
    how = f"continue while {away} of them is away" if away else "need them all"
    said = f"{plural(count, 'bookie')}: {told} writes {how}"
    said += f", and any {lost} may be lost without losing an entry"
    if count < quorum.ensemble_size:
        said += f"; with {quorum.ensemble_size} each entry gets {quorum.write_quorum_size} copies"
    return said


def demo(
    context: typer.Context,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Keep everything in this empty directory."),
    ] = None,
) -> None:
    """Run a tour on a local cluster.

    Write 336,776 flights, lose a bookie, corrupt another, read everything back.
    """
    # The demo draws on the terminal directly, and prints the folder's name.
    folder = str(directory or gettempdir())
    if visible(folder) != folder:
        raise InvalidRequestError(
            f"the folder's name has control characters: {visible(folder)}",
            hint="give another folder by --dir",
        )
    # Imported here because it needs Spark and takes long to import.
    from rich.console import Console

    from bkspark.demo import run_demo

    as_json = session_of(context).as_json
    result = run_demo(directory, Console(stderr=as_json))
    if as_json:
        print_json(asdict(result))
    raise typer.Exit(0 if result.is_equal and result.stepped_over else 1)


def doctor(context: typer.Context) -> None:
    """Check the setup of machine and session."""
    # Imported here: no other command needs the imported modules.
    from bkspark.cli.doctor import examine

    session = session_of(context)
    raise typer.Exit(output.print_findings(examine(session.metadata_uri), as_json=session.as_json))


def bookies(context: typer.Context) -> None:
    """List bookies, each probed now."""
    from bkspark.admin import agents, views

    session = session_of(context)
    with session.survey() as cluster:
        rows = agents.with_agents(views.bookies(cluster, None), agents.living_agents(cluster))
    print_rows(rows, _BOOKIE_COLUMNS, as_json=session.as_json)
    raise typer.Exit(note_unreadable(cluster))


def status(context: typer.Context) -> None:
    """Show health: bookies, missing copies, open ledgers. Exit status 1 if something is wrong."""
    from bkspark.cli import health

    session = session_of(context)
    with session.survey() as cluster:
        found = health.examine(cluster, session.shown_uri)
    raise typer.Exit(
        output.print_findings(found.findings, as_json=session.as_json, details=found.details)
    )


def _agent(facts: Mapping[str, Any] | None) -> str:
    if facts is None:
        return ""
    since = facts["since"]
    when = "" if since is None else f" since {since:%Y-%m-%d %H:%M:%S}Z"
    return f"process {facts['process_id']} on {facts['host']}{when}"


def _state(row: Mapping[str, Any]) -> str:
    if row["is_lost"]:
        return "lost, came back" if row["is_usable"] else "lost"
    if not row["is_usable"]:
        return "unavailable"
    if not row["is_writable"]:
        return "not writable"
    if row["is_leaving"]:
        return "leaving"
    if row["is_read_only"]:
        return "read-only"
    return "full" if row["is_full"] else "usable"
