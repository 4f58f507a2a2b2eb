"""The plan of an audit, its findings, and the report about them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bkspark.admin.auditing.copies import Copies, Gap, worst
from bkspark.admin.maintenance import Facts, Left, Report, left_records
from bkspark.admin.offloading import tables
from bkspark.admin.survey import Gone
from bkspark.bookie.contract import on_bookie
from bkspark.protocol.apart import HOW_TO_BE_APART
from bkspark.protocol.ledger import sizes
from bkspark.protocol.ledger.metadata import LedgerMetadata, LedgerState

# --- audit plan ----------------------------------------------------------------------------------
# The plan of an audit.


SHARDS = 256
LEDGERS_AT_ONCE = 2000
"""Maximum number of ledgers whose answers are in memory together."""


@dataclass(frozen=True, slots=True)
class AuditStep:
    """Ledgers examined together, on all bookies in parallel.

    Attributes:
        shards: shards to list for files no ledger accounts for.
    """

    ledger_ids: tuple[int, ...]
    shards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """The steps of an audit.

    Attributes:
        is_of_all: whether the audit covers all ledgers and surplus files on bookies.
    """

    bookie_ids: tuple[str, ...]
    steps: tuple[AuditStep, ...]
    is_of_all: bool

    @property
    def ledger_count(self) -> int:
        return sum(len(step.ledger_ids) for step in self.steps)

    @property
    def facts(self) -> Facts:
        return {
            "ledgers": self.ledger_count,
            "bookies": list(self.bookie_ids),
            "steps": len(self.steps),
            "is_of_all": self.is_of_all,
        }


def plan_of_all(ledger_ids: Sequence[int], bookie_ids: Sequence[str]) -> AuditPlan:
    """Plan whole shards per step, so each folder of a bookie is listed once."""
    shards: list[list[int]] = [[] for _ in range(SHARDS)]
    for ledger_id in ledger_ids:
        shards[ledger_id % SHARDS].append(ledger_id)
    steps: list[AuditStep] = []
    ids: list[int] = []
    begin = 0
    for shard in range(SHARDS):
        if ids and len(ids) + len(shards[shard]) > LEDGERS_AT_ONCE:
            steps.append(AuditStep(tuple(ids), tuple(range(begin, shard))))
            ids, begin = [], shard
        ids += shards[shard]
    steps.append(AuditStep(tuple(ids), tuple(range(begin, SHARDS))))
    return AuditPlan(tuple(bookie_ids), tuple(steps), is_of_all=True)


def plan_of_some(ledger_ids: Sequence[int], bookie_ids: Sequence[str]) -> AuditPlan:
    """Plan the given ledgers only."""
    begins = range(0, len(ledger_ids), LEDGERS_AT_ONCE)
    steps = tuple(AuditStep(tuple(ledger_ids[b : b + LEDGERS_AT_ONCE])) for b in begins)
    return AuditPlan(tuple(bookie_ids), steps, is_of_all=False)


# --- findings ------------------------------------------------------------------------------------
# The findings of an audit, and the report about them.


SAMPLES_MAX = 100
"""Ids kept of findings that are only counted."""

VERB = "audit"

COUNTERS = {
    Copies.NONE: "NUM_LEDGERS_HAVING_NO_REPLICA_OF_AN_ENTRY",
    Copies.BELOW_ACK_QUORUM: "NUM_LEDGERS_HAVING_LESS_THAN_AQ_REPLICAS_OF_AN_ENTRY",
    Copies.BELOW_WRITE_QUORUM: "NUM_LEDGERS_HAVING_LESS_THAN_WQ_REPLICAS_OF_AN_ENTRY",
    Copies.UNKNOWN: "NUM_LEDGERS_NOT_KNOWN_TO_HAVE_ALL_REPLICAS",
}
"""BookKeeper's names, except the last: BookKeeper takes a silent bookie for a lost bookie."""

UNDER_REPLICATED = "NUM_UNDER_REPLICATED_LEDGERS"
NOT_ADHERING = "NUM_LEDGERS_NOT_ADHERING_TO_PLACEMENT_POLICY"
CHECKED = "NUM_LEDGERS_CHECKED"
SHORT = "NUM_LEDGERS_ON_FEWER_BOOKIES_THAN_WANTED"
WAITING = "NUM_LEDGERS_WAITING_FOR_RECOVERY"
ORPHANED = "NUM_ORPHANED_LEDGER_FOLDERS"
STRAYS = "NUM_ORPHANED_ENTRY_LOGS"
RECORDLESS = "NUM_LISTED_LEDGERS_WITHOUT_A_RECORD"
UNREADABLE = "NUM_UNREADABLE_RECORDS"
UNSOUND = "NUM_UNSOUND_JOURNAL_FOLDERS"
SILENT = "NUM_SILENT_BOOKIES"
CHANGING = "NUM_LEDGERS_THAT_KEPT_CHANGING"


