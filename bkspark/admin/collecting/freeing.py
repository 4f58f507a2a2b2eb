"""The plan of a collection, and its instructions for one bookie: list, weigh and free files."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bkspark.admin.maintenance import Facts
from bkspark.bookie.contract import BookieAddress, BookieRoot, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.ledger.recovery.fencing import LastWriter
from bkspark.protocol.ledger.deletion import needs_fence
from bkspark.protocol.ledger.metadata import LedgerMetadata, Member
from bkspark.protocol.recovery.steps import Silence

# --- collection plan -----------------------------------------------------------------------------
# The plan of a collection: ledgers, files and pages to free.


class GarbageKind(Enum):
    """Why a ledger is garbage."""

    DELETED = "deleted"
    DROPPED = "dropped"
    UNNAMED = "unnamed"
    GONE = "late"


REASONS = {
    GarbageKind.DELETED: "its record says that it is deleted",
    GarbageKind.DROPPED: "its log has dropped it for ever",
    GarbageKind.UNNAMED: "it was created for its log long ago, and never joined the log",
    GarbageKind.GONE: "it was collected, and files were written since",
}


@dataclass(frozen=True, slots=True)
class Garbage:
    """A ledger to free.

    Attributes:
        log: name of the log the ledger was made for; empty without a log.
        usage: files on all answering bookies together.
    """

    ledger_id: int
    kind: GarbageKind
    log: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def row(self) -> Facts:
        return {
            "ledger_id": self.ledger_id,
            "log": self.log,
            "files": self.usage.files,
            "bytes": self.usage.bytes,
            "bookie_id": "",
            "reason": REASONS[self.kind],
        }


@dataclass(frozen=True, slots=True)
class Unwanted:
    """Unneeded files of a remaining ledger on one bookie.

    Attributes:
        names: unnamed entry logs, or journals; empty if the member is in no fragment and all its
            files of the ledger are unneeded.
        is_unfinished: whether the files were begun but never finished and have no names yet.
        is_journals: whether the files are journals of terms without entries.
    """

    ledger_id: int
    member: Member
    usage: Usage
    names: tuple[str, ...] = ()
    is_unfinished: bool = False
    is_journals: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether all the bookie's files of the ledger are unneeded."""
        return not (self.names or self.is_unfinished)

    @property
    def row(self) -> Facts:
        reason = (
            "no record names these entry logs"
            if self.names
            else "the bookie has no place in the ledger"
        )
        reason = "these files were begun and never finished" if self.is_unfinished else reason
        reason = "no entry of these journals counts any more" if self.is_journals else reason
        return {
            "ledger_id": self.ledger_id,
            "log": "",
            "files": self.usage.files,
            "bytes": self.usage.bytes,
            "bookie_id": self.member.bookie_id,
            "reason": reason,
        }


@dataclass(frozen=True, slots=True)
class CollectPlan:
    """Ledgers, files and pages to free, and their places.

    Attributes:
        garbage: in the order of ledger ids.
        found: ids of the garbage ledgers with files on a bookie, by bookie id.
        silent: reasons of bookies not answering now.
        doubts: reasons for keeping possible garbage, by subject.
        made_before_ms: ledgers unnamed by logs are garbage if created before.
        unwanted: unneeded files of remaining ledgers, in the order of ledger ids.
        pages: names of unneeded log pages, by log.
        later: files of recently compacted ledgers, kept for possible readers.
        tier_pages: names of unneeded pages of tiers, by log.
        dropping: names of the logs that had dropped ledgers.
        unsettled: ids of the ledgers that the next collection looks at, too.
        absent: ids of the ledgers to look at that have no record.
    """

    garbage: tuple[Garbage, ...]
    found: Mapping[str, frozenset[int]]
    silent: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    made_before_ms: int = 0
    unwanted: tuple[Unwanted, ...] = ()
    pages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: Usage = field(default_factory=Usage)
    tier_pages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    dropping: frozenset[str] = frozenset()
    unsettled: frozenset[int] = frozenset()
    absent: frozenset[int] = frozenset()

    @property
    def usage(self) -> Usage:
        ledgers = sum((one.usage for one in self.garbage), Usage())
        return sum((one.usage for one in self.unwanted), ledgers)

    @property
    def facts(self) -> Facts:
        kinds = Counter(one.kind for one in self.garbage)
        return {
            "ledgers": len(self.garbage),
            "files": self.usage.files,
            "bytes": self.usage.bytes,
            "bytes_later": self.later.bytes,
            **{kind.value: kinds[kind] for kind in GarbageKind},
            "copies": sum(one.is_copy for one in self.unwanted),
            "strays": sum(len(one.names) for one in self.unwanted if not one.is_journals),
            "journals": sum(len(one.names) for one in self.unwanted if one.is_journals),
            "unfinished": sum(one.usage.files for one in self.unwanted if one.is_unfinished),
            "pages": sum(map(len, (*self.pages.values(), *self.tier_pages.values()))),
            "bookies": sorted(self.found),
            "silent": sorted(self.silent),
        }


