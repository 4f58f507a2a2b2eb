"""The disks of the simulated bookies, and what may become of them.

Rule: whatever is done to a disk, the oracle is told at once, so that it knows what is lost.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random

from bkspark.bookie import memory
from bkspark.client.cluster import Cluster
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.format.digest import Digester
from bkspark.format.layout import COOKIE
from bkspark.protocol.ledger import DigestSpec
from tests.simulation.damage import goes_back_cleanly, shows
from tests.simulation.oracle import Oracle

URI = "memory://simulation"
_DIGESTER = Digester(DigestSpec(), None)


class Disks:
    """Disks of bookies ``bookie-1`` to ``bookie-n``.

    Attributes:
        urls: by bookie id.
    """

    def __init__(self, bookie_count: int, oracle: Oracle, random: Random) -> None:
        self.urls = {f"bookie-{n}": f"memory://simulated-{n}" for n in range(1, bookie_count + 1)}
        self._oracle = oracle
        self._random = random

    def __iter__(self) -> Iterator[str]:
        return iter(self.urls)

    def at(self, bookie_id: str) -> memory.MemoryDisk:
        """What is at the place of a bookie now."""
        disk = memory.find_disk(self.urls[bookie_id])
        assert disk is not None
        return disk

    def clear(self) -> None:
        """Leave nothing behind in the process."""
        for url in self.urls.values():
            memory.place_disk(url, None)

    def forget_some_fences(self) -> bool:
        """As ``forget_fences``, on about half of the bookies."""
        chosen = [one for one in self.urls if self._random.random() < 0.6]
        return sum(self.forget_fences(bookie_id) for bookie_id in chosen) > 0

    def forget_fences(self, bookie_id: str) -> bool:
        """Take away all fences; False if there are none."""
        files = self.at(bookie_id).files
        fences = [n for n in files if "/terms/" in n and "-" not in n]
        for name in fences:
            del files[name]
            self._oracle.damaged(bookie_id, name)
        return bool(fences)

    def cut(self, bookie_id: str) -> bool:
        """Take away some of the last bytes of a journal; False if there is none."""
        files = self.at(bookie_id).files
        journals = sorted(name for name, file in files.items() if "/journal/" in name and file.data)
        if not journals:
            return False
        name = journals[0]
        del files[name].data[-self._random.randint(1, 40) :]
        self._oracle.damaged(bookie_id, name, keeps_start=True)
        return True

    def flip(self, bookie_id: str) -> bool:
        """Turn one bit over, anywhere in a journal or an entry log; False if there is none."""
        files = self.at(bookie_id).files
        names = sorted(
            name
            for name, file in files.items()
            if file.data and ("/journal/" in name or "/entries/" in name)
        )
        if not names:
            return False
        name = self._random.choice(names)
        at = self._random.randrange(len(files[name].data))
        files[name].data[at] ^= 1 << self._random.randrange(8)
        self._oracle.damaged(bookie_id, name)
        return True

    def lose_file(self, bookie_id: str) -> bool:
        """Take away a file, any but the cookie; False if there is none."""
        names = self._names(bookie_id)
        able = [name for name in names if shows([name], names)]
        if able:
            self._remove(bookie_id, [self._random.choice(able)])
        return bool(able)

    def lose_folder(self, bookie_id: str) -> bool:
        """Take away a folder with all that is in it; False if there is none."""
        names = self._names(bookie_id)
        folders = sorted({name[: at + 1] for name in names for at in _slashes(name)})
        contents = [[name for name in names if name.startswith(folder)] for folder in folders]
        able = [within for within in contents if shows(within, names)]
        if able:
            self._remove(bookie_id, self._random.choice(able))
        return bool(able)

    def shorten(self, bookie_id: str) -> bool:
        """Cut a file off anywhere; False if there is none that has bytes."""
        files = self.at(bookie_id).files
        names = [name for name in self._names(bookie_id) if files[name].data]
        if names:
            name = self._random.choice(names)
            anywhere = self._random.randrange(len(files[name].data))
            self.cut_to(bookie_id, name, self._random.choice((0, anywhere)))
        return bool(names)

    def cut_to(self, bookie_id: str, name: str, length: int) -> None:
        """Keep ``length`` bytes of a file; others where a journal would go back cleanly."""
        data = self.at(bookie_id).files[name].data
        if goes_back_cleanly(bytes(data[:length]), _DIGESTER, name):
            length = max(1, length - 1)
        del data[length:]
        self._oracle.damaged(bookie_id, name, keeps_start=True)

    def leave_unsynced(self, bookie_id: str, name: str, effect: Callable[[], object]) -> None:
        """Let ``effect`` write to a file, and all of that be lost when the power is."""
        disk = self.at(bookie_id)
        before = disk.files.get(name)
        durable = disk.unsynced.get(name, None if before is None else len(before.data))
        effect()
        after = disk.files.get(name)
        if after is not None and (durable is None or durable < len(after.data)):
            disk.unsynced[name] = durable

    def lose_power(self, bookie_id: str) -> bool:
        """Lose what is not durable; False if everything is."""
        names = self.at(bookie_id).lose_power()
        for name in names:
            self._oracle.lost_power(bookie_id, name)
        return bool(names)

    def _names(self, bookie_id: str) -> list[str]:
        return sorted(name for name in self.at(bookie_id).files if name != COOKIE)

    def _remove(self, bookie_id: str, names: Sequence[str]) -> None:
        for name in names:
            del self.at(bookie_id).files[name]
            self._oracle.damaged(bookie_id, name)

    def lose(self, bookie_id: str, *, is_replaced: bool = False) -> None:
        """Put an empty disk in its place, or one with a cookie of its own."""
        url = self.urls[bookie_id]
        memory.place_disk(url, memory.MemoryDisk())
        incarnation = f"{self._random.getrandbits(128):032x}"
        if is_replaced:
            with Cluster(URI) as cluster:
                cookie = cookie_format.Cookie(cluster.cluster_id, bookie_id, incarnation, 0)
                record = cluster_format.BookieRecord(bookie_id, incarnation, url, bookie_id)
                memory.MemoryStorage(url).format(cookie_format.encode(cookie))
                cluster._bookies.update(bookie_id, lambda _before: record)
        self._oracle.place(bookie_id, incarnation, self.at(bookie_id))


def _slashes(name: str) -> Iterator[int]:
    return (at for at, letter in enumerate(name) if letter == "/")
