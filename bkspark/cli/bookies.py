"""Commands about one bookie."""

from typing import Annotated

import typer

from bkspark.cli.output import note, print_json
from bkspark.cli.session import COMMON, require_consent, session_of
from bkspark.client.upkeep.lost_bookies import declare_lost


def add_to(app: typer.Typer) -> None:
    """Declare the commands."""
    one = typer.Typer(name="bookie", help="One bookie.", rich_markup_mode=None)
    one.callback()(_one)
    one.command("lost", epilog=COMMON)(lost)
    app.add_typer(one)


def _one() -> None:
    """One bookie."""


def lost(
    context: typer.Context,
    bookie_id: Annotated[str, typer.Argument(metavar="ID", help="The bookie's id.")],
    incarnation: Annotated[
        str,
        typer.Option(
            metavar="HEX", help="Which initialisation is meant; default: the registered one."
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Declare that a bookie will never come back. Refused while it answers.

    Recoveries wait for it no more, and nothing is placed on it again. No entry is given up by this:
    `bkspark ledger recover --accept-loss` does that, for one ledger. It cannot be taken back.
    """
    session = session_of(context)
    with session.cluster() as cluster:
        require_consent(f"Is bookie {bookie_id} lost for ever, with all its data?", yes=yes)
        member = declare_lost(cluster, bookie_id, incarnation)
    if session.as_json:
        print_json({"lost_bookie": member.bookie_id, "incarnation": member.incarnation})
    else:
        note(f"bookie {member.bookie_id} is lost (incarnation {member.incarnation})")
