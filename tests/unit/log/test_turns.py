"""Commits that compete for a log: the longer one has lost, the shorter it waits."""

import pytest

from bkspark import environment
from bkspark.cluster.cluster import Cluster
from bkspark.cluster.password import Password
from bkspark.errors import MetadataVersionError
from bkspark.log.recovering import update_with_closed_tail

LOST = 40


class Waiting(environment.RealEnvironment):
    """Draws the longest wait, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def draw(self) -> float:
        return 1.0

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def test_a_commit_that_loses_again_waits_less(small_cluster, numbers, monkeypatch):
    small_cluster.append("a", [numbers(0, 9)])
    waiting = Waiting()
    with environment.use(waiting), Cluster(small_cluster.uri) as cluster:
        replace, waiting.waits = cluster.logs.replace, []

        def losing(*given):
            if len(waiting.waits) < LOST:
                raise MetadataVersionError("another client was faster")
            return replace(*given)

        monkeypatch.setattr(cluster.logs, "replace", losing)
        update_with_closed_tail(cluster, "a", Password(), lambda log: log.sealed())
    assert len(waiting.waits) == LOST
    assert waiting.waits == sorted(waiting.waits, reverse=True)
    assert waiting.waits[0] == pytest.approx(0.05)
    assert waiting.waits[1] == pytest.approx(0.025)
    assert waiting.waits[-1] == pytest.approx(0.002)
