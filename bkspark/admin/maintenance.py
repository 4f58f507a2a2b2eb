"""Shared parts of all maintenance verbs: plan, instructions, pace, runner, report."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from bkspark import environment

# The command line needs the values below to show its help, and the rest only for work.
if TYPE_CHECKING:
    from bkspark.cluster.cluster import Cluster
    from bkspark.cluster.fan_out import Heartbeat
    from bkspark.format.cluster import BookieRecord
    from bkspark.ledger.recovery.running import Runner

# --- pace ----------------------------------------------------------------------------------------
# Limit the rate of reads and copies as set by an operator.
#
# Rule. The limit holds for each bookie: parallel work together reads from a bookie, and writes to a
# bookie, no more than the limit. So each disk keeps the intended free capacity, and work on many
# disks ends sooner.


BEAT_SECONDS = 1.0
"""Time between heartbeats during a delay."""


def shares(bytes_per_second: float | None, works: Sequence[Collection[str]]) -> list[float | None]:
    """Return the rate of each of ``works`` when all run in parallel.

    Args:
        bytes_per_second: limit of each bookie; None for unlimited.
        works: ids of the bookies each work may read from or write to, at least one.
    """
    if bytes_per_second is None:
        return [None] * len(works)
    askers = Counter(bookie_id for work in works for bookie_id in set(work))
    return [bytes_per_second / max(askers[bookie_id] for bookie_id in work) for work in works]


class Pace:
    """Delays work exceeding its rate.

    Args:
        bytes_per_second: None for unlimited.
        beat: called at each step as a heartbeat.
    """

    def __init__(self, bytes_per_second: float | None, beat: "Heartbeat") -> None:
        self._bytes_per_second = bytes_per_second
        self._beat = beat
        self._began = environment.monotonic()
        self.byte_count = 0

    def passed(self, byte_count: int) -> None:
        """Count bytes, and sleep until they fit the rate."""
        self.byte_count += byte_count
        self._beat()
        if not self._bytes_per_second:
            return
        due = self._began + self.byte_count / self._bytes_per_second
        while (left := due - environment.monotonic()) > 0:
            environment.sleep(min(left, BEAT_SECONDS))
            self._beat()


# --- maintenance ---------------------------------------------------------------------------------
# Shared parts of all maintenance verbs: plan, instructions, runner, report.
#
# A verb is a function of a cluster. The verb makes a *plan*, a frozen value; ``--dry-run`` prints
# the plan. A verb carries out its plan by *instructions*. Each instruction is picklable and
# concerns one bookie. A *runner* executes instructions near the bookie: in threads of this process
# or in Spark tasks. The result is a *report*. Plans and reports are plain facts; making and testing
# them needs neither Spark nor a terminal.


Facts = Mapping[str, Any]
"""JSON values by name."""

Tell = Callable[[str], None]
"""Receives a line about a delay."""

Progress = Callable[[int, int], None]
"""Receives the number of finished steps and the total."""


def no_progress(_done: int, _total: int) -> None:
    """Ignore progress, for callers without interest in it."""


@dataclass(frozen=True, slots=True)
class Execution:
    """How a verb runs.

    Attributes:
        dry_run: plan only.
        run: runner of the instructions; None for threads of this process.
    """

    dry_run: bool = False
    run: "Runner | None" = None
    tell: Tell | None = None
    progress: Progress = no_progress

    @property
    def runner(self) -> "Runner":
        """The runner of the instructions, which reports delays to ``tell``."""
        from bkspark.ledger.recovery.running import TellingRunner, in_threads

        if self.run is None:
            return partial(in_threads, tell=self.tell)
        if self.tell is not None and isinstance(self.run, TellingRunner):
            return self.run.telling(self.tell)
        return self.run


IN_THREADS = Execution()
"""All work is done, in threads of this process."""


class Plan(Protocol):
    """The intended work of a verb."""

    @property
    def facts(self) -> Facts: ...


@dataclass(frozen=True, slots=True)
class Left:
    """A problem remaining when a verb ends, and its reason.

    Attributes:
        hint: the operator's next step, unless given by the reason.
    """

    subject: str
    reason: str
    hint: str = ""

    def __post_init__(self) -> None:
        """Cut the subject from the beginning of the reason: both are shown together."""
        from bkspark.bookie.contract import about

        object.__setattr__(self, "reason", about(self.subject, self.reason))

    @property
    def facts(self) -> Facts:
        return {"subject": self.subject, "reason": self.reason, "hint": self.hint}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a verb.

    Attributes:
        plan: the facts of the plan.
        done: finished work, as counts by kind.
        left: remaining problems; empty if all is well.
        counters: counts under BookKeeper's names, where BookKeeper has a name.
        details: rows of tables, by the table's name.
        summary: one line of plain words about the findings; may be empty. ``verdict`` is the line
            shown to people.
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
        """0 without remaining problems, else 1."""
        return 1 if self.left else 0

    @property
    def verdict(self) -> str:
        """One line for people: "all is well" if and only if ``left`` is empty."""
        if self.left:
            return self.summary or f"{len(self.left):,} left"
        return f"all is well ({self.summary})" if self.summary else "all is well"

    @property
    def document(self) -> dict[str, Any]:
        """The whole report in JSON values."""
        return {
            "verb": self.verb,
            "plan": dict(self.plan),
            "done": dict(self.done),
            "left": [dict(item.facts) for item in self.left],
            "counters": dict(self.counters),
            **{name: [dict(row) for row in rows] for name, rows in self.details.items()},
        }


def planned(verb: str, plan: Plan) -> Report:
    """Return the report of a plan without carrying out the plan."""
    return Report(verb, plan.facts)


def left_records(unreadable: Mapping[str, str], hint: str = "") -> list[Left]:
    """Return the unreadable records, with their faults by key, as left."""
    return [Left(f"metadata record {key}", why, hint) for key, why in sorted(unreadable.items())]


def noted(cluster: "Cluster", report: Report, began_ms: int) -> Report:
    """Store the end of a verb for ``status`` and ``metrics``; return the report.

    If the note cannot be stored, the work stays done and the report lists the failed note.
    """
    from bkspark.format.upkeep_records import ReportRecord

    record = ReportRecord(
        report.verb, began_ms, environment.now_ms(), len(report.left), report.counters
    )
    problem = cluster.upkeep.reports.try_to_note(report.verb, record)
    if not problem:
        return report
    reason = f"the report could not be stored: {problem}"
    left = Left(f"metadata record {cluster.upkeep.reports.key(report.verb)}", reason)
    return replace(
        report, left=[*report.left, left], summary=report.summary or "but the report was not stored"
    )


def report_of(
    verb: str,
    record: "BookieRecord",
    steps: Sequence[str] = (),
    *,
    is_done: bool = False,
    left: Sequence[Left] = (),
) -> Report:
    """Return the report of the steps of a call about one bookie.

    Args:
        steps: in order; empty without work.
        is_done: whether the steps were taken; False in a dry run.
    """
    plan = {"bookie_id": record.bookie_id, "incarnation": record.incarnation, "steps": list(steps)}
    return Report(verb, plan, {"steps": len(steps)} if is_done and steps else {}, left)