class OrphanKind:
    """Why a bookie has files no ledger accounts for."""

    NO_RECORD = "no metadata record: the ledger is being created, or its creation was killed"
    DELETED = "the ledger is deleted"
    DROPPED = "the ledger was dropped from its log"
    NO_MEMBER = "no fragment of the ledger names the bookie"


@dataclass(frozen=True, slots=True)
class WaitingLedger:
    """An unclosed ledger without progress, and the reason."""

    ledger_id: int
    state: str
    reason: str
    waiting_for: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Short:
    """A ledger created on too few bookies, with too few copies.

    Attributes:
        copies, wanted: number of copies of each entry.
    """

    ledger_id: int
    copies: int
    wanted: int
    is_closed: bool

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Short":
        sizes_wanted, is_closed = sizes.wanted(ledger), ledger.state is LedgerState.CLOSED
        copies = ledger.quorum.write_quorum_size
        return cls(ledger.ledger_id, copies, sizes_wanted.write_quorum_size, is_closed)

    @property
    def reason(self) -> str:
        """One line, including the remedy."""
        said = (
            "the ledger was created while too few bookies could be used: it has "
            f"{self.copies} copies of each "
        )
        said += f"entry, and {self.wanted} are wanted; `bkspark repair` makes the others"
        return said if self.is_closed else f"{said} once the ledger is closed"


@dataclass(frozen=True, slots=True)
class Misplaced:
    """How a ledger violates its placement rule, in one line.

    Attributes:
        is_refused: whether a write refuses such bookies; otherwise others are only preferred.
    """

    reason: str
    is_refused: bool = False


@dataclass(slots=True)
class Orphans:
    """Number of ledger folders of one kind, and the first ledger ids."""

    count: int = 0
    ledger_ids: list[int] = field(default_factory=list)


@dataclass(slots=True)
class AuditFindings:
    """Findings so far; their size grows with the faults, not with the ledgers examined.

    Attributes:
        short: ledgers created with too few copies.
        orphans: ledger folders without an owner, by bookie and kind.
        strays: number of unnamed entry logs, by bookie.
        misplaced: ledgers violating their placement rule.
        problems: (ledger id, bookie id, fault in the journals).
        changing: ledgers changed during each attempt.
        recordless: logs that list ledgers without a metadata record.
    """

    checked: int = 0
    gaps: list[Gap] = field(default_factory=list)
    waiting: list[WaitingLedger] = field(default_factory=list)
    problems: list[tuple[int, str, str]] = field(default_factory=list)
    misplaced: dict[int, Misplaced] = field(default_factory=dict)
    short: list[Short] = field(default_factory=list)
    orphans: dict[tuple[str, str], Orphans] = field(default_factory=dict)
    strays: Counter[str] = field(default_factory=Counter)
    changing: list[int] = field(default_factory=list)
    silent: dict[str, str] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)
    recordless: list[Gone] = field(default_factory=list)

    def add_orphan(self, bookie_id: str, kind: str, ledger_id: int) -> None:
        found = self.orphans.setdefault((bookie_id, kind), Orphans())
        found.count += 1
        if len(found.ledger_ids) < SAMPLES_MAX:
            found.ledger_ids.append(ledger_id)

    def report(self, plan: AuditPlan, lost: Collection[str] = ()) -> Report:
        """Return the report of the findings.

        Args:
            lost: ids of bookies declared lost. Their silence is not reported; their missing copies
                are reported by ledger.
        """
        return Report(
            VERB,
            plan.facts,
            {"ledgers": self.checked, "bookies": len(plan.bookie_ids) - len(self.silent)},
            list(self._left(lost)),
            self._counters(lost),
            {
                "copies": [gap_row(gap) for gap in self.gaps],
                "short": [short_row(short) for short in self.short],
                "waiting": [_waiting_row(waiting) for waiting in self.waiting],
                "placement": [
                    {"ledger_id": ledger_id, "reason": found.reason}
                    for ledger_id, found in sorted(self.misplaced.items())
                ],
                "orphans": list(self._orphan_rows()),
            },
        )

    def _left(self, lost: Collection[str]) -> Iterator[Left]:
        for bookie_id, reason in sorted(self.silent.items()):
            if bookie_id not in lost:
                yield Left(f"bookie {bookie_id}", reason)
        where: dict[int, set[str]] = {}
        for gap in self.gaps:
            where.setdefault(gap.ledger_id, set()).add(gap.member.bookie_id)
        for ledger_id, copies in sorted(self._worst().items()):
            shown = ", ".join(sorted(where[ledger_id]))
            yield Left(f"ledger {ledger_id}", f"copies: {copies.value}, on {shown}")
        for short in self.short:
            yield Left(f"ledger {short.ledger_id}", short.reason)
        for waiting in self.waiting:
            yield Left(f"ledger {waiting.ledger_id}", f"{waiting.state}: {waiting.reason}")
        for ledger_id, bookie_id, problem in self.problems:
            yield Left(f"ledger {ledger_id}", on_bookie(bookie_id, problem))
        for ledger_id, found in sorted(self.misplaced.items()):
            if found.is_refused:
                yield Left(f"ledger {ledger_id}", found.reason, HOW_TO_BE_APART)
        for ledger_id in self.changing:
            yield Left(f"ledger {ledger_id}", "it changed each time the audit looked")
        for gone in sorted(self.recordless, key=lambda one: one.log):
            for reason, hint in gone.reasons:
                yield Left(f"log {gone.log}", reason, hint)
        yield from left_records(self.unreadable)

    def _worst(self) -> dict[int, Copies]:
        """Return the worst finding of each ledger."""
        found: dict[int, Copies] = {}
        for gap in self.gaps:
            known = found.get(gap.ledger_id, gap.copies)
            found[gap.ledger_id] = worst([gap.copies, known]) or known
        return found

    def _counters(self, lost: Collection[str]) -> dict[str, int]:
        by_class = Counter(self._worst().values())
        lacking = sum(count for copies, count in by_class.items() if copies is not Copies.UNKNOWN)
        return {
            CHECKED: self.checked,
            UNDER_REPLICATED: lacking,
            **{name: by_class[copies] for copies, name in COUNTERS.items()},
            SHORT: len(self.short),
            NOT_ADHERING: len(self.misplaced),
            WAITING: len(self.waiting),
            ORPHANED: sum(found.count for found in self.orphans.values()),
            STRAYS: sum(self.strays.values()),
            RECORDLESS: sum(len(gone.ledger_ids) for gone in self.recordless),
            UNREADABLE: len(self.unreadable),
            UNSOUND: len(self.problems),
            SILENT: len(self.silent.keys() - set(lost)),
            CHANGING: len(self.changing),
        }

    def _orphan_rows(self) -> Iterator[Facts]:
        for bookie_id, kind in sorted(self.orphans):
            found = self.orphans[bookie_id, kind]
            yield {
                "bookie_id": bookie_id,
                "count": found.count,
                "reason": kind,
                "ledger_ids": found.ledger_ids,
            }
        for bookie_id, count in sorted(self.strays.items()):
            reason = "entry logs of closed ledgers that no record names"
            yield {"bookie_id": bookie_id, "count": count, "reason": reason, "ledger_ids": []}


