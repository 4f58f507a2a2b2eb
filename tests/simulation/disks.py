"""The disks of the simulated bookies, and what may become of them.

Rule: whatever is done to a disk, the oracle is told at once, so that it knows what is lost.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random

from bkspark.bookie import memory
from bkspark.cluster.cluster import Cluster
from bkspark.format import cluster as cluster_format
from bkspark.format import journal
from bkspark.format.layout import COOKIE
from tests.simulation.oracle import Oracle

URI = "memory://simulation"
_TRIES = 4
_PASTS_TRIED = 20

Lengths = Mapping[str, int | None]
"""How many bytes are kept of files, by name; None of one that is gone."""


class Disks:
    """Disks of bookies ``bookie-1`` to ``bookie-n``.

    Attributes:
        urls: by bookie id.
    """

    def __init__(self, bookie_count: int, oracle: Oracle, random: Random) -> None:
        self.urls = {f"bookie-{n}": f"memory://simulated-{n}" for n in range(1, bookie_count + 1)}
        self._oracle = oracle
        self._random = random
        self._past: dict[str, list[Lengths]] = {}

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
        self.rot(bookie_id, self._random.choice(names))
        return True

    def rot(self, bookie_id: str, name: str) -> None:
        """Turn one bit of a file over."""
        data = self.at(bookie_id).files[name].data
        at = self._random.randrange(len(data))
        data[at] ^= 1 << self._random.randrange(8)
        self._oracle.damaged(bookie_id, name)

    def lose_file(self, bookie_id: str) -> bool:
        """Take away a file, any but the cookie; False if there is none."""
        return self._lose_any(bookie_id, [{name: None} for name in self._names(bookie_id)])

    def lose_folder(self, bookie_id: str) -> bool:
        """Take away a folder with all that is in it; False if there is none."""
        names = self._names(bookie_id)
        folders = sorted({name[: at + 1] for name in names for at in _slashes(name)})
        contents = [[name for name in names if name.startswith(folder)] for folder in folders]
        return self._lose_any(bookie_id, [dict.fromkeys(within) for within in contents])

    def shorten(self, bookie_id: str) -> bool:
        """Cut a file off anywhere, or a journal behind a record; False if none has bytes."""
        files, choices = self.at(bookie_id).files, list[Lengths]()
        for name in self._names(bookie_id):
            if data := bytes(files[name].data):
                anywhere = self._random.randrange(len(data))
                ends = journal.frame_begins(data, 0) if "/journal/" in name else []
                choices.append({name: self._random.choice((0, anywhere, *ends))})
        return self._lose_any(bookie_id, choices)

    def remember(self, bookie_id: str) -> None:
        """What is on the disk now is something that it may go back to."""
        files = self.at(bookie_id).files
        past = {name: len(files[name].data) for name in self._names(bookie_id)}
        self._past.setdefault(bookie_id, []).append(past)

    def go_back(self, bookie_id: str) -> bool:
        """Leave what a disk held some time ago, with its cookie; False if it held as much."""
        return self._lose_any(bookie_id, self._pasts(bookie_id))

    def go_back_unseen(self, bookie_id: str) -> bool:
        """As ``go_back``, to where only what records say tells of it; False if that is nowhere."""
        pasts = self._pasts(bookie_id)
        tried = self._random.sample(pasts, min(len(pasts), _PASTS_TRIED))
        telling = (past for past in tried if self._would(bookie_id, past, self._tells))
        return any(self.cut_to(bookie_id, past) for past in telling)

    def _pasts(self, bookie_id: str) -> list[Lengths]:
        files, choices = self.at(bookie_id).files, list[Lengths]()
        for past in self._past.get(bookie_id, []):
            lengths = {name: past.get(name) for name in self._names(bookie_id)}
            less = {n: end for n, end in lengths.items() if end is None or end < len(files[n].data)}
            if less:
                choices.append(less)
        return choices

    def _lose_any(self, bookie_id: str, choices: Sequence[Lengths]) -> bool:
        """Make one of ``choices`` true, one whose losses can be known; False if there is none."""
        tried = self._random.sample(choices, min(len(choices), _TRIES))
        return any(self.cut_to(bookie_id, lengths) for lengths in tried)

    def _tells(self) -> bool:
        """Whether only what records say of a bookie tells what it has lost."""
        return self._oracle.who_must_be_silent() is not None

    def cut_to(self, bookie_id: str, lengths: Lengths) -> bool:
        """Keep so many bytes of files, if it can be known what is lost; returns whether it can."""
        if not self._would(bookie_id, lengths, self._oracle.are_losses_knowable):
            return False
        self._keep(bookie_id, lengths)
        for name in lengths:
            self._oracle.damaged(bookie_id, name, keeps_start=True)
        return True

    def _would(self, bookie_id: str, lengths: Lengths, be_so: Callable[[], bool]) -> bool:
        """Whether it would be so with only so many bytes left; nothing changes."""
        files = self.at(bookie_id).files
        before = {name: (files[name], bytes(files[name].data)) for name in lengths}
        self._keep(bookie_id, lengths)
        found = be_so()
        for name, (file, data) in before.items():
            file.data[:] = data
            files[name] = file
        return found

    def _keep(self, bookie_id: str, lengths: Lengths) -> None:
        files = self.at(bookie_id).files
        for name, length in lengths.items():
            if length is None:
                del files[name]
            else:
                del files[name].data[length:]

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

    def lose(self, bookie_id: str, *, is_replaced: bool = False) -> None:
        """Put an empty disk in its place, or one with a cookie of its own."""
        url = self.urls[bookie_id]
        memory.place_disk(url, memory.MemoryDisk())
        incarnation = f"{self._random.getrandbits(128):032x}"
        if is_replaced:
            with Cluster(URI) as cluster:
                cookie = cluster_format.Cookie(cluster.cluster_id, bookie_id, incarnation, 0)
                memory.MemoryStorage(url).format(cluster_format.encode_cookie(cookie))
                cluster.registrations.update(
                    bookie_id, lambda before: _initialised_again(before, incarnation)
                )
        self._oracle.place(bookie_id, incarnation, self.at(bookie_id))


def _initialised_again(
    before: cluster_format.BookieRecord | None, incarnation: str
) -> cluster_format.BookieRecord:
    assert before is not None
    return replace(before, incarnation=incarnation)


def _slashes(name: str) -> Iterator[int]:
    return (at for at, letter in enumerate(name) if letter == "/")
