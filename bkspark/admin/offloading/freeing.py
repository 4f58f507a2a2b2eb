"""Frees the ledgers whose rows a table has: two looks at the table, a day apart.

Rule 1. Ledgers leave the log's list after a look at the newest version of the table has found each
of their rows, by the digests that the offload stored. Readers then take the rows from the table.

Rule 2. The ledgers are deleted only after a second such look, in the same run. Until then they
wait, and ``bkspark offload --stop`` brings them back to the list. So a commit that the table loses
after an offload, by a driver that overwrote it, costs no row.

Rule 3. A table that gives no certain answer proves nothing: nothing is freed, and the next run
looks again. A clock that is wrong only moves the moment of a look.

Rule 4. The compare-and-set that follows a look wants the tier that was looked at. If another
command changed it meanwhile, the table is looked at again.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from bkspark import environment
from bkspark.admin.maintenance import Facts, Left
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.log_messages import tell
from bkspark.errors import BookKeeperError, CorruptDataError, MetadataVersionError
from bkspark.protocol.log import offloading
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier, TierSegment
from bkspark.storage.address import shown_url

if TYPE_CHECKING:  # a collection that finds no table loads no module of tables
    from bkspark.admin.offloading.checking import TableView

logger = logging.getLogger(__name__)

_LOOKS_MAX = 5
_FIRST_GENERATION = 1
"""A log that was never overwritten, and has no tier, has no pages: ``stop`` removes them."""


@dataclass(frozen=True, slots=True)
class FreeingDue:
    """When rows may leave their ledgers, in milliseconds since 1970.

    Attributes:
        copied_before_ms: segments copied later stay on the list.
        freed_before_ms: ledgers that left the list later are not deleted.
    """

    copied_before_ms: int
    freed_before_ms: int


_AT_LAST = FreeingDue(2**62, 2**62)


@dataclass(frozen=True, slots=True)
class TierStep:
    """Offsets ``[begin, end)`` of a log that leave its list, or whose ledgers are to be deleted.

    Attributes:
        is_release: whether the ledgers, which have left the list already, are to be deleted.
    """

    log_name: str
    table_url: str
    begin: int
    end: int
    is_release: bool

    @property
    def row(self) -> Facts:
        """The step for a report."""
        return {
            "log": self.log_name,
            "table": shown_url(self.table_url),
            "first_offset": self.begin,
            "end_offset": self.end,
            "step": "delete" if self.is_release else "free",
        }


@dataclass
class TierOutcome:
    """What was freed, and what is left because a table could not prove its rows.

    Attributes:
        paged: logs that may have pages of a tier: others cost a collection no look.
        waiting: what later runs will do, and from when on.
        dropping: logs that have dropped ledgers, or have now.
    """

    steps: list[TierStep] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    paged: list[str] = field(default_factory=list)
    waiting: list[Facts] = field(default_factory=list)
    dropping: list[str] = field(default_factory=list)

    @property
    def details(self) -> dict[str, list[Facts]]:
        """The tables of a report, without those that have no row."""
        found = {"tables": [step.row for step in self.steps], "tables_later": self.waiting}
        return {name: rows for name, rows in found.items() if rows}

    def note_waiting(self, log: LogRecord, due: FreeingDue) -> None:
        """Note what a later run will do for a log, and when it is due."""
        step = None if next_step(log, due) else next_step(log, _AT_LAST)
        if step is not None and log.tier is not None:
            since = log.tier.of_freed.ms
            before_ms = due.freed_before_ms
            if not step.is_release:
                since = min(one.copied_ms for one in log.tier.segments if one.end > step.begin)
                before_ms = due.copied_before_ms
            self.waiting.append({**step.row, "due_ms": since + environment.now_ms() - before_ms})


def next_step(log: LogRecord, due: FreeingDue) -> TierStep | None:
    """Return what can be done for a log now, deletions first; None if nothing is due."""
    tier = log.tier
    if tier is None:
        return None
    if tier.of_freed.waiting:
        if tier.of_freed.ms > due.freed_before_ms:
            return None
        return TierStep(log.name, tier.table_url, tier.released, tier.freed, True)
    end = offloading.freeable_end(log, due.copied_before_ms)
    begin = max(tier.freed, log.first_offset)
    return TierStep(log.name, tier.table_url, begin, end, False) if end > begin else None


def planned_steps(cluster: Cluster, due: FreeingDue) -> TierOutcome:
    """Return the next step of each log, without a look at any table."""
    outcome = TierOutcome()
    for log in _logs(cluster, outcome):
        step = next_step(log, due)
        if step is not None:
            outcome.steps.append(step)
        outcome.note_waiting(log, due)
    return outcome


def free_offloaded(cluster: Cluster, due: FreeingDue) -> TierOutcome:
    """Free what is due of all logs, each step after a look of its own."""
    outcome = TierOutcome()
    for log in _logs(cluster, outcome):
        try:
            for step in _carried_out(cluster, log.name, due, outcome):
                outcome.steps.append(step)
        except BookKeeperError as error:
            why = "; ".join(part for part in (str(error.args[0]), error.hint) if part)
            outcome.left.append(Left(f"log {log.name}", f"nothing was freed: {why}"))
    return outcome


def _logs(cluster: Cluster, outcome: TierOutcome) -> Iterator[LogRecord]:
    """Yield the logs with a tier; note those that may have pages of one, or dropped ledgers."""
    for name, answer in cluster.logs.answers(cluster.log_names()):
        try:
            seen = answer()
        except CorruptDataError:
            continue  # the record is listed as unreadable elsewhere
        if seen is None:
            continue
        log = seen.value
        if log.has_any_dropped or log.tier is not None:
            outcome.dropping.append(name)
        if log.tier is not None or log.is_tombstone or log.generation > _FIRST_GENERATION:
            outcome.paged.append(name)
        if log.tier is not None:
            yield log


def _carried_out(
    cluster: Cluster, log_name: str, due: FreeingDue, outcome: TierOutcome
) -> Iterator[TierStep]:
    changed = 0
    while changed < _LOOKS_MAX:
        seen = cluster.logs.get(log_name)
        if seen is None:
            return
        step = next_step(seen.value, due)
        if step is None:
            outcome.note_waiting(seen.value, due)
            return
        try:
            _carry_out(cluster, seen.value, step)
        except MetadataVersionError:  # rule 4
            changed += 1
            continue
        done = "to be deleted" if step.is_release else "freed"
        tell(logger, "log %s: offsets %d to %d are %s", log_name, step.begin, step.end - 1, done)
        yield step
    raise MetadataVersionError(
        f"log {log_name!r} was changed {_LOOKS_MAX} times during a look at its table",
        hint="run the command again",
    )


def _carry_out(cluster: Cluster, log: LogRecord, step: TierStep) -> None:
    from bkspark.admin.offloading.offload import own_table, require_durable

    tier = log.tier
    assert tier is not None
    view = own_table(cluster, log, tier)
    _require_rows(cluster, log, tier, view, step)
    if step.is_release:
        require_durable(view, step.begin, step.end, since=-1)
        after = partial(offloading.released, epoch=tier.epoch, end=step.end)
    else:
        after = partial(
            offloading.freed, epoch=tier.epoch, end=step.end, now_ms=environment.now_ms()
        )
    change_seen(cluster, log, tier, lambda record: after(record, verified=view.version))


def change_seen(
    cluster: Cluster, log: LogRecord, tier: Tier, change: Callable[[LogRecord], LogRecord]
) -> None:
    """Change the record by compare-and-set, if the tier is still the one that was looked at.

    Raises:
        MetadataVersionError: it is another one now, or the log was overwritten or deleted.
    """

    def changed(record: LogRecord | None) -> LogRecord:
        if record is None:
            raise MetadataVersionError(f"log {log.name!r} was deleted meanwhile")
        offloading.require_seen(record.still_of(log.generation), tier)
        return change(record).stamped(environment.now_ms())

    cluster.logs.update(log.name, changed)


def _require_rows(
    cluster: Cluster, log: LogRecord, tier: Tier, view: "TableView", step: TierStep
) -> None:
    """Compare the rows of the step, and of all other segments if they may be others, by digests.

    Raises:
        TableChangedError: rows are missing, there twice, or others.
    """
    from bkspark.admin.offloading.checking import may_be_changed, require_digests

    pages = cluster.logs.tier_pages(log.name)
    is_all = may_be_changed(view, tier.table.verified)
    for segment in pages.every_segment(tier):
        if segment.end <= log.first_offset:
            return
        if is_all or _is_of(step, segment):
            page = pages.digests(segment.digests)
            first = log.first_offset
            require_digests(log.name, view, page, first_offset=first, missing=tier.missing)


def _is_of(step: TierStep, segment: TierSegment) -> bool:
    return segment.begin < step.end and step.begin < segment.end
