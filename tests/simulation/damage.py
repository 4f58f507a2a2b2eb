"""Which good copies go when the bytes of a file do.

Rule: only what the bytes themselves held is gone. The bookie's other copies stay good, and so does
what is written to it later.
"""

import re

from bkspark.format import journal
from bkspark.format.digest import Digester
from tests.simulation.known import Copy, Ledger, label

NAME = re.compile(r"ledgers/[0-9a-f]{2}/([0-9a-f]{16})/(terms|journal|entries)/(.+)")
"""Of a file of a ledger: its id, folder and last part."""


def damage(
    ledgers: dict[int, Ledger],
    digester: Digester,
    member: tuple[str, str],
    name: str,
    before: bytes,
    after: bytes,
) -> None:
    """Note that the file ``name`` of ``member`` held ``before`` and is good up to ``after``."""
    match = NAME.fullmatch(name)
    if match is None or match[2] == "terms":
        return
    ledger_id = int(match[1], 16)
    if ledger_id not in ledgers:  # a journal that was begun, of a ledger that is not made yet
        return
    ledger = ledgers[ledger_id]
    gone: set[Copy] = set()
    if match[2] == "entries":
        attempt, _, stripe = match[3].removesuffix(".arrow").rpartition("-")
        gone.add(("log", attempt, stripe))
    else:
        firsts = _groups(before, digester, ledger_id) - _groups(after, digester, ledger_id)
        gone = {copy for copy, *_ in ledger.copies if copy[0] != "log" and copy[1] in firsts}
    ledger.cut |= {(copy, *member) for copy in gone}


def _groups(data: bytes, digester: Digester, ledger_id: int) -> set[str]:
    """Labels of the groups in a journal that begins with ``data``."""
    frames = journal.decode_journal(data, digester, ledger_id=ledger_id).frames
    return {label(frame.record) for frame in frames if not frame.record.is_confirmation}
