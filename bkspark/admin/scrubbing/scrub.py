"""``scrub``: read and check every byte of every copy, mark damage, report, and note the time."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from bkspark import environment
from bkspark.admin.auditing.audit import dropped_and_tiered, plan_audit
from bkspark.admin.auditing.findings import AuditPlan
from bkspark.admin.auditing.look import slim
from bkspark.admin.maintenance import (
    IN_THREADS,
    Execution,
    Facts,
    Left,
    Progress,
    Report,
    left_records,
    noted,
    planned,
)
from bkspark.admin.noted_damage import News, NotedDamage
from bkspark.admin.scrubbing.look import BadCopies, ReadAll, Scrubbed
from bkspark.admin.scrubbing.tables import TableScrub, scrub_tables
from bkspark.admin.survey import Survey
from bkspark.admin.sweep import answers, batches, by_member, looked_at, read_ledgers
from bkspark.cluster.arguments import require_number
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    NothingSentError,
    OutcomeUnknownError,
)
from bkspark.format import layout
from bkspark.ledger.recovery.running import Runner
from bkspark.protocol.ledger.locations import Locations
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState, Member
from bkspark.quantities import shown

# --- scrub plan ----------------------------------------------------------------------------------
# The plan of a scrub.


LEDGERS_AT_ONCE = 256
"""Ledgers read between two progress reports."""


@dataclass(frozen=True, slots=True)
class ScrubRequest:
    """Arguments of a scrub, except the ledgers.

    Attributes:
        sample: fraction of the files to read, chosen at random.
        bytes_per_second: limit of the read rate of each bookie; None for unlimited.

    Raises:
        InvalidRequestError: a number is out of range.
    """

    password: Password = field(default_factory=Password)
    sample: float = 1.0
    bytes_per_second: float | None = None

    def __post_init__(self) -> None:
        require_number("the sample", self.sample, hint="give a fraction, such as 0.1")
        if self.sample > 1:
            raise InvalidRequestError(
                f"a sample cannot be {shown(self.sample)} of the files",
                hint="give a fraction up to 1",
            )
        if self.bytes_per_second is not None:
            rate = "max_bytes_per_second"
            require_number(rate, self.bytes_per_second, hint="give bytes, for example 50000000")


@dataclass(frozen=True, slots=True)
class ScrubPlan:
    """The ledgers of an audit's plan, split into small steps."""

    looked_at: AuditPlan
    sample: float
    bytes_per_second: float | None

    @property
    def ledger_ids(self) -> tuple[int, ...]:
        return tuple(i for step in self.looked_at.steps for i in step.ledger_ids)

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": self.looked_at.ledger_count,
            "bookies": list(self.looked_at.bookie_ids),
            "sample": self.sample,
            "max_bytes_per_second": self.bytes_per_second,
            "is_of_all": self.looked_at.is_of_all,
        }


# --- findings ------------------------------------------------------------------------------------
# The findings of a scrub, and the report about them.


VERB = "scrub"

CHECKED = "NUM_LEDGERS_SCRUBBED"
FILES = "NUM_FILES_SCRUBBED"
BYTES = "NUM_BYTES_SCRUBBED"
DAMAGED_FILES = "NUM_DAMAGED_FILES"
DAMAGED = "NUM_DAMAGED_COPIES"
DAMAGED_LEDGERS = "NUM_LEDGERS_WITH_DAMAGED_COPIES"
UNDIGESTED = "NUM_LEDGERS_WITHOUT_CHECKED_DIGESTS"
WINDOWS = "NUM_TABLE_WINDOWS_SCRUBBED"
CHANGED_WINDOWS = "NUM_CHANGED_TABLE_WINDOWS"
UNREAD_TABLES = "NUM_TABLES_NOT_READ"
"""A window is a range of offsets whose rows in a table have a digest."""


