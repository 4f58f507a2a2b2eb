"""An audit's counts in words for people; the names of counters are for machines."""

from collections.abc import Mapping

from bkspark.admin.auditing import findings
from bkspark.admin.auditing.copies import Copies

_WORDS = {
    findings.COUNTERS[Copies.NONE]: "ledger(s) with entries of which no copy is left",
    findings.COUNTERS[Copies.BELOW_ACK_QUORUM]: "ledger(s) with fewer copies than the ack quorum",
    findings.COUNTERS[
        Copies.BELOW_WRITE_QUORUM
    ]: "ledger(s) with fewer copies than the write quorum",
    findings.COUNTERS[Copies.UNKNOWN]: "ledger(s) not known to have all copies",
    findings.SHORT: "ledger(s) on fewer bookies than wanted",
    findings.WAITING: "ledger(s) waiting for recovery",
    findings.RECORDLESS: "listed ledger(s) without a metadata record",
    findings.UNREADABLE: "metadata record(s) that cannot be read",
    findings.SILENT: "bookie(s) that did not answer",
    findings.UNSOUND: "folder(s) of journals with damage or strange files",
    findings.CHANGING: "ledger(s) that changed each time the audit looked",
    findings.NOT_ADHERING: "ledger(s) on fewer failure domains than possible",
    findings.ORPHANED: "folder(s) of ledgers that do not name the bookie",
    findings.STRAYS: "entry log(s) that no record names",
}
"""Worst first."""

LOSSES = (findings.UNDER_REPLICATED, findings.RECORDLESS, findings.UNREADABLE)
"""Counters of content surely missing."""


def in_words(counters: Mapping[str, int]) -> str:
    """Return all findings in one line; empty if all is well."""
    return ", ".join(
        f"{counters[name]:,} {words.replace('(s)', '' if counters[name] == 1 else 's')}"
        for name, words in _WORDS.items()
        if counters.get(name)
    )
