"""The lanes of an open ledger's writer: one lane to each member in use."""

import math
from collections.abc import Callable, Iterable

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.lane import GiveBack, Lane

LANE_BYTES_MAX = 32 * 2**20
"""Most bytes that may wait for one bookie: some seconds of work for a slow but healthy disk."""


class Lanes:
    """The lanes of one writer, by ensemble index.

    Args:
        open_lane: makes the lane to a bookie at an index; lanes of one writer take turns.
    """

    def __init__(
        self, open_lane: Callable[[int, BookieAddress, environment.AdvisoryLock], Lane]
    ) -> None:
        self._open_lane = open_lane
        self._advisory_lock = environment.advisory_lock()
        self._lanes: dict[int, Lane] = {}
        self._leaving: dict[str, Lane] = {}

    def join(self, index: int, address: BookieAddress) -> None:
        """Use a bookie from now on."""
        self._lanes[index] = self._open_lane(index, address, self._advisory_lock)

    def release(self, index: int) -> None:
        """Stop using the bookie at ``index``, and wait for none of its answers."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            lane.abandon()

    def retire(self, index: int, give_back: GiveBack) -> None:
        """Send the bookie at ``index`` no more records; it may finish earlier records."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            self._leaving[lane.address.bookie_id] = lane
            lane.leave(give_back)

    def at(self, index: int, bookie_id: str) -> Lane | None:
        """Return the lane at ``index`` if it belongs to ``bookie_id``."""
        lane = self._lanes.get(index)
        return lane if lane is not None and lane.address.bookie_id == bookie_id else None

    def send(self, record: EncodedRecord, indexes: Iterable[int]) -> None:
        """Send ``record`` to the members at ``indexes``.

        All frames are made before any is sent. A thread that made its frame while others begin to
        write would take turns with them, and each turn costs more than the work.
        """
        lanes = [self._lanes[index] for index in indexes if index in self._lanes]
        ready = [(lane, lane.framed(record)) for lane in lanes]
        for lane, framed in ready:
            lane.send(framed)

    # --- what the slowest of them allows ---------------------------------------------------

    @property
    def is_congested(self) -> bool:
        """Whether a bookie has so much waiting that the writer should pause.

        A slow bookie so slows its writer down. Dropping it would leave entries with fewer copies,
        and queueing would take all memory. A bookie that hangs is replaced in time.
        """
        return any(lane.waiting_bytes > LANE_BYTES_MAX for lane in self._lanes.values())

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all records sent were answered."""
        return all(lane.has_nothing_to_do for lane in self._lanes.values())

    def slowest(self) -> Lane | None:
        """Return the lane whose oldest record reaches its time limit first."""
        found, first = None, math.inf
        for lane in self._lanes.values():
            if not lane.is_away and lane.since + lane.extra_seconds < first:
                found, first = lane, lane.since + lane.extra_seconds
        return found

    def has_moved(self, first_entry_id: int, since: float) -> bool:
        """Return whether a bookie that owes the record at ``first_entry_id`` gave a sign after
        ``since``.
        """
        return any(lane.has_moved(first_entry_id, since) for lane in self._lanes.values())

    def begin_anew(self) -> None:
        """Give every bookie its full time again, after the process was stopped."""
        for lane in self._lanes.values():
            lane.begin_anew()

    # --- the end -----------------------------------------------------------------------------

    def stop(self, timeout: float) -> None:
        """End all lanes once their records are written, waiting at most ``timeout`` seconds."""
        lanes = [*self._lanes.values(), *self._leaving.values()]
        for lane in lanes:
            lane.stop()
        deadline = environment.monotonic() + timeout
        for lane in lanes:
            lane.end_within(max(0.0, deadline - environment.monotonic()))
