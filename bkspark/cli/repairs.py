"""``bkspark repair``: once, or again and again."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.admin.recovering.plan import OPEN_GRACE_SECONDS
from bkspark.cli import watching
from bkspark.cli.maintenance import (
    STEP_COLUMNS,
    DryRunOption,
    LedgersOption,
    LogsOption,
    NoLeaseOption,
    OpenGraceOption,
    RateOption,
    SparkOption,
    YesOption,
    show,
    spark_session,
)
from bkspark.cli.output import note, plural, print_table, progress_bar
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, Session, session_of
from bkspark.quantities import seconds_of

WATCH = "--watch"

LostAfterOption = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        parser=seconds_of("--lost-after"),
        help="Replace also bookies that are silent for so long.",
    ),
]
WatchOption = Annotated[
    float | None,
    typer.Option(
        metavar="[TIME]",
        parser=seconds_of("--watch"),
        help="Repeat it, once in so long; 600 seconds if no time is given.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Declare the command."""
    app.command(epilog=COMMON)(repair)


def spelled_out(words: Sequence[str]) -> list[str]:
    """``--watch`` with the seconds that it stands for, where none are behind it."""
    found = list(words)
    if WATCH not in found:
        return found
    behind = found.index(WATCH) + 1
    if not (found[behind:] and found[behind][:1].isdecimal()):
        found.insert(behind, f"{watching.SECONDS:g}")
    return found


def repair(
    context: typer.Context,
    log: LogsOption = None,
    ledger: LedgersOption = None,
    watch: WatchOption = None,
    dry_run: DryRunOption = False,
    open_grace: OpenGraceOption = OPEN_GRACE_SECONDS,
    lost_after: LostAfterOption = None,
    max_bytes_per_second: RateOption = None,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    no_lease: NoLeaseOption = False,
    spark: SparkOption = False,
    yes: YesOption = False,
) -> None:
    """Make missing copies of closed ledgers again, the worst first.

    On the same bookie where it answers, else on another one, which takes its place. A repair of
    all closes first what has lost its writer, as `recover --all` does. With --watch it goes on
    until it is stopped, one line a round. Exit status 1 if something is left; it says what and why.
    """
    del yes
    session = session_of(context)
    once = partial(
        verbs.repair,
        session.metadata_uri,
        logs=log or (),
        ledgers=ledger or (),
        dry_run=dry_run,
        open_grace=open_grace,
        lost_after=lost_after,
        password_file=password_file,
        password_env=password_env,
        max_bytes_per_second=max_bytes_per_second,
        no_lease=no_lease,
        spark=spark_session("bkspark repair") if spark else None,
        tell=note,
    )
    if watch is not None:
        as_json = session.as_json
        raise typer.Exit(watching.watch(once, watch, note, as_json=as_json, dry_run=dry_run))
    with progress_bar("copies") as progress:
        report = once(progress=progress)
    _show(report, session, is_planned=dry_run)
    raise typer.Exit(report.exit_status)


def _show(report: Report, session: Session, *, is_planned: bool) -> None:
    if not is_planned or session.as_json:
        show(report, "repaired", STEP_COLUMNS, as_json=session.as_json)
        return
    print_table(report.plan["steps"], STEP_COLUMNS)
    first = report.plan.get("recover", {}).get("ledgers", 0)
    if first:
        note(f"repair: {plural(first, 'ledger')} would be recovered first")
