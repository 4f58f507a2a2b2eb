"""What children do to unbounded logs until they are killed: a writer, DataFrames, a stream."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from bkspark.bookkeeper import BookKeeper
from bkspark.log.streams import appending
from tests.integration.rig import Rig, Row, flat, partitions_of
from tests.integration.stream_driver import Driver

WAL = "wal"
REST_SECONDS = 0.01
ROLL_ENTRIES = 5
ROWS = (3, 2)
APART = 1_000_000
"""Ids of a child's rows begin at so many times its number, behind all of the stream's."""


@dataclass
class Elsewhere(Rig):
    """A cluster that is there already."""

    uri: str = ""

    def __post_init__(self) -> None:
        self.urls = {}


def rig_at(uri: str) -> Rig:
    return Elsewhere(Path(), uri=uri)


def entry_of(child: int, number: int) -> bytes:
    return b"entry %d of child %d" % (number, child)


def rows_of_append(child: int, number: int) -> list[Row]:
    return flat(_partitions(child, number))


def _partitions(child: int, number: int) -> Any:
    return partitions_of(*ROWS, first=child * APART + number * sum(ROWS))


def write_log(line: Any, order: Any) -> None:
    """Open the log and add to it for ever, rolling on; ``first`` is the child's number."""
    with BookKeeper(order.uri) as keeper:
        writer = keeper.open_log(WAL).writer(roll_entries=ROLL_ENTRIES)
        line.say(begun=True)
        for number in count():
            line.say(acked=[number, writer.append(entry_of(order.first, number))])
            time.sleep(REST_SECONDS)


def append_frames(line: Any, order: Any) -> None:
    """Append DataFrames for ever, each of two partitions; ``first`` is the child's number."""
    rig = rig_at(order.uri)
    for number in count():
        target, staging = appending.prepare(rig.request(is_unbounded=True))
        line.say(begun=True)
        appending.commit(target, staging, rig.tasks(target, _partitions(order.first, number)))
        line.say(acked=number)
        time.sleep(REST_SECONDS)


def stream(line: Any, order: Any) -> None:
    """A run of the query for ever, from batch ``first`` on."""
    driver = Driver(rig_at(order.uri), options={"is_unbounded": True})
    for batch_id in count(order.first):
        batch = driver.planned(batch_id)
        line.say(begun=True)
        driver.commit(batch)
        line.say(acked=batch_id)
        time.sleep(REST_SECONDS)


WORK: dict[str, Callable[[Any, Any], None]] = {
    work.__name__: work for work in (write_log, append_frames, stream)
}