# --- unfinished ----------------------------------------------------------------------------------
# Find and remove unfinished entry logs, left by tasks and repairs killed while writing.
#
# Only members of closed ledgers are searched; a non-member's files are removed as a whole
# elsewhere. No client looks up unfinished files, so they may be removed at any time ("leftovers").
# But a repair writing the file would have to begin again. So a file changed since the plan is left
# for the next run, only to avoid duplicate work.


@dataclass(frozen=True, slots=True)
class FindUnfinished:
    """Measure the unfinished files of some ledgers on one bookie; picklable."""

    address: BookieAddress
    ledger_ids: tuple[int, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage] | Silence:
        """Return usage by ledger id, for ledgers with unfinished files.

        Runs on: driver thread | executor.
        """
        found: dict[int, Usage] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id in self.ledger_ids:
                    usage = root.unfinished(layout.entries_folder(ledger_id))
                    if usage.files:
                        found[ledger_id] = usage
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


@dataclass(frozen=True, slots=True)
class FreeUnfinished:
    """Remove unfinished files unchanged since the plan; picklable."""

    address: BookieAddress
    unwanted: tuple[Unwanted, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage | str]:
        """Return the removed files, or why files may remain, by ledger id.

        Runs on: driver thread | executor.
        """
        done: dict[int, Usage | str] = {}
        for one in self.unwanted:
            folder = layout.entries_folder(one.ledger_id)
            try:
                with open_bookie(self.address).open_root() as root:
                    is_same = root.unfinished(folder) == one.usage
                    if is_same and root.sweep(folder) == one.usage.files:
                        done[one.ledger_id] = one.usage
            except BookieUnavailableError as error:
                done[one.ledger_id] = str(error)
            beat()
        return done


# --- old journals --------------------------------------------------------------------------------
# Find journals in which no entry counts any more, in ledgers truncated at the beginning.
#
# ``protocol.ledger.truncating`` (rule 4) defines such journals: their terms are older than all
# terms still owning an entry. A ledger never regains its beginning, so a journal once found stays
# unneeded for ever. A reader with older metadata finds no entry there and reads the metadata anew.
#
# A journal stays if its bookie cannot forget it for good (``BookieRoot.forget_journal``).


@dataclass(frozen=True, slots=True)
class FindOldJournals:
    """Find a bookie's journals of terms before ``terms``, by ledger id; picklable."""

    address: BookieAddress
    terms: Mapping[int, int]

    @property
    def ledger_ids(self) -> tuple[int, ...]:
        return tuple(self.terms)

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, dict[str, int]] | Silence:
        """Return names and sizes by ledger id, for ledgers with such journals.

        Runs on: driver thread | executor.
        """
        found: dict[int, dict[str, int]] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id, term in self.terms.items():
                    folder = layout.journal_folder(ledger_id)
                    old = (one for one in root.list(folder) if 0 < layout.journal_term(one) < term)
                    names = [f"{folder}/{one}" for one in old if layout.is_journal(one)]
                    if names:
                        found[ledger_id] = {name: root.size(name) or 0 for name in names}
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


# --- freeing -------------------------------------------------------------------------------------
# The instructions of a collection for one bookie: list, weigh and free files.


@dataclass(frozen=True, slots=True)
class ListLedgers:
    """List the ids of all ledgers with files on a bookie; picklable.

    Attributes:
        shards: the shards of ledger ids to list; None for all.
    """

    address: BookieAddress
    shards: frozenset[int] | None = None

    def run(self, beat: Heartbeat = no_heartbeat) -> frozenset[int] | Silence:
        """Runs on: driver thread | executor."""
        ids: set[int] = set()
        try:
            with open_bookie(self.address).open_root() as root:
                shards = self.shards
                if shards is None:
                    found = map(layout.shard_of_folder, root.list(layout.LEDGERS_FOLDER))
                    shards = frozenset(shard for shard in found if shard is not None)
                for shard in sorted(shards):
                    named = map(layout.ledger_of_folder, root.list(layout.shard_folder(shard)))
                    ids.update(ledger_id for ledger_id in named if ledger_id is not None)
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return frozenset(ids)


