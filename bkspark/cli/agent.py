"""``bkspark agent``: look after the bookies of this host, and after the cluster if elected."""

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

from bkspark import environment
from bkspark.admin.maintenance import Report
from bkspark.cli.commands import ended_by_signals
from bkspark.cli.output import json_line, visible
from bkspark.cli.session import COMMON, session_of
from bkspark.cluster.arguments import duration
from bkspark.errors import InvalidRequestError
from bkspark.quantities import seconds_of, timestamp
from bkspark.verbs.declaring import VERBS

_LIMITS = {"scrub": {"max_bytes_per_second": 100_000_000.0}}
"""Options of commands of the schedule, as in ``conf/bkspark.crontab``."""


def add_to(app: typer.Typer) -> None:
    """Declare the command."""
    app.command(epilog=COMMON)(agent)


BookieOption = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="A bookie of this host. Repeat for each bookie."),
]
UpkeepOption = Annotated[
    bool,
    typer.Option(
        "--upkeep",
        help="Also take part in the election of the agent that runs recover, repair, collect, "
        "audit and scrub on a schedule.",
    ),
]
EveryOption = Annotated[
    str, typer.Option(metavar="TIME", help="Time between two rounds; default: 1 minute.")
]
SanityOption = Annotated[
    str,
    typer.Option(
        metavar="TIME", help="Time between two test writes on a bookie; default: 10 minutes."
    ),
]


def agent(
    context: typer.Context,
    bookie: BookieOption = None,
    upkeep: UpkeepOption = False,
    every: EveryOption = "60",
    sanity: SanityOption = "600",
    once: Annotated[bool, typer.Option("--once", help="Run one round, and end.")] = False,
) -> None:
    """Look after bookies of this host, until stopped.

    Show the bookies as alive. Write and read a file on each of them. Note that a disk is full, or
    has room again. Free deleted ledgers. Print one line for each event. An agent is optional: the
    cluster is as safe without one, and beside a second one.

    SIGTERM ends the agent with status 0. With --once, exit status 1 if something is wrong.
    """
    from bkspark.admin.agents import Agent, BookieRounds, Rounds, UpkeepRounds

    session = session_of(context)
    if not (bookie or upkeep):
        raise InvalidRequestError("there is nothing to do", hint="give --bookie ID or --upkeep")
    seconds, tries = _duration("every", every), _duration("sanity", sanity)
    tell = partial(_tell, as_json=session.as_json)
    with session.cluster() as cluster:
        rounds: list[Rounds] = []
        for bookie_id in dict.fromkeys(bookie or ()):
            cluster.bookie(bookie_id)  # refuses one that is not there
            rounds.append(BookieRounds(cluster, bookie_id, tell, tries))
        if upkeep:
            begin = None if once else environment.start
            rounds.append(UpkeepRounds(cluster, _calls(session.named_uri()), tell, begin))
        found = Agent(cluster, rounds, tell, seconds)
        if once:
            raise typer.Exit(0 if found.once() else 1)
        with ended_by_signals():
            try:
                found.run()
            except KeyboardInterrupt:
                found.stop()
        tell("agent", "stopped")


def _duration(what: str, given: str) -> float:
    return duration(what, seconds_of(what)(given), hint="give a time, for example 60 or 5m")


def _calls(uri: str) -> dict[str, Callable[[], Report]]:
    """Return the commands of the schedule; each opens the cluster anew, under its own lease."""
    from bkspark.admin.agents import UPKEEP

    return {name: partial(VERBS[name].run, uri, _LIMITS.get(name, {})) for name in UPKEEP}


def _tell(subject: str, event: str, *, as_json: bool) -> None:
    when = timestamp(environment.now_ms())
    shown = "" if when is None else f"{when:%Y-%m-%d %H:%M:%S}Z"
    fact = {"time": shown, "subject": subject, "event": event}
    line = json_line(fact) if as_json else visible(f"{shown} {subject}: {event}")
    print(f"{line}\n", end="", flush=True)  # in one piece: several tasks tell of events
