"""Commands about logs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark import environment, quantities
from bkspark.cli import commands
from bkspark.cli.output import (
    Column,
    Format,
    FormatOption,
    LimitOption,
    PasswordEnvOption,
    PasswordFileOption,
    limited_end,
    note,
    plain,
    print_done,
    print_entries,
    print_json,
    print_pairs,
    print_rows,
    print_table,
    quorum_sizes,
)
from bkspark.cli.session import (
    COMMON,
    note_unreadable,
    password_of,
    require_consent,
    session_of,
)
from bkspark.cluster import arguments
from bkspark.errors import InvalidRequestError
from bkspark.format import layout
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.quantities import plural
from bkspark.storage.address import shown_url
from bkspark.verbs.commands import losing, truncated

if TYPE_CHECKING:
    import pyarrow as pa

    from bkspark.admin import views
    from bkspark.cluster.cluster import Cluster
    from bkspark.log.cursors import Cursor

# --- log upkeep ----------------------------------------------------------------------------------
# Commands to shorten a log, end a log, or maintain its cursors.


Name = Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan; change nothing.")]
MinDistinctOption = Annotated[
    str,
    typer.Option(
        metavar="LABEL:N,…",
        help="Refuse writes whose bookies do not have so many values of a label, as in "
        "rack:2 (labels: `bkspark bookie label`).",
    ),
]
StrictOption = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Refuse writes while fewer than ensemble-size bookies can be used, instead "
        "of making smaller ledgers.",
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_CURSOR_COLUMNS = (
    Column("cursor", "cursor"),
    Column("offset", "offset"),
    Column("generation", "generation"),
    Column("problem", "problem"),
)


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
    from bkspark.admin.log_upkeep import facts_of, facts_of_done
    from bkspark.log import truncation

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
    from bkspark.log.log_handle import LogHandle

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
    from bkspark.log.log_handle import LogHandle

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
    from bkspark.log import cursors as log_cursors
    from bkspark.log.log_handle import LogHandle

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
    print_rows(rows, _CURSOR_COLUMNS, as_json=session.as_json)


def _cursor(cursor: "Cursor") -> str:
    record = cursor.record
    return f"cursor {record.name} of log {record.log_name}, at offset {record.offset}"


# --- log transactions ----------------------------------------------------------------------------
# The command showing a log's transactions of applications and streaming queries.


_TRANSACTION_COLUMNS = (
    Column("application", "application"),
    Column("query", "query"),
    Column("digest", "digest"),
    Column("version", "version"),
)


def transactions(
    context: typer.Context,
    name: Name,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """List the last transaction of each application and query.

    The order is by commit, the latest last. Of older transactions only a digest of the name is
    kept, of the oldest only their number.
    """
    from bkspark.log.log_handle import transactions_of
    from bkspark.protocol.log.transactions import forgotten_count, listed

    session = session_of(context)
    with session.cluster() as cluster:
        found = transactions_of(cluster, name, password_of(password_file, password_env))
    rows = [_row(key, version) for key, version in listed(found).items()]
    forgotten = {
        "applications": forgotten_count(found, of_queries=False),
        "queries": forgotten_count(found, of_queries=True),
    }
    if session.as_json:
        print_json({"log": name, "transactions": rows, "forgotten": forgotten})
        return
    print_table(rows, _TRANSACTION_COLUMNS)
    if any(forgotten.values()):
        note(
            f"forgotten: {forgotten['applications']:,} applications and "
            f"{forgotten['queries']:,} queries; a repeated write of a forgotten name counts "
            "as a new write"
        )


def _row(key: str, version: int) -> dict[str, Any]:
    from bkspark.protocol.log.transactions import QUERY

    row = dict.fromkeys(("application", "query", "digest"))
    if key.startswith("#"):
        return {**row, "digest": key.removeprefix("#"), "version": version}
    if key.startswith(QUERY):
        return {**row, "query": key.removeprefix(QUERY), "version": version}
    return {**row, "application": key, "version": version}


# --- logs ----------------------------------------------------------------------------------------


EnsembleSizeOption = Annotated[int, typer.Option(help="Number of bookies of a ledger.")]
WriteQuorumSizeOption = Annotated[int, typer.Option(help="Number of bookies that store an entry.")]
AckQuorumSizeOption = Annotated[
    int, typer.Option(help="Number of bookies that must store an entry before it is acknowledged.")
]

_COLUMNS = (
    Column("log", "log"),
    Column("entries", lambda row: _at_least(row, "entries")),
    Column("bytes", "bytes", is_size=True),
    Column("ledgers", "ledgers"),
    Column("open tail", lambda row: ", ".join(map(str, row["tail"]))),
    Column("E/Qw/Qa", quorum_sizes),
    Column("digest", "digest_type"),
    Column("changed", "changed"),
)


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    app.command("logs", epilog=COMMON)(show_all)
    one = typer.Typer(name="log", help="One log.", rich_markup_mode=None)
    one.command("create", epilog=COMMON)(create)
    one.command("show", epilog=COMMON)(show)
    one.command("read", epilog=COMMON)(read)
    one.command("count", epilog=COMMON)(count)
    one.command("delete", epilog=COMMON)(delete)
    one.command("truncate", epilog=COMMON)(truncate)
    one.command("convert", epilog=COMMON)(convert)
    one.command("seal", epilog=COMMON)(seal)
    one.command("cursors", epilog=COMMON)(cursors)
    commands.add_to(one, "log")
    one.command("transactions", epilog=COMMON)(transactions)
    app.add_typer(one)


def create(
    context: typer.Context,
    name: Name,
    ensemble_size: EnsembleSizeOption = DEFAULT_QUORUM.ensemble_size,
    write_quorum_size: WriteQuorumSizeOption = DEFAULT_QUORUM.write_quorum_size,
    ack_quorum_size: AckQuorumSizeOption = DEFAULT_QUORUM.ack_quorum_size,
    digest_type: Annotated[str, typer.Option(help="CRC32C, or MAC, which needs a password.")] = "",
    guarantees_write_quorum: Annotated[
        bool,
        typer.Option(
            "--guarantees-write-quorum",
            help="Close a ledger only once each entry has write-quorum-size copies.",
        ),
    ] = False,
    unbounded: Annotated[
        bool,
        typer.Option("--unbounded", help="Keep one ledger, which each new writer takes over."),
    ] = False,
    strict: StrictOption = False,
    min_distinct: MinDistinctOption = "",
    schema: Annotated[
        str,
        typer.Option(
            metavar="DDL",
            help="Columns, as in Spark: 'id long, name string', or the JSON of a schema.",
        ),
    ] = "",
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Create an empty log.

    Without a schema the log takes the schema of its first append, or holds bytes. Columns may be
    null, as in DataFrames: NOT NULL is not kept.
    """
    from bkspark.format import digest
    from bkspark.log.creating import create_log
    from bkspark.protocol.log.contents import LogSettings

    session = session_of(context)
    quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
    password = password_of(password_file, password_env)
    spec = digest.new_spec(digest_type or digest.CRC32C, password.resolve())
    apart = arguments.distinct(min_distinct or None, quorum)
    settings = LogSettings(quorum, spec, guarantees_write_quorum, unbounded, strict, apart)
    with session.cluster() as cluster:
        create_log(cluster, name, settings, _columns(schema))
    print_done({"log": name}, f"created log {name}", as_json=session.as_json)


