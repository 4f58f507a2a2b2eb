"""Which process may put a ledger behind another one, as the simulation judges it (RB-20)."""

from dataclasses import dataclass
from itertools import count

import pytest

from bkspark.format import log_record
from bkspark.metadata.memory import MemoryMetadataStore
from bkspark.protocol.ledger.metadata import (
    DigestSpec,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.log.contents import LogSettings
from bkspark.protocol.log.record import LogRecord
from tests.simulation.log_watch import LogWatch
from tests.simulation.scheduler import Violation

ENSEMBLE = (Member("a", "1"), Member("b", "1"))
DIGEST = DigestSpec("MAC", "03", "04")
EMPTY = LogRecord("log", LogSettings(Quorum(2, 2, 1), DIGEST), b"old")
_numbers = count()


@dataclass
class Known:
    metadata: LedgerMetadata


def ledger(number: int) -> LedgerMetadata:
    fragments = (Fragment(0, 1, ENSEMBLE, owner=1),)
    return LedgerMetadata(
        number,
        EMPTY.quorum,
        LedgerState.OPEN,
        1,
        "t",
        fragments,
        settings=LedgerSettings(digest=DIGEST),
    )


class Scene:
    """A log whose one ledger was made by ``old``, and then taken over by ``new``."""

    def __init__(self) -> None:
        self.store = MemoryMetadataStore(f"memory://log-watch-{next(_numbers)}")
        self.store.format()
        self.watch = LogWatch(self.store, {n: Known(ledger(n)) for n in (1, 2)})  # type: ignore[misc]
        self.log = EMPTY.with_tail(ledger(1))
        for number in (1, 2):
            self.watch.made("old", number)
        self.put("old", self.log)
        self.watch.taken("new", 1)

    def put(self, process: str, log: LogRecord) -> None:
        seen = self.store.get("logs/log")
        data = log_record.encode(log, "nonce")
        self.store.put("logs/log", data, None if seen is None else seen.version)
        self.watch.see(process, "logs/log")


def test_a_writer_that_was_overtaken_may_roll_until_the_list_says_so() -> None:
    scene = Scene()
    scene.put("old", scene.log.with_tail(ledger(2), own=1))


def test_a_writer_whose_successor_has_stored_the_list_may_not() -> None:
    scene = Scene()
    scene.put("new", scene.log.stamped(1))
    with pytest.raises(Violation, match=r"RB-20\b"):
        scene.put("old", scene.log.with_tail(ledger(2), own=1))


def test_another_process_never_may() -> None:
    scene = Scene()
    with pytest.raises(Violation, match=r"RB-20\b"):
        scene.put("other", scene.log.with_tail(ledger(2), own=1))
