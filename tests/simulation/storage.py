"""All the storage of one schedule: every operation waits for its turn and may fail.

Rule: clients reach it by address, as any storage, through the doors that ``StorageFaults`` opens;
what they get are the bookies and the metadata store in memory. The oracle looks after each effect.
"""

from collections.abc import Callable, Mapping
from typing import TypeVar

from bkspark.admin.bookies.closing import set_labels
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.metadata import memory as metadata_memory
from tests.kit.faulty import METADATA, Crash, Faults, StorageFaults
from tests.simulation.disks import URI, Disks
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.faults import (
    AFTER,
    AMBIENT,
    CRASHES,
    HALF,
    LATER,
    LOSSES,
    UNSYNCED,
    Chance,
    Kind,
)
from tests.simulation.oracle import REMOVALS, Oracle
from tests.simulation.racks import RACK
from tests.simulation.scheduler import Process, Scheduler

T = TypeVar("T")

_PAUSE_STEPS = (5, 20, 80, 300)
_DOWN_STEPS = (10, 40, 150)
UNEVENTFUL = ("bookies", "cluster", "lost", "recoveries", "reports", "damaged")
_SEARCHES = ("main", "FindRecord")
"""Tasks that list journals in search of a record, or to read them."""

_WRITES = frozenset({"put_new", "append", "put", "open_journal", "finish", "sync"})


