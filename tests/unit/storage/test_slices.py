"""Large files go to the disk in slices, each of which is a sign of progress."""

import errno
import os
from pathlib import Path

import pytest

from bkspark.bookie.posix import _cut
from bkspark.progress import Progress, reported_to
from bkspark.storage import posix_calls
from bkspark.storage.posix_calls import AHEAD_BYTES, SLICE_BYTES, write_back


class Kernel:
    """Stands in for ``sync_file_range``: what it was asked, and how it fails."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.awaited: list[tuple[int, int]] = []
        self.error = 0
        self.fails_at = 0

    def __call__(self, _descriptor: int, begin: int, length: int, flags: int) -> int:
        asked = self.begun if flags == posix_calls._WRITE else self.awaited
        asked.append((begin, begin + length))
        if self.error and len(self.awaited) > self.fails_at:
            posix_calls.ctypes.set_errno(self.error)
            return -1
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel()
    monkeypatch.setattr(posix_calls, "_sync_file_range", kernel)
    return kernel


def test_each_slice_is_a_sign_and_all_bytes_are_waited_for(kernel: Kernel) -> None:
    seen, end = Progress(), 3 * AHEAD_BYTES + 5
    with reported_to(seen):
        write_back(0, 7, end)
    assert seen.count == len(kernel.awaited) == -(-(end - 7) // SLICE_BYTES)
    for ranges in (kernel.begun, kernel.awaited):
        assert ranges[0][0] == 7
        assert ranges[-1][1] == end
        assert all(before[1] == after[0] for before, after in zip(ranges, ranges[1:], strict=False))


def test_no_bytes_are_no_calls(kernel: Kernel) -> None:
    write_back(0, 5, 5)
    assert kernel.begun == kernel.awaited == []


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_what_the_disk_refuses_is_an_error(kernel: Kernel, error: int) -> None:
    kernel.error, kernel.fails_at = error, 2
    with pytest.raises(OSError, match=os.strerror(error)) as raised:
        write_back(0, 0, 4 * SLICE_BYTES)
    assert raised.value.errno == error
    assert len(kernel.awaited) == 3


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EINVAL, errno.ESPIPE, errno.EPERM])
def test_where_it_is_not_offered_the_sync_does_it_all(kernel: Kernel, error: int) -> None:
    kernel.error = error
    write_back(0, 0, 4 * SLICE_BYTES)
    assert len(kernel.awaited) <= 1


def test_where_there_is_none_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posix_calls, "_sync_file_range", None)
    write_back(0, 0, 4 * SLICE_BYTES)


def test_reading_and_writing_are_seen_to_get_on(tmp_path: Path) -> None:
    data, seen = os.urandom(3 * posix_calls.READ_BYTES + 1), Progress()
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        with reported_to(seen):
            assert posix_calls.put_new(folder, "file", data)
        assert seen.count >= len(data) // SLICE_BYTES
        seen.count = 0
        with reported_to(seen):
            assert posix_calls.read_range(folder, "file") == data
        assert seen.count == 3
        seen.count = 0
        with reported_to(seen):
            posix_calls.sync_found(folder, "file")
        assert seen.count >= 24
    finally:
        os.close(folder)


def test_a_record_is_cut_into_groups_that_one_call_writes() -> None:
    parts = [os.urandom(3 * SLICE_BYTES + 1), b"", b"a", *[b"x"] * 3000, os.urandom(SLICE_BYTES)]
    groups = list(_cut([memoryview(part) for part in parts]))
    assert b"".join(piece for group in groups for piece in group) == b"".join(parts)
    assert all(sum(map(len, group)) <= SLICE_BYTES and len(group) <= 1024 for group in groups)
    assert list(_cut([])) == []
