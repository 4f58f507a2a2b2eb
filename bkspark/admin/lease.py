"""Run a maintenance verb once at a time, to avoid duplicate work.

Two concurrent runs of a verb do no harm, but the second run repeats the work of the first. So a run
over everything takes the verb's *lease* and renews it while working. **A lease gives no safety**:
no guarantee depends on it, and a run that cannot get a lease record stored continues without one.

Rule 1. A lease is alive only if its record changes during observation. The observer measures a few
renewal periods by its own clock; times in the record are for people.

Rule 2. A lease is dead at once if its holder has ended, or was a process of this system that is
gone.

Rule 3. An unreadable record delays no run: the run overwrites the record. If the record cannot be
stored either, the run continues without a lease.

Rule 4. Verbs do not exclude each other. A run of named logs or ledgers takes and needs no lease:
the operator wants the result now. A verb that always works on one log has a lease for each log.
"""

import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bkspark import environment
from bkspark.admin.maintenance import Left, Report, Tell
from bkspark.admin.views import timestamp
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Records, Versioned
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    LedgerExistsError,
    MetadataVersionError,
)
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import Lease, Process

# --- this process --------------------------------------------------------------------------------
# Identify this process, and find out whether another process is surely gone.


PROC = Path("/proc")
_DEAD = "ZX"
"""States of ended processes not yet reaped by their parent."""


def this_process() -> Process:
    pid = os.getpid()
    return Process(socket.gethostname(), _machine(), pid, _started(pid))


def is_gone(process: Process) -> bool:
    """Return whether a process surely has ended; False on other systems or if unknown."""
    if not process.machine or process.machine != _machine():
        return False
    try:
        os.kill(process.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # the process belongs to another user
        pass
    now = _started(process.pid)
    return bool(process.started and now) and now != process.started


def _machine() -> str:
    """Identify the running system; containers on a host have process ids of their own."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return a process's start time in system ticks; "over" if ended, empty if unknown."""
    try:
        # The program's name, in brackets, may contain any character.
        fields = (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return "over" if fields[0] in _DEAD else fields[19]
    except (OSError, IndexError):
        return ""


# --- lease ---------------------------------------------------------------------------------------


logger = logging.getLogger(__name__)

RENEW_SECONDS = 3.0
LOOK_SECONDS = 1.0
DEAD_SECONDS = 4 * RENEW_SECONDS
"""A lease observed this long without a renewal is dead."""

END_SECONDS = 5.0
"""Time limit for storing the release of a lease."""


def alone(
    cluster: Cluster,
    verb: str,
    work: Callable[[], Report],
    *,
    of_log: str = "",
    is_wanted: bool = True,
    tell: Tell | None = None,
) -> Report:
    """Run ``work`` under the verb's lease; report a running holder instead.

    Args:
        of_log: the log whose lease is taken, for a verb that works on one log.
        is_wanted: whether to take a lease.
        tell: receives a line before a wait for another run's lease, or if no lease can be had.
    """
    if not is_wanted:
        return work()
    leases = Leases(cluster, f"{verb}.{of_log}" if of_log else verb)
    try:
        other = leases.take(tell)
    except BookKeeperError as error:
        logger.warning("%s runs without a lease: %s", verb, error.args[0])
        if tell is not None:
            tell(f"{verb}: no lease could be taken, so another run may be active")
        return work()
    if other is not None:
        return _busy(verb, other)
    renewing = _Renewing(leases)
    try:
        return work()
    finally:
        renewing.end()


def _busy(verb: str, other: Lease) -> Report:
    holder, since = other.holder, timestamp(other.began_ms)
    when = "an unknown time" if since is None else f"{since:%Y-%m-%d %H:%M:%S}Z"
    reason = f"another run is active on {holder.host}, process {holder.pid}, since {when}"
    logger.info("%s: %s", other.verb, reason)
    hint = "wait until that run has ended, or give --no-lease to run beside it"
    return Report(verb, {}, left=[Left(verb, reason, hint)], summary="nothing was done")


class Leases:
    """The lease of one verb, perhaps on one log, as seen by this run."""

    def __init__(self, cluster: Cluster, verb: str) -> None:
        self._store = cluster.store
        self._records: Records[Lease] = Records(
            cluster.store,
            cluster.cluster_id,
            layout.lease_key,
            upkeep_records.encode_lease,
            upkeep_records.decode_lease,
        )
        self._mine = Lease(verb, environment.token(), this_process(), environment.now_ms())
        self.verb = verb

    def take(self, tell: Tell | None) -> Lease | None:
        """Take the lease and return None, or return the living lease of another run."""
        while True:
            seen = self._seen()
            if seen is not None and not _is_free(seen):
                if tell is not None:
                    tell(f"{self.verb}: checking whether another run is still active")
                now = self._looked_at(seen)
                if now is not None:
                    return now
                logger.info("%s: took over the lease of a run that has ended", self.verb)
            try:
                self._put(seen)
            except (LedgerExistsError, MetadataVersionError):
                continue  # another run was faster, or is living
            return None

    def renew(self, *, is_held: bool = True) -> bool:
        """Renew or release the lease; False if another run has taken the lease.

        Args:
            is_held: False to release the lease.

        Raises:
            BookKeeperError: the outcome is unknown.
        """
        seen = self._seen()
        if seen is None or seen.value is None or seen.value.token != self._mine.token:
            return False
        self._mine = replace(self._mine, renewals=self._mine.renewals + 1, is_held=is_held)
        try:
            self._put(seen)
        except MetadataVersionError:
            return False
        return True

    def _looked_at(self, seen: Versioned[Lease | None]) -> Lease | None:
        """Return the lease after a change; None if free, or unchanged for ``DEAD_SECONDS``."""
        until = environment.monotonic() + DEAD_SECONDS
        while environment.monotonic() < until:
            environment.sleep(LOOK_SECONDS)
            now = self._seen()
            if now is None or _is_free(now):
                return None
            if now.stored.version != seen.stored.version:
                return now.value
        return None

    def _seen(self) -> Versioned[Lease | None] | None:
        """Read the record; without a value if unreadable."""
        try:
            found = self._records.get(self.verb)
            return None if found is None else Versioned(found.value, found.stored)
        except CorruptDataError as error:
            stored = self._store.get(layout.lease_key(self.verb))
            logger.warning("%s: its lease cannot be read: %s", self.verb, error.args[0])
            return None if stored is None else Versioned(None, stored)

    def _put(self, seen: Versioned[Lease | None] | None) -> None:
        if seen is None:
            self._records.create(self.verb, self._mine)
        else:
            self._records.replace(self.verb, self._mine, Versioned(self._mine, seen.stored))


def _is_free(seen: Versioned[Lease | None]) -> bool:
    lease = seen.value
    return lease is None or not lease.is_held or is_gone(lease.holder)


class _Renewing:
    """Renews a lease in a task beside the work."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._end = environment.inbox()
        self._task = environment.start(self._work, f"lease-{leases.verb}")

    def end(self) -> None:
        """Release the lease after the work."""
        self._end.put(None)
        self._task.join(END_SECONDS)

    def _work(self) -> None:
        is_held = True
        while is_held:
            try:
                self._end.get(timeout=RENEW_SECONDS)
                is_held = False
            except environment.Empty:
                pass
            try:
                if not self._leases.renew(is_held=is_held):
                    logger.info("%s: another run has taken the lease", self._leases.verb)
                    return
            except BookKeeperError as error:
                logger.info(
                    "%s: the lease could not be renewed: %s", self._leases.verb, error.args[0]
                )
