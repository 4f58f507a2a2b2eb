"""The disks of the simulated bookies, and what may become of them.

Rule: whatever is done to a disk, the oracle is told at once, so that it knows what is lost.
"""

from collections.abc import Iterator
from random import Random

from bkspark.bookie import memory
from bkspark.client.cluster import Cluster
from bkspark.format import cluster as cluster_format
from bkspark.format import cookie as cookie_format
from bkspark.testing.simulation.oracle import Oracle

URI = "memory://simulation"


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
        """Take away all markers but the first; False if there are none."""
        files = self.at(bookie_id).files
        fences = [n for n in files if "/terms/" in n and not n.endswith("/00000001")]
        for name in fences:
            del files[name]
            self._oracle.forget_name(bookie_id, name)
        return bool(fences)

    def cut(self, bookie_id: str) -> bool:
        """Take away some of the last bytes of a journal; False if there is none."""
        files = self.at(bookie_id).files
        journals = sorted(name for name, file in files.items() if "/journal/" in name and file.data)
        if not journals:
            return False
        name = journals[0]
        del files[name].data[-self._random.randint(1, 40) :]
        self._oracle.cut(bookie_id, name)
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
        self._oracle.flipped(bookie_id, name)
        return True

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
