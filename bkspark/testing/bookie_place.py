"""Fixtures of the conformance tests of bookies: a place, and a bookie in the place.

A backend supplies an empty ``BookiePlace`` with a back door around the contract, through which the
tests do what no bookie does: swap a file, cut it, lose all files.
"""

import multiprocessing
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, Protocol

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress
from bkspark.errors import BookieUnavailableError
from bkspark.format import cluster as cluster_format
from bkspark.format import layout
from bkspark.format.cluster import Cookie

# --- bookie rivals -------------------------------------------------------------------------------
# Several processes, or threads, with concurrent use of a single bookie.
#
# Each work function takes the bookie, its own index and a barrier, and returns its observations.


Parallel = Literal["processes", "threads"]
ROUNDS = 25
_LEDGER = 0x1234
FILE = layout.entry_log(_LEDGER, "f" * 32, 0)


def run_rivals(
    parallel: Parallel, work: Callable[..., Any], bookie: Bookie, count: int
) -> list[Any]:
    """The results of ``work(bookie, index, barrier)`` by index, all run at the same time."""
    if parallel == "threads":
        return _in_threads(work, bookie, count)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    barrier = context.Barrier(count, timeout=30)
    rivals = [
        context.Process(target=_rival, args=(work, bookie, index, barrier, results))
        for index in range(count)
    ]
    for rival in rivals:
        rival.start()
    found = dict(results.get() for _ in rivals)
    for rival in rivals:
        rival.join()
    return [found[index] for index in range(count)]


def _rival(
    work: Callable[..., Any], bookie: Bookie, index: int, barrier: Any, results: Any
) -> None:
    try:
        results.put((index, work(bookie, index, barrier)))
    except BaseException as error:
        results.put((index, repr(error)))


def _in_threads(work: Callable[..., Any], bookie: Bookie, count: int) -> list[Any]:
    found: list[Any] = [None] * count
    barrier = threading.Barrier(count, timeout=30)

    def rival(index: int) -> None:
        found[index] = work(bookie, index, barrier)

    threads = [threading.Thread(target=rival, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def race_name(round_number: int) -> str:
    return layout.term_marker(_LEDGER, round_number + 1)


def race_data(index: int) -> bytes:
    return bytes([index]) * 50_000


def race(bookie: Bookie, index: int, barrier: Any) -> list[bool]:
    wins = []
    for round_number in range(ROUNDS):
        with bookie.open_root() as root:
            barrier.wait()
            wins.append(root.put_new(race_name(round_number), race_data(index)))
    return wins


def race_files(bookie: Bookie, index: int, barrier: Any) -> bool:
    with bookie.open_root() as root:
        file = root.create(FILE)
        file.write(race_data(index))
        barrier.wait()
        with suppress(BookieUnavailableError):
            file.finish()
            return True
    return False


def write_or_read(bookie: Bookie, index: int, barrier: Any) -> bool:
    """Two rivals write, in both ways; the third looks until all files are seen, each complete."""
    whole = b"w" * 2_000_000
    give_up = time.monotonic() + 30
    names = [f"{kind}/{number}" for number in range(4) for kind in ("put", "file")]
    with bookie.open_root() as root:
        barrier.wait()
        if index == 0:
            return all(root.put_new(name, whole) for name in names if name.startswith("put"))
        if index == 1:
            for name in names:
                if name.startswith("file"):
                    file = root.create(name)
                    for begin in range(0, len(whole), 100_000):
                        file.write(whole[begin : begin + 100_000])
                    file.finish()
            return True
        for name in names:
            while (found := root.size(name)) is None:
                if time.monotonic() > give_up:
                    return False
            if found != len(whole) or root.read(name) != whole:
                return False
        return True


def miss_then_look(bookie: Bookie, index: int, barrier: Any) -> bool:
    """The first looks, and misses; the second writes; the first looks again, the same way."""
    with bookie.open_root() as root:
        for number in range(ROUNDS):
            name = f"folder{number}/name"
            was_missed = index == 1 or (root.read(name) is None and root.list(f"f{number}") == [])
            barrier.wait()
            if index == 1:
                root.put_new(name, b"x")
            barrier.wait()
            if not was_missed or root.read(name) != b"x":
                return False
    return True


def write_then_look(bookie: Bookie, index: int, barrier: Any) -> list[bool]:
    """Each writes its name and then looks for the other's; fencing needs one of them to see the
    other.
    """
    seen = []
    for number in range(ROUNDS):
        with bookie.open_root() as root:
            mine, other = f"r{number}/n{index}", f"r{number}/n{1 - index}"
            assert root.size(other) is None
            barrier.wait()
            root.put_new(mine, b"")
            seen.append(root.size(other) is not None)
    return seen


# --- bookie place --------------------------------------------------------------------------------


CLUSTER, OTHER_CLUSTER = "c" * 32, "d" * 32
INCARNATION, OTHER_INCARNATION = "1" * 32, "2" * 32
LEDGER = 0x1234
TOKEN = "b" * 32
MARKER = layout.term_marker(LEDGER, 1)
ENTRIES = layout.entry_log(LEDGER, "a" * 32, 0)
JOURNAL = layout.journal(LEDGER, 1, TOKEN)


class BookiePlace(Protocol):
    """The future place of a bookie, with a back door."""

    @property
    def url(self) -> str: ...

    def get(self, name: str) -> bytes | None:
        """The bytes under ``name``."""
        ...

    def set(self, name: str, data: bytes) -> None:
        """Replace ``name`` by a new file with ``data``."""
        ...

    def truncate(self, name: str, size: int) -> None:
        """Cut the file now under ``name``, without a replacement."""
        ...

    def names(self) -> list[str]:
        """The names of all files, temporary files too."""
        ...

    def wipe(self) -> None:
        """Remove all files, but leave the place."""
        ...

    def move_away(self) -> None:
        """Move all files away from ``url``; open files stay open."""
        ...


def address_of(place: BookiePlace, **changes: str) -> BookieAddress:
    """The address of the bookie with ``a_cookie`` in ``place``."""
    usual = {"bookie_id": "b1", "incarnation": INCARNATION, "cluster_id": CLUSTER}
    values: dict[str, Any] = usual | changes
    return BookieAddress(**values, url=place.url)


def a_cookie(cluster: str = CLUSTER, bookie: str = "b1", incarnation: str = INCARNATION) -> bytes:
    return cluster_format.encode_cookie(Cookie(cluster, bookie, incarnation))


class BookieFixtures:
    """A place of the backend, and the bookie in the place."""

    PARALLEL: Parallel = "processes"

    @pytest.fixture
    def place(self) -> BookiePlace:
        raise NotImplementedError("a backend overrides this fixture")

    @pytest.fixture
    def bookie(self, place: BookiePlace) -> Bookie:
        uri.storage(place.url).format(a_cookie())
        return uri.open_bookie(address_of(place))
