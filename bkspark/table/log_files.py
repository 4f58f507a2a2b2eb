"""The files of a table's log: which there are, and which of them make a version.

Rule 1. ``_last_checkpoint`` only says where a listing may begin. It may be old, wrong or absent.
Rule 2. A version is a complete checkpoint and each commit after it, or each commit from 0 on.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from bkspark.storage.folders import Folder

LOG = "_delta_log"
SIDECARS = f"{LOG}/_sidecars"
_HINT = f"{LOG}/_last_checkpoint"
_HINT_BYTES = 2**16
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint"
    r"(?:\.(?P<part>\d{10})\.(?P<of>\d{10})|\.(?P<uuid>[0-9a-f-]{36}))?\.(?P<kind>parquet|json)"
)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: one file, or all parts."""

    version: int
    names: tuple[str, ...]


@dataclass(slots=True)
class LogFiles:
    """The files of a listing.

    Attributes:
        sizes: of each file, by name.
        commits: the versions that have a commit.
        checkpoints: the complete ones, newest first.
    """

    sizes: dict[str, int]
    commits: set[int] = field(default_factory=set)
    checkpoints: list[Checkpoint] = field(default_factory=list)

    @property
    def newest(self) -> int:
        """The newest version; -1 if there is none."""
        return max((*self.commits, *(found.version for found in self.checkpoints)), default=-1)

    def checkpoints_for(self, version: int) -> Iterator[Checkpoint | None]:
        """Where the replay of ``version`` may begin, best first; None is the first commit.

        A beginning that lacks a commit after it is left out.
        """
        for found in self.checkpoints:
            if found.version <= version and self._has_commits(found.version + 1, version):
                yield found
        if self._has_commits(0, version):
            yield None

    def first_missing(self, version: int) -> int:
        """The newest commit that the replay of ``version`` would need and that is absent."""
        return next((n for n in range(version, -1, -1) if n not in self.commits), 0)

    def _has_commits(self, first: int, last: int) -> bool:
        return all(number in self.commits for number in range(first, last + 1))


def commit_name(version: int) -> str:
    return f"{version:020d}.json"


def list_log(folder: Folder, version: int | None, *, uses_hint: bool) -> LogFiles:
    """List the files that the replay of ``version``, or of the newest one, needs.

    Args:
        uses_hint: list only from the last checkpoint on, if there is a complete one.
    """
    hint = _hinted(folder) if uses_hint else 0
    if hint > 0 and (version is None or version >= hint):
        found = _parsed(folder.sizes(LOG, after=f"{hint - 1:020d}.~"))
        if any(checkpoint.version <= (version or found.newest) for checkpoint in found.checkpoints):
            return found
    return _parsed(folder.sizes(LOG))


def _hinted(folder: Folder) -> int:
    """The version in ``_last_checkpoint``; 0 if there is none that can be read."""
    try:
        found = json.loads(folder.read(_HINT, 0, _HINT_BYTES))
    except (FileNotFoundError, ValueError):
        return 0
    version = found.get("version") if isinstance(found, dict) else None
    return version if isinstance(version, int) and 0 < version < 10**20 else 0


def _parsed(sizes: dict[str, int]) -> LogFiles:
    found = LogFiles(sizes)
    parts: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for name in sizes:
        if commit := _COMMIT.fullmatch(name):
            found.commits.add(int(commit[1]))
        elif match := _CHECKPOINT.fullmatch(name):
            version = int(match[1])
            if match["part"]:
                parts[version, int(match["of"])][int(match["part"])] = name
            elif match["uuid"] or match["kind"] == "parquet":
                found.checkpoints.append(Checkpoint(version, (name,)))
    for (version, count), names in parts.items():
        if sorted(names) == list(range(1, count + 1)):
            ordered = tuple(names[number] for number in sorted(names))
            found.checkpoints.append(Checkpoint(version, ordered))
    found.checkpoints.sort(key=lambda checkpoint: checkpoint.version, reverse=True)
    return found
