"""Advisory election of one leader among processes that use a cluster.

**An election gives no safety.** Fencing protects a log, with an election and without. Two processes
may both believe for a moment that they lead: one was paused, and has not noticed yet that the other
was elected. An election keeps processes from taking a log from each other again and again, and says
which of them does a job.

Rule 1. Where the metadata store has sessions (ZooKeeper), a candidate stands in a row (kazoo's
lock), and its place ends with its session. Elsewhere the leader has a lease (``lease``), which it
renews. A candidate observes the lease by its own clock.

Rule 2. A leader that could not renew its lease for so long that another process may have taken it
no longer leads, by its own clock.

Rule 3. A log that is opened with an election asks the store before each change of the takeover
whether this process still leads (``guards.asking``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from math import inf
from typing import Any, Self

from bkspark import environment
from bkspark.cluster import arguments
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.guards import BoundToProcess
from bkspark.cluster.lease import (
    LOOK_SECONDS,
    RENEW_SECONDS,
    Claim,
    Keeping,
    Leases,
    Tell,
    held_leases,
    logger,
    own_lease,
)
from bkspark.errors import (
    CorruptDataError,
    InvalidRequestError,
    NotLeaderError,
    OutcomeUnknownError,
)
from bkspark.format import layout, upkeep_records
from bkspark.format.upkeep_records import Lease
from bkspark.metadata.contract import PlaceInRow, Sessions, sessions_of
from bkspark.quantities import timestamp

LIVING_SECONDS = 2 * RENEW_SECONDS
"""A leader that does not renew its lease for so long does not seem to live."""

_OF_ELECTIONS = "election"


@dataclass(frozen=True, slots=True)
class Contender:
    """A process that leads, or waits to lead.

    Attributes:
        since: when the process came to the election, by its own clock; None if unknown.
    """

    host: str
    process_id: int
    since: datetime | None

    @classmethod
    def of(cls, lease: Lease) -> "Contender":
        return cls(lease.holder.host, lease.holder.pid, timestamp(lease.began_ms))

    @property
    def facts(self) -> dict[str, Any]:
        """The values for JSON."""
        return {"host": self.host, "process_id": self.process_id, "since": self.since}

    def __str__(self) -> str:
        when = "" if self.since is None else f", since {self.since:%Y-%m-%d %H:%M:%S}Z"
        return f"process {self.process_id} on {self.host}{when}"


class Election(BoundToProcess):
    """The election of one leader; made by ``BookKeeper.election``. Advisory.

    A ``with`` block waits until this process leads. At its end, the next candidate leads. The
    election may be entered again.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        *,
        on_lost: Callable[[], object] = lambda: None,
        timeout: float | None = None,
    ) -> None:
        self.name = layout.log_name(name)
        self._cluster = cluster
        self._on_lost = on_lost
        self._timeout = arguments.seconds_or_none("timeout", timeout)
        self._claim: Claim = _claim(cluster, f"{_OF_ELECTIONS}.{self.name}")
        self._keeping: Keeping | None = None

    def __repr__(self) -> str:
        return f"Election({self.name!r}, is_leader={self.is_leader})"

    def __enter__(self) -> Self:
        self.require_own_process()
        if self._keeping is not None:
            raise InvalidRequestError(
                f"this process is in election {self.name!r} already",
                hint="make another Election for another candidate",
            )
        claim = _claim(self._cluster, f"{_OF_ELECTIONS}.{self.name}")
        holder = _waited(claim, inf if self._timeout is None else self._timeout)
        if holder is not None:
            raise NotLeaderError(
                f"election {self.name!r}: {Contender.of(holder)} still leads after "
                f"{self._timeout:g} s",
                hint="wait longer, or end that process",
            )
        self._claim = claim
        self._keeping = Keeping(claim, self._on_lost)
        return self

    def __exit__(self, *_: object) -> None:
        keeping, self._keeping = self._keeping, None
        if keeping is not None and self.is_of_this_process:
            keeping.end()

    @property
    def is_leader(self) -> bool:
        """Whether this process leads, as far as it knows without asking the store.

        False from the moment on at which another process may have been elected, also while this
        process cannot reach the store.
        """
        keeping = self._keeping
        return keeping is not None and self.is_of_this_process and keeping.is_held

    def require_leader(self) -> None:
        """Ask the store whether this process still leads; return only if it does.

        Raises:
            NotLeaderError: another process was elected, or the ``with`` block has ended.
            OutcomeUnknownError: the store gave no answer.
        """
        self.require_own_process()
        if self.is_leader and self._claim.is_mine():
            return
        leader = self.leader()
        now = "no process leads now" if leader is None else f"{leader} leads now"
        raise NotLeaderError(
            f"this process does not lead election {self.name!r}: {now}; nothing was changed",
            hint="leave the election's `with` block, and enter it again to wait until this process "
            "leads",
        )

    def leader(self) -> Contender | None:
        """Return the process that leads; None if there is none.

        Without ZooKeeper, a leader that was killed is shown until another process is elected.
        """
        return next(iter(self.contenders()), None)

    def contenders(self) -> list[Contender]:
        """Return the leader, and behind it the processes that wait, in their order.

        Only ZooKeeper knows the processes that wait; elsewhere the list has the leader alone.
        """
        self.require_own_process()
        return [Contender.of(lease) for lease in self._claim.claims()]