@dataclass(slots=True)
class ScrubFindings:
    """Findings so far; their size grows with the damage, not with the data read.

    Attributes:
        bad: (bookie id, damaged copies of a ledger).
        unnoted: damaged copies left unmarked for lack of room, by bookie id.
        counts: numbers of ledgers, files and bytes.
        changing: ledgers changed during each attempt.
        unsure: ledgers with damage whose record could not be read again; the damage may not matter.
        cut_by: why the rest was not read; empty if complete.
        tables: what was found in tables of logs.
    """

    bad: list[tuple[str, BadCopies]] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)
    unnoted: dict[str, str] = field(default_factory=dict)
    undigested: set[int] = field(default_factory=set)
    unreadable: dict[str, str] = field(default_factory=dict)
    changing: list[int] = field(default_factory=list)
    unsure: set[int] = field(default_factory=set)
    cut_by: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    tables: TableScrub = field(default_factory=TableScrub)

    def report(self, plan: ScrubPlan) -> Report:
        copies = [(place, one) for place, one in self.bad if one.is_left]
        ledgers = {one.ledger_id for _, one in copies}
        return Report(
            VERB,
            plan.facts,
            {
                **{name: self.counts[name] for name in ("ledgers", "files", "bytes")},
                **({"windows": self.tables.windows} if self.tables.windows else {}),
            },
            list(self._left()),
            {
                CHECKED: self.counts["ledgers"],
                FILES: self.counts["files"],
                BYTES: self.counts["bytes"],
                DAMAGED_FILES: sum(one.files for _, one in self.bad),
                DAMAGED: len(copies),
                DAMAGED_LEDGERS: len(ledgers),
                UNDIGESTED: len(self.undigested),
                WINDOWS: self.tables.windows,
                CHANGED_WINDOWS: self.tables.changed,
                UNREAD_TABLES: len(self.tables.unread),
            },
            {"damage": list(self._rows()), "tables": self.tables.rows},
            ", ".join(self._words(len(copies), len(ledgers), plan)),
        )

    def _words(self, copies: int, ledgers: int, plan: ScrubPlan) -> Iterator[str]:
        files = sum(one.files for _, one in self.bad)
        if files:
            yield damage_in_words(files, copies, ledgers)
        elif not (self.silent or self.unsure or self.tables.left):
            yield "all that was read is good"
        if self.tables.changed:
            yield changed_in_words(self.tables.changed)
        if self.tables.unread:
            yield f"{_counted(len(self.tables.unread), 'table', 'tables')} could not be read"
        if self.cut_by:
            yield "the rest was not read"
        if plan.sample < 1:
            yield f"only {plan.sample:g} of the files were read"
        if self.undigested:
            which = _counted(len(self.undigested), "ledger", "ledgers")
            yield f"digests of {which} were not checked, because their password was not given"
        if self.silent:
            yield f"{_counted(len(self.silent), 'bookie', 'bookies')} could not be read"

    def _left(self) -> Iterator[Left]:
        for bookie_id, reason in sorted(self.silent.items()):
            yield Left(f"bookie {bookie_id}", reason)
        for bookie_id, one in self.bad:
            place = f"ledger {one.ledger_id} on {bookie_id}"
            if one.unknown:
                yield Left(place, one.unknown)
            elif one.is_left:
                more = f", and {one.count - 1:,} more places" if one.count > 1 else ""
                yield Left(place, f"{one.damages[0].shown}{more}")
        for bookie_id, reason in sorted(self.unnoted.items()):
            yield Left(f"bookie {bookie_id}", reason)
        for ledger_id in self.changing:
            yield Left(f"ledger {ledger_id}", "it changed each time the scrub looked")
        for ledger_id in sorted(self.unsure):
            reason = "a part of it is damaged, and its record could not be read after that"
            yield Left(f"ledger {ledger_id}", f"{reason}, so nothing is marked: scrub again")
        yield from self.tables.left
        if self.cut_by:
            yield Left("the rest", f"it was not read: {self.cut_by}")
        yield from left_records(self.unreadable)

    def _rows(self) -> Iterator[Facts]:
        for bookie_id, one in self.bad:
            for damage in one.damages:
                yield {
                    "bookie_id": bookie_id,
                    "ledger_id": one.ledger_id,
                    "file": damage.name,
                    "offset": damage.offset,
                    "block": damage.block,
                    "reason": damage.reason,
                    "is_left": one.is_left,
                }


