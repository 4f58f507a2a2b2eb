"""What a collection is going to free."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from bkspark.admin.maintenance import Facts
from bkspark.bookie.contract import Usage
from bkspark.protocol.ledger.metadata import Member


class Kind(Enum):
    """By which fact a ledger is garbage."""

    DELETED = "deleted"
    DROPPED = "dropped"
    UNNAMED = "unnamed"
    GONE = "late"


REASONS = {
    Kind.DELETED: "its record says that it is deleted",
    Kind.DROPPED: "its log has let go of it, for ever",
    Kind.UNNAMED: "it was made for its log, long ago, and never joined it",
    Kind.GONE: "it was collected, and files were made since",
}


@dataclass(frozen=True, slots=True)
class Garbage:
    """A ledger that is to be freed.

    Attributes:
        log: that it was made for; empty if it was made for none.
        usage: what bookies have of it, all together, as far as they answer.
    """

    ledger_id: int
    kind: Kind
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
    """What a bookie has of a ledger that stays, and nobody wants.

    Attributes:
        names: entry logs that no record names, or journals; empty if the member is in no fragment,
            and nothing that it has is wanted.
        is_unfinished: whether it is files that were begun, which have no names yet.
        is_journals: whether it is journals of terms that own no entry any more.
    """

    ledger_id: int
    member: Member
    usage: Usage
    names: tuple[str, ...] = ()
    is_unfinished: bool = False
    is_journals: bool = False

    @property
    def is_copy(self) -> bool:
        """Whether it is all that the bookie has of the ledger."""
        return not (self.names or self.is_unfinished)

    @property
    def row(self) -> Facts:
        reason = "no record names these entry logs" if self.names else "it has no place in it"
        reason = "these files were begun and never finished" if self.is_unfinished else reason
        reason = "nothing in these journals counts any more" if self.is_journals else reason
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
    """What there is to be freed, and where it is.

    Attributes:
        garbage: by ledger id.
        found: by bookie id, which of these ledgers it has something of.
        silent: bookies that cannot be asked now, and why.
        doubts: by subject, why something stays that may be garbage.
        made_before_ms: ledgers that no log names are garbage if they were made before.
        unwanted: of ledgers that stay, by ledger id.
        pages: by log, names of its pages that nothing needs any more.
        later: what bookies have of ledgers that were compacted lately, and are read perhaps.
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
            **{kind.value: kinds[kind] for kind in Kind},
            "copies": sum(one.is_copy for one in self.unwanted),
            "strays": sum(len(one.names) for one in self.unwanted if not one.is_journals),
            "journals": sum(len(one.names) for one in self.unwanted if one.is_journals),
            "unfinished": sum(one.usage.files for one in self.unwanted if one.is_unfinished),
            "pages": sum(map(len, self.pages.values())),
            "bookies": sorted(self.found),
            "silent": sorted(self.silent),
        }
