"""``bkspark bench``: what the cluster's bookies give, and what to expect of appends and writes."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bkspark.cli.commands import spark_session
from bkspark.cli.logs import AckQuorumSizeOption, EnsembleSizeOption, WriteQuorumSizeOption
from bkspark.cli.output import Bar, Column, note, print_json, print_table
from bkspark.cli.session import COMMON, CommandSession, session_of
from bkspark.errors import InvalidRequestError
from bkspark.protocol.ledger.quorum import DEFAULT_QUORUM, Quorum
from bkspark.quantities import seconds_of, shown_ms, size_of

if TYPE_CHECKING:
    from bkspark.bookkeeper import BookKeeper
    from bkspark.cli.measuring import Benchmark
    from bkspark.cluster.cluster import Cluster

ROWS_MAX = 1_000_000_000
ENTRY_BYTES_MAX = 64 * 2**20
SECONDS_MIN, SECONDS_MAX = 0.01, 3_600.0


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    group = typer.Typer(
        name="bench", help="Measure this cluster, in ledgers that are deleted again."
    )
    group.command("append", epilog=COMMON)(append)
    group.command("write", epilog=COMMON)(write)
    group.command("read", epilog=COMMON)(read)
    app.add_typer(group)


def append(
    context: typer.Context,
    size: Annotated[
        int,
        typer.Option(metavar="BYTES", help="Size of an entry.", parser=size_of("--size", least=1)),
    ] = 1024,
    seconds: Annotated[
        float,
        typer.Option(
            metavar="TIME", help="Time of each measurement.", parser=seconds_of("--seconds")
        ),
    ] = 3.0,
    ensemble_size: EnsembleSizeOption = DEFAULT_QUORUM.ensemble_size,
    write_quorum_size: WriteQuorumSizeOption = DEFAULT_QUORUM.write_quorum_size,
    ack_quorum_size: AckQuorumSizeOption = DEFAULT_QUORUM.ack_quorum_size,
) -> None:
    """Measure durable appends, and what each bookie takes for one.

    One append and the next, from several threads, by append_async and by append_many.
    """
    from bkspark.cli import measuring

    _require("--size", size, 1, ENTRY_BYTES_MAX)
    _require("--seconds", seconds, SECONDS_MIN, SECONDS_MAX)
    quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
    session = session_of(context)
    with _opened(session) as (keeper, cluster), Bar("measuring") as bar:
        found = measuring.measure_appends(
            keeper, cluster, quorum=quorum, entry_bytes=size, seconds=seconds, progress=bar
        )
    _show(found, session)


def write(
    context: typer.Context,
    rows: Annotated[int, typer.Option(help="Rows of each write, of about 136 bytes.")] = 1_000_000,
    ensemble_size: EnsembleSizeOption = DEFAULT_QUORUM.ensemble_size,
    write_quorum_size: WriteQuorumSizeOption = DEFAULT_QUORUM.write_quorum_size,
    ack_quorum_size: AckQuorumSizeOption = DEFAULT_QUORUM.ack_quorum_size,
) -> None:
    """Measure the write of a DataFrame and the read of it, and what each bookie takes for a file.

    Works in the active Spark session, or in a new one.
    """
    from bkspark.cli import measuring

    _require("--rows", rows, 1, ROWS_MAX)
    quorum = Quorum(ensemble_size, write_quorum_size, ack_quorum_size)
    session = session_of(context)
    with _opened(session) as (keeper, cluster):
        spark = spark_session("bkspark bench")
        with Bar("measuring") as bar:
            found = measuring.measure_writes(
                keeper, cluster, spark, quorum=quorum, row_count=rows, progress=bar
            )
    _show(found, session)


def read(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The log's name.")],
) -> None:
    """Measure the read of a log with all its columns.

    Works in the active Spark session, or in a new one.
    """
    from bkspark.cli import measuring

    session = session_of(context)
    with _opened(session) as (keeper, _), keeper.open_log(name) as log:
        found = measuring.measure_reads(
            spark_session("bkspark bench"), session.named_uri(), name, log.count()
        )
    _show(found, session)


@contextmanager
def _opened(session: CommandSession) -> Iterator[tuple["BookKeeper", "Cluster"]]:
    from bkspark.bookkeeper import BookKeeper

    with BookKeeper(session.named_uri()) as keeper, session.cluster() as cluster:
        yield keeper, cluster


def _require(what: str, given: float, least: float, most: float) -> None:
    if not least <= given <= most or math.isnan(given):
        raise InvalidRequestError(f"{what} must be from {least:,g} to {most:,g}, not {given:,g}")


def _show(found: "Benchmark", session: CommandSession) -> None:
    if session.as_json:
        print_json(found.document)
        return
    print_table([figure.row for figure in found.figures], _COLUMNS)
    note(found.told)


def _time(key: str) -> Column:
    def shown(row: Mapping[str, Any]) -> str:
        return "" if row[key] is None else shown_ms(row[key])

    return Column(key.removesuffix("_ms"), shown)


def _rate(row: Mapping[str, Any]) -> str:
    return f"{row['per_second']:,.0f}" if row["per_second"] >= 10 else f"{row['per_second']:.2f}"


def _bandwidth(row: Mapping[str, Any]) -> str:
    return f"{row['bytes_per_second'] / 2**20:,.1f} MiB" if row["bytes_per_second"] else ""


_COLUMNS = (
    Column("what", "what"),
    _time("p50_ms"),
    _time("p99_ms"),
    Column("a second", _rate),
    Column("bytes a second", _bandwidth),
)
