"""Copies are made on a disk that is full, fails, or hangs in the middle of it.

Another bookie gets the place if there is one. If not, it is left, with the reason in one line, the
records name who they named before, and once the disk is well the next run does the work.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from bkspark import verbs
from bkspark.admin.maintenance import Report
from bkspark.bookie import posix
from bkspark.cluster import bookie_client
from bkspark.cluster.cluster import Cluster
from bkspark.ledger.recovery import running
from tests.integration.faults.test_hanging_bookies import Gates
from tests.integration.rig import LOG, Rig, flat
from tests.kit.faulty import Fault, Moment, Operation
from tests.stopwatch import patience
from tests.thorough import always

from .scenes import PARTITIONS, audited, copies, members, take, written
from .small_ledgers import filled
from .test_repair import VALUES, give_up, values

WRITES = ("create", "write", "finish", "open_journal", "append")
VERBS = ("replace", "fill", "decommission", "rebalance", "compact")


@dataclass
class Scene:
    """A cluster with work for one verb, and on whom that writes.

    Attributes:
        targets: ids of the bookies that may get copies.
        gone: the one that has lost some, or is to lose its place.
        rows: of the log.
        ledger_ids: of ledgers that the verb is about.
    """

    rig: Rig
    verb: str
    targets: set[str] = field(default_factory=set)
    gone: str = ""
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    ledger_ids: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        rig = self.rig
        if self.verb in ("rebalance", "compact"):
            self.rows = filled(rig, 4, quorum=(3, 3, 2))
            self.targets = set(rig.urls)
            if self.verb == "rebalance":
                with Cluster(rig.uri) as cluster:
                    url = f"{rig.urls['bookie-1']}-new"
                    self.targets = {cluster.add_bookie("", url, accepts_risk=True).bookie_id}
            return
        self.ledger_ids = [rig.write(PARTITIONS, (3, 3, 2)).ledger_id, written(rig)]
        self.rows = flat(PARTITIONS)
        entry_logs, journal = self.ledger_ids
        self.gone = members(rig, journal)[0]
        self.targets = set(rig.urls) - {self.gone}
        if self.verb == "replace":
            give_up(rig, self.gone)
        elif self.verb == "fill":
            other = members(rig, entry_logs)[0]
            take(rig, other, "/entries/", entry_logs)
            take(rig, self.gone, "/journal/", journal)
            self.targets = {self.gone, other}

    @property
    def spare(self) -> str:
        """A bookie that could get a place of either ledger, or has to get it."""
        named = {name for ledger_id in self.ledger_ids for name in members(self.rig, ledger_id)}
        return min(self.targets - named, default=self.gone)

    def run(self) -> Report:
        uri = self.rig.uri
        match self.verb:
            case "decommission":
                return verbs.decommission(uri, bookies=[self.gone])
            case "rebalance":
                return verbs.rebalance(uri, no_lease=True)
            case "compact":
                return verbs.compact(uri, log=LOG)
        return verbs.repair(uri, no_lease=True)

    def records(self) -> list[Any]:
        """Of all that the verb could change."""
        log = self.rig.log()
        assert log is not None
        return [log, *(self.rig.ledger(i) for i in {*log.listed_ids, *self.ledger_ids})]

    def require_left(self, report: Report, word: str) -> None:
        assert report.exit_status == 1
        assert report.left
        assert any(word in left.reason for left in report.left)
        assert not [left for left in report.left if "\n" in left.reason]

    def require_finished(self) -> None:
        """By the next run, and nothing is missing then; whoever failed before takes part again."""
        report = self.run()
        assert (report.left, report.exit_status) == ([], 0)
        assert verbs.repair(self.rig.uri, no_lease=True).left == []
        assert copies(audited(self.rig)) == []
        assert self.rig.rows() == self.rows
        if self.ledger_ids:
            assert values(self.rig, self.ledger_ids[1]) == VALUES


@pytest.fixture
def scene(make_rig: Callable[..., Rig]) -> Callable[[str], Scene]:
    def make(verb: str) -> Scene:
        count = 3 if verb in ("rebalance", "compact") else 7
        return Scene(make_rig(kind="memory", metadata="memory", bookie_count=count), verb)

    return make


def failing(scene: Scene, who: set[str], calls: set[str]) -> None:
    def decide(_number: int, operation: Operation) -> Fault | None:
        is_it = operation.place in who and operation.call in calls
        return Fault(Moment.HALF) if is_it else None

    scene.rig.faults.decide = decide


@pytest.mark.parametrize("call", always(["append"], WRITES))
@pytest.mark.parametrize("verb", VERBS)
def test_where_nobody_can_take_copies_nothing_is_changed(
    scene: Callable[[str], Scene], verb: str, call: str
) -> None:
    one = scene(verb)
    before = one.records()
    with one.rig.faults.installed():
        # An entry log and a journal each fail at calls of their own.
        failing(one, one.targets, {call, "append"} if call != "create" else set(WRITES))
        report = one.run()
        one.rig.faults.forget()
    one.require_left(report, "" if verb == "compact" else "fails in the middle")
    if call in ("append", "create"):
        assert one.records() == before
    one.require_finished()


@pytest.mark.parametrize("call", always(["append"], WRITES))
@pytest.mark.parametrize("verb", ["replace", "decommission"])
def test_another_bookie_gets_the_place(scene: Callable[[str], Scene], verb: str, call: str) -> None:
    one = scene(verb)
    good = one.spare
    with one.rig.faults.installed():
        failing(one, one.targets - {good}, {call, "append"})
        report = one.run()
        one.rig.faults.forget()
    assert (report.left, report.exit_status) == ([], 0)
    assert all(good in members(one.rig, ledger_id) for ledger_id in one.ledger_ids[1:])
    one.require_finished()


# --- disks that hang -----------------------------------------------------------------------------


@pytest.mark.parametrize("call", always(["append"], (*WRITES, "has_journal", "list")))
@pytest.mark.parametrize(
    "verb", always(["replace"], ["replace", "fill", "decommission", "rebalance"])
)
def test_a_disk_that_hangs_in_the_middle_of_it_holds_up_nobody_for_ever(
    scene: Callable[[str], Scene], verb: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bookie_client, "STORE_SECONDS", patience(0.3))
    monkeypatch.setattr(running, "TELL_SECONDS", patience(0.05))
    one = scene(verb)
    hanging = {one.spare}
    with one.rig.faults.installed():
        gates = Gates(one.rig.faults)
        wait = one.rig.faults.decide

        def begin(number: int, operation: Operation) -> Fault | None:
            """Only once copies are made, to whomever."""
            if operation.call in ("create", "open_journal"):
                gates.closed = {(name, call) for name in hanging}
            return wait(number, operation)

        one.rig.faults.decide = begin
        try:
            report = one.run()
        finally:
            gates.open()
            one.rig.faults.forget()
    if report.left:
        one.require_left(report, "answer")
    one.require_finished()


# --- real files ----------------------------------------------------------------------------------


@contextmanager
def small_disk(path: str, room: int, error: int) -> Iterator[None]:
    """Whatever is written below ``path`` fails once that much was written, in mid-write."""
    real = {"write": os.write, "writev": os.writev}
    left = [room]
    guard = threading.Lock()  # more than one ledger is repaired at once

    def limited(call: str, descriptor: int, data: Any) -> int:
        if not os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{path}/"):
            return int(real[call](descriptor, data))
        whole = data if call == "write" else b"".join(data)
        with guard:
            if not left[0]:
                raise OSError(error, os.strerror(error))
            written = real["write"](descriptor, memoryview(whole)[: left[0]])
            left[0] -= written
        return written

    with pytest.MonkeyPatch.context() as patched:
        for call in real:
            patched.setattr(os, call, lambda fd, data, call=call: limited(call, fd, data))
        yield


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("room", always([300], [0, 300, 2000, 3300]))
def test_a_disk_gets_full_in_the_middle_of_a_file(
    make_rig: Callable[..., Rig], room: int, error: int
) -> None:
    """What lies there then is no copy to anybody, and in nobody's way."""
    rig = make_rig(kind="file", bookie_count=3)
    rows, ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id, written(rig)
    give_up(rig, "bookie-1")
    before = [rig.ledger(i) for i in (rows, ledger_id)]
    with Cluster(rig.uri) as cluster:
        disk = rig.folder / "disk4"
        cluster.add_bookie("", disk.as_uri(), accepts_risk=True)
    with small_disk(str(disk), room, error):
        report = verbs.repair(rig.uri, no_lease=True)
        named = [i for i in (rows, ledger_id) if "bookie-4" in members(rig, i)]
        assert len(named) == report.done["places"] == 2 - len(report.left)
        assert report.left
        for left in report.left:
            assert os.strerror(error) in left.reason or "bytes were written" in left.reason
        assert verbs.audit(rig.uri).exit_status == 1
        assert rig.rows() == flat(PARTITIONS)
    assert [rig.ledger(i) for i in (rows, ledger_id) if i not in named] == [
        ledger for ledger in before if ledger.ledger_id not in named
    ]
    assert verbs.repair(rig.uri, no_lease=True).left == []
    assert copies(audited(rig)) == []
    assert values(rig, ledger_id) == VALUES


