"""``bkspark metrics``: the cluster in numbers, for Prometheus."""

from typing import Annotated

import typer

from bkspark.cli.output import print_json
from bkspark.cli.session import COMMON, session_of
from bkspark.errors import InvalidRequestError


def add_to(app: typer.Typer) -> None:
    """Declare the command."""
    app.command(epilog=COMMON)(metrics)


def metrics(
    context: typer.Context,
    listen: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Serve the metrics at this address; each request looks again."
        ),
    ] = "",
) -> None:
    """Print the cluster in numbers, for Prometheus.

    Bookies are probed now; the last audit supplies missing copies.
    """
    session = session_of(context)
    if listen:
        host, port = _place(listen)
        from bkspark.cli import exposition  # the library takes long to import

        exposition.serve(session, host, port)
    elif session.as_json:
        from bkspark.admin.metrics import gauges

        with session.survey() as cluster:
            found = list(gauges(cluster))
        print_json(
            {gauge.name: gauge.values if gauge.label else gauge.values[""] for gauge in found}
        )
    else:
        from bkspark.cli import exposition

        print(exposition.text(session), end="")


def _place(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not (colon and port.isdecimal() and int(port) < 2**16):
        raise InvalidRequestError(
            f"{listen!r} is not an address to listen at",
            hint="give HOST:PORT, such as localhost:9400",
        )
    return host.strip("[]"), int(port)
