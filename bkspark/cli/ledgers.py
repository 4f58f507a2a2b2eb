"""Commands about ledgers."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark.cli.output import (
    Column,
    Format,
    FormatOption,
    LimitOption,
    PasswordEnvOption,
    PasswordFileOption,
    limited_end,
    note,
    print_done,
    print_entries,
    print_json,
    print_pairs,
    print_rows,
    quorum_sizes,
)
from bkspark.cli.session import (
    COMMON,
    CommandSession,
    has_consent,
    note_unreadable,
    password_of,
    require_consent,
    session_of,
)
from bkspark.errors import InvalidRequestError, NotEnoughBookiesError

if TYPE_CHECKING:
    from bkspark.admin import views
    from bkspark.cluster.password import Password
    from bkspark.ledger.recovery.recover import RecoveryReport
    from bkspark.protocol.ledger.metadata import LedgerMetadata

LedgerId = Annotated[int, typer.Argument(metavar="ID", min=0, help="The ledger's id.")]

_COLUMNS = (
    Column("ledger", "ledger_id"),
    Column("log", "log"),
    Column("place", "place"),
    Column("state", "state"),
    Column("entries", "entries"),
    Column("bytes", "bytes", is_size=True),
    Column("E/Qw/Qa", quorum_sizes),
    Column("created", "created"),
)


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command("ledgers", epilog=COMMON)(show_all)
    one = typer.Typer(name="ledger", help="One ledger.", rich_markup_mode=None)
    one.command("show", epilog=COMMON)(show)
    one.command("read", epilog=COMMON)(read)
    one.command("recover", epilog=COMMON)(recover)
    one.command("delete", epilog=COMMON)(delete)
    app.add_typer(one)


def show_all(context: typer.Context) -> None:
    """List all ledgers."""
    from bkspark.admin import views

    session = session_of(context)
    with session.survey() as cluster:
        rows = views.ledgers(cluster, None)
    print_rows(rows, _COLUMNS, as_json=session.as_json)
    raise typer.Exit(note_unreadable(cluster))


def show(context: typer.Context, ledger_id: LedgerId) -> None:
    """Show a ledger's metadata and its bookies."""
    from bkspark.admin import views

    session = session_of(context)
    with session.cluster() as cluster, session.survey() as survey:
        ledger = cluster.ledger(ledger_id).value
        [row] = [row for row in views.ledgers(survey, None) if row["ledger_id"] == ledger_id]
        fragments = views.fragments_of(ledger)
        recovery = views.recovery_of(cluster, ledger)
    facts = {
        **row,
        "columns": views.columns_of(ledger.settings.schema),
        "custom_metadata": dict(ledger.settings.custom_metadata),
        "transactions": dict(ledger.transactions),
    }
    if session.as_json:
        print_json({**facts, "recovery": recovery, "fragments": fragments})
        return
    places = {
        f"fragment from {fragment['first_entry_id']} (term {fragment['term']})": fragment[
            "ensemble"
        ]
        for fragment in fragments
    }
    print_pairs({**facts, **places, **_stuck(recovery)})


def _stuck(recovery: "views.Row | None") -> dict[str, str]:
    """Return the noted reason of the last failed recovery, if any."""
    if recovery is None or not recovery["reason"]:
        return {}
    return {"stuck": recovery["reason"], "what helps": recovery["hint"]}


def read(
    context: typer.Context,
    ledger_id: LedgerId,
    start: Annotated[
        int | None,
        typer.Option(min=0, help="First entry id; default: the first entry of the ledger."),
    ] = None,
    end: Annotated[
        int | None, typer.Option(min=0, help="Stop before this entry id; default: the end.")
    ] = None,
    limit: LimitOption = None,
    shape: FormatOption = Format.JSON,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Print entries in order.

    Of a ledger being written, only confirmed entries are printed.
    """
    from bkspark.log.reading.ordered_read import read_ledger_in_order

    session = session_of(context)
    password = password_of(password_file, password_env)
    with session.cluster() as cluster:
        ledger = cluster.ledger(ledger_id).value
        stop = limited_end(ledger.first_available if start is None else start, end, limit)
        found = read_ledger_in_order(cluster, ledger, start, stop, password)
        print_entries(found, shape, limit, as_json=session.as_json)


def recover(
    context: typer.Context,
    ledger_id: LedgerId,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Close the ledger even if entries are lost, after a question for each loss, if "
            "all bookies that could prevent it are declared lost or damaged.",
        ),
    ] = False,
    seal: Annotated[
        bool, typer.Option("--seal", help="Close it also if an unbounded log continues in it.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about losses.")] = False,
) -> None:
    """Fence a ledger's writer and close the ledger.

    The ledger at the end of an unbounded log is OPEN again afterwards, for the next writer; with
    --seal the ledger is closed, and the log continues in another ledger.

    No acknowledged entry is lost. A writer still running is refused from now on. Steps are reported
    on stderr. If the recovery cannot decide yet which entries were acknowledged, the last line
    names the remedy; try again afterwards. Use `bkspark bookie lost` for a bookie that will never
    come back.
    """
    session = session_of(context)
    password = password_of(password_file, password_env)
    unanswered: list[InvalidRequestError] = []

    def accepts(loss: str) -> bool:
        question = f"Close ledger {ledger_id} with this loss: {loss}?"
        try:
            return accept_loss and has_consent(question, yes=yes)
        except InvalidRequestError as error:  # raised again after the recovery has noted its reason
            unanswered.append(error)
            return False

    how = {"seals": seal, "tell": note, "accepts_loss": accepts}
    try:
        report = _recovered(session, ledger_id, password, **how)
    except NotEnoughBookiesError as error:
        if unanswered and "--accept-loss" in error.hint:
            raise unanswered[0] from None
        raise
    _print_report(session, report)


def _recovered(
    session: CommandSession, ledger_id: int, password: "Password", **how: Any
) -> "RecoveryReport":
    from bkspark.log.recovering import recover_ledger

    with session.cluster() as cluster:
        return recover_ledger(cluster, ledger_id, password, **how)


def _print_report(session: CommandSession, report: "RecoveryReport") -> None:
    if session.as_json:
        print_json({**report.facts, "notes": report.notes})
    else:
        print_pairs({name: fact for name, fact in report.facts.items() if name != "losses"})


def delete(
    context: typer.Context,
    ledger_id: LedgerId,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan; change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a ledger not in any log, for good."""
    from bkspark.ledger import deleting

    session = session_of(context)
    with session.cluster() as cluster:
        what = _going(cluster.ledger(ledger_id).value)
        if dry_run:
            doc = {"ledger_id": ledger_id, "would": what}
            print_done(doc, f"would {what}", as_json=session.as_json)
            return
        require_consent(f"{what[0].upper()}{what[1:]}?", yes=yes)
        deleting.delete_ledger(cluster, ledger_id)
    print_done(
        {"deleted_ledger": ledger_id}, f"deleted ledger {ledger_id}", as_json=session.as_json
    )


def _going(ledger: "LedgerMetadata") -> str:
    """Describe a deletion in words to follow "would"."""
    from rich.filesize import decimal

    if ledger.last_entry_id is None:
        state = ledger.state.value
        return f"delete ledger {ledger.ledger_id}, {state}: a writer may be writing to it"
    count = ledger.last_entry_id + 1 - ledger.first_available
    entries = f"{count:,} {'entry' if count == 1 else 'entries'}"
    size = decimal(ledger.length_bytes or 0)
    return f"delete ledger {ledger.ledger_id}, CLOSED with {entries} ({size})"
