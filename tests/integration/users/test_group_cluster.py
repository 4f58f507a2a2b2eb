"""A cluster of a group, used by processes of several users; they are made of numbers alone."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

PROCESS = Path(__file__).with_name("as_user.py")
GROUP, OWNER, MEMBER, OTHER = 41000, 41001, 41002, 41003

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can be several users; test_access shows the rest"
)


class Users:
    """Processes of several users, and a folder that all of them may enter."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = (folder / "meta").as_uri()

    def run(self, user: int, *words: str, code: str = "") -> "subprocess.CompletedProcess[str]":
        """The command, or ``code``, in a process of ``user`` that would make private files."""
        groups = "" if user == OTHER else str(GROUP)
        return subprocess.run(
            [sys.executable, str(PROCESS), str(user), groups, code, *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )

    def says(self, user: int, *words: str, code: str = "") -> str:
        """What it prints; it must end well."""
        done = self.run(user, *words, code=code)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        return done.stdout

    def refused(self, user: int, *words: str, code: str = "") -> str:
        """The last line of why it fails."""
        done = self.run(user, *words, code=code)
        assert done.returncode != 0
        return done.stderr.splitlines()[-1]

    def command(self, user: int, *words: str) -> str:
        return self.says(user, "--metadata", self.uri, *words)


def may_be_entered(folder: Path) -> bool:
    """Whether every user may go through ``folder`` and the folders above it."""
    return all(path.stat().st_mode & 0o001 for path in [folder, *folder.parents])


@pytest.fixture
def users() -> Iterator[Users]:
    own = Path(tempfile.gettempdir()).resolve()
    folder = Path(tempfile.mkdtemp(dir=own if may_be_entered(own) else "/tmp"))
    folder.chmod(0o1777)
    yield Users(folder)
    shutil.rmtree(folder)


def init(users: Users, user: int, *words: str) -> None:
    places = [f"--bookie={users.folder}/b{number}" for number in (1, 2, 3)]
    users.says(user, "init", users.uri, *places, *words)


APPEND = """
import sys, bkspark
with bkspark.BookKeeper(sys.argv[1]) as keeper:
    if sys.argv[2] not in keeper.list_logs():
        keeper.create_log(sys.argv[2], unbounded=sys.argv[2] == "unbounded")
    with keeper.open_log(sys.argv[2]).writer() as writer:
        writer.append(sys.argv[3].encode())
"""
LEAVE_OPEN = """
import os, sys, bkspark
with bkspark.BookKeeper(sys.argv[1]) as keeper:
    writer = keeper.open_log(sys.argv[2]).writer()
    writer.append(sys.argv[3].encode())
    os._exit(0)
"""
READ = """
import sys, bkspark
with bkspark.BookKeeper(sys.argv[1]) as keeper:
    print([entry.value.decode() for entry in keeper.open_log(sys.argv[2]).read(0)])
"""


def tree(folder: Path) -> list[tuple[str, float]]:
    return sorted((str(path), path.stat().st_mtime_ns) for path in folder.rglob("*"))


@pytest.mark.thorough
def test_members_share_it_and_others_read_what_the_operator_opens(users: Users) -> None:
    init(users, OWNER, "--group", str(GROUP))
    users.says(OWNER, users.uri, "chained", "one", code=APPEND)
    users.says(MEMBER, users.uri, "chained", "two", code=APPEND)
    users.says(OWNER, users.uri, "chained", "three", code=LEAVE_OPEN)
    assert f"run as a member of group {GROUP}" in users.refused(OTHER, users.uri, "x", code=READ)
    for path in [users.folder / name for name in ("meta", "b1", "b2", "b3")]:
        for found in [path, *path.rglob("*")]:
            found.chmod(found.stat().st_mode | (0o005 if found.is_dir() else 0o004))
    users.says(MEMBER, users.uri, "chained", "four", code=APPEND)
    before = tree(users.folder)
    read = users.says(OTHER, users.uri, "chained", code=READ)
    assert read == "['one', 'two', 'three', 'four']\n"
    assert tree(users.folder) == before
    why = users.refused(OTHER, users.uri, "chained", "x", code=APPEND)
    assert why.startswith("bkspark.errors.NothingSentError: ")
    assert f"user {OTHER} is not a member" in why
    assert f"run as a member of group {GROUP}" in why
    assert tree(users.folder) == before


@pytest.mark.thorough
def test_each_verb_may_be_another_member_s(users: Users) -> None:
    init(users, OWNER, "--group", str(GROUP))
    for number, name in enumerate(["chained", "unbounded"] * 2):
        users.says((OWNER, MEMBER)[number // 2], users.uri, name, str(number), code=APPEND)
    users.says(OWNER, users.uri, "unbounded", "open", code=LEAVE_OPEN)
    users.command(MEMBER, "bookie", "add", f"{users.folder}/b4")
    shutil.rmtree(users.folder / "b1")
    (users.folder / "b1").mkdir(mode=0o700)
    os.chown(users.folder / "b1", MEMBER, GROUP)
    users.command(MEMBER, "bookie", "reinit", "bookie-1", "--yes")
    (users.folder / "b2").rename(users.folder / "b2x")
    users.command(MEMBER, "bookie", "move", "bookie-2", f"{users.folder}/b2x")
    users.says(MEMBER, users.uri, "unbounded", "after", code=APPEND)
    users.command(OWNER, "repair")
    assert "all is well" in users.run(MEMBER, "--metadata", users.uri, "audit").stderr
    users.command(MEMBER, "scrub")
    users.command(MEMBER, "compact", "chained")
    for name in ("chained", "unbounded"):
        users.says(OWNER, users.uri, name, "last", code=APPEND)
        assert users.says(MEMBER, users.uri, name, code=READ).endswith("'last']\n")
    users.command(MEMBER, "log", "delete", "unbounded", "--yes")
    users.command(OWNER, "collect")
    for place in ("meta", "b1", "b2x", "b3", "b4"):
        for found in [users.folder / place, *(users.folder / place).rglob("*")]:
            status = found.stat()
            assert status.st_gid == GROUP, found
            assert status.st_mode & 0o7777 == (0o2770 if found.is_dir() else 0o660), found


@pytest.mark.thorough
def test_without_a_group_nothing_is_shared(users: Users) -> None:
    init(users, OWNER)
    users.says(OWNER, users.uri, "chained", "one", code=APPEND)
    for words in (("chained", "x", APPEND), ("chained", "", READ)):
        why = users.refused(MEMBER, users.uri, *words[:2], code=words[2])
        assert why.startswith("bkspark.errors.NothingSentError: ")
        assert f"run as its owner, user {OWNER}" in why
    for found in (users.folder / "meta").rglob("*"):
        found.chmod(0o775 if found.is_dir() else 0o664)
        os.chown(found, -1, GROUP)
    os.chown(users.folder / "meta", -1, GROUP)
    (users.folder / "meta").chmod(0o2775)
    why = users.refused(MEMBER, users.uri, "chained", code=READ)
    assert f"belongs to user {OWNER}, and this process runs as user {MEMBER}" in why


@pytest.mark.thorough
def test_bookies_that_let_nobody_in_are_named(users: Users) -> None:
    init(users, OWNER, "--group", str(GROUP))
    for number in (1, 2, 3):
        (users.folder / f"b{number}").chmod(0o700)
    why = users.refused(MEMBER, users.uri, "chained", "x", code=APPEND)
    assert why.startswith("bkspark.errors.NotEnoughBookiesError: ")
    assert f"Permission denied (run as its owner, user {OWNER})" in why


def test_a_user_makes_a_cluster_only_for_a_group_of_its_own(users: Users) -> None:
    done = users.run(OTHER, "init", users.uri, "--group", str(GROUP))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"user {OTHER} is not a member of group {GROUP}" in done.stderr
    (users.folder / "meta").mkdir(mode=0o755)
    os.chown(users.folder / "meta", OWNER, OWNER)
    done = users.run(MEMBER, "init", users.uri, "--group", str(GROUP))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"chgrp {GROUP} {users.folder}/meta; chmod 2770 {users.folder}/meta" in done.stderr
    os.chown(users.folder / "meta", OWNER, GROUP)
    (users.folder / "meta").chmod(0o2770)
    init(users, MEMBER, "--group", str(GROUP))


def _sudo(words: Sequence[str]) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.mark.thorough
def test_a_cluster_on_a_read_only_mount_is_read_and_says_so(users: Users) -> None:
    init(users, OWNER, "--group", str(GROUP))
    users.says(OWNER, users.uri, "chained", "one", code=APPEND)
    users.says(OWNER, users.uri, "chained", "two", code=LEAVE_OPEN)
    where = str(users.folder)
    try:
        _sudo(["mount", "--bind", where, where])
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets root mount nothing")
    try:
        _sudo(["mount", "-o", "remount,ro,bind", where])
        assert users.says(MEMBER, users.uri, "chained", code=READ) == "['one']\n"
        why = users.refused(MEMBER, users.uri, "other", "x", code=APPEND)
        assert why.startswith("bkspark.errors.NothingSentError: ")
        assert "Read-only file system" in why
    finally:
        _sudo(["umount", where])
