"""All the storage of one schedule: every operation waits for its turn and may fail.

Rule: clients reach it by address, as any storage, through the doors that ``StorageFaults`` opens;
what they get are the bookies and the metadata store in memory. The oracle looks after each effect.
"""

from collections.abc import Callable
from typing import TypeVar

from bkspark.bookie import memory
from bkspark.client.cluster import Cluster, init_cluster
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.metadata import memory as metadata_memory
from bkspark.testing.faulty import Faults
from bkspark.testing.faulty_cluster import METADATA, StorageFaults
from bkspark.testing.faulty_os import Crash
from bkspark.testing.simulation.faults import (
    AFTER,
    AMBIENT,
    CRASHES,
    HALF,
    LATER,
    LOSSES,
    Chance,
    Kind,
)
from bkspark.testing.simulation.oracle import Oracle
from bkspark.testing.simulation.scheduler import Process, Scheduler

T = TypeVar("T")

URI = "memory://simulation"
_PAUSE_STEPS = (5, 20, 80, 300)
_DOWN_STEPS = (10, 40, 150)
_WRITES = frozenset({"put_new", "append", "put", "open_journal", "finish", "sync"})


class Storage(StorageFaults):
    """Bookies ``bookie-1`` to ``bookie-n`` and a metadata store, all in memory.

    Attributes:
        operations: storage and metadata operations so far.
        on_loss: called when a bookie lost data; somebody may want to recover then.
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
        self._urls = {f"bookie-{n}": f"memory://simulated-{n}" for n in range(1, bookie_count + 1)}
        for url in self._urls.values():
            memory.place_disk(url, None)
        metadata_memory._stores.pop("simulation", None)
        init_cluster(URI, list(self._urls.values()))
        with Cluster(URI) as cluster:
            for bookie_id, record in cluster.bookies().items():
                oracle.place(bookie_id, record.incarnation, self._disk(bookie_id))

    def at(self, place: str) -> "_Stepped":
        return _Stepped(self, place)

    def heal(self) -> None:
        """No more faults; every bookie answers."""
        self.chance.is_over = True
        self._down_until.clear()

    def clear(self) -> None:
        """Leave nothing behind in the process."""
        for url in self._urls.values():
            memory.place_disk(url, None)
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
        if task is None or (place == METADATA and name.startswith(("bookies", "cluster"))):
            return effect()
        self._scheduler.pause()
        self.operations += 1
        what = f"{call} {name} on {place}"
        kind = self._fault(task.process, place, call)
        if kind is None and self._down_until.get(place, 0) > self._scheduler.step:
            self._scheduler.note(f"{what}: no answer")
            raise BookieUnavailableError(f"bookie {place} does not answer")
        if kind is None:
            return self._done(task.process, place, call, name, effect, what)
        self._scheduler.note(f"{what}: {kind.value}")
        self._fail(kind, task.process, place, call, name, effect, half_effect)
        if kind in CRASHES:
            task.process.is_dead = True
            raise Crash
        raise BookieUnavailableError(f"{what}: {kind.value}")

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
            raise
        shown = f"{len(result)} bytes" if isinstance(result, bytes) else result
        if isinstance(result, int | bytes | None):
            self._scheduler.note(f"{what}: {shown}")
        else:
            self._scheduler.note(what)
        task = self._scheduler.current
        if call == "list" and task is not None and task.name == "main":
            return result  # In search of a record that is known to exist: no absence is believed.
        self._oracle.after(self._scheduler.step, process.name, place, call, name, result)
        return result

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
        if call not in _WRITES:
            return
        if kind in AFTER:
            effect()
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
        file = self._disk(place).files.get(name)
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
        bookie_id = place if place in self._urls else source.choice(list(self._urls))
        if kind is Kind.PAUSED:
            process.paused_until = step + source.choice(_PAUSE_STEPS)
        elif kind is Kind.DOWN:
            self._down_until[bookie_id] = step + source.choice(_DOWN_STEPS)
        elif kind is Kind.FENCE_LOST:
            if not self._forget_fences():
                return None
        elif kind is Kind.CUT:
            cut = next((one for one in (bookie_id, *self._urls) if self._cut(one)), None)
            if cut is None:
                return None
            bookie_id = cut
            self._silence_others(bookie_id)
        else:
            self._lose(bookie_id, is_replaced=kind is Kind.REPLACED)
            self._silence_others(bookie_id)
        self.chance.counts[kind] += 1
        who = process.name if kind is Kind.PAUSED else bookie_id
        self._scheduler.note(f"{who}: {kind.value}")
        return None

    def _forget_fences(self) -> bool:
        """Take away all markers but the first from about half of the bookies."""
        has_forgotten = False
        for bookie_id in self._urls:
            files = self._disk(bookie_id).files
            fences = [n for n in files if "/terms/" in n and not n.endswith("/00000001")]
            if fences and self.chance.random.random() < 0.6:
                has_forgotten = True
                for name in fences:
                    del files[name]
                    self._oracle.forget_name(bookie_id, name)
        return has_forgotten

    def _silence_others(self, bookie_id: str) -> None:
        """A loss shows while those that could make up for it do not answer."""
        self.chance.losses_left -= 1
        source = self.chance.random
        until = self._scheduler.step + source.choice((0, 40, 150, 400))
        for other in self._urls:
            if other != bookie_id and source.random() < 0.6:
                self._down_until[other] = until
        if source.random() < 0.6:
            self.on_loss()

    def _cut(self, bookie_id: str) -> bool:
        """Take away some of the last bytes of a journal."""
        files = self._disk(bookie_id).files
        journals = sorted(name for name, file in files.items() if "/journal/" in name and file.data)
        if not journals:
            return False
        name = journals[0]
        del files[name].data[-self.chance.random.randint(1, 40) :]
        self._oracle.cut(bookie_id, name)
        return True

    def _lose(self, bookie_id: str, *, is_replaced: bool) -> None:
        url = self._urls[bookie_id]
        memory.place_disk(url, memory.MemoryDisk())
        incarnation = f"{self.chance.random.getrandbits(128):032x}"
        if is_replaced:
            with Cluster(URI) as cluster:
                cookie = cookie_format.Cookie(cluster.cluster_id, bookie_id, incarnation, 0)
                record = cluster_format.BookieRecord(bookie_id, incarnation, url, bookie_id)
                memory.MemoryStorage(url).format(cookie_format.encode(cookie))
                cluster._bookies.update(bookie_id, lambda _before: record)
        self._oracle.place(bookie_id, incarnation, self._disk(bookie_id))

    def _disk(self, bookie_id: str) -> memory.MemoryDisk:
        disk = memory.find_disk(self._urls[bookie_id])
        assert disk is not None
        return disk


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
