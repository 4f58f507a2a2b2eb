"""The bookies of an open ledger as its writer uses them: a lane to each member that is used."""

import math
from collections.abc import Callable, Iterable

from bkspark import environment
from bkspark.bookie.contract import BookieAddress
from bkspark.format.journal import EncodedRecord
from bkspark.ledger.handles.lane import GiveBack, Lane

LANE_BYTES_MAX = 32 * 2**20
"""What may wait for one bookie: some seconds of work for a disk that is slow but well."""


class Lanes:
    """The lanes of one writer, by ensemble index.

    Args:
        open_lane: makes the lane to a bookie at an index, which takes turns with the others.
    """

    def __init__(
        self, open_lane: Callable[[int, BookieAddress, environment.Courtesy], Lane]
    ) -> None:
        self._open_lane = open_lane
        self._courtesy = environment.courtesy()
        self._lanes: dict[int, Lane] = {}
        self._leaving: dict[str, Lane] = {}

    def join(self, index: int, address: BookieAddress) -> None:
        """Use a bookie from now on."""
        self._lanes[index] = self._open_lane(index, address, self._courtesy)

    def release(self, index: int) -> None:
        """Use the bookie at ``index`` no more, and wait for none of its answers."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            lane.abandon()

    def retire(self, index: int, give_back: GiveBack) -> None:
        """Send the bookie at ``index`` nothing more; it may finish what it was sent."""
        lane = self._lanes.pop(index, None)
        if lane is not None:
            self._leaving[lane.address.bookie_id] = lane
            lane.leave(give_back)

    def at(self, index: int, bookie_id: str) -> Lane | None:
        """The lane of a bookie that is used at ``index`` now."""
        lane = self._lanes.get(index)
        return lane if lane is not None and lane.address.bookie_id == bookie_id else None

    def send(self, record: EncodedRecord, indexes: Iterable[int]) -> None:
        """Send ``record`` to the members at ``indexes``.

        First it is made ready for all of them: a thread that still has to do so when others begin
        to write would take turns with them, and each turn costs more than the work.
        """
        lanes = [self._lanes[index] for index in indexes if index in self._lanes]
        ready = [(lane, lane.framed(record)) for lane in lanes]
        for lane, framed in ready:
            lane.send(framed)

    # --- what the slowest of them allows ---------------------------------------------------

    @property
    def is_congested(self) -> bool:
        """Whether a bookie has so much before it that no more should be sent.

        A slow bookie then slows its writer down: dropping it would leave entries with fewer
        copies, and queueing for it would take all memory. One that hangs is replaced in time.
        """
        return any(lane.waiting_bytes > LANE_BYTES_MAX for lane in self._lanes.values())

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether all that was sent was answered."""
        return all(lane.has_nothing_to_do for lane in self._lanes.values())

    def slowest(self) -> Lane | None:
        """The bookie whose time for the oldest that was sent to it is over first."""
        found, first = None, math.inf
        for lane in self._lanes.values():
            if not lane.is_away and lane.since + lane.extra_seconds < first:
                found, first = lane, lane.since + lane.extra_seconds
        return found

    def has_moved(self, first_entry_id: int, since: float) -> bool:
        """Whether a bookie that owes the record that begins there gave a sign ``since``."""
        return any(lane.has_moved(first_entry_id, since) for lane in self._lanes.values())

    def begin_anew(self) -> None:
        """Every bookie has all its time once more: the process was stopped."""
        for lane in self._lanes.values():
            lane.begin_anew()

    # --- the end -----------------------------------------------------------------------------

    def stop(self, timeout: float) -> None:
        """End all lanes after what was sent, waiting at most ``timeout`` seconds for them."""
        lanes = [*self._lanes.values(), *self._leaving.values()]
        for lane in lanes:
            lane.stop()
        deadline = environment.monotonic() + timeout
        for lane in lanes:
            lane.end_within(max(0.0, deadline - environment.monotonic()))
