"""Whether a call without an answer makes progress: slow storage is given time, hanging storage not.

Rule 1. A call makes progress if it moved a piece since the last look (``bkspark.progress``).

Rule 2. A call that computes makes progress: it decodes or checks data already read.

Rule 3. A call also makes progress if its thread waits inside the kernel for a disk, or was just
woken, and the disk completes requests: requests of other tasks, processes or programs come before
the call's own. This counts at most ``OTHERS_MAX`` times in a row, since the disk may have lost the
call's request.

Rule 4. A call whose disk became known only since the last look gets one more time limit. The first
call of a process to a bookie, or to a metadata store, is such a call.
"""

from bkspark.progress import Progress
from bkspark.storage import devices

COMPUTING_TICKS = 10
"""A tenth of a second of processor time within half a time limit; a hanging call uses none."""

OTHERS_MAX = 30
"""Five minutes, for a limit of ten seconds."""


class Patience:
    """Looks at one call, again and again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seen = progress.count
        self._completed: tuple[str, ...] | None = None
        self._others = 0
        self._ticks = 0
        self._has_looked = False
        self._knows_disk = progress.device is not None

    def begin_anew(self) -> None:
        """Measure progress from now on."""
        self._seen, self._has_looked, self._others = self._progress.count, False, 0

    @property
    def looks_at_half_time(self) -> bool:
        """Whether to look at the disk before the limit is over, to see movement later."""
        return self._progress.device is not None and not self._has_looked

    def look(self) -> None:
        """Note what the disk has completed so far, if known."""
        self._has_looked = True
        self._completed = devices.completed(self._progress.device)
        self._ticks = devices.cpu_ticks(self._progress.thread_id)

    def gets_on(self) -> bool:
        """Whether there was a sign of progress since the last call of this method."""
        before, self._seen = self._seen, self._progress.count
        knew_disk, self._knows_disk = self._knows_disk, self._progress.device is not None
        if before != self._seen:
            self.begin_anew()
            return True
        has_looked, self._has_looked = self._has_looked, False
        if has_looked and self._computes():
            self._others = 0
            return True
        if not knew_disk and self._knows_disk:
            return True
        seen = self._completed
        if not has_looked or seen is None or self._others >= OTHERS_MAX:
            return False
        self._others += 1
        moved = devices.completed(self._progress.device) != seen
        return moved and devices.is_at_work(self._progress.thread_id)

    def _computes(self) -> bool:
        """Whether the call's thread has used the processor since half time."""
        return devices.cpu_ticks(self._progress.thread_id) - self._ticks >= COMPUTING_TICKS
