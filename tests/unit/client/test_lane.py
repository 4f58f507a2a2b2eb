"""A lane: how long its bookie may take for what was sent."""

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bkspark.bookie.contract import BookieAddress
from bkspark.client.handles import lane
from bkspark.client.handles.lane import Framed, Lane
from bkspark.client.runtime import THREADS


class Nobody:
    """A runtime whose tasks never get on."""

    inbox = THREADS.inbox

    def start(self, work: Callable[[], None], name: str) -> None:
        del work, name


def framed(first_entry_id: int, size: int) -> Framed:
    part = SimpleNamespace(length_bytes=size)
    record: Any = SimpleNamespace(
        first_entry_id=first_entry_id, parts=[part], is_confirmation=False
    )
    return Framed(record, ())


def test_a_bookie_has_time_for_what_was_sent_to_it_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lane, "SLOWEST_BYTES_PER_SECOND", 10)
    runtime: Any = Nobody()
    address = BookieAddress("bookie-1", "a" * 32, "c" * 32, "memory://a")
    its_lane = Lane(
        0, address, ledger_id=1, term=1, token="b" * 32, report=lambda _event: None, runtime=runtime
    )
    assert (its_lane.since, its_lane.extra_seconds) == (math.inf, 0)
    for first_entry_id, size in enumerate((20, 100, 30)):
        its_lane.send(framed(first_entry_id, size))
    began = its_lane.since
    assert its_lane.extra_seconds == 2
    its_lane.answered(0)
    assert its_lane.extra_seconds == 2 + 10
    assert its_lane.since >= began
    its_lane.answered(1)
    assert its_lane.extra_seconds == 2 + 10 + 3
    its_lane.answered(2)
    assert (its_lane.since, its_lane.extra_seconds, its_lane.waiting_bytes) == (math.inf, 0, 0)
    its_lane.send(framed(3, 10))
    assert its_lane.extra_seconds == 1