def living(cluster: Cluster, prefix: str) -> dict[str, Contender]:
    """Return the living leaders of the elections whose names begin with ``prefix``, by name.

    Without sessions, a leader is alive if its lease changes between two looks. So the call takes
    some seconds, unless there is no leader.
    """
    begin = layout.lease_key(f"{_OF_ELECTIONS}.{prefix}x")[:-1]
    sessions = sessions_of(cluster.store)
    if sessions is not None:
        rows = {key: InRow(sessions, key.partition("/")[2]) for key in sessions.rows(begin)}
        found = {key: next(iter(row.claims()), None) for key, row in rows.items()}
    else:
        found = dict(_renewed(cluster, begin))
    first = len(layout.lease_key(f"{_OF_ELECTIONS}.x")) - 1
    return {key[first:]: Contender.of(lease) for key, lease in found.items() if lease is not None}


def _renewed(cluster: Cluster, begin: str) -> Iterator[tuple[str, Lease]]:
    """Yield the leases that change during observation, with their keys."""
    left = held_leases(cluster, begin)
    until = environment.monotonic() + LIVING_SECONDS
    while left and environment.monotonic() < until:
        environment.sleep(LOOK_SECONDS)
        now = held_leases(cluster, begin)
        for key in [key for key, lease in left.items() if now.get(key) != lease]:
            del left[key]
            if key in now:
                yield key, now[key]


def _claim(cluster: Cluster, name: str) -> Claim:
    sessions = sessions_of(cluster.store)
    return Leases(cluster, name) if sessions is None else InRow(sessions, name)


def _waited(claim: Claim, seconds: float) -> Lease | None:
    """Wait until this process holds ``claim``; return the holder after ``seconds``."""
    until = environment.monotonic() + seconds
    while True:
        try:
            holder = claim.take(until=until)
        except OutcomeUnknownError as error:  # the store may be back soon
            if environment.monotonic() >= until:
                raise
            logger.warning("%s: %s", claim.name, error)
            environment.sleep(LOOK_SECONDS)
            continue
        if holder is None or environment.monotonic() >= until:
            return holder


class InRow:
    """A ``Claim`` by a place in a row, which ends with the session of the store."""

    def __init__(self, sessions: Sessions, name: str) -> None:
        self._sessions = sessions
        self._key = layout.lease_key(name)
        self._mine = own_lease(name)
        self._place: PlaceInRow | None = None
        self.name = name
        self.held_at = -inf

    @property
    def dead_seconds(self) -> float:
        return self._sessions.session_seconds

    def take(self, tell: Tell | None = None, *, until: float = inf) -> Lease | None:
        del tell
        text = upkeep_records.encode_lease(self._mine, self._mine.token).decode()
        seconds = max(0.0, until - environment.monotonic())
        self._place = self._sessions.first_place(self._key, text, seconds)
        if self._place is None:
            return next(iter(self.claims()), self._mine)
        self.held_at = environment.monotonic()
        if not self.renew():
            raise OutcomeUnknownError(f"{self.name}: the session ended when this process was first")
        return None

    def renew(self, *, is_held: bool = True) -> bool:
        if self._place is None:
            return False
        if not is_held:
            self._place.leave()
        return self._place.is_there(is_surely=False)

    def is_mine(self) -> bool:
        return self._place is not None and self._place.is_there(is_surely=True)

    def claims(self) -> list[Lease]:
        found = []
        for text in self._sessions.row(self._key):
            try:
                found.append(upkeep_records.decode_lease(self.name, text.encode()))
            except CorruptDataError as error:
                logger.warning("%s: a candidate cannot be read: %s", self.name, error.args[0])
        return found
