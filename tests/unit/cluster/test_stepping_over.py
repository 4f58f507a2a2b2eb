"""A copy that is stepped over is told of once."""

import logging

import pytest

from bkspark import environment
from bkspark.cluster import log_messages
from bkspark.cluster.log_messages import BadCopy, step_over

logger = logging.getLogger("bkspark.cluster.test")
COPY = BadCopy("c" * 32, "bookie-1", "ledger 7")


@pytest.fixture
def told(caplog):
    """What was logged so far; nothing was told of before the test."""
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_copy_is_told_of_once_whatever_is_wrong_with_it_then(told):
    for reason in ("it is cut", "it is cut", "it gave no answer within 5 s"):
        step_over(logger, COPY, reason)
    assert told() == ["skipped a copy: ledger 7 on bookie bookie-1: it is cut"]


@pytest.mark.parametrize(
    "other",
    [
        COPY._replace(what="ledger 8"),
        COPY._replace(bookie_id="bookie-2"),
        COPY._replace(cluster_id="d" * 32),
        COPY._replace(what=""),
    ],
    ids=["file", "bookie", "cluster", "whole bookie"],
)
def test_another_copy_is_told_of_too(told, other):
    step_over(logger, COPY, "it is cut")
    step_over(logger, other, "it is cut")
    assert len(told()) == 2


def test_after_a_long_time_it_is_told_of_again(told, monkeypatch):
    now = 100.0
    monkeypatch.setattr(environment, "monotonic", lambda: now)
    step_over(logger, COPY, "it is cut")
    now += log_messages.TELL_AGAIN_SECONDS - 1
    step_over(logger, COPY, "it is cut")
    assert len(told()) == 1
    now += 1
    step_over(logger, COPY, "it is cut")
    assert len(told()) == 2


def test_what_is_remembered_is_bounded(told, monkeypatch):
    monkeypatch.setattr(log_messages, "COPIES_MAX", 10)
    for number in range(50):
        step_over(logger, COPY._replace(what=f"ledger {number}"), "it is cut")
    assert len(environment.the_one(log_messages._Told)._at) == 10
    step_over(logger, COPY._replace(what="ledger 49"), "it is cut")
    assert len(told()) == 50