@dataclass(frozen=True, slots=True)
class MeasureFiles:
    """Measure the files of some ledgers on a bookie; picklable."""

    address: BookieAddress
    ledger_ids: tuple[int, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage] | Silence:
        """Runs on: driver thread | executor."""
        found: dict[int, Usage] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for ledger_id in self.ledger_ids:
                    found[ledger_id] = sum(map(root.usage, _folders(ledger_id)), Usage())
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return found


@dataclass(frozen=True, slots=True)
class Doomed:
    """A ledger to be freed on a bookie.

    Attributes:
        fence: the marker fencing the writer; empty if no writer can exist any more.
    """

    ledger_id: int
    fence: str = ""

    @classmethod
    def of(cls, ledger: LedgerMetadata) -> "Doomed":
        return cls(ledger.ledger_id, LastWriter.of(ledger).fence if needs_fence(ledger) else "")


@dataclass(frozen=True, slots=True)
class Freed:
    """The outcome of ``Free``.

    Attributes:
        removed: removed files by ledger id, for ledgers surely without files now.
        problems: reasons why files may remain, by ledger id.
    """

    removed: Mapping[int, Usage]
    problems: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Free:
    """Remove all files of some ledgers from a bookie; picklable.

    Each ledger's record says DELETING, names the bookie as a former member, or is noted as gone.
    The writer is fenced first. Markers are removed last, in ascending order, so no marker is
    missing while files guarded by the marker remain (R11, R13).
    """

    address: BookieAddress
    ledgers: tuple[Doomed, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Freed | Silence:
        """Runs on: driver thread | executor."""
        removed: dict[int, Usage] = {}
        problems: dict[int, str] = {}
        try:
            with open_bookie(self.address).open_root() as root:
                for doomed in self.ledgers:
                    try:
                        removed[doomed.ledger_id] = _free(root, doomed)
                    except BookieUnavailableError as error:
                        problems[doomed.ledger_id] = str(error)
                    beat()
        except BookieUnavailableError as error:
            return Silence(str(error))
        return Freed(removed, problems)


@dataclass(frozen=True, slots=True)
class FreeFiles:
    """Remove single files of remaining ledgers, all entry logs or all journals; picklable.

    A journal stays if the bookie cannot forget it for good (``BookieRoot.forget_journal``).

    Attributes:
        unwanted: items naming files, each of a different ledger.
    """

    address: BookieAddress
    unwanted: tuple[Unwanted, ...]

    def run(self, beat: Heartbeat = no_heartbeat) -> Mapping[int, Usage | str]:
        """Return the removed files, or why files may remain, by ledger id.

        Runs on: driver thread | executor.
        """
        done: dict[int, Usage | str] = {}
        for one in self.unwanted:
            removed = Usage()
            try:
                with open_bookie(self.address).open_root() as root:
                    remove = root.forget_journal if one.is_journals else root.delete
                    for name in one.names:
                        size = root.size(name)
                        if size is not None and remove(name):
                            removed += Usage(1, size)
                        beat()
                done[one.ledger_id] = removed
            except BookieUnavailableError as error:
                done[one.ledger_id] = str(error)
        return done


def _free(root: BookieRoot, doomed: Doomed) -> Usage:
    """Free one ledger.

    Raises:
        BookieUnavailableError: files may remain.
    """
    own_files = 0
    if doomed.fence:
        own_files = int(root.put_new(doomed.fence, b""))
    folders = _folders(doomed.ledger_id)
    removed = sum(map(root.remove_folder, folders), Usage())
    left = root.list(folders[-1])
    if left:
        raise BookieUnavailableError(
            f"{folders[-1]} is not empty: it has {left[0]}",
            hint="the next run removes files of a late writer; remove files that bkspark did "
            "not write",
        )
    return Usage(removed.files - own_files, removed.bytes)


def _folders(ledger_id: int) -> tuple[str, ...]:
    """Return a ledger's folders in the order of removal; the last contains the others."""
    return (
        layout.entries_folder(ledger_id),
        layout.journal_folder(ledger_id),
        layout.terms_folder(ledger_id),
        layout.ledger_folder(ledger_id),
    )
