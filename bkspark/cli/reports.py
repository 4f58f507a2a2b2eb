"""Print reports of maintenance commands, as JSON or for people."""

import sys
from collections.abc import Sequence

from bkspark.admin.maintenance import Facts, Report
from bkspark.cli.output import Column, note, print_json, print_pairs, print_table
from bkspark.quantities import plural
from bkspark.verbs.declaring import Table, Verb

_LEFT_MAX = 5


def show(verb: Verb, report: Report, *, as_json: bool, is_planned: bool) -> None:
    """Print the whole report as JSON, or its table and a few lines about remaining problems."""
    shown = verb.shown
    if as_json:
        print_json(report.document if shown.document is None else shown.document(report))
    elif shown.said is not None:
        note(shown.said(report))
    elif is_planned and shown.plans:
        for table in shown.plans:
            _print(table, report.plan[table.name])
        for line in shown.notes(report.plan):
            note(line)
    elif not report.done:
        print_pairs(report.plan)
        for left in report.left:  # why the work was not begun
            note(f"{left.subject}: {left.reason}; {left.hint}")
    else:
        _show_done(verb, report)


def _show_done(verb: Verb, report: Report) -> None:
    if verb.shown.table is not None:
        rows = report.details[verb.shown.table.name]
        if rows or not sys.stdout.isatty():
            _print(verb.shown.table, rows)
    for left in report.left[:_LEFT_MAX]:
        hint = f" ({left.hint})" if left.hint and verb.destroys else ""
        note(f"{left.subject}: {left.reason}{hint}")
    if len(report.left) > _LEFT_MAX:
        note(f"and {len(report.left) - _LEFT_MAX:,} more; --json lists them all")
    note(outcome(report))


def outcome(report: Report) -> str:
    """Return one line for people about the work done and the findings."""
    done = ", ".join(plural(count, what.removesuffix("s")) for what, count in report.done.items())
    return f"{report.verb}: {done}: {report.verdict}"


def _print(table: Table, rows: Sequence[Facts]) -> None:
    print_table(rows, [Column(title, get) for title, get in table.columns.items()])
