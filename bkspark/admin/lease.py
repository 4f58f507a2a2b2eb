"""One run of a maintenance verb at a time, as a matter of manners.

Two runs of a verb at once do no harm, but the second one does the same work again. So a run of all
takes its verb's *lease*, and renews it while it works. **Nothing is safer for it**: who finds that
somebody else has it goes on all the same.

Rule 1. A lease is living only if its record changes while one looks at it. Who looks goes by their
own clock, for a few renewals; what times the record has in it is for people.

Rule 2. One whose holder has ended, or is a process of this system that is gone, is dead at once.

Rule 3. A record that cannot be read holds nobody up: it is written over, and where it cannot be
stored either, the run goes on without a lease.

Rule 4. Verbs do not exclude each other. A run of named logs or ledgers takes no lease, and needs
none: somebody wants these, now.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from bkspark import environment
from bkspark.admin.maintenance import Left, Report, Tell
from bkspark.admin.this_process import is_gone, this_process
from bkspark.admin.views.sharing import timestamp
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.records import Records, Versioned
from bkspark.errors import (
    BookKeeperError,
    CorruptDataError,
    LedgerExistsError,
    MetadataVersionError,
)
from bkspark.format import layout, lease_record
from bkspark.format.lease_record import Lease

logger = logging.getLogger(__name__)

RENEW_SECONDS = 3.0
LOOK_SECONDS = 1.0
DEAD_SECONDS = 4 * RENEW_SECONDS
"""A lease that was looked at for so long and was not renewed is dead."""

END_SECONDS = 5.0
"""Who has ended waits so long for the word of it to be stored."""


def alone(
    cluster: Cluster,
    verb: str,
    work: Callable[[], Report],
    *,
    is_wanted: bool = True,
    tell: Tell | None = None,
) -> Report:
    """What ``work`` returns, or a report that somebody else is at it.

    Args:
        is_wanted: whether a lease is taken at all.
        tell: told a line if another run may be living, which takes a while to see, or cannot be.
    """
    if not is_wanted:
        return work()
    leases = Leases(cluster, verb)
    try:
        other = leases.take(tell)
    except BookKeeperError as error:
        logger.warning("%s goes on without a lease: %s", verb, error.args[0])
        if tell is not None:
            tell(f"{verb}: no lease can be had, so another run may be at work as well")
        return work()
    if other is not None:
        return _busy(other)
    renewing = _Renewing(leases)
    try:
        return work()
    finally:
        renewing.end()


def _busy(other: Lease) -> Report:
    holder, since = other.holder, timestamp(other.began_ms)
    when = "an unknown time" if since is None else f"{since:%Y-%m-%d %H:%M:%S}Z"
    reason = f"it is run on {holder.host} already, by process {holder.pid}, since {when}"
    logger.info("%s: %s", other.verb, reason)
    hint = "wait until that has ended, or give --no-lease to run beside it"
    return Report(other.verb, {}, left=[Left(other.verb, reason, hint)], summary="nothing was done")


class Leases:
    """The lease of one verb, and the run that this one is."""

    def __init__(self, cluster: Cluster, verb: str) -> None:
        self._store = cluster.store
        self._records: Records[Lease] = Records(
            cluster.store, layout.lease_key, lease_record.encode, lease_record.decode
        )
        self._mine = Lease(verb, environment.token(), this_process(), environment.now_ms())
        self.verb = verb

    def take(self, tell: Tell | None) -> Lease | None:
        """Take it; or, of another run that is living, the lease as it is."""
        while True:
            seen = self._seen()
            if seen is not None and not _is_free(seen):
                if tell is not None:
                    tell(f"{self.verb}: looking whether another run is still at work")
                now = self._looked_at(seen)
                if now is not None:
                    return now
                logger.info("%s: the lease of a run that is gone is taken over", self.verb)
            try:
                self._put(seen)
            except (LedgerExistsError, MetadataVersionError):
                continue  # somebody else was faster, or is living
            return None

    def renew(self, *, is_held: bool = True) -> bool:
        """Give a sign of life, or say that there will be none; False if the lease was taken.

        Raises:
            BookKeeperError: it is not known.
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
        """The lease as it is once it has changed; None if it is free, or did not change."""
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
        """The record; without a value if it cannot be read."""
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
    """Renews a lease, beside the work that it is for."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._end = environment.inbox()
        self._task = environment.start(self._work, f"lease-{leases.verb}")

    def end(self) -> None:
        """The work is over."""
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
                    logger.info("%s: somebody else has taken its lease", self._leases.verb)
                    return
            except BookKeeperError as error:
                logger.info("%s: its lease is not renewed: %s", self._leases.verb, error.args[0])
