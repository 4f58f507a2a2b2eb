"""The last line of each verb agrees with its exit status: all is well if, and only if, it is 0."""

import ast
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

import bkspark
from bkspark.admin.auditing.copies import Copies, Gap
from bkspark.admin.auditing.findings import (
    AuditFindings,
    Misplaced,
    OrphanKind,
    Short,
    WaitingLedger,
    in_words,
    plan_of_all,
)
from bkspark.admin.maintenance import Left, Report
from bkspark.admin.survey import Gone
from bkspark.cli.output import outcome
from bkspark.protocol.ledger.metadata import Member

PACKAGE = Path(bkspark.__file__).parent
LEFT = [Left("ledger 0", "something")]


@pytest.mark.parametrize("summary", ["", "2 folders of no ledger"])
@pytest.mark.parametrize("left", [[], LEFT])
def test_all_is_well_if_nothing_is_left(left: list[Left], summary: str) -> None:
    report = Report("any", {}, {"ledgers": 1}, left, summary=summary)
    assert ("all is well" in outcome(report)) is (report.exit_status == 0)
    assert summary in outcome(report)


def test_no_verb_says_it_by_itself() -> None:
    """But for what status says of a report that it reads."""
    words = ("all is well", "all was well")
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    found = [
        str(path.relative_to(PACKAGE))
        for path, text in texts.items()
        if any(one in text for one in words)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.startswith(words)
    ]
    assert set(found) == {"admin/maintenance.py", "cli/health.py"}


GAP = Gap(1, 0, (0, 4), Member("bookie-1", "0" * 32), "all", Copies.NONE, False, "it is missing")
FOUND: dict[str, Callable[[AuditFindings], object]] = {
    "checked": lambda found: setattr(found, "checked", 1),
    "gaps": lambda found: found.gaps.append(GAP),
    "waiting": lambda found: found.waiting.append(WaitingLedger(1, "OPEN", "why")),
    "problems": lambda found: found.problems.append((1, "bookie-1", "a stray file")),
    "misplaced": lambda found: found.misplaced.update({1: Misplaced("why")}),
    "orphans": lambda found: found.add_orphan("bookie-1", OrphanKind.DELETED, 1),
    "strays": lambda found: found.strays.update(["bookie-1"]),
    "changing": lambda found: found.changing.append(1),
    "short": lambda found: found.short.append(Short(1, copies=2, wanted=3, is_closed=True)),
    "silent": lambda found: found.silent.update({"bookie-1": "no answer"}),
    "unreadable": lambda found: found.unreadable.update({"logs/x": "why"}),
    "recordless": lambda found: found.recordless.append(Gone("x", [1], [("why", "")])),
}
"""What an audit may find, by the field of ``AuditFindings`` that keeps it."""
NEUTRAL = {"checked"}


def test_each_kind_of_finding_is_tried() -> None:
    assert {field.name for field in fields(AuditFindings)} == set(FOUND)


@pytest.mark.parametrize("name", sorted(FOUND))
def test_what_an_audit_finds_is_in_its_words(name: str) -> None:
    found = AuditFindings()
    FOUND[name](found)
    report = found.report(plan_of_all([1], ["bookie-1"]))
    words = in_words(report.counters)
    assert bool(words) is (name not in NEUTRAL)
    assert not report.left or words


def test_a_bookie_that_was_declared_lost_is_no_finding_by_itself() -> None:
    found = AuditFindings(silent={"bookie-1": "no answer"})
    report = found.report(plan_of_all([1], ["bookie-1"]), ["bookie-1"])
    assert (report.left, in_words(report.counters)) == ([], "")
