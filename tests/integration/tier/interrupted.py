"""Commands inside others, and faults of the table, at each access to the record or to the table.

One thread runs all: a command that is interrupted rests until the other one has ended. What is
stored is put back before each schedule.
"""

import copy
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq

from bkspark import environment
from bkspark.admin.collecting import collection
from bkspark.admin.offloading import ending, moving
from bkspark.admin.offloading.offload import OffloadRequest
from bkspark.bookie import memory as disks
from bkspark.cluster.cluster import Cluster
from bkspark.environment import RealEnvironment
from bkspark.errors import BookKeeperError
from bkspark.log import truncation
from bkspark.metadata import memory as stores
from bkspark.metadata.contract import MetadataStore
from bkspark.protocol.log.record import LogRecord
from bkspark.protocol.log.tier import Tier
from bkspark.table import reading
from bkspark.table.table import DeltaTable
from tests.integration.rig import LOG, Rig, flat, partitions_of
from tests.kit.delta import HandTable

from .hand_copier import HandCopier
from .scene import Scene

KEY = f"logs/{LOG}"
ASKED_BY_ITSELF = ("ask-metadata-store", "look-up-ledgers")
ROWS, OTHER_ROWS = flat(partitions_of(30)), flat(partitions_of(6, first=100))


class MemoryScene(Scene):
    """The scene with its records and bookies in memory, and its table in a folder.

    Attributes:
        copied_url: of the copy that a move looks at now; faults hit it.
    """

    def __init__(self, folder: Path) -> None:
        self.rig = Rig(folder / "cluster", metadata="memory", bookie_count=3)
        self.folder = folder
        for number in range(3):
            self.append(number)
        self.copier = HandCopier()
        self.url = self.first_url = (folder / "table").as_uri()
        self.copied_url = ""

    @property
    def table(self) -> HandTable:
        return self.copier.tables[self.copied_url or self.url]

    def copy_table(self) -> str:
        """Copy the folder of the table to another place; return its address."""
        folder = self.table.path.with_name(f"table-{len(self.copier.tables)}")
        shutil.copytree(self.table.path, folder)
        copied = copy.deepcopy(self.table)
        copied.path = folder
        self.copier.tables[folder.as_uri()] = copied
        return folder.as_uri()


def offload(scene: Scene) -> None:
    scene.offload()


def offload_by_ledger(scene: Scene) -> None:
    scene.offload(segment_bytes=1)


def move(scene: Scene) -> None:
    """Copy the folder of the table, and have the log read the copy."""
    assert isinstance(scene, MemoryScene)
    if scene.url not in scene.copier.tables or not scene.table.path.exists():
        return
    before, scene.copied_url = scene.copied_url, scene.copy_table()
    try:
        with Cluster(scene.rig.uri) as cluster:
            wanted = OffloadRequest(scene.copied_url, accepts_single_copy=True)
            if moving.is_move(cluster, LOG, wanted):
                moving.move(cluster, LOG, wanted)
    finally:
        scene.copied_url = before


def collect(scene: Scene) -> None:
    """Both looks, and the deletion of ledgers."""
    for _ in range(2):
        with Cluster(scene.rig.uri) as cluster:
            collection.collect(cluster, abandoned_after=0.0, offload_grace=-1.0)


