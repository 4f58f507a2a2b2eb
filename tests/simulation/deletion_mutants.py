"""Single rules of deleting a log and making it anew, broken in the real code."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from bkspark.errors import BookKeeperError
from bkspark.ledger import deleting
from bkspark.log.cursors import Cursor
from bkspark.log.log_handle import LogEntry, LogHandle
from bkspark.protocol.log import stream_run
from bkspark.protocol.log.contents import DroppedLedgers
from bkspark.protocol.log.record import LogRecord
from tests.simulation.log_clients import FOLLOW_SECONDS

from .mutants import Change, nothing


def itself(self: LogRecord, _generation: int) -> LogRecord:
    """Whatever generation it is of."""
    return self


def deleted_from_below(cluster: Any, name: str) -> list[int]:
    """The ledgers go first, then the log."""
    gone = [one for one in cluster.log(name).value.listed_ids if REAL_TOMBSTONE(cluster, one)]
    cluster.logs.update(name, lambda record: record.vacated())
    return gone


def created_as_the_same(self: LogRecord, *settings: Any, **more: Any) -> LogRecord:
    return replace(REAL_CREATED(self, *settings, **more), generation=self.generation)


def vacated_and_forgotten(self: LogRecord) -> LogRecord:
    return replace(REAL_VACATED(self), dropped=DroppedLedgers())


def resumed_by_offset(start: Any, extent: Any, *, fails_on_loss: bool) -> Any:
    """A position is taken for one of the log as it is."""
    here = replace(start, generation=extent.generation)
    return REAL_RESUME(here, extent, fails_on_loss=fails_on_loss)


def offset_of(self: Cursor) -> int:
    return self._seen.value.offset


def followed_by_offset(
    self: LogHandle, start: int | None = None, timeout: float | None = None
) -> Iterator[LogEntry]:
    """It goes on at the next offset, of whatever log there is."""
    del timeout
    offset = start
    for _ in range(int(FOLLOW_SECONDS / 0.02)):
        with suppress(BookKeeperError):
            for entry in self.read(offset):
                yield entry
                offset = entry.offset + 1
        LogHandle.wait_for(self, offset or 0, 0.02)


REAL_TOMBSTONE = deleting.make_tombstone
REAL_CREATED = LogRecord.created
REAL_VACATED = LogRecord.vacated
REAL_RESUME = stream_run.resume

DELETION_MUTANTS: dict[str, tuple[Change, ...]] = {
    "a deleted log keeps its writer": ((deleting, "_fence", nothing),),
    "a deletion takes the ledgers first": ((deleting, "delete_log", deleted_from_below),),
    "a deletion leaves the ledgers": ((deleting, "make_tombstone", nothing),),
    "a deletion forgets the ledgers": ((LogRecord, "vacated", vacated_and_forgotten),),
    "who meant one generation changes another": ((LogRecord, "still_of", itself),),
    "a log made anew is the same generation": ((LogRecord, "created", created_as_the_same),),
    "a ledger made for the old log joins the new one": (
        (LogRecord, "_require_settings_of", nothing),
    ),
    "a position forgets its generation": ((stream_run, "resume", resumed_by_offset),),
    "a cursor forgets its generation": ((Cursor, "offset", property(offset_of)),),
    "who follows forgets the generation": ((LogHandle, "follow", followed_by_offset),),
}
