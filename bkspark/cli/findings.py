"""Findings of the commands that check a cluster."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum

from bkspark.cli.output import Column, print_json, print_styled, print_table


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


_MARKS = {
    Level.OK: ("\N{CHECK MARK}", "green"),
    Level.WARN: ("!", "yellow"),
    Level.FAIL: ("\N{BALLOT X}", "red"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check.

    Attributes:
        fix: what to do; may be empty.
    """

    level: Level
    subject: str
    message: str
    fix: str = ""


def report(
    findings: Sequence[Finding], *, as_json: bool, details: Mapping[str, object] | None = None
) -> int:
    """Print ``findings``; return 1 if any finding is a failure, else 0.

    Args:
        details: further members of the JSON document.
    """
    is_ok = all(finding.level is not Level.FAIL for finding in findings)
    if as_json:
        listed = [asdict(finding) for finding in findings]
        print_json({"ok": is_ok, "findings": listed, **(details or {})})
    elif sys.stdout.isatty():
        _print_marked(findings)
    else:
        names = ("level", "subject", "message", "fix")
        print_table([asdict(f) for f in findings], [Column(name, name) for name in names])
    return 0 if is_ok else 1


def _print_marked(findings: Sequence[Finding]) -> None:
    width = max((len(finding.subject) for finding in findings), default=0)
    for finding in findings:
        mark, style = _MARKS[finding.level]
        subject = finding.subject.ljust(width + 2)
        print_styled((f"{mark} ", style), (subject, "bold"), (finding.message, ""))
        if finding.fix:
            print_styled((f"{'':{width + 4}}{finding.fix}", "dim"))
