"""The file systems on which metadata stores and bookies may lie.

The rule: **a file system is admitted if it is known to belong to one host, or if it passes
``litmus``.** A network file system may answer "absent" from a cache long after another host has
created the file (R5, H2). Such an answer would hide a fence, and a trial on one host cannot detect
such caches. So kinds with such caches are refused without a trial, except NFS mounted to look up
each name anew.
"""

import json
import os
import re
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from bkspark import environment
from bkspark.storage import litmus_rival
from bkspark.storage.posix_calls import TEMP_PREFIX

# --- litmus --------------------------------------------------------------------------------------
# Tries a file system with two processes that use one folder at the same time.
#
# The trial checks what bookies and metadata stores rely on:
#
# * If two processes create a name, exactly one wins.
# * A file made, changed or removed by one process is visible in the other's next look-up, even
#   after an earlier look-up.
# * Appended data of an open file is visible.
# * A name shows the file that was opened under the name.
#
# Both processes run on one host, so caches of other hosts stay hidden: ``file_systems`` knows the
# kinds that this trial cannot judge. The main process touches no file, so hanging storage ends the
# trial by a timeout.


RIVAL = litmus_rival.__file__
ANSWER_SECONDS = 30.0
_RACES = 50
_LOOKS = 10


class LitmusError(Exception):
    """A failed property, in one line."""


