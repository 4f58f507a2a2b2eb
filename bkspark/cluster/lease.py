"""The lease of a name: one process at a time has it, and renews it while it works.

A lease is one record. It keeps runs of a command from doing the same work twice (``admin.lease``),
and elects leaders where the metadata store has no sessions (``cluster.election``). **A lease gives
no safety**: no guarantee depends on it.

Rule 1. A lease is alive only if its record changes during observation. The observer measures a few
renewal periods by its own clock; times in the record are for people.

Rule 2. A lease is dead at once if its holder has ended, or was a process of this system that is
gone.

Rule 3. An unreadable record delays no process: the next one overwrites the record.
"""

import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Protocol

from bkspark import environment
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
from bkspark.metadata import freshness

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

Tell = Callable[[str], None]


class Claim(Protocol):
    """The claim of one process to a name, held by one process at a time.

    Attributes:
        held_at: a moment before the name was taken, by this process's monotonic clock.
        dead_seconds: no other process takes the name so soon after a renewal.
    """

    name: str
    held_at: float

    @property
    def dead_seconds(self) -> float: ...

    def take(self, tell: Tell | None = None, *, until: float = inf) -> Lease | None:
        """Take the name and return None, or return the lease of its holder.

        Args:
            tell: receives a line before a wait.
            until: return by this time of the monotonic clock.
        """
        ...

    def renew(self, *, is_held: bool = True) -> bool:
        """Say that the holder lives, or release the name; False if the name was lost.

        Raises:
            BookKeeperError: the outcome is unknown.
        """
        ...

    def is_mine(self) -> bool:
        """Ask the store, as of now, whether this process still holds the name."""
        ...

    def claims(self) -> list[Lease]:
        """The holder first, then the processes that wait, as far as the store knows them."""
        ...


def own_lease(name: str) -> Lease:
    """Return the lease that this process claims now."""
    return Lease(name, environment.token(), this_process(), environment.now_ms())


class Leases:
    """The lease of one name, as a ``Claim`` by a record."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._store = cluster.store
        self._records = _lease_records(cluster)
        self._mine = own_lease(name)
        self.name = name
        self.held_at = -inf

    @property
    def dead_seconds(self) -> float:
        return DEAD_SECONDS

    def take(self, tell: Tell | None = None, *, until: float = inf) -> Lease | None:
        while True:
            seen = self._seen()
            if seen is not None and not _is_free(seen):
                if tell is not None:
                    tell(f"{self.name}: checking whether another run is still active")
                now = self._looked_at(seen, until)
                if now is not None:
                    return now
                logger.info("%s: took over the lease of a run that has ended", self.name)
            self.held_at = environment.monotonic()
            try:
                self._put(seen)
            except (LedgerExistsError, MetadataVersionError):
                continue  # another run was faster, or is living
            return None

    def renew(self, *, is_held: bool = True) -> bool:
        seen = self._seen()
        if seen is None or not self._names_me(seen):
            return False
        self._mine = replace(self._mine, renewals=self._mine.renewals + 1, is_held=is_held)
        try:
            self._put(seen)
        except MetadataVersionError:
            return False
        return True

    def is_mine(self) -> bool:
        with freshness.now():
            seen = self._seen()
        return seen is not None and self._names_me(seen)

    def claims(self) -> list[Lease]:
        seen = self._seen()
        return [] if seen is None or seen.value is None or _is_free(seen) else [seen.value]

    def _names_me(self, seen: Versioned[Lease | None]) -> bool:
        lease = seen.value
        return lease is not None and lease.token == self._mine.token and lease.is_held

    def _looked_at(self, seen: Versioned[Lease | None], until: float) -> Lease | None:
        """Return the lease after a change, or unchanged at ``until``; None if free, or unchanged
        for ``DEAD_SECONDS``.
        """
        dead_at = environment.monotonic() + DEAD_SECONDS
        while environment.monotonic() < dead_at:
            if environment.monotonic() >= until:
                return seen.value
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
            found = self._records.get(self.name)
            return None if found is None else Versioned(found.value, found.stored)
        except CorruptDataError as error:
            stored = self._store.get(layout.lease_key(self.name))
            logger.warning("%s: its lease cannot be read: %s", self.name, error.args[0])
            return None if stored is None else Versioned(None, stored)

    def _put(self, seen: Versioned[Lease | None] | None) -> None:
        if seen is None:
            self._records.create(self.name, self._mine)
        else:
            self._records.replace(self.name, self._mine, Versioned(self._mine, seen.stored))


def held_leases(cluster: Cluster, begin: str) -> dict[str, Lease]:
    """Return the leases that are held and whose keys begin so, by key; unreadable ones are free."""
    folder, _, start = begin.rpartition("/")
    found = _lease_records(cluster).of_all(
        cluster.store.get_some(folder, lambda names: [n for n in names if n.startswith(start)]),
        lambda _key, _error: None,
    )
    leases = {f"{folder}/{name}": lease for name, lease in found.items()}
    return {key: one for key, one in leases.items() if one.is_held and not is_gone(one.holder)}


def _lease_records(cluster: Cluster) -> Records[Lease]:
    return Records(
        cluster.store,
        cluster.cluster_id,
        layout.lease_key,
        upkeep_records.encode_lease,
        upkeep_records.decode_lease,
    )


def _is_free(seen: Versioned[Lease | None]) -> bool:
    lease = seen.value
    return lease is None or not lease.is_held or is_gone(lease.holder)


class Keeping:
    """Renews a claim in a task beside its holder.

    The claim is lost if another process took it, or if it could not be renewed for so long that
    another process may take it.

    Args:
        lost: called once if the claim is lost before ``end``.
    """

    def __init__(self, claim: Claim, lost: Callable[[], object]) -> None:
        self._claim = claim
        self._lost = lost
        self._renewed_at = claim.held_at
        self._end = environment.inbox()
        self._task = environment.start(self._work, f"lease-{claim.name}")

    @property
    def is_held(self) -> bool:
        """Whether no other process can have taken the claim, by this process's own clock."""
        return environment.monotonic() < self._renewed_at + self._claim.dead_seconds

    def end(self) -> None:
        """Release the claim after the work."""
        self._renewed_at = -inf
        self._end.put(None)
        self._task.join(END_SECONDS)

    def _work(self) -> None:
        while not self._ended_within(RENEW_SECONDS):
            if not self._renew():
                self._renewed_at = -inf
                logger.info("%s: the lease is lost", self._claim.name)
                self._lost()
                self._ended_within(None)
                break
        with suppress(BookKeeperError):  # then the next process waits until the lease is dead
            self._claim.renew(is_held=False)

    def _ended_within(self, seconds: float | None) -> bool:
        try:
            self._end.get(timeout=seconds)
        except environment.Empty:
            return False
        return True

    def _renew(self) -> bool:
        """Renew the claim; return False if it is lost."""
        began = environment.monotonic()
        try:
            if not self._claim.renew():
                return False
        except BookKeeperError as error:
            shown = "%s: the lease could not be renewed: %s"
            logger.info(shown, self._claim.name, error.args[0])
            return self.is_held
        self._renewed_at = began
        return True
