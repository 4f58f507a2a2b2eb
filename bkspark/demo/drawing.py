"""The demo's output: a ledger's facts, the striping of its entries, bytes per bookie."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from bkspark.demo.damage import DemoDamage
from bkspark.log.reading.slice_reader import ReplicaFault
from bkspark.protocol.ledger.metadata import LedgerMetadata

ENTRIES_DRAWN = 10
_BAR_WIDTH = 40
_STRIPE_STYLES = ("cyan", "magenta", "yellow", "green", "blue")


@dataclass(frozen=True, slots=True)
class Symbols:
    copy: str
    lost: str
    corrupt: str
    nothing: str
    bar: str


_UNICODE = Symbols("\N{BLACK SQUARE}", "\N{BALLOT X}", "!", "\N{MIDDLE DOT}", "\N{FULL BLOCK}")
_ASCII = Symbols("#", "x", "!", ".", "=")


def symbols_for(console: Console) -> Symbols:
    """Return symbols that the console can show."""
    return _ASCII if console.options.ascii_only else _UNICODE


def ledger_table(log_name: str, ledger: LedgerMetadata, bookie_count: int) -> Table:
    """Return a table with the facts of a ledger."""
    quorum = ledger.quorum
    e, qw, qa = quorum.ensemble_size, quorum.write_quorum_size, quorum.ack_quorum_size
    table = Table.grid(padding=(0, 2))
    rows = (
        ("log", f"{log_name}: ledger {ledger.ledger_id}, {ledger.state.value}"),
        ("entries", f"{(ledger.last_entry_id or -1) + 1:,}, one for each row"),
        (f"E = {e}", f"entries are striped over {e} of the {bookie_count} bookies, the ensemble"),
        (f"Qw = {qw}", f"every entry is written to {qw} neighbours in it"),
        (f"Qa = {qa}", f"and acknowledged once {qa} of these have it durably"),
    )
    for name, value in rows:
        table.add_row(Text(f"  {name}", style="bold"), Text(value))
    return table


def striping(
    console: Console, ledger: LedgerMetadata, bookie_ids: Sequence[str], damage: DemoDamage | None
) -> Table:
    """Draw which bookies hold each of the first entries, and the state of each copy."""
    symbols = symbols_for(console)
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    table.add_column("", justify="right")
    for bookie_id in bookie_ids:
        table.add_column(bookie_id, justify="center")
    stripes = ledger.quorum.stripe_count
    for entry_id in range(ENTRIES_DRAWN):
        holders = {member.bookie_id for member in ledger.members_of(entry_id)}
        style = _STRIPE_STYLES[entry_id % stripes % len(_STRIPE_STYLES)]
        cells = []
        for bookie_id in bookie_ids:
            cell = Text(symbols.nothing, style="dim")
            if bookie_id in holders:
                cell = Text(symbols.copy, style=style)
                if damage and bookie_id == damage.destroyed:
                    cell = Text(symbols.lost, style="bold red")
                elif (
                    damage and bookie_id == damage.corrupted and entry_id % stripes == damage.stripe
                ):
                    cell = Text(symbols.corrupt, style="bold red")
            cells.append(cell)
        table.add_row(Text(f"  entry {entry_id}", style="dim"), *cells)
    return table


def legend(console: Console) -> Text:
    """Explain the symbols of ``striping`` after damage."""
    symbols = symbols_for(console)
    return Text(
        f"  {symbols.copy} a good copy   {symbols.lost} destroyed   {symbols.corrupt} corrupt",
        style="dim",
    )


def bars(console: Console, bytes_by_bookie: Mapping[str, int]) -> Table:
    """Draw the bytes per bookie."""
    most = max(bytes_by_bookie.values(), default=0) or 1
    table = Table.grid(padding=(0, 2))
    for bookie_id, count in bytes_by_bookie.items():
        bar = symbols_for(console).bar * round(_BAR_WIDTH * count / most)
        table.add_row(Text(f"  {bookie_id}", style="dim"), Text(decimal(count)), Text(bar, "cyan"))
    return table


def fault_lines(faults: Sequence[ReplicaFault]) -> list[Text]:
    """Return the replicas that a read skipped, with the reasons."""
    return [
        Text.assemble((f"  {fault.bookie_id}", "bold red"), f"  {fault.reason}") for fault in faults
    ]
