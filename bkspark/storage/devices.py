"""The kernel's facts about block devices and threads, read without asking the storage itself.

The kernel makes both files from its own counters, so reading them does not wait for a disk. If they
are missing (not Linux, no block device) the state is unknown.
"""

import os

_COMPLETED = (0, 4, 11, 15)
"""Fields of a device's ``stat``: completed reads, writes, discards and flushes."""

_devices: dict[str, int] = {}
_DEVICES_MAX = 10_000


def note(url: str, device: int) -> None:
    """Remember the device of the place at ``url``."""
    if len(_devices) >= _DEVICES_MAX:
        _devices.clear()
    _devices[url] = device


def device_of(url: str) -> int | None:
    """The device of ``url``, if this process has opened ``url`` before."""
    return _devices.get(url)


def completed(device: int | None) -> tuple[str, ...] | None:
    """Counts of requests that ``device`` has completed; None if unknown."""
    if device is None:
        return None
    text = _read(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")
    fields = text.split()
    return tuple(fields[n] for n in _COMPLETED if n < len(fields)) or None


def is_at_work(thread_id: int) -> bool:
    """Whether a thread of this process waits inside the kernel for a device (D), or runs (R)."""
    text = _read(f"/proc/self/task/{thread_id}/stat")
    return text.rpartition(")")[2].split()[:1] in (["D"], ["R"])


def cpu_ticks(thread_id: int) -> int:
    """Processor time used by a thread of this process, in ticks; 0 if unknown."""
    fields = _read(f"/proc/self/task/{thread_id}/stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:13]))


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""
