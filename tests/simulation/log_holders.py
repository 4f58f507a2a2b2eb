"""Those who delete the log and make it anew, and those who still stand in what was there.

Rule: as in ``clients``. A query keeps nothing but its position, as a checkpoint does; whoever makes
the log anew may give it other quorum sizes.
"""

from collections.abc import Iterator

from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import (
    BookKeeperError,
    InvalidRequestError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bkspark.ledger import deleting
from bkspark.ledger.handles.entries import VALUE_SCHEMA
from bkspark.log.creating import create_log
from bkspark.log.reading.log_view import LogView, LogWatch
from bkspark.log.reading.ordered_read import read_view_in_order
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log import stream_run
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.stream_run import Extent, Position
from tests.simulation.log_clients import LOG, LeaderPlan, LogClients
from tests.simulation.log_told import Reading
from tests.simulation.scheduler import Task, Violation

_TRIES = 3
_MICRO_BATCHES = 5
_DELAYS = (0, 40, 80, 150)
_HEIR = LeaderPlan(count=4, terms=2, actions=("add", "wait", "roll", "add"))


class Holders:
    """Starts deleters, founders and queries.

    Attributes:
        deletions: how many deleters there are.
    """

    def __init__(self, clients: LogClients) -> None:
        self.deletions = 0
        self._clients = clients
        self._oracle = clients.log_oracle

    def delete(self, name: str, *, recreated: Quorum | None) -> Task:
        """Delete the log, until that is known to be done.

        Args:
            recreated: of the log that is made in its place, and written to; None for none.
        """
        self.deletions += 1

        def work() -> None:
            with Cluster(self._clients.uri) as cluster:
                for _ in range(_TRIES):
                    try:
                        self._delete(name, cluster)
                    except NoSuchLedgerError:
                        break
                    except BookKeeperError as error:
                        self._clients.note(f"cannot delete: {error.args[0]}")
                        self._clients.rest()
                        continue
                    break
                if recreated is not None:
                    self._found(cluster, recreated)
                    heir = f"heir-of-{name}"
                    self._clients.lead(heir, _HEIR, must_succeed=lambda: "", delays=(0,))

        return self._clients.start(name, work, _DELAYS)

    def _delete(self, name: str, cluster: Cluster) -> None:
        """Delete the log once; then nothing of it is left."""
        before = self._oracle.history.record.generation
        with self._oracle.meaning_one(name):
            gone = deleting.delete_log(cluster, LOG)
        self._clients.note(f"has deleted the log, with ledgers {gone}")
        after = self._oracle.history.record
        left = [one for one in self._oracle.listed_in(before) if not self._oracle.is_deleted(one)]
        if left or (after.generation == before and not after.is_tombstone):
            raise Violation(
                f"{name} deleted generation {before} of the log, and {left} are left of it (I10)"
            )

    def found(self, name: str, quorum: Quorum) -> Task:
        """Make the log anew, without faults, if there is none."""

        def work() -> None:
            with Cluster(self._clients.uri) as cluster:
                self._found(cluster, quorum)

        return self._clients.start(name, work)

    def _found(self, cluster: Cluster, quorum: Quorum) -> None:
        create_log(cluster, LOG, LogSettings(quorum), VALUE_SCHEMA)
        self._clients.note("has made the log anew")

    def query(self, name: str, *, fails_on_loss: bool) -> Task:
        """Read the log as a streaming query does."""

        def work() -> None:
            with Cluster(self._clients.uri) as cluster:
                watch = LogWatch(cluster, LOG, Password())
                position: Position | None = None
                for _ in range(_MICRO_BATCHES):
                    position = self._micro_batch(name, cluster, watch, position, fails_on_loss)
                    self._clients.rest()

        return self._clients.start_reader(name, work)

    def _micro_batch(
        self,
        name: str,
        cluster: Cluster,
        watch: LogWatch,
        position: Position | None,
        fails_on_loss: bool,
    ) -> Position | None:
        """Read from ``position`` on; returns the next one."""
        try:
            view = watch.look()
            begin = self._resumed(name, position, _extent(view), fails_on_loss)
            rows = list(_rows(cluster, view, begin.offset))
        except (NoSuchEntryError, InvalidRequestError):
            raise
        except BookKeeperError as error:
            self._clients.note(f"cannot read: {error.args[0]}")
            return position
        reading = Reading.of(begin.generation)
        return Position(
            begin.generation, self._oracle.has_read_log(name, begin.offset, rows, reading)
        )

    def _resumed(
        self, name: str, position: Position | None, extent: Extent, fails_on_loss: bool
    ) -> Position:
        """Where to go on; what is gone is said, and nothing else is said to be gone."""
        if position is None:
            return stream_run.begin_at(extent.first_offset, extent)
        is_there = extent.generation == position.generation
        has_all = is_there and extent.first_offset <= position.offset
        try:
            found = stream_run.resume(position, extent, fails_on_loss=fails_on_loss)
        except BookKeeperError as error:
            if has_all:
                raise Violation(f"{name} cannot go on at {position}: {error} (I10)") from error
            raise
        if not has_all and not found.loss:
            raise Violation(f"{name} goes from {position} to {found.begin}, unsaid (I10)")
        return found.begin


def _extent(view: LogView) -> Extent:
    record = view.record
    return Extent(
        record.name, record.generation, view.first_offset, view.end_offset, view.has_open_end
    )


def _rows(cluster: Cluster, view: LogView, begin: int) -> Iterator[tuple[int, bytes]]:
    if begin >= view.end_offset:
        return
    for table in read_view_in_order(cluster, view, begin, None, Password()):
        offsets, values = table.columns
        yield from zip(offsets.to_pylist(), values.to_pylist(), strict=True)
