"""A schedule told step by step, in the words of the protocol.

Rule: names are shortened, never left out: what is told is all that happened, in its order.
"""

import re

from tests.simulation.frame import Outcome

_WORDS = (
    (
        re.compile(r"put_new ledgers/../0*([0-9a-f]+)/terms/0*([0-9a-f]+)-(\w{4})\w*"),
        r"puts permission \2-\3 of L\1",
    ),
    (
        re.compile(r"size ledgers/../0*([0-9a-f]+)/terms/0*([0-9a-f]+)-(\w{4})\w*"),
        r"looks for permission \2-\3 of L\1",
    ),
    (re.compile(r"put_new ledgers/../0*([0-9a-f]+)/terms/0*([0-9a-f]+)"), r"puts marker \2 of L\1"),
    (
        re.compile(r"size ledgers/../0*([0-9a-f]+)/terms/0*([0-9a-f]+)"),
        r"looks for marker \2 of L\1",
    ),
    (
        re.compile(r"ledgers/../0*([0-9a-f]+)/journal/0*([0-9a-f]+)-(\w{4})\w*"),
        r"journal \2-\3 of L\1",
    ),
    (re.compile(r"ledgers/../0*([0-9a-f]+)/journal"), r"journals of L\1"),
    (
        re.compile(r"ledgers/../0*([0-9a-f]+)/entries/(\w{4})\w*-(\d+).arrow"),
        r"entry log \2-\3 of L\1",
    ),
    (re.compile(r"is_current ledgers/0*([0-9a-f]+)"), r"checks metadata of L\1"),
    (re.compile(r"put ledgers/0*([0-9a-f]+)"), r"CAS of L\1"),
    (re.compile(r"get ledgers/0*([0-9a-f]+)"), r"reads metadata of L\1"),
    (re.compile(r"\bappend "), "appends to "),
    (re.compile(r"has_journal"), "sees its own"),
    (re.compile(r"open_root  ?(\S+) on \S+"), r"opens \1"),
    (re.compile(r"bookie-(\d+)"), r"b\1"),
)


def told(outcome: Outcome) -> str:
    """Every step of a schedule and how it ended."""
    lines = [f"seed {outcome.seed}: {outcome.setting}"]
    for step, process, task, what in outcome.log:
        words = what
        for pattern, replacement in _WORDS:
            words = pattern.sub(replacement, words)
        where = "" if task == "main" else re.sub(r"ledger-\d+-bookie-", " lane b", f" {task}")
        lines.append(f"{step:5}  {process}{where}: {words}")
    lines.append(f"VIOLATION: {outcome.violation}" if outcome.violation else "no violation")
    return "\n".join(lines)
