"""The command showing a log's transactions of applications and streaming queries."""

from typing import Annotated, Any

import typer

from bkspark.cli.output import Column, note, print_json, print_table
from bkspark.cli.rows import PasswordEnvOption, PasswordFileOption
from bkspark.cli.session import COMMON, password_of, session_of
from bkspark.log.transactions import transactions_of
from bkspark.protocol.log.transactions import QUERY, forgotten_count, listed

Name = Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")]

_COLUMNS = (
    Column("application", "application"),
    Column("query", "query"),
    Column("digest", "digest"),
    Column("version", "version"),
)


def add_to(one: typer.Typer) -> None:
    """Declare the command."""
    one.command("transactions", epilog=COMMON)(transactions)


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
    print_table(rows, _COLUMNS)
    if any(forgotten.values()):
        note(
            f"forgotten: {forgotten['applications']:,} applications and "
            f"{forgotten['queries']:,} queries; a repeated write of a forgotten name counts "
            "as a new write"
        )


def _row(key: str, version: int) -> dict[str, Any]:
    row = dict.fromkeys(("application", "query", "digest"))
    if key.startswith("#"):
        return {**row, "digest": key.removeprefix("#"), "version": version}
    if key.startswith(QUERY):
        return {**row, "query": key.removeprefix(QUERY), "version": version}
    return {**row, "application": key, "version": version}
