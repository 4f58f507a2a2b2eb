"""Commands that make a log shorter, end it, or look after its cursors."""

from typing import Annotated

import typer
from rich.filesize import decimal

from bkspark.admin.retaining import Wanted, facts_of, plan_of
from bkspark.admin.retaining import retain as retain_log
from bkspark.cli.output import Column, note, plural, print_done, print_rows
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, Session, password_of, require_consent, session_of
from bkspark.errors import InvalidRequestError
from bkspark.log import cursors as log_cursors
from bkspark.log import truncation
from bkspark.log.log_handle import LogHandle
from bkspark.log.truncation import Truncation, TruncationPlan
from bkspark.quantities import seconds_of, size_of

Name = Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Say what would go; change nothing.")]
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
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Hide all entries below an offset, at once.

    Ledgers that hold no other are deleted.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        plan = truncation.plan_truncation(cluster, name, before)
        if dry_run:
            show_plan(session, plan)
            return
        require_consent(f"Delete {_losing(plan)}?", yes=yes)
        done = truncation.truncate(cluster, name, before, generation=plan.generation)
        _tell(session, name, done)


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
        int | None,
        typer.Option(
            metavar="SIZE",
            parser=size_of("--max-bytes"),
            help="From now on keep at least as much, for example 10GB.",
        ),
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="TIME",
            parser=seconds_of("--max-seconds"),
            help="From now on keep ledgers so long after they were closed, for example 7d. Two "
            "clocks count, that of the closing and that of the truncating process: leave room "
            "for what they differ by.",
        ),
    ] = None,
    forever: Annotated[bool, typer.Option("--forever", help="From now on keep all.")] = False,
    ignore_cursors: Annotated[
        bool, typer.Option("--ignore-cursors", help="Also what a cursor has yet to read.")
    ] = False,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Delete old ledgers of a log as its settings say.

    Options change the settings first. It asks before a limit is set or an entry goes.
    """
    session = session_of(context)
    wanted = Wanted(name, max_bytes, max_seconds, forever, not ignore_cursors)
    if forever and wanted.is_limited:
        raise InvalidRequestError("--forever contradicts --max-bytes and --max-seconds")

    def consent(plan: TruncationPlan) -> None:
        if wanted.is_limited or plan.entry_count:
            limits = f"From now on keep {_limits(wanted)} of log {name}, and delete"
            verb = limits if wanted.is_limited else "Delete"
            require_consent(f"{verb} {_losing(plan)}?", yes=yes)

    with session.cluster() as cluster:
        if dry_run:
            show_plan(session, plan_of(cluster, wanted))
            return
        [row] = retain_log(cluster, wanted, consent=consent).details["logs"]
    done = Truncation(row["first_offset"], tuple(row["deleted"]), tuple(row["left"]))
    _tell(session, name, done)


def _limits(wanted: Wanted) -> str:
    """The limits that are wanted, in words."""
    said = [] if wanted.max_bytes is None else [f"{decimal(wanted.max_bytes)}"]
    said += [] if wanted.max_seconds is None else [f"{wanted.max_seconds:,g} s"]
    return " and ".join(said)


def show_plan(session: Session, plan: TruncationPlan) -> None:
    """What would go, and nothing is changed."""
    print_done(facts_of(plan), f"would delete {_losing(plan)}", as_json=session.as_json)


def _losing(plan: TruncationPlan) -> str:
    """What goes: how many rows, bytes and ledgers, which offsets, and of which time."""
    if not plan.entry_count:
        return f"no entry of log {plan.log_name} now"
    facts = facts_of(plan)
    entries = f"{plan.entry_count:,} {'entry' if plan.entry_count == 1 else 'entries'}"
    offsets = f"offsets {plan.first_offset} to {plan.before_offset - 1}"
    times = f", closed {facts['oldest']} to {facts['newest']}" if facts["oldest"] else ""
    size = decimal(plan.byte_count)
    whole = plural(plan.ledgers, "whole ledger")
    return f"{entries} of log {plan.log_name} ({size}, {offsets}, {whole}{times})"


def cursors(
    context: typer.Context,
    name: Name,
    delete: Annotated[str, typer.Option(metavar="CURSOR", help="Delete this one.")] = "",
    move: Annotated[str, typer.Option(metavar="CURSOR", help="Move this one forward.")] = "",
    to: Annotated[int | None, typer.Option(min=0, help="Where --move moves it to.")] = None,
    dry_run: DryRunOption = False,
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