def damage_in_words(files: int, copies: int, ledgers: int) -> str:
    """Return one line about the damage and the remedy.

    Args:
        copies, ledgers: lost with the files; other damaged files hold only content with good copies
            beside.
    """
    found = _counted(files, "damaged file", "damaged files")
    if not copies:
        return f"{found}, and good copies of all of them"
    lost = f"{_counted(copies, 'copy', 'copies')} of {_counted(ledgers, 'ledger', 'ledgers')}"
    return f"{found}: {lost} to be made again"


def changed_in_words(windows: int) -> str:
    """Return how many windows of tables are not as they were written."""
    ranges = _counted(windows, "range of offsets is", "ranges of offsets are")
    return f"{ranges} missing or changed in a table"


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# --- scrub command -------------------------------------------------------------------------------
# ``scrub``: plan, read all copies, mark damage, report, and note the time.
#
# Rule. As in an audit, records are read first and bookies afterwards. Damage counts only for
# ledgers with unchanged records afterwards.
#
# Rule. Reading takes hours, so findings are reported even if the run cannot read the rest.


logger = logging.getLogger(__name__)


def scrub(
    cluster: Survey,
    wanted: ScrubRequest,
    how: Execution = IN_THREADS,
    *,
    logs: Collection[str] = (),
    ledgers: Collection[int] = (),
) -> Report:
    """Read every copy and check every byte; mark damage for a repair; see ``verbs.commands``.

    Args:
        logs, ledgers: names and ids to read; all if both are empty.
    """
    began_ms = environment.now_ms()
    looked_at = plan_audit(cluster, logs, ledgers)
    plan = ScrubPlan(looked_at, wanted.sample, wanted.bytes_per_second)
    if how.dry_run:
        return planned(VERB, plan)
    dropped, tiered = dropped_and_tiered(cluster)
    work = Scrub(cluster, wanted, how.runner, dropped)
    work.carry_out(plan, how.progress)
    names = tiered if looked_at.is_of_all else tiered & set(logs)
    work.findings.tables = scrub_tables(
        cluster, sorted(names), wanted.sample, wanted.bytes_per_second
    )
    work.findings.unreadable = dict(cluster.unreadable)
    report = work.findings.report(plan)
    for left in report.left:
        logger.warning("scrub: %s: %s", left.subject, left.reason)
    if looked_at.is_of_all:
        report = noted(cluster, report, began_ms)
    return report


