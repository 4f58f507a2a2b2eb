"""Calls of the operating system that may do less than they were asked to."""

import errno
import os
from pathlib import Path

import pytest

from bkspark.storage.posix_calls import write_all


@pytest.fixture
def descriptor(tmp_path: Path) -> int:
    return os.open(tmp_path / "file", os.O_CREAT | os.O_RDWR)


def test_all_is_written_however_little_each_call_takes(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:3]))
    write_all(descriptor, b"0123456789")
    assert os.pread(descriptor, 99, 0) == b"0123456789"


def test_a_disk_that_takes_nothing_and_says_nothing_is_full(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = iter([3, 0])
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: next(taken, None)]))
    with pytest.raises(OSError, match="the disk may be full") as raised:
        write_all(descriptor, b"0123456789")
    assert raised.value.errno == errno.ENOSPC
