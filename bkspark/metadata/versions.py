"""Compare-and-set out of put-if-absent: one immutable file per version of a record.

The rule: **a version is the newest if the next one never existed.** Put-if-absent decides who makes
a version, but old versions are pruned, and a client that slept for long could make a pruned name
again and believe that it won, or take an old version for the newest because the next one is gone.
So "absent" is never enough; ``_never_existed`` asks for the name and then for what pruning leaves::

    <key>/<version>              16 hex digits, dense from 1; the value and nothing else
    <key>/pruned-<mark>          versions below <mark> may be gone
    <folder of key>/~<name>      tombstone: the record was deleted for ever

Marks are multiples of 16. Before a version p goes, the mark next above p is durable. A mark goes
only after the next rounder one above it (256, 4096, 65536) is durable, and multiples of 65536 stay.
So a record of a million versions is less than a hundred files, and what proves that p existed is p
itself or one of four marks, or the tombstone, which stays.

Why it is sound. *Claim*: if p existed before a look begins, the look finds p, a mark or the
tombstone. p is looked up first; if it is gone, its mark or the tombstone was there before it
went. The marks are looked up from the finest to the roundest: if one is gone, the next was there
before. The last of them stays. Names made again by sleepers do no harm: a version below a mark
is never believed, and a mark or tombstone states something that stays true.

* ``put`` of version p makes it only if p-1 is there (so versions are dense), and has won if **after
  that** p is found never to have existed before: no mark above it. A mark found *before* is a sure
  loss. Found only after, either p was pruned before, or a dozen clients came in between and
  superseded it: unknown. It is not enough to find p-1 still there: another sleeper may have made
  that one again.
* ``is_current``: the next version never existed, then the version itself is there with the bytes
  that were seen (design: next absent first, then own present).
* ``get``: the listing is a hint where to look; the answer is confirmed in the same way. Absence is
  never taken from a listing. The folder is fsynced before a value is given out: its writer may
  not have come so far, and what was read must not vanish in a power cut.
* Pruning and deleting go from the oldest on. Unlike what they leave, removals need not be durable:
  a version that comes back lies below its mark.

Work per call is bounded whatever the number of versions. A record's folder holds no other record.
"""

import contextlib
import re
from collections.abc import Iterator, Sequence

from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.directory import Directory

# Every 16th put prunes, keeping the newest 17 to 32: with fewer, a put that is merely slow would
# often end as unknown; with more, a listing would cost more than the put.
BLOCK = 16
# 16, 256, 4096, 65536: one file stays for ever per 65536 versions, and a look costs four stats.
MARK_LEVELS = 4
# What one put removes at most: twice what accumulates, so that it catches up after killed clients.
_REMOVED_BLOCKS_MAX = 4
# Each failed attempt means that another client made progress or pruned in between.
_GET_ATTEMPTS_MAX = 100

_VERSION = re.compile(r"[0-9a-f]{16}")
_MARK = re.compile(r"pruned-([0-9a-f]{16})")