class Scrub:
    """Carries out a plan.

    Args:
        dropped: ids of ledgers dropped by logs; no client reads them.
    """

    def __init__(
        self, cluster: Survey, wanted: ScrubRequest, run: Runner, dropped: Collection[int]
    ) -> None:
        self.findings = ScrubFindings()
        self._cluster = cluster
        self._wanted = wanted
        self._run = run
        self._dropped = frozenset(dropped)
        self._addresses = cluster.addresses()
        self._noted = NotedDamage(cluster)

    def carry_out(self, plan: ScrubPlan, progress: Progress) -> None:
        """Read all copies, or as many as get answers.

        Raises:
            NothingSentError: this process could not ask, and no file was read before.
            OutcomeUnknownError: Spark gave no definite answer before any file was read.
        """
        try:
            self._read_all(plan, progress)
        except (NothingSentError, OutcomeUnknownError) as error:
            if not self.findings.counts["files"]:
                raise
            self.findings.cut_by = str(error.args[0])

    def _read_all(self, plan: ScrubPlan, progress: Progress) -> None:
        for ids in batches(plan.ledger_ids, LEDGERS_AT_ONCE, progress):
            self.findings.changing += looked_at(self._look, ids)
        if plan.looked_at.is_of_all:
            self._forget_what_is_gone()

    def _look(self, ledger_ids: Sequence[int]) -> list[int]:
        """Read ledgers once; return ids of the ledgers to read again."""
        ledgers = self._records(ledger_ids)
        asked = self._asked(ledgers.values())
        bad = {i for _, answer in asked if isinstance(answer, Scrubbed) for i in answer.bad}
        again, unsure = self._changed(ledgers[ledger_id] for ledger_id in bad)
        for read, answer in asked:
            if isinstance(answer, Scrubbed):
                known = {ledger.ledger_id for ledger in read.ledgers} - again - unsure
                self._take(read.address.member, answer, known)
            else:
                reason = str(getattr(answer, "reason", answer))
                self.findings.silent[read.address.bookie_id] = reason
        self.findings.counts.update(ledgers=len(ledgers.keys() - again - unsure))
        return sorted(again)

    def _take(self, member: Member, answer: Scrubbed, known: set[int]) -> None:
        """Count a bookie's findings about the ledgers ``known``."""
        findings = self.findings
        findings.counts.update(files=answer.files, bytes=answer.byte_count)
        findings.undigested |= answer.undigested & known
        found = [one for ledger_id, one in answer.bad.items() if ledger_id in known]
        findings.bad += [(member.bookie_id, one) for one in found]
        self._note(member, answer, known)

    def _records(self, ledger_ids: Sequence[int]) -> dict[int, LedgerMetadata]:
        return {
            ledger_id: ledger
            for ledger_id, ledger in read_ledgers(self._cluster, ledger_ids).items()
            if ledger.state is not LedgerState.DELETING and ledger_id not in self._dropped
        }

    def _asked(self, ledgers: Iterable[LedgerMetadata]) -> list[tuple[ReadAll, object]]:
        """Return each bookie's answer; a silent bookie is not asked again."""
        wanted = self._wanted
        how = (wanted.password, wanted.sample, wanted.bytes_per_second)
        reads = [
            ReadAll(self._addresses[member], tuple(theirs), *how)
            for member, theirs in by_member(map(slim, ledgers)).items()
            if member in self._addresses and member.bookie_id not in self.findings.silent
        ]
        return list(answers(self._run, reads))

    def _changed(self, ledgers: Iterable[LedgerMetadata]) -> tuple[set[int], set[int]]:
        """Return ids of the ledgers changed meanwhile, and of ledgers with unknown state."""
        changed: set[int] = set()
        unsure: set[int] = set()
        for ledger in ledgers:
            now = self._cluster.ledgers.get(str(ledger.ledger_id))
            if now is None and self._is_unreadable(ledger.ledger_id):
                unsure.add(ledger.ledger_id)
            elif now is None or now.value != ledger:
                changed.add(ledger.ledger_id)
        self.findings.unsure |= unsure
        return changed, unsure

    def _is_unreadable(self, ledger_id: int) -> bool:
        """Return whether the record exists but cannot be read."""
        return layout.ledger_key(ledger_id) in self._cluster.unreadable

    # --- marks ----------------------------------------------------------------------------------

    def _note(self, member: Member, answer: Scrubbed, known: Collection[int]) -> None:
        """Mark damage; remove marks of good or unneeded copies."""
        bad = {i: one for i, one in answer.bad.items() if i in known}
        found = {i: one.mark for i, one in bad.items() if one.mark is not None}
        unsure = {i for i, one in bad.items() if one.unknown} | answer.partial | answer.undigested
        self._bring(News(member, found, unsure, set(known) - found.keys() - unsure))

    def _forget_what_is_gone(self) -> None:
        """Remove marks of copies no ledger needs any more."""
        marked = list(self._noted.marks(self._addresses))
        ledgers = self._records([ledger_id for _, ledger_id in marked])
        for member, ledger_id in marked:
            ledger = ledgers.get(ledger_id)
            if ledger is None and self._is_unreadable(ledger_id):
                continue
            if ledger is None or not Locations(ledger).names(member):
                self._bring(News(member, {}, (), {ledger_id}))

    def _bring(self, news: News) -> None:
        try:
            left_out = self._noted.note(news)
        except BookKeeperError as error:
            # The findings are reported all the same: reading took hours.
            self.findings.unnoted[news.member.bookie_id] = f"nothing is marked: {error.args[0]}"
            return
        if left_out:
            self.findings.unnoted[news.member.bookie_id] = (
                f"{left_out:,} more ledgers are damaged there than the record has room for: "
                "repair, then scrub again"
            )