def test_a_disk_that_is_full_is_asked_for_nothing(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(kind="file", bookie_count=4)
    ledger_id = written(rig)
    one = members(rig, ledger_id)[0]
    [other] = set(rig.urls) - set(members(rig, ledger_id))
    take(rig, one, "/journal/", ledger_id)
    problem = posix.PosixRoot.write_problem
    full = f"bookie {one}"
    monkeypatch.setattr(
        posix.PosixRoot,
        "write_problem",
        lambda root: "it is full" if root._bookie_name == full else problem(root),
    )
    assert verbs.repair(rig.uri, no_lease=True).left == []
    assert one not in members(rig, ledger_id)
    assert other in members(rig, ledger_id)
    assert values(rig, ledger_id) == VALUES


@pytest.mark.parametrize("is_another_there", [True, False])
def test_a_file_for_which_there_is_no_room_is_not_begun(
    make_rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, is_another_there: bool
) -> None:
    rig = make_rig(kind="file", bookie_count=5 if is_another_there else 4)
    ledger_id = rig.write(PARTITIONS, (3, 3, 2)).ledger_id
    named = members(rig, ledger_id)
    small, *_ = set(rig.urls) - set(named)
    give_up(rig, named[0])
    free = posix.PosixRoot.free_bytes
    begun = []

    def free_bytes(root: posix.PosixRoot) -> int:
        # Just above the mark of a disk that takes new ledgers.
        return 99 if root._bookie_name == f"bookie {small}" else free(root)

    def create(root: posix.PosixRoot, name: str) -> object:
        begun.append(root._bookie_name)
        return real(root, name)

    real = posix.PosixRoot.create
    monkeypatch.setattr(posix.PosixRoot, "free_bytes", free_bytes)
    monkeypatch.setattr(posix.PosixRoot, "total_bytes", lambda root: 100)
    monkeypatch.setattr(posix.PosixRoot, "create", create)
    left = verbs.repair(rig.uri, no_lease=True).left
    assert f"bookie {small}" not in begun
    assert bool(left) is not is_another_there
    assert all(small in one.reason and "disk has room for 99" in one.reason for one in left)
    monkeypatch.undo()
    assert verbs.repair(rig.uri, no_lease=True).left == []
    assert copies(audited(rig)) == []
    assert rig.rows() == flat(PARTITIONS)