class VersionedRecords:
    """Records in a directory. Keys must be valid; ``OSError`` means that the outcome is unknown."""

    def __init__(
        self, directory: Directory, *, block: int = BLOCK, mark_levels: int = MARK_LEVELS
    ) -> None:
        self._directory = directory
        self._block = block
        self._mark_step_max = block**mark_levels

    def get(self, key: str) -> VersionedBytes | None:
        for _ in range(_GET_ATTEMPTS_MAX):
            version = max(self._versions(key), default=0)
            if version == 0 and self._never_existed(key, 1):
                return None
            value = self._directory.read(_version_path(key, version)) if version else None
            if value is not None and self._never_existed(key, version + 1):
                # Gone with its folder by now: deleted after it was the newest, so a right answer.
                with contextlib.suppress(FileNotFoundError):
                    self._directory.sync(key)
                return VersionedBytes(value, version)
            if self._directory.exists(_tombstone(key)):
                return None
        raise self._unread(key)

    def _unread(self, key: str) -> OutcomeUnknownError:
        """Why so many reads came to nothing; what is no record looks like one that changes."""
        strange = [name for name in self._directory.list(key) if _VERSION.fullmatch(name[:-1])]
        if strange:
            return OutcomeUnknownError(
                f"metadata record {key!r} has a folder {strange[0]} in place of a version",
                hint="bring back the file of that name; without it nobody can tell which is newest",
            )
        return OutcomeUnknownError(
            f"metadata record {key!r} changed during each of {_GET_ATTEMPTS_MAX} reads",
            hint="try again when fewer clients change it",
        )

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        version = 1 if expected is None else expected + 1
        if not self._may_follow(key, version):
            raise _lost(key, expected)
        if expected is None:
            self._directory.make_folder(key)
        if not self._create(key, version, value):
            raise _lost(key, expected)
        if self._is_superseded(key, version):
            raise OutcomeUnknownError(
                f"metadata record {key!r}: others overtook the put of version {version}",
                hint="read it again and look for the change in what it says now",
            )
        # The put is done: what goes wrong from here on is left to the next one that prunes.
        with contextlib.suppress(OSError):
            self._prune(key, version)
        return version

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        return (
            self._never_existed(key, seen.version + 1)
            and self._directory.read(_version_path(key, seen.version)) == seen.value
        )

    def list(self, prefix: str) -> list[str]:
        names = [name[:-1] for name in self._directory.list(prefix) if name.endswith("/")]
        return sorted(name for name in names if self._may_be_live(f"{prefix}/{name}"))

    def delete(self, key: str) -> None:
        folder = key.rpartition("/")[0]
        if folder:
            self._directory.make_folder(folder)
        # Found in place is as good: it stays, and put_if_absent made it durable.
        self._directory.put_if_absent(_tombstone(key), b"")  # takes no block of a disk
        for name in self._directory.list(key):
            if not name.endswith("/"):
                self._directory.unlink(f"{key}/{name}")
        self._directory.remove_folder(key)

    def _may_follow(self, key: str, version: int) -> bool:
        """False if a put of ``version`` is surely lost; True promises nothing."""
        return self._never_existed(key, version) and (
            version == 1 or self._directory.exists(_version_path(key, version - 1))
        )

    def _create(self, key: str, version: int, value: bytes) -> bool:
        try:
            return self._directory.put_if_absent(_version_path(key, version), value)
        except FileNotFoundError:
            # Only ``delete`` takes a folder away, and it leaves a tombstone.
            if self._directory.exists(_tombstone(key)):
                return False
            raise

    def _is_live(self, key: str) -> bool:
        return not self._directory.exists(_tombstone(key)) and not self._never_existed(key, 1)

    def _may_be_live(self, key: str) -> bool:
        """Who asks for one that gives no answer is told so; it must not hide the others."""
        try:
            return self._is_live(key)
        except OSError:
            return True

    def _never_existed(self, key: str, version: int) -> bool:
        """Sure, as of the moment of the first look-up. The order of look-ups matters."""
        return not self._directory.exists(_version_path(key, version)) and not self._is_superseded(
            key, version
        )

    def _is_superseded(self, key: str, version: int) -> bool:
        """Whether ``version`` lies below a mark, or the record was deleted."""
        return any(
            self._directory.exists(_mark_path(key, mark)) for mark in self._marks_above(version)
        ) or self._directory.exists(_tombstone(key))

    def _marks_above(self, version: int) -> Iterator[int]:
        """Those of which one is there for ever once ``version`` was pruned, finest first."""
        mark: int | None = _next_multiple(version, self._block)
        while mark is not None:
            yield mark
            mark = self._rounder_mark(mark)

    def _rounder_mark(self, mark: int) -> int | None:
        """The mark that must be there before ``mark`` may go; None if it stays for ever."""
        step = self._block
        while mark % step == 0:
            if step == self._mark_step_max:
                return None
            step *= self._block
        return _next_multiple(mark, step)

    def _versions(self, key: str) -> Iterator[int]:
        return (int(name, 16) for name in self._directory.list(key) if _VERSION.fullmatch(name))

    def _prune(self, key: str, newest: int) -> None:
        if newest % self._block:
            return
        durable_marks: set[int] = set()
        floor = newest - self._block
        removable = list(self._removable(self._directory.list(key), floor))
        for name, mark in removable[: _REMOVED_BLOCKS_MAX * self._block]:
            if mark not in durable_marks:
                self._directory.put_if_absent(_mark_path(key, mark), b"pruned\n")
                durable_marks.add(mark)
            self._directory.unlink(f"{key}/{name}")

    def _removable(self, names: Sequence[str], floor: int) -> Iterator[tuple[str, int]]:
        """Names of versions and marks below ``floor``, oldest first, each with its mark."""
        for name in names:
            if _VERSION.fullmatch(name) and int(name, 16) < floor:
                yield name, _next_multiple(int(name, 16), self._block)
        for name in names:
            if found := _MARK.fullmatch(name):
                rounder = self._rounder_mark(int(found[1], 16))
                if rounder is not None and rounder <= floor:
                    yield name, rounder


def _next_multiple(number: int, step: int) -> int:
    """The smallest multiple of ``step`` above ``number``."""
    return (number // step + 1) * step


def _version_path(key: str, version: int) -> str:
    return f"{key}/{version:016x}"


def _mark_path(key: str, mark: int) -> str:
    return f"{key}/pruned-{mark:016x}"


def _tombstone(key: str) -> str:
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}~{name}"


def _lost(key: str, expected: int | None) -> MetadataVersionError:
    seen = "does not exist" if expected is None else f"is at version {expected}"
    return MetadataVersionError(
        f"metadata record {key!r} no longer {seen}",
        hint="read it again; it may hold your own change if an earlier answer was lost",
    )