def gap_row(gap: Gap) -> Facts:
    """``gap`` as a row of a table."""
    return {
        "ledger_id": gap.ledger_id,
        "fragment": gap.fragment_first_entry_id,
        "first_entry_id": gap.entries[0],
        "last_entry_id": gap.entries[1],
        "bookie_id": gap.member.bookie_id,
        "copies": gap.copies.value,
        "is_unknown": gap.is_unknown,
        "missing": gap.what,
        "reason": gap.reason,
    }


def short_row(short: Short) -> Facts:
    """``short`` as a row of a table."""
    return {
        "ledger_id": short.ledger_id,
        "copies": short.copies,
        "wanted": short.wanted,
        "reason": short.reason,
    }


def _waiting_row(waiting: WaitingLedger) -> Facts:
    return {
        "ledger_id": waiting.ledger_id,
        "state": waiting.state,
        "reason": waiting.reason,
        "waiting_for": list(waiting.waiting_for),
        "hint": waiting.hint,
    }


# --- words ---------------------------------------------------------------------------------------
# An audit's counts in words for people; the names of counters are for machines.


_WORDS = {
    COUNTERS[Copies.NONE]: "ledger(s) with entries of which no copy is left",
    COUNTERS[Copies.BELOW_ACK_QUORUM]: "ledger(s) with fewer copies than the ack quorum",
    COUNTERS[Copies.BELOW_WRITE_QUORUM]: "ledger(s) with fewer copies than the write quorum",
    COUNTERS[Copies.UNKNOWN]: "ledger(s) not known to have all copies",
    SHORT: "ledger(s) on fewer bookies than wanted",
    WAITING: "ledger(s) waiting for recovery",
    RECORDLESS: "listed ledger(s) without a metadata record",
    tables.WRONG: "table(s) without the rows of a log as they were written",
    UNREADABLE: "metadata record(s) that cannot be read",
    tables.UNKNOWN: "table(s) not known to have the rows of a log",
    SILENT: "bookie(s) that did not answer",
    UNSOUND: "folder(s) of journals with damage or strange files",
    CHANGING: "ledger(s) that changed each time the audit looked",
    NOT_ADHERING: "ledger(s) on fewer failure domains than possible, or not as far apart as "
    "minDistinct says",
    ORPHANED: "folder(s) of ledgers that do not name the bookie",
    STRAYS: "entry log(s) that no record names",
}
"""Worst first."""

LOSSES = (UNDER_REPLICATED, RECORDLESS, UNREADABLE, tables.WRONG)
"""Counters of content surely missing."""


def in_words(counters: Mapping[str, int]) -> str:
    """Return all findings in one line; empty if all is well."""
    return ", ".join(
        f"{counters[name]:,} {words.replace('(s)', '' if counters[name] == 1 else 's')}"
        for name, words in _WORDS.items()
        if counters.get(name)
    )
