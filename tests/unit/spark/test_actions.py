"""What a task of a recovery does with the bookie it is about."""

import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bkspark
from bkspark.bookie.contract import BookieAddress
from bkspark.bookkeeper import BookKeeper
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.cluster.fan_out import Heartbeat, no_heartbeat
from bkspark.cluster.password import Password
from bkspark.errors import InvalidRequestError
from bkspark.ledger.recovery import running
from bkspark.ledger.recovery.recover import recover
from bkspark.spark import actions
from bkspark.spark.actions import Done

ADDRESS = BookieAddress("bookie-1", "0" * 32, "0" * 32, "memory://none")


@dataclass(frozen=True)
class Hang:
    """Answers when nobody waits any more."""

    address: BookieAddress = ADDRESS

    def run(self, beat: Heartbeat = no_heartbeat) -> str:
        time.sleep(5)
        return "too late"


def test_a_task_does_not_wait_for_ever_for_a_bookie_that_hangs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "TELLS_MAX", 2)
    quick = partial(running.in_threads, tell_seconds=0.01)
    monkeypatch.setattr(actions, "in_threads", quick)
    done = actions.carry_out((7, Hang()))
    assert done == Done(7, running.Silence("bookie bookie-1 gave no answer within 0.02 s"))
    assert pickle.loads(pickle.dumps(done)) == done


def test_a_recovery_gives_its_runner_somebody_to_tell(tmp_path: Path) -> None:
    """Spark's runner says whom it waits for, and the report has it."""
    uri = (tmp_path / "metadata").as_uri()
    init_cluster(uri, [(tmp_path / f"disk{number}").as_uri() for number in range(3)])

    class Telling:
        def __init__(self, tell: Callable[[str], None] | None = None) -> None:
            self.tell = tell

        def telling(self, tell: Callable[[str], None]) -> "Telling":
            return Telling(tell)

        def __call__(self, instructions: Sequence[running.Instruction[Any]]) -> list[Any]:
            assert self.tell is not None
            self.tell(running.still_waiting(["bookie-1"]))
            return running.in_threads(instructions)

    with BookKeeper(uri) as keeper, Cluster(uri) as cluster:
        handle = keeper.create_ledger()
        handle.release()
        report = recover(cluster, handle.ledger_id, Password(), run=Telling())
    assert "still waiting for bookie-1" in report.notes


def test_a_spark_connect_session_is_told_that_it_cannot_recover_and_what_can() -> None:
    """Such a session raises at its first ``sparkContext``, with lines about the JVM."""

    class SparkSession:
        @property
        def sparkContext(self) -> None:
            raise AssertionError("asked for what it has not")

    SparkSession.__module__ = "pyspark.sql.connect.session"
    session: Any = SparkSession()
    with pytest.raises(
        InvalidRequestError, match=r"Connect.*`bkspark ledger recover ID`"
    ) as caught:
        bkspark.recover_ledger(session, "file:///nowhere", 7)
    assert "\n" not in str(caught.value)