class Storage(StorageFaults):
    """Bookies ``bookie-1`` to ``bookie-n`` and a metadata store, all in memory.

    Attributes:
        disks: of the bookies, which damage can be done to.
        operations: storage and metadata operations so far.
        on_loss: called when a bookie lost data; somebody may want to recover then.
        losing: (process, bookie id) whose appends take effect without an answer.
        silent: (process, place) that do not reach one another.
        dies_in_front_of: whether the process that appends to this journal dies before it does.
    """

    def __init__(
        self, scheduler: Scheduler, chance: Chance, oracle: Oracle, bookie_count: int
    ) -> None:
        super().__init__()
        self.operations = 0
        self.on_loss: Callable[[], object] = lambda: None
        self.chance = chance
        self._scheduler = scheduler
        self._oracle = oracle
        self._network = Process("network")
        self._down_until: dict[str, int] = {}
        self._read_only_until: dict[str, int] = {}
        self.losing: set[tuple[str, str]] = set()
        self.silent: set[tuple[str, str]] = set()
        self.dies_in_front_of: Callable[[str], bool] = lambda _journal: False
        self.disks = Disks(bookie_count, oracle, chance.random)
        self._damages: dict[Kind, Callable[[str], bool]] = {
            Kind.CUT: self.disks.cut,
            Kind.FLIPPED: self.disks.flip,
            Kind.FILE_LOST: self.disks.lose_file,
            Kind.FOLDER_LOST: self.disks.lose_folder,
            Kind.SHORTENED: self.disks.shorten,
            Kind.WENT_BACK: self.disks.go_back,
        }
        self.clear()
        init_cluster(URI, list(self.disks.urls.values()))
        with Cluster(URI) as cluster:
            for bookie_id, record in cluster.bookies().items():
                oracle.place(bookie_id, record.incarnation, self.disks.at(bookie_id))

    def at(self, place: str) -> "_Stepped":
        return _Stepped(self, place)

    def label(self, racks: Mapping[str, str]) -> None:
        """Give bookies their racks; a bookie without a rack has no label."""
        self._oracle.racks.racks = racks
        with Cluster(URI) as cluster:
            for bookie_id, rack in racks.items():
                set_labels(cluster, bookie_id, labels={RACK: rack} if rack else {})

    def heal(self) -> None:
        """No more faults; every bookie answers."""
        self.chance.is_over = True
        self._down_until.clear()
        self._read_only_until.clear()

    def clear(self) -> None:
        """Leave nothing behind in the process."""
        self.disks.clear()
        metadata_memory._stores.pop("simulation", None)

    def operate(
        self,
        place: str,
        call: str,
        name: str,
        effect: Callable[[], T],
        half_effect: Callable[[], None] | None,
    ) -> T:
        """One operation: wait for the turn, draw a fault, do it, let the oracle look."""
        task = self._scheduler.current
        if task is None or (place == METADATA and name.startswith(UNEVENTFUL)):
            return effect()
        task.pending = (place, call, name)
        self._scheduler.pause()
        task.pending = None
        self.operations += 1
        what = f"{call} {name} on {place}"
        kind = self._fault(task.process, place, call)
        if call == "append" and (task.process.name, place) in self.losing:
            kind = Kind.ANSWER_LOST
        if call == "append" and self.dies_in_front_of(name):
            kind = Kind.CRASH_BEFORE
        is_down = self._down_until.get(place, 0) > self._scheduler.step
        if kind is None and not is_down and (task.process.name, place) not in self.silent:
            if call not in _WRITES or not self._is_read_only(place):
                return self._done(task.process, place, call, name, effect, what)
            why = "it cannot be written to"
        else:
            why = "no answer" if kind is None else kind.value
        self._scheduler.note(f"{what}: {why}")
        if kind is not None:
            self._fail(kind, task.process, place, call, name, effect, half_effect)
        if kind in CRASHES:
            task.process.is_dead = True
            raise Crash
        self._oracle.failed(task.process.name, place, call, name)
        raise BookieUnavailableError(f"{what}: {why}")

    def _done(
        self,
        process: Process,
        place: str,
        call: str,
        name: str,
        effect: Callable[[], T],
        what: str,
    ) -> T:
        try:
            result = effect()
        except BookKeeperError as error:
            self._scheduler.note(f"{what}: {type(error).__name__}")
            self._oracle.failed(process.name, place, call, name)
            self._touch(process, place, call, name, has_changed=False)
            raise
        self._touch(process, place, call, name, has_changed=result is not False)
        if self.chance.loses_files and call in _WRITES and place in self.disks.urls:
            self.disks.remember(place)
        shown = f"{len(result)} bytes" if isinstance(result, bytes) else result
        if isinstance(result, int | bytes | None):
            self._scheduler.note(f"{what}: {shown}")
        else:
            self._scheduler.note(what)
        task = self._scheduler.current
        if call == "list" and task is not None and task.name.startswith(_SEARCHES):
            return result  # In search of a record that is known to exist: no absence is believed.
        self._oracle.after(self._scheduler.step, process.name, place, call, name, result)
        return result

    def _touch(
        self, process: Process, place: str, call: str, name: str, *, has_changed: bool
    ) -> None:
        """Tell what an operation looked at and changed; no cookie ever changes meanwhile."""
        touch = self._scheduler.touch
        if call in ("open_root", "has_journal"):
            return
        if not has_changed or call not in _WRITES:
            if not (call == "put_new" and "/terms/" in name):
                touch(f"{place} {name}", Access.READ)
            return
        touch(f"life of {process.name}", Access.READ)
        touch(f"{place} {name}", Access.ADD if "/terms/" in name else Access.WRITE)
        if call in ("put_new", "open_journal", "finish"):
            touch(f"{place} {name.rpartition('/')[0]}", Access.ADD)

    def _fail(
        self,
        kind: Kind,
        process: Process,
        place: str,
        call: str,
        name: str,
        effect: Callable[[], object],
        half_effect: Callable[[], None] | None,
    ) -> None:
        """The part of a failing operation that takes effect."""
        if call not in _WRITES and (call not in REMOVALS or place == METADATA):
            return
        if kind in AFTER:
            effect()
            self._touch(process, place, call, name, has_changed=True)
            self._oracle.after(self._scheduler.step, process.name, place, call, name, None)
        elif kind in UNSYNCED:
            self.disks.leave_unsynced(place, name, effect)
            self._touch(process, place, call, name, has_changed=True)
            self._oracle.after(self._scheduler.step, process.name, place, call, name, None)
        elif kind in HALF and half_effect is not None:
            half_effect()
            self._oracle.after(self._scheduler.step, process.name, place, call, name, None)
        elif kind in LATER:
            late = self._postponed(place, name, effect) if call == "append" else effect

            def arrive() -> None:
                self._scheduler.pause()
                try:
                    late()
                except BookKeeperError:
                    return
                self._scheduler.note(f"{call} {name} on {place} of {process.name} arrives late")
                self._oracle.after(self._scheduler.step, process.name, place, call, name, None)

            task = self._scheduler.spawn(self._network, f"late-{self._scheduler.step}", arrive)
            task.priority = -self.chance.random.random()

    def _postponed(
        self, place: str, name: str, effect: Callable[[], object]
    ) -> Callable[[], object]:
        """What an append writes, to be written when the journal is long closed."""
        file = self.disks.at(place).files.get(name)
        if file is None:
            return effect
        begin = len(file.data)
        effect()
        written = bytes(file.data[begin:])
        del file.data[begin:]
        return lambda: file.data.extend(written)

    def _fault(self, process: Process, place: str, call: str) -> Kind | None:
        kind = self.chance.draw(call)
        if kind is None:
            return None
        if kind not in AMBIENT:
            self.chance.counts[kind] += 1
            return kind
        step, source = self._scheduler.step, self.chance.random
        if kind in LOSSES and not self._oracle.acks and source.random() < 0.7:
            return None
        bookie_id = place if place in self.disks.urls else source.choice(list(self.disks))
        if kind is Kind.PAUSED:
            process.paused_until = step + source.choice(_PAUSE_STEPS)
        elif kind is Kind.DOWN:
            self._down_until[bookie_id] = step + source.choice(_DOWN_STEPS)
        elif kind is Kind.READ_ONLY:
            self._read_only_until[bookie_id] = step + source.choice(_DOWN_STEPS)
        elif kind is Kind.FENCE_LOST:
            if not self.disks.forget_some_fences():
                return None
        elif kind is Kind.POWER_CUT:
            if not self.disks.lose_power(bookie_id):
                return None
        elif kind in self._damages:
            hit = self._hit(kind, bookie_id)
            if hit is None:
                return None
            bookie_id = hit
            self._silence_others(bookie_id)
        else:
            self.disks.lose(bookie_id, is_replaced=kind is Kind.REPLACED)
            self._silence_others(bookie_id)
        self.chance.counts[kind] += 1
        who = process.name if kind is Kind.PAUSED else bookie_id
        self._scheduler.note(f"{who}: {kind.value}")
        return None

    def _hit(self, kind: Kind, bookie_id: str) -> str | None:
        """Damage something on ``bookie_id``, or else on another one; None if there is nothing."""
        damage = self._damages[kind]
        able = (one for one in (bookie_id, *self.disks) if self.chance.may_hit(one))
        return next((one for one in able if damage(one)), None)

    def go_back_unseen(self) -> bool:
        """A bookie goes back to where only what others' records say tells of it, if any can."""
        able = [one for one in self.disks if self.chance.may_hit(one)]
        hit = next(filter(self.disks.go_back_unseen, able), None)
        if self.chance.is_over or hit is None:
            return False
        self._scheduler.note(f"{hit}: {Kind.WENT_BACK.value}, which records alone tell")
        self.chance.counts[Kind.WENT_BACK] += 1
        self._silence_others(hit)
        return True

    def _silence_others(self, bookie_id: str) -> None:
        """A loss shows while those that could make up for it do not answer."""
        self.chance.note_hit(bookie_id)
        source = self.chance.random
        until = self._scheduler.step + source.choice((0, 40, 150, 400))
        silent = self._oracle.who_must_be_silent() if self.chance.loses_files else None
        for other in self.disks:
            is_silent = source.random() < 0.6 if silent is None else other in silent
            if other != bookie_id and is_silent:
                self._down_until[other] = until
            elif silent is not None:
                self._down_until.pop(other, None)
        if silent is not None or source.random() < 0.6:
            self.on_loss()

    def _is_read_only(self, place: str) -> bool:
        return self._read_only_until.get(place, 0) > self._scheduler.step


class _Stepped(Faults):
    """The operations of one place."""

    def __init__(self, storage: Storage, place: str) -> None:
        super().__init__()
        self._storage = storage
        self._place = place

    def run(
        self,
        operation: str,
        name: str,
        effect: Callable[[], T],
        half_effect: Callable[[], None] | None = None,
    ) -> T:
        if operation in ("free_bytes", "write", "create"):
            return effect()
        return self._storage.operate(self._place, operation, name, effect, half_effect)
