"""What a task of a recovery does with the bookie it is about."""

import pickle
import time
from dataclasses import dataclass
from functools import partial

import pytest

from bkspark.bookie.contract import BookieAddress
from bkspark.client.recovery import running
from bkspark.spark import actions
from bkspark.spark.actions import Done

ADDRESS = BookieAddress("bookie-1", "0" * 32, "0" * 32, "memory://none")


@dataclass(frozen=True)
class Hang:
    """Answers when nobody waits any more."""

    address: BookieAddress = ADDRESS

    def run(self, beat: running.Beat = running.unheard) -> str:
        time.sleep(5)
        return "too late"


def test_a_task_does_not_wait_for_ever_for_a_bookie_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    quick = partial(running.in_threads, tell_seconds=0.01)
    monkeypatch.setattr(actions, "in_threads", quick)
    done = actions.carry_out((7, Hang()))
    assert done == Done(7, running.Silence("bookie bookie-1 does not answer"))
    assert pickle.loads(pickle.dumps(done)) == done
