"""The plan of a collection: ledgers, files and pages to free."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bkspark.admin.maintenance import Facts
from bkspark.bookie.contract import Usage
from bkspark.protocol.ledger.metadata import Member


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
    """

    garbage: tuple[Garbage, ...]
    found: Mapping[str, frozenset[int]]
    silent: Mapping[str, str] = field(default_factory=dict)
    doubts: Mapping[str, str] = field(default_factory=dict)
    made_before_ms: int = 0
    unwanted: tuple[Unwanted, ...] = ()
    pages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    later: Usage = field(default_factory=Usage)

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
            "pages": sum(map(len, self.pages.values())),
            "bookies": sorted(self.found),
            "silent": sorted(self.silent),
        }
