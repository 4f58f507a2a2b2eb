"""Commands that make a log shorter, end it, or look after its cursors."""

from typing import Annotated

import typer

from bkspark.cli.output import Column, plural, print_done, print_rows
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, Session, password_of, require_consent, session_of
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.log import cursors as log_cursors
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from bkspark.log.truncation import Truncation

Name = Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")]
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
    one.command("retain", epilog=COMMON)(retain)
    one.command("cursors", epilog=COMMON)(cursors)


def truncate(
    context: typer.Context,
    name: Name,
    before: Annotated[int, typer.Option(min=0, help="First offset that stays.")],
    yes: YesOption = False,
) -> None:
    """Hide all entries below an offset, at once.

    Ledgers that hold no other are deleted.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        cluster.log(name)
        require_consent(f"Delete the entries of log {name} below offset {before}?", yes=yes)
        _tell(session, name, truncation.truncate(cluster, name, before))


def convert(
    context: typer.Context,
    name: Name,
    unbounded: Annotated[
        bool,
        typer.Option(
            "--unbounded/--chained", help="One ledger that changes hands, or one after the other."
        ),
    ],
    yes: YesOption = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Make a log one ledger, or many in a row, from now on.

    Its writer is fenced. What is there stays as it is, and who reads or streams goes on.
    """
    session = session_of(context)
    kind = "unbounded" if unbounded else "chained"
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, password_of(password_file, password_env))
        was = log.record.is_unbounded
        if was != unbounded:
            require_consent(f"Fence the writer of log {name}, and make it {kind}?", yes=yes)
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

    Its writer is fenced, and nothing can be added any more.
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


def retain(
    context: typer.Context,
    name: Name,
    max_bytes: Annotated[
        int | None, typer.Option(min=0, help="From now on keep at least as much.")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="From now on keep ledgers so long after they were closed, by the clocks of who "
            "closed them and of who truncates: leave room for what these differ by.",
        ),
    ] = None,
    forever: Annotated[bool, typer.Option("--forever", help="From now on keep all.")] = False,
    ignore_cursors: Annotated[
        bool, typer.Option("--ignore-cursors", help="Also what a cursor has yet to read.")
    ] = False,
) -> None:
    """Delete old ledgers of a log as its settings say.

    Options change the settings first.
    """
    session = session_of(context)
    is_limited = max_bytes is not None or max_seconds is not None
    if forever and is_limited:
        raise InvalidRequestError("--forever contradicts --max-bytes and --max-seconds")
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, Password())
        if forever or is_limited:
            log.keep(max_bytes=max_bytes, max_seconds=max_seconds)
        _tell(session, name, truncation.retain(cluster, name, respects_cursors=not ignore_cursors))


def cursors(
    context: typer.Context,
    name: Name,
    delete: Annotated[str, typer.Option(metavar="CURSOR", help="Delete this one.")] = "",
    move: Annotated[str, typer.Option(metavar="CURSOR", help="Move this one forward.")] = "",
    to: Annotated[int | None, typer.Option(min=0, help="Where --move moves it to.")] = None,
    yes: YesOption = False,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """The named cursors of a log, and where they are.

    A problem is named if the log cannot be read from there.
    """
    session = session_of(context)
    if bool(move) != (to is not None):
        raise InvalidRequestError("--move CURSOR and --to OFFSET belong together")
    with session.cluster() as cluster:
        log = LogHandle(cluster, name, password_of(password_file, password_env))
        record = log.record
        if move and to is not None:
            log_cursors.existing_cursor(cluster, name, move, lambda: log.end_offset).advance(to)
        if delete:
            require_consent(f"Delete cursor {delete} of log {name}?", yes=yes)
            log_cursors.delete(cluster, name, delete)
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


def _tell(session: Session, name: str, done: Truncation) -> None:
    text = f"log {name} begins at offset {done.first_offset}; "
    text += f"deleted {plural(len(done.deleted), 'ledger')}"
    if done.left:
        text += (
            f", {len(done.left):,} more could not be deleted now: try `bkspark log retain {name}`"
        )
    row = {
        "log": name,
        "first_offset": done.first_offset,
        "deleted": list(done.deleted),
        "left": list(done.left),
    }
    print_done(row, text, as_json=session.as_json)
