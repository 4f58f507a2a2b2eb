"""Block devices that take only so many bytes a second: loop devices that the kernel throttles.

They need root, ``losetup``, ``mkfs.ext4`` and the throttle of version 1 control groups, which holds
back what the kernel writes later, too.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device")
BYTES = 400 * 2**20
FASTEST = 0


@dataclass(frozen=True)
class SlowDevice:
    """A file system on a device of its own, mounted at ``path``."""

    path: Path
    number: str

    def throttle(self, bytes_per_second: int) -> None:
        """Let it take no more; ``FASTEST`` is as much as it can."""
        THROTTLE.write_text(f"{self.number} {bytes_per_second}")


def missing() -> str:
    """Why there can be none here; empty if there can."""
    if os.geteuid() != 0:
        return "only root can make slow devices"
    if not Path("/dev/loop-control").exists() or not THROTTLE.exists():
        return "there are no loop devices, or no control group throttles them"
    absent = [name for name in ("losetup", "mkfs.ext4", "mount") if not shutil.which(name)]
    return f"{absent[0]} is not there" if absent else ""


@contextmanager
def slow_devices(folder: Path, count: int) -> Iterator[list[SlowDevice]]:
    """Empty file systems, not throttled yet; their contents are gone at the end."""
    with ExitStack() as cleanup:
        yield [_slow_device(folder / f"device-{number}", cleanup) for number in range(count)]


def _slow_device(path: Path, cleanup: ExitStack) -> SlowDevice:
    image = path.with_suffix(".img")
    with image.open("wb") as file:
        file.truncate(BYTES)
    cleanup.callback(image.unlink)
    device = _run("losetup", "--find", "--show", str(image)).strip()
    cleanup.callback(_run, "losetup", "--detach", device)
    # Nothing is left for later: the kernel would write it while a test measures.
    lazy = "lazy_itable_init=0,lazy_journal_init=0"
    _run("mkfs.ext4", "-q", "-E", lazy, device)
    path.mkdir()
    _run("mount", device, str(path))
    cleanup.callback(_run, "umount", str(path))
    number = Path(f"/sys/block/{Path(device).name}/dev").read_text().strip()
    slow = SlowDevice(path, number)
    cleanup.callback(slow.throttle, FASTEST)
    return slow


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
