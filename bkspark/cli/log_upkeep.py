"""Commands to shorten a log, end a log, or maintain its cursors."""

from typing import Annotated

import typer

from bkspark.admin.log_upkeep import facts_of, facts_of_done
from bkspark.cli.output import Column, note, print_done, print_rows
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, password_of, require_consent, session_of
from bkspark.errors import InvalidRequestError
from bkspark.log import cursors as log_cursors
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from bkspark.verbs.logs import losing, truncated

Name = Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan; change nothing.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_COLUMNS = (
    Column("cursor", "cursor"),
    Column("offset", "offset"),
    Column("generation", "generation"),
    Column("problem", "problem"),
)


def add_to(one: typer.Typer) -> None:
    """Declare the commands."""
    one.command("truncate", epilog=COMMON)(truncate)
    one.command("convert", epilog=COMMON)(convert)
    one.command("seal", epilog=COMMON)(seal)
    one.command("cursors", epilog=COMMON)(cursors)


def truncate(
    context: typer.Context,
    name: Name,
    before: Annotated[int, typer.Option(min=0, help="First offset to keep.")],
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Hide all entries below an offset, at once.

    Ledgers without other entries are deleted. Exit status 1 if one could not be deleted.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        plan = truncation.plan_truncation(cluster, name, before)
        facts = facts_of(plan)
        if dry_run:
            print_done(facts, f"would delete {losing(facts)}", as_json=session.as_json)
            return
        require_consent(f"Delete {losing(facts)}?", yes=yes)
        done = truncation.truncate(cluster, name, before, generation=plan.generation)
    row = facts_of_done(name, done)
    print_done(row, truncated(row), as_json=session.as_json)
    if row["left"]:
        raise typer.Exit(1)


def convert(
    context: typer.Context,
    name: Name,
    unbounded: Annotated[
        bool,
        typer.Option(
            "--unbounded/--chained",
            help="Keep the log in one ledger (unbounded), or in a row of ledgers (chained).",
        ),
    ],
    yes: YesOption = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Make a log one ledger, or many in a row, from now on.

    The log's writer is fenced. Existing entries stay, and reads and streams continue.
    """
    session = session_of(context)
    kind = "unbounded" if unbounded else "chained"
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, password_of(password_file, password_env))
        was = log.record.is_unbounded
        if was != unbounded:
            require_consent(f"Fence the writer of log {name}, and make the log {kind}?", yes=yes)
        is_changed = log.convert(unbounded=unbounded)
        end = log.record.end_offset
    how = f"log {name} is {kind} from offset {end} on" if is_changed else f"log {name} is {kind}"
    found = {"log": name, "unbounded": unbounded, "changed": is_changed, "end_offset": end}
    print_done(found, how, as_json=session.as_json)


def seal(
    context: typer.Context,
    name: Name,
    yes: YesOption = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """End a log for ever.

    The log's writer is fenced, and appending is impossible afterwards.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, password_of(password_file, password_env))
        end = log.record.end_offset
        require_consent(f"Seal log {name} for ever?", yes=yes)
        log.seal()
        end = log.record.end_offset
    print_done(
        {"log": name, "end_offset": end},
        f"sealed log {name} at offset {end}",
        as_json=session.as_json,
    )


def cursors(
    context: typer.Context,
    name: Name,
    delete: Annotated[str, typer.Option(metavar="CURSOR", help="Delete this cursor.")] = "",
    move: Annotated[str, typer.Option(metavar="CURSOR", help="Move this cursor forward.")] = "",
    to: Annotated[int | None, typer.Option(min=0, help="New offset of the moved cursor.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """List the named cursors of a log with their offsets.

    A problem is named if the log cannot be read from the offset.
    """
    session = session_of(context)
    if bool(move) != (to is not None):
        raise InvalidRequestError("--move CURSOR and --to OFFSET belong together")
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, password_of(password_file, password_env))
        record = log.record
        moved, gone = (
            log_cursors.existing_cursor(cluster, name, cursor, lambda: log.end_offset)
            if cursor
            else None
            for cursor in (move, delete)
        )
        if moved is not None and to is not None and not dry_run:
            moved.advance(to)
        if gone is not None and dry_run:
            note(f"would delete {_cursor(gone)}")
        elif gone is not None:
            require_consent(f"Delete {_cursor(gone)}?", yes=yes)
            gone.delete()
        found = log_cursors.cursors_of(cluster, name)
    rows = [
        {
            "cursor": cursor.name,
            "offset": cursor.offset,
            "generation": cursor.generation,
            "problem": cursor.problem(record.generation, record.first_offset) or None,
        }
        for cursor in found
    ]
    print_rows(rows, _COLUMNS, as_json=session.as_json)


def _cursor(cursor: log_cursors.Cursor) -> str:
    record = cursor.record
    return f"cursor {record.name} of log {record.log_name}, at offset {record.offset}"
