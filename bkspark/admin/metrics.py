"""The current state of a cluster in numbers, under BookKeeper's names where available.

The last audit supplies missing copies, so the cost does not grow with the number of ledgers. No
bookie URL and no ledger name appears in the output.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from bkspark.admin.agents import living_agents
from bkspark.admin.auditing.findings import VERB
from bkspark.admin.collecting import collection as collecting
from bkspark.admin.offloading import tables
from bkspark.admin.repairing import repair_command as repairing
from bkspark.admin.scrubbing import scrub as scrubbing
from bkspark.admin.survey import Survey
from bkspark.cluster.bookie_status import BookieStatus
from bkspark.format.upkeep_records import ReportRecord

WRITABLE, READ_ONLY, UNREGISTERED = 1, 0, -1
"""Values of BookKeeper's SERVER_STATUS."""

STATES = ("usable", "full", "read-only", "not writable", "unavailable", "lost")


_RUNS = {
    VERB: ("auditor_", "auditor_CHECK_ALL_LEDGERS_TIME", "Of the last audit of all ledgers."),
    collecting.VERB: ("bookie_gc_", "bookie_gc_THREAD_RUNTIME", "Of the last collection."),
    repairing.VERB: (
        "replication_worker_",
        "replication_worker_REREPLICATE_OP",
        "Of the last repair of all ledgers.",
    ),
    scrubbing.VERB: ("bkspark_scrub_", "bkspark_scrub_TIME", "Of the last scrub of all ledgers."),
}
"""Of each verb with a noted last run: prefix of its counters, name of its duration, help."""


_OF_OFFLOADS = {
    tables.COPIED_BYTES: "Payload of the rows in tables, as of the last audit of all ledgers.",
    tables.FREED_BYTES: "Payload of the rows that readers take from tables, as of that audit.",
    tables.LAG_SECONDS: "Age of the oldest closed ledger that no table has, as of that audit.",
    tables.PROBLEMS: "Tables that are not as they were written, or not known to be, as of then.",
}
"""Help of the counters that are about tables of logs."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number, or a number for each value of a label.

    Attributes:
        label: name of the label; empty for a single number.
        values: by the label's value; the value is empty for a single number.
    """

    name: str
    help: str
    label: str
    values: dict[str, float]


def state_of(status: BookieStatus, *, is_lost: bool) -> str:
    """One of ``STATES``."""
    if is_lost:
        return "lost"
    if status.problem:
        return "unavailable"
    if status.write_problem:
        return "not writable"
    if status.record.is_read_only:
        return "read-only"
    return "full" if status.is_full else "usable"


def gauges(cluster: Survey) -> Iterator[Gauge]:
    """Yield all gauges from current records."""
    lost = cluster.lost_members()
    statuses = cluster.probe()
    yield from _of_bookies(
        {s.record.bookie_id: s for s in statuses},
        {s.record.bookie_id: state_of(s, is_lost=s.member in lost) for s in statuses},
    )
    agents = living_agents(cluster)
    if agents:
        yield Gauge(
            "bkspark_agent_start_timestamp_seconds",
            "Since when the living agent of a bookie looks after it; others are missing.",
            "bookie",
            {i: agent.since.timestamp() for i, agent in agents.items() if agent.since},
        )
    yield from _of_last_runs(cluster)
    yield Gauge(
        "bkspark_unreadable_metadata_records",
        "Records of bookies and reports in the metadata store that cannot be read.",
        "",
        {"": len(cluster.unreadable)},
    )
    yield store_gauge(is_up=True)


def store_gauge(*, is_up: bool) -> Gauge:
    """Return whether the metadata store answers; without an answer the other gauges are missing."""
    about = "1 if the metadata store answers; 0 if not, and then no other metric is shown."
    return Gauge("bkspark_metadata_store_up", about, "", {"": int(is_up)})


def _of_bookies(statuses: dict[str, BookieStatus], states: dict[str, str]) -> Iterator[Gauge]:
    counts = Counter(states.values())
    yield Gauge(
        "bkspark_bookies",
        "Registered bookies by state.",
        "state",
        {state: counts[state] for state in STATES},
    )
    yield Gauge(
        "bookie_SERVER_STATUS",
        "1: gets new ledgers; 0: is only read; -1: cannot be used.",
        "bookie",
        {bookie_id: _status_number(state) for bookie_id, state in states.items()},
    )
    known = {i: status for i, status in statuses.items() if status.tells_space}
    yield Gauge(
        "bkspark_bookie_free_bytes",
        "Free space for new data, of bookies that report it.",
        "bookie",
        {bookie_id: status.free_bytes for bookie_id, status in known.items()},
    )
    yield Gauge(
        "bkspark_bookie_total_bytes",
        "Size of the disk, of bookies that report it.",
        "bookie",
        {bookie_id: status.total_bytes for bookie_id, status in known.items()},
    )


def _status_number(state: str) -> int:
    if state in ("unavailable", "lost"):
        return UNREGISTERED
    return WRITABLE if state == "usable" else READ_ONLY


def _of_last_runs(cluster: Survey) -> Iterator[Gauge]:
    """Yield the last runs. A verb that never ran has no gauge: 0 would look like success."""
    seen = {verb: cluster.upkeep.reports.get(verb) for verb in _RUNS}
    reports = {verb: found.value for verb, found in seen.items() if found is not None}
    for verb, report in reports.items():
        prefix, seconds, what = _RUNS[verb]
        yield from _of_run(report, prefix, what)
        yield _seconds(report, seconds)
    if reports:
        yield Gauge(
            "bkspark_last_run_timestamp_seconds",
            "When a maintenance verb ended last.",
            "verb",
            {verb: report.ended_ms / 1000 for verb, report in reports.items()},
        )
        yield Gauge(
            "bkspark_last_run_left",
            "How much its last run left to do.",
            "verb",
            {verb: report.left for verb, report in reports.items()},
        )


def _of_run(report: ReportRecord, prefix: str, what: str) -> Iterator[Gauge]:
    for name, count in sorted(report.counters.items()):
        about = _OF_OFFLOADS.get(name)
        if about is None:
            yield Gauge(f"{prefix}{name}", what, "", {"": count})
        else:
            yield Gauge(f"bkspark_{name.lower()}", about, "", {"": count})


def _seconds(report: ReportRecord, name: str) -> Gauge:
    taken = (report.ended_ms - report.began_ms) / 1000
    return Gauge(name, f"Seconds that the last {report.verb} took.", "", {"": taken})
