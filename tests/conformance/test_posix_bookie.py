"""The POSIX backend keeps the contract."""

import os
import shutil
from pathlib import Path

import pytest

from bkspark.testing.bookie_conformance import BookieTests


class PosixPlace:
    def __init__(self, path: Path) -> None:
        self._root = path / "bk"
        self.url = self._root.as_uri()

    def get(self, name: str) -> bytes | None:
        path = self._root / name
        return path.read_bytes() if path.exists() else None

    def set(self, name: str, data: bytes) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "new").write_bytes(data)
        (path.parent / "new").rename(path)

    def truncate(self, name: str, size: int) -> None:
        os.truncate(self._root / name, size)

    def names(self) -> list[str]:
        paths = self._root.rglob("*")
        return [str(path.relative_to(self._root)) for path in paths if path.is_file()]

    def wipe(self) -> None:
        for path in self._root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def move_away(self) -> None:
        self._root.rename(self._root.with_name("moved"))


class TestPosixBookie(BookieTests):
    @pytest.fixture
    def place(self, tmp_path: Path) -> PosixPlace:
        return PosixPlace(tmp_path)