def _columns(schema: str) -> "pa.Schema":
    from bkspark.format import schema_text
    from bkspark.ledger.handles.entries import VALUE_SCHEMA

    return schema_text.parse(schema) if schema else VALUE_SCHEMA


def show_all(context: typer.Context) -> None:
    """List all logs, up to the current readable end.

    A "+" marks an unknown end: more entries may exist.
    """
    from bkspark.admin import views

    session = session_of(context)
    with session.survey() as cluster:
        rows = views.logs(cluster, None, with_columns=session.as_json)
    print_rows(rows, _COLUMNS, as_json=session.as_json)
    raise typer.Exit(note_unreadable(cluster))


def show(
    context: typer.Context,
    name: Name,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Show a log's settings and ledgers."""
    from bkspark.admin import views

    session = session_of(context)
    with session.survey() as cluster:
        password = password_of(password_file, password_env)
        [log] = views.logs(cluster, name, password)
        history = views.history(cluster, name, password)
        record = cluster.log(name).value
        dropped = {
            "dropped": list(record.every_dropped_id()),
            "to_delete": list(record.every_id_to_delete()),
        }
        tier = views.tier_of(record)
    if session.as_json:
        print_json({**log, **dropped, "tier": tier, "history": history})
    else:
        of_tier = {} if tier is None else _tier_for_people(tier)
        print_pairs({**_for_people(log, dropped), **of_tier, **_places(history, log)})
    if any(key.startswith(layout.LEDGERS_PREFIX) for key in cluster.unreadable):
        raise typer.Exit(note_unreadable(cluster))


def read(
    context: typer.Context,
    name: Name,
    start: Annotated[
        int | None, typer.Option(min=0, help="First offset; default: the log's first.")
    ] = None,
    end: Annotated[
        int | None, typer.Option(min=0, help="Stop before this offset; default: the log's end.")
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Begin with what was committed at this time or later: how long ago, such as 1h, "
            "or 2026-11-28T10:00:00Z, or milliseconds since 1970.",
        ),
    ] = "",
    limit: LimitOption = None,
    shape: FormatOption = Format.JSON,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Print entries in order."""
    if since and start is not None:
        raise InvalidRequestError("--since and --start both say where to begin", hint="give one")
    from bkspark.log.reading.log_view import LogWatch, look_at
    from bkspark.log.reading.offset_by_time import offset_since
    from bkspark.log.reading.ordered_read import read_view_in_order

    session = session_of(context)
    password = password_of(password_file, password_env)
    with session.cluster() as cluster:
        view = look_at(cluster, name, password, end)
        first = view.first_offset if start is None else start
        if since:
            watch = LogWatch(cluster, name, password)
            first = offset_since(cluster, view.record, watch, password, _time(since))
        stop = limited_end(first, end, limit)
        found = read_view_in_order(cluster, view, first, stop, password)
        print_entries(found, shape, limit, as_json=session.as_json)


def _time(since: str) -> int:
    """Return a time, or one that is so long ago, in milliseconds since 1970."""
    try:
        if since.strip().isdecimal():
            return arguments.time_in_text("--since", since)
        ago = quantities.seconds("--since", since)
    except InvalidRequestError:
        return arguments.time_in_text("--since", since)
    return max(0, environment.now_ms() - round(ago * 1_000))


def count(
    context: typer.Context,
    name: Name,
    password_file: PasswordFileOption = "",
    password_env: PasswordEnvOption = "",
) -> None:
    """Print how many entries can be read now.

    Truncated and lost entries do not count.
    """
    from bkspark.log.reading.log_view import look_at

    session = session_of(context)
    with session.cluster() as cluster:
        found = look_at(cluster, name, password_of(password_file, password_env)).entry_count
    if session.as_json:
        print_json({"log": name, "entries": found})
    else:
        print(found)


def delete(
    context: typer.Context,
    name: Name,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> None:
    """Delete a log and its ledgers, for good."""
    from bkspark.ledger import deleting

    session = session_of(context)
    with session.cluster() as cluster:
        what, seen = _going(cluster, name), cluster.logs.get(name)
        tier = None if seen is None else seen.value.tier
        stays = "" if tier is None else f"; its table at {shown_url(tier.table_url)} stays"
        if dry_run:
            said = f"would {what}{stays}"
            print_done({"log": name, "would": f"{what}{stays}"}, said, as_json=session.as_json)
            return
        require_consent(f"{what[0].upper()}{what[1:]}{stays}?", yes=yes)
        gone = deleting.delete_log(cluster, name)
    table = {} if tier is None else {"table": tier.table_url}
    print_done(
        {"log": name, "deleted_ledgers": gone, **table},
        f"deleted log {name} with {plural(len(gone), 'ledger')}{stays}",
        as_json=session.as_json,
    )


def _going(cluster: "Cluster", name: str) -> str:
    """Describe a deletion of the log in words to follow "would"."""
    from rich.filesize import decimal

    from bkspark.admin import views

    seen = cluster.logs.get(name)
    if (
        seen is not None
        and seen.value.is_tombstone
        and any(True for _ in seen.value.every_dropped_id())
    ):
        return f"delete the rest of log {name}"
    [log] = views.logs(cluster, name, with_columns=False)
    entries = _at_least(log, "entries")
    kept = [decimal(log["bytes"])]
    if log["entries"]:
        kept.append(f"offsets {log['first_offset']} to {log['end_offset'] - 1}")
    if log["changed"] is not None:
        kept.append(f"last changed {log['changed']:%Y-%m-%d %H:%M:%S}Z")
    where = plural(log["ledgers"], "ledger")
    return f"delete log {name}, {entries} entries in {where} ({', '.join(kept)})"


def _for_people(log: "views.Row", dropped: Mapping[str, list[int]]) -> dict[str, Any]:
    shown = {key: value for key, value in log.items() if key != "tail_confirmed"}
    counts = {key: _at_least(log, key) for key in ("entries", "end_offset", "bytes")}
    lists = {"tail": log["tail"], **dropped}
    return {**shown, **counts, **{key: ids or None for key, ids in lists.items()}}


def _tier_for_people(tier: "views.Row") -> dict[str, Any]:
    copying = tier["copying"]
    being = f"; offsets {copying[0]} to {copying[1] - 1} are being copied" if copying else ""
    copied = f"offsets {tier['begin']} to {tier['copied'] - 1}"
    freed = f"offsets {tier['begin']} to {tier['freed'] - 1}"
    return {
        "table": tier["table"],
        "verified in the table": f"{copied if tier['segments'] else 'nothing'}{being}",
        "read from the table": freed if tier["freed"] > tier["begin"] else "nothing yet",
        "table version": tier["verified_version"],
    }


def _at_least(log: Mapping[str, Any], key: str) -> int | str:
    """Return a number of a log, with a "+" if the end is unknown."""
    count: int = log[key]
    return count if log["is_end_known"] else f"{count}+"


def _places(history: "list[views.Row]", log: "views.Row") -> dict[str, str]:
    confirmed = dict(zip(log["tail"], log["tail_confirmed"]))
    return {
        f"ledger {row['ledger_id']}": _place(row, confirmed.get(row["ledger_id"]))
        for row in history
        if row["ledger_id"] is not None
    }


_UNTOLD = (
    "at the end; the last readable offset is not known now: too few bookies answer, or a "
    "password is needed (--password-file)"
)


def _place(row: "views.Row", confirmed: int | None) -> str:
    from rich.filesize import decimal

    from bkspark.admin import views
    from bkspark.protocol.log.ledger_list import LOST_ENTRIES

    if row["version"] is None:
        return _UNTOLD if confirmed is None else f"at the end, {confirmed:,} entries can be read"
    if row["operation"] == views.LOST:
        end = row["first_offset"] + (row["entries"] or LOST_ENTRIES) - 1
        return f"offsets {row['first_offset']} to {end} are lost: its metadata record was set aside"
    last = row["first_offset"] + row["entries"] - 1
    return f"offsets {row['first_offset']} to {last}, {decimal(row['bytes'])}{_committed(row)}"


def _committed(row: "views.Row") -> str:
    """Return when the ledger's first and last entries were committed; empty if unknown."""
    first, last = row["first_committed"], row["last_committed"]
    if first is None or last is None:
        return ""
    if first == last:
        return f", committed {plain(first)}"
    return f", committed {plain(first)} to {plain(last)}"
