"""A bookie that gets on, however slowly, holds its writer back and is not replaced."""

import threading
from collections.abc import Iterator

import pytest

from bkspark.bookkeeper import BookKeeper
from bkspark.errors import NotEnoughBookiesError, OutcomeUnknownError
from bkspark.ledger.handles import write_handle, writer
from bkspark.ledger.handles.lane import Lane
from bkspark.ledger.handles.settings import WriterSettings
from tests.integration.hand_writer import violations
from tests.integration.rig import Rig
from tests.kit.faulty import Operation

QUICK = WriterSettings(add_entry_timeout_seconds=0.1, add_entry_quorum_timeout_seconds=0.3)
SIGNS = 12
"""So often a bookie shows that it gets on: four times as long as an entry may take without."""


class SlowBookies:
    """Appends that stay under way until each bookie was seen to get on so often."""

    def __init__(self, rig: Rig) -> None:
        self.seen = 0
        self.end = threading.Event()
        rig.faults.decide = self._wait

    def _wait(self, _number: int, operation: Operation) -> None:
        if operation.call == "append":
            self.end.wait(300)

    def is_seen(self) -> bool:
        self.seen += 1
        if self.seen == SIGNS:
            self.end.set()
        return True


@pytest.fixture
def slow(memory_rig: Rig) -> Iterator[SlowBookies]:
    slow = SlowBookies(memory_rig)
    yield slow
    slow.end.set()


@pytest.fixture
def keeper(memory_rig: Rig) -> Iterator[BookKeeper]:
    with memory_rig.faults.installed(), BookKeeper(memory_rig.uri) as keeper:
        yield keeper


def test_slow_bookies_stay_and_the_entry_is_waited_for(
    memory_rig: Rig, keeper: BookKeeper, slow: SlowBookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lane, "gets_on", lambda _lane: slow.is_seen())
    handle = keeper.create_ledger(settings=QUICK)
    sent = {handle.append(b"0"): b"0"}
    assert slow.seen >= SIGNS
    assert handle.faults == {}
    handle.close()
    assert not violations(memory_rig, handle.ledger_id, sent, list(sent))


def test_a_caller_waits_as_long_as_its_writer(
    keeper: BookKeeper, slow: SlowBookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lane, "gets_on", lambda _lane: slow.is_seen())
    handle = keeper.create_ledger(settings=QUICK)
    future = handle.append_async(b"0")
    assert write_handle.result_within(future, 0.2, handle._writer.backlog) == 0
    handle.close()


def test_what_shows_no_sign_is_given_up_and_so_is_its_entry(
    keeper: BookKeeper, slow: SlowBookies
) -> None:
    handle = keeper.create_ledger(settings=QUICK)
    with pytest.raises((NotEnoughBookiesError, OutcomeUnknownError)):
        handle.append(b"0")
    assert slow.seen == 0


def test_after_a_pause_of_the_process_all_time_begins_anew(
    memory_rig: Rig, keeper: BookKeeper, slow: SlowBookies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def was_stopped(_until: float) -> bool:
        return slow.is_seen() and slow.seen <= SIGNS

    handle = keeper.create_ledger(settings=QUICK)
    monkeypatch.setattr(writer, "overslept", was_stopped)
    assert handle.append(b"0") == 0
    assert handle.faults == {}
    handle.close()