class _Process:
    """A process of a trial."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ)

    def begin(self, verb: str, *arguments: object) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the missing answer reports the failure
            print(json.dumps([verb, *arguments]), file=self._process.stdin, flush=True)

    def answer(self) -> Any:
        assert self._process.stdout is not None
        if not self._selector.select(ANSWER_SECONDS):
            raise LitmusError(f"it gave no answer within {ANSWER_SECONDS:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise LitmusError("the testing process has ended")
        value, error = json.loads(line)
        if error:
            raise LitmusError(f"cannot {error}")
        return value

    def ask(self, verb: str, *arguments: object) -> Any:
        self.begin(verb, *arguments)
        return self.answer()

    def close(self) -> None:
        self._selector.close()


def failure(folder: str) -> str:
    """The defect of the file system of ``folder``, in one line; empty if there is none.

    During the trial ``folder`` holds a folder with a temporary file's name.
    """
    place = f"{folder}/{TEMP_PREFIX}{environment.token()}"
    try:
        with _started(place) as one, _started(place) as other:
            one.ask("make")
            try:
                _try(one, other)
            finally:
                one.ask("clear")
    except LitmusError as error:
        return str(error)
    return ""


def _try(one: _Process, other: _Process) -> None:
    _race(one, other)
    for writer, reader in ((one, other), (other, one)):
        for number in range(_LOOKS):
            _look_up(writer, reader, f"look-{number}")
        _rename(writer, reader)
    for writer, reader, name in ((one, other, "one"), (other, one, "other")):
        _append(writer, reader, name)


def _race(one: _Process, other: _Process) -> None:
    names = [f"race-{number}" for number in range(_RACES)]
    one.begin("create_all", names, "one")
    other.begin("create_all", names, "other")
    winners = dict.fromkeys(one.answer(), "one")
    for name in other.answer():
        _require(name not in winners, "two processes both created the same file")
        winners[name] = "other"
    _require(
        len(winners) == len(names), "of two processes that created the same file, neither succeeded"
    )
    for process in (one, other):
        for name, winner in winners.items():
            _require(process.ask("read", name) == winner, "a file does not belong to its creator")


def _look_up(writer: _Process, reader: _Process, name: str) -> None:
    _require(reader.ask("read", name) is None, "a file exists that no process created")
    _require(writer.ask("create", name, name), "a new file counts as an existing file")
    _require(
        reader.ask("read", name) == name, "a file created by another process is not visible at once"
    )
    _require(not reader.ask("create", name, "again"), "an existing file is created again")
    writer.ask("remove", name)
    _require(reader.ask("read", name) is None, "a file removed by another process is still visible")


def _rename(writer: _Process, reader: _Process) -> None:
    _require(writer.ask("create", "old", "text"), "a new file counts as an existing file")
    _require(reader.ask("read", "new") is None, "a file exists that no process created")
    writer.ask("rename", "old", "new")
    seen = (reader.ask("read", "old"), reader.ask("read", "new"))
    _require(seen == (None, "text"), "a file renamed by another process is not visible at once")
    writer.ask("remove", "new")


def _append(writer: _Process, reader: _Process, name: str) -> None:
    text = ""
    for number in range(_LOOKS):
        piece = f"{number},".ljust(100)
        text += piece
        written = writer.ask("append", name, piece)
        _require(
            reader.ask("read", name) == text,
            "data appended and synced by another process is not visible at once",
        )
        _require(
            reader.ask("look", name) == written,
            "a name does not show the file that was renamed to it",
        )


def _require(is_right: bool, otherwise: str) -> None:
    if not is_right:
        raise LitmusError(otherwise)


@contextmanager
def _started(place: str) -> Iterator[_Process]:
    """Run a process for the block; if storage hangs, the process is left behind."""
    process = subprocess.Popen(
        [sys.executable, "-I", RIVAL, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with ExitStack() as cleanup:
        cleanup.callback(_end, process)
        started = _Process(process)
        cleanup.callback(started.close)
        yield started


def _end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(1.0)


# --- file systems --------------------------------------------------------------------------------


MOUNTS = "/proc/self/mountinfo"

_LOCAL = re.compile(
    r"ext[234]|xfs|btrfs|zfs|f2fs|jfs|nilfs2|reiserfs|bcachefs|tmpfs|ramfs|overlay|apfs|hfs|ufs"
)
_CACHING = re.compile(r"nfs\d*|cifs|smb\d*|smbfs|ncpfs|afs|coda|fuse(blk|\..*)?|virtiofs")
_LOOKS_UP_ANEW = "lookupcache=none"
_CACHING_NOTHING = frozenset({"cache=none", "cache=0", "cache=0x0"})


@dataclass(frozen=True, slots=True)
class Mount:
    """The kernel's description of a file system.

    Attributes:
        kind: for example ``ext4``.
    """

    kind: str
    options: frozenset[str] = frozenset()

    @property
    def is_local(self) -> bool:
        return _LOCAL.fullmatch(self.kind) is not None

    @property
    def hides_files(self) -> bool:
        """Whether this host may answer look-ups from an old cache."""
        if re.fullmatch(r"nfs\d*", self.kind):
            return _LOOKS_UP_ANEW not in self.options
        if self.kind == "9p":
            caches = {option for option in self.options if option.startswith("cache=")}
            return not caches <= _CACHING_NOTHING
        return _CACHING.fullmatch(self.kind) is not None


def why_unsafe(path: str) -> str:
    """Why data at ``path`` might be lost, in one line; empty if there is no known reason.

    Args:
        path: of a directory; its parent must exist.
    """
    mount = mount_of(path)
    if mount is not None and mount.is_local:
        return ""
    of_type = "an unknown type" if mount is None else f"type {mount.kind}"
    if mount is not None and mount.hides_files:
        return (
            f"{path} is on a file system of {of_type}, which may hide new files from other "
            "hosts for a while"
        )
    found = failure(path if os.path.isdir(path) else os.path.dirname(path))
    return found and f"{path} is on a file system of {of_type} that failed a test: {found}"


def mount_of(path: str) -> Mount | None:
    """The present or future file system of ``path``; None if the kernel does not tell."""
    try:
        with open(MOUNTS, encoding="utf-8", errors="surrogateescape") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return None
    real = os.path.realpath(path)
    best, found = "", None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 6:
            continue
        mount_point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        is_around = real == mount_point or real.startswith(f"{mount_point.rstrip('/')}/")
        # Of two mounts on one point the later one is visible.
        if is_around and len(mount_point) >= len(best):
            options = f"{fields[5]},{kinds[-1]}".split(",")
            best, found = mount_point, Mount(kinds[0], frozenset(options))
    return found