def truncate(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        truncation.truncate(cluster, LOG, 15)


def overwrite(scene: Scene) -> None:
    scene.rig.write(partitions_of(6, first=100), is_overwrite=True)


def stop(scene: Scene) -> None:
    with Cluster(scene.rig.uri) as cluster:
        ending.stop(cluster, LOG, scene.copier, may_keep=False)


COMMANDS = (offload, offload_by_ledger, collect, truncate, overwrite, stop, move)
Act = Callable[[Scene], None]


@dataclass
class Frame:
    """A command that runs, or rests while another one runs inside of it.

    Attributes:
        acts: what happens before its accesses, by their numbers.
        accesses: all so far.
        is_late: whether the table was changed after its last look.
    """

    acts: "Mapping[int, Plan]"
    accesses: list[str] = field(default_factory=list)
    has_looked: bool = False
    is_late: bool = False


@dataclass(frozen=True)
class Plan:
    """A command or a fault, and what happens before its accesses."""

    act: Act
    acts: "Mapping[int, Plan]" = field(default_factory=dict)

    def __str__(self) -> str:
        inside = ", ".join(f"at {number}: {plan}" for number, plan in self.acts.items())
        return f"{self.act.__name__}({inside})"


class Interrupted:
    """Carries out plans on a scene, and looks at each change of the record.

    Attributes:
        violations: ledgers that were freed or deleted though the table lacked their rows.
        has_fault: whether something happened to the table.
    """

    def __init__(self, scene: MemoryScene) -> None:
        self._scene = scene
        self._frames: list[Frame] = []
        self._is_silent = False
        self._kept = self._contents()
        self._generation = scene.log.generation
        self.violations: list[str] = []
        self.has_fault = False

    # --- all that is stored ----------------------------------------------------------------------

    def _contents(self) -> Any:
        name = self._scene.rig.uri.removeprefix("memory://")
        files = {url: _files_of(disks.find_disk(url)) for url in self._scene.rig.urls.values()}
        table = self._scene.folder / "table"
        if table.exists():
            shutil.copytree(table, self._scene.folder / "kept")
        return name, dict(stores._stores[name]), files, copy.deepcopy(self._scene.copier.tables)

    def restore(self) -> None:
        name, records, files, tables = self._kept
        stores._stores[name] = dict(records)
        for url, own in files.items():
            disk = disks.MemoryDisk()
            disk.files = {file: disks.MemoryFile(data) for file, data in own.items()}
            disks.place_disk(url, disk)
        for folder in (*self._scene.folder.glob("table*"), self._scene.folder / "away"):
            shutil.rmtree(folder, ignore_errors=True)
        self._scene.url, self._scene.copied_url = self._scene.first_url, ""
        if (self._scene.folder / "kept").exists():
            shutil.copytree(self._scene.folder / "kept", self._scene.folder / "table")
        self._scene.copier.tables = copy.deepcopy(tables)
        self.violations, self.has_fault, self._frames = [], False, []

    # --- schedules -------------------------------------------------------------------------------

    def run(self, plan: Plan) -> Frame:
        """Carry out a command with what happens inside of it."""
        frame = Frame(plan.acts)
        self._frames.append(frame)
        try:
            plan.act(self._scene)
        except BookKeeperError:
            pass  # a command may give up; what it has done until then is looked at
        except FileNotFoundError:
            assert self.has_fault  # the copier's: the folder of the table is gone
        finally:
            self._frames.pop()
        return frame

    def _reach(self, what: str) -> None:
        """A command is about to make an access."""
        if not self._frames or self._is_silent:
            return
        frame = self._frames[-1]
        number = len(frame.accesses)
        frame.accesses.append(what)
        plan = frame.acts.get(number)
        if plan is not None and plan.act in COMMANDS:
            self.run(plan)
        elif plan is not None:
            plan.act(self._scene)
            self.has_fault = True
            for one in self._frames:
                one.is_late = one.has_looked
        if what == "snapshot":
            frame.has_looked, frame.is_late = True, False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Let this see all accesses."""
        snapshot, read_range = DeltaTable.snapshot, reading.read_range

        def seen_snapshot(table: DeltaTable, version: int | None = None) -> Any:
            self._reach("snapshot")
            return snapshot(table, version)

        def seen_range(*given: Any) -> Any:
            self._reach("read_range")
            return read_range(*given)

        self._scene.copier.before = self._reach
        with (
            patch.object(DeltaTable, "snapshot", seen_snapshot),
            patch.object(reading, "read_range", seen_range),
            environment.use(_Environment(self)),
        ):
            yield

    # --- what is looked at -----------------------------------------------------------------------

    @contextmanager
    def silent(self) -> Iterator[None]:
        self._is_silent, before = True, self._is_silent
        try:
            yield
        finally:
            self._is_silent = before

    def changed(self, put: Callable[[], int]) -> int:
        """Make a change of the record, and look at it."""
        if self._is_silent or not self._frames:
            return put()
        with self.silent():
            before, result, after = self._scene.rig.log(), put(), self._scene.rig.log()
            frame = self._frames[-1]
            if after is not None and after.tier is not None:
                self._scene.url = after.tier.table_url
            is_same = before and after and before.generation == after.generation
            if is_same and not frame.is_late:
                self._require_rows(before, after)  # type: ignore[arg-type]
        return result

    def _require_rows(self, before: LogRecord, after: LogRecord) -> None:
        if before.tier is None or after.tier is None:
            return
        found: dict[int, list[Any]] | None = None
        is_moved = before.tier.table_url != after.tier.table_url
        for border in ("copied", "freed", "released"):
            known = after.tier.begin if is_moved else getattr(before.tier, border)
            begin = max(known, after.first_offset)
            for offset in range(begin, getattr(after.tier, border)):
                found = self._table_rows(after.tier) if found is None else found
                if found.get(offset) != [self._rows_of(after)[offset]]:
                    self.violations.append(f"offset {offset} is {border}: {found.get(offset)}")

    def _table_rows(self, tier: Tier) -> dict[int, list[Any]]:
        """What a reader of the newest version finds."""
        found: dict[int, list[Any]] = {}
        table = self._scene.copier.tables[tier.table_url]
        if table.settings["metaData"]["id"] != tier.table_id or not table.path.exists():
            return found
        for name in table.live:
            for row in pq.read_table(table.path / name).to_pylist():
                found.setdefault(row["_offset"], []).append((row["n"], row["s"]))
        return found

    def _rows_of(self, log: LogRecord) -> list[Any]:
        """What was written."""
        return ROWS if log.generation == self._generation else OTHER_ROWS

    def require_log(self, *, is_told: bool) -> None:
        """Check that a read gives what was written, or an error if the table has a fault.

        Args:
            is_told: whether the table's log tells of the fault.
        """
        with self.silent():
            log = self._scene.log
            try:
                found = self._scene.rig.rows()
            except BookKeeperError:
                assert self.has_fault
                assert log.tier is not None
                assert log.first_offset < log.tier.freed
                return
            if is_told or log.freed <= log.first_offset:
                assert found == self._rows_of(log)[log.first_offset :]


def _files_of(disk: disks.MemoryDisk | None) -> dict[str, bytes]:
    assert disk is not None
    return {name: bytes(file.data) for name, file in disk.files.items()}


class _Done:
    """A task whose work was done when it was started."""

    def is_alive(self) -> bool:
        return False

    def join(self, timeout: float | None = None) -> None:
        """There is nothing left to wait for."""


class _Environment(RealEnvironment):
    def __init__(self, seen: Interrupted) -> None:
        super().__init__()
        self._seen = seen

    def sleep(self, seconds: float) -> None:
        """No command waits for another one that rests."""

    def start(self, work: Callable[[], None], name: str) -> Any:
        """A command asks the metadata store in its own thread: another one can run inside."""
        if name not in ASKED_BY_ITSELF:
            return super().start(work, name)
        work()
        return _Done()

    def opened(self, place: str, storage: Any) -> Any:
        return _Store(storage, self._seen) if place == environment.METADATA else storage


class _Store:
    """A metadata store that tells of accesses to the record of the log."""

    def __init__(self, inner: MetadataStore, seen: Interrupted) -> None:
        self._inner = inner
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def get(self, key: str) -> Any:
        if key == KEY:
            self._seen._reach("get")
        return self._inner.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        if key != KEY:
            return self._inner.put(key, value, expected)
        self._seen._reach("put")
        return self._seen.changed(lambda: self._inner.put(key, value, expected))
