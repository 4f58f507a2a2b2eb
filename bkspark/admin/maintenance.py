"""What all maintenance verbs have in common: a plan, instructions, who carries them out, a report.

A verb is a function of a cluster. It makes a *plan*: a frozen value that is all that ``--dry-run``
prints. Carrying it out means *instructions*, each picklable and about one bookie, which a *runner*
takes to where the bookie is: threads of this process, or tasks of Spark. What came of it is a
*report*. Plans and reports are facts; nobody needs Spark or a terminal to make or to test them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from bkspark import environment
from bkspark.bookie.messages import about
from bkspark.cluster.cluster import Cluster
from bkspark.format.report_record import ReportRecord
from bkspark.ledger.recovery.running import Runner, TellingRunner, in_threads

Facts = Mapping[str, Any]
"""Values that JSON has, by name."""

Tell = Callable[[str], None]
"""Told a line about whom is waited for."""

Progress = Callable[[int, int], None]
"""Told how much of how much is done."""


class Plan(Protocol):
    """What a verb is going to do."""

    @property
    def facts(self) -> Facts: ...


@dataclass(frozen=True, slots=True)
class Left:
    """Something that is not as it should be when a verb has ended, and why.

    Attributes:
        hint: what to do about it, where that is not said by the reason.
    """

    subject: str
    reason: str
    hint: str = ""

    def __post_init__(self) -> None:
        """The subject stands in front of the reason, which often begins with it."""
        object.__setattr__(self, "reason", about(self.subject, self.reason))

    @property
    def facts(self) -> Facts:
        return {"subject": self.subject, "reason": self.reason, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class Report:
    """What a verb has done.

    Attributes:
        plan: the facts of its plan.
        done: how much of what was done.
        left: what is not well; empty if nothing is left to do.
        counters: under BookKeeper's names for them, where it has one.
        details: rows of tables, by the table's name.
        summary: what was found, in a line of plain words for people; empty if there is nothing
            to say. ``verdict`` is what people read.
    """

    verb: str
    plan: Facts
    done: Mapping[str, int] = field(default_factory=dict)
    left: Sequence[Left] = ()
    counters: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Sequence[Facts]] = field(default_factory=dict)
    summary: str = ""

    @property
    def exit_status(self) -> int:
        """0 if nothing is left to do, else 1."""
        return 1 if self.left else 0

    @property
    def verdict(self) -> str:
        """How it stands, in a line for people: all is well if, and only if, nothing is left."""
        if self.left:
            return self.summary or f"{len(self.left):,} left"
        return f"all is well ({self.summary})" if self.summary else "all is well"

    @property
    def document(self) -> dict[str, Any]:
        """All of it, in values that JSON has."""
        return {
            "verb": self.verb,
            "plan": dict(self.plan),
            "done": dict(self.done),
            "left": [dict(item.facts) for item in self.left],
            "counters": dict(self.counters),
            **{name: [dict(row) for row in rows] for name, rows in self.details.items()},
        }


def planned(verb: str, plan: Plan) -> Report:
    """The report of a plan that is not carried out."""
    return Report(verb, plan.facts)


def telling(run: Runner | None, tell: Tell | None) -> Runner:
    """``run``, or threads of this process, with somebody to tell whom is waited for."""
    if run is None:
        return partial(in_threads, tell=tell)
    return run.telling(tell) if tell is not None and isinstance(run, TellingRunner) else run


def noted(cluster: Cluster, report: Report, began_ms: int) -> Report:
    """Note that a verb has ended just now, for ``status`` and ``metrics``; its report.

    What was done is done also where that could not be noted; then this is what is left.
    """
    record = ReportRecord(
        report.verb, began_ms, environment.now_ms(), len(report.left), report.counters
    )
    problem = cluster.upkeep.reports.try_to_note(report.verb, record)
    if not problem:
        return report
    reason = f"that this was done could not be noted: {problem}"
    left = Left(f"metadata record {cluster.upkeep.reports.key(report.verb)}", reason)
    return replace(report, left=[*report.left, left], summary=report.summary or "but not noted")
