"""The findings of a scrub, and the report about them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from bkspark.admin.maintenance import Facts, Left, Report
from bkspark.admin.scrubbing.damage import BadCopies
from bkspark.admin.scrubbing.scrub_plan import ScrubPlan

VERB = "scrub"

CHECKED = "NUM_LEDGERS_SCRUBBED"
FILES = "NUM_FILES_SCRUBBED"
BYTES = "NUM_BYTES_SCRUBBED"
DAMAGED_FILES = "NUM_DAMAGED_FILES"
DAMAGED = "NUM_DAMAGED_COPIES"
DAMAGED_LEDGERS = "NUM_LEDGERS_WITH_DAMAGED_COPIES"
UNDIGESTED = "NUM_LEDGERS_WITHOUT_CHECKED_DIGESTS"


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

    def report(self, plan: ScrubPlan) -> Report:
        copies = [(place, one) for place, one in self.bad if one.is_left]
        ledgers = {one.ledger_id for _, one in copies}
        return Report(
            VERB,
            plan.facts,
            {name: self.counts[name] for name in ("ledgers", "files", "bytes")},
            list(self._left()),
            {
                CHECKED: self.counts["ledgers"],
                FILES: self.counts["files"],
                BYTES: self.counts["bytes"],
                DAMAGED_FILES: sum(one.files for _, one in self.bad),
                DAMAGED: len(copies),
                DAMAGED_LEDGERS: len(ledgers),
                UNDIGESTED: len(self.undigested),
            },
            {"damage": list(self._rows())},
            ", ".join(self._words(len(copies), len(ledgers), plan)),
        )

    def _words(self, copies: int, ledgers: int, plan: ScrubPlan) -> Iterator[str]:
        files = sum(one.files for _, one in self.bad)
        if files:
            yield damage_in_words(files, copies, ledgers)
        elif not (self.silent or self.unsure):
            yield "all that was read is good"
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
        if self.cut_by:
            yield Left("the rest", f"it was not read: {self.cut_by}")
        for key, reason in sorted(self.unreadable.items()):
            yield Left(f"metadata record {key}", reason)

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


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
