"""The instructions of a collection for one bookie: list, weigh and free files."""

from collections.abc import Mapping
from dataclasses import dataclass

from bkspark.admin.collecting.collection_plan import Unwanted
from bkspark.bookie.contract import BookieAddress, BookieRoot, Usage
from bkspark.bookie.uri import open_bookie
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.errors import BookieUnavailableError
from bkspark.format import layout
from bkspark.ledger.recovery.writer import LastWriter
from bkspark.protocol.ledger.deletion import needs_fence
from bkspark.protocol.ledger.metadata import LedgerMetadata
from bkspark.protocol.recovery.steps import Silence


@dataclass(frozen=True, slots=True)
class ListLedgers:
    """List the ids of all ledgers with files on a bookie; picklable."""

    address: BookieAddress

    def run(self, beat: Heartbeat = no_heartbeat) -> frozenset[int] | Silence:
        """Runs on: driver thread | executor."""
        ids: set[int] = set()
        try:
            with open_bookie(self.address).open_root() as root:
                shards = map(layout.shard_of_folder, root.list(layout.LEDGERS_FOLDER))
                for shard in shards:
                    if shard is not None:
                        found = map(layout.ledger_of_folder, root.list(layout.shard_folder(shard)))
                        ids.update(ledger_id for ledger_id in found if ledger_id is not None)
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
