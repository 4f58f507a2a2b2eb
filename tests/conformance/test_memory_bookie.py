"""The memory backend, and a faulty bookie without a fault, keep the contract."""

import pytest

from bkspark.bookie import memory, uri
from bkspark.bookie.contract import Bookie
from bkspark.testing.bookie_conformance import BookieTests
from bkspark.testing.bookie_place import a_cookie, address_of
from tests.kit.faulty import Faults, FaultyBookie


class MemoryPlace:
    def __init__(self, name: str) -> None:
        self.url = f"memory://{name}"
        memory.place_disk(self.url, None)

    def get(self, name: str) -> bytes | None:
        file = self._files().get(name)
        return None if file is None else bytes(file.data)

    def set(self, name: str, data: bytes) -> None:
        self._files()[name] = memory.MemoryFile(data)

    def truncate(self, name: str, size: int) -> None:
        del self._files()[name].data[size:]

    def names(self) -> list[str]:
        return list(self._files())

    def wipe(self) -> None:
        self._disk().wipe()

    def move_away(self) -> None:
        memory.place_disk(self.url, None)

    def _files(self) -> dict[str, memory.MemoryFile]:
        return self._disk().files

    def _disk(self) -> memory.MemoryDisk:
        disk = memory.find_disk(self.url)
        assert disk is not None
        return disk


class TestMemoryBookie(BookieTests):
    PARALLEL = "threads"

    @pytest.fixture
    def place(self, request: pytest.FixtureRequest) -> MemoryPlace:
        return MemoryPlace(request.node.name)


class TestFaultyBookieWithoutFaults(TestMemoryBookie):
    @pytest.fixture
    def bookie(self, place: MemoryPlace) -> Bookie:
        uri.storage(place.url).format(a_cookie())
        return FaultyBookie(uri.open_bookie(address_of(place)), Faults())

    def test_bookie_can_be_pickled(self) -> None:
        """Its faults cannot; nothing asks for it."""
