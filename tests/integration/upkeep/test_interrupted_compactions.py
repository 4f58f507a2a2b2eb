"""Compactions that are killed at any operation, and what others do at any of theirs."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest

from bkspark import verbs
from bkspark.admin import log_upkeep as compacting
from bkspark.bookkeeper import BookKeeper
from bkspark.errors import BookKeeperError
from bkspark.log.log_handle import LogHandle
from tests.integration.log_scenes import NAME, fill, values
from tests.integration.rig import Rig
from tests.kit.faulty import Crash, Fault, Moment, Operation, crash_at, fail_at, no_fault
from tests.small_pages import pages_of
from tests.thorough import always

STEP = 62
EACH = always((0,), range(0, STEP, 2))
SOME = always((0,), range(0, STEP, 6))
OPERATIONS = 90


@pytest.fixture(autouse=True)
def one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compacting, "AT_ONCE", 1)
    with pages_of(1):
        yield


@pytest.fixture
def scene(make_rig: Callable[..., Rig]) -> Callable[[], Rig]:
    def make() -> Rig:
        return make_rig(kind="memory", metadata="memory", bookie_count=3)

    return make


def assert_whole(rig: Rig, log: LogHandle, sent: list[bytes], begin: int = 0) -> None:
    """All is there, and after another compaction and a collection nothing is left over."""
    assert values(log) == sent[begin:]
    assert not verbs.compact(rig.uri, log=NAME).left
    assert values(log) == sent[begin:]
    assert verbs.collect(rig.uri, abandoned_after=0).left == []
    assert values(log) == sent[begin:]
    record = log.record
    assert not record.has_any_dropped
    assert log._cluster.ledger_ids() == sorted(record.listed_ids)
    assert not verbs.repair(rig.uri).left  # a bookie that seemed to fail lacks copies
    assert verbs.audit(rig.uri).left == []


@pytest.mark.parametrize("first", EACH)
def test_a_compaction_killed_at_any_operation_is_finished_by_the_next(
    scene: Callable[[], Rig], first: int
) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with BookKeeper(rig.uri) as keeper:
            log = keeper.create_log(NAME)
            sent = fill(log, 1, 2, 1, 1, 2)
            with rig.faults.installed():
                rig.faults.decide = crash_at(number, Moment.AFTER)
                try:
                    verbs.compact(rig.uri, log=NAME)
                    is_over = len(rig.faults.trace) <= number
                except (Crash, BookKeeperError):
                    pass
            assert_whole(rig, log, sent)
        number += STEP
    assert number > OPERATIONS


@pytest.mark.parametrize("first", SOME)
def test_an_answer_that_is_lost_does_no_harm(scene: Callable[[], Rig], first: int) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with BookKeeper(rig.uri) as keeper:
            log = keeper.create_log(NAME)
            sent = fill(log, 1, 2, 1, 1, 2)
            with rig.faults.installed():
                rig.faults.decide = fail_at(number, Moment.AFTER if number % 2 else Moment.BEFORE)
                with suppress(BookKeeperError):
                    verbs.compact(rig.uri, log=NAME)
                is_over = len(rig.faults.trace) <= number
            assert_whole(rig, log, sent)
        number += STEP
    assert number > OPERATIONS


def meanwhile(rig: Rig, number: int, act: Callable[[], object]) -> list[object]:
    """Let ``act`` happen right before that operation; what it returned, once it has."""
    done: list[object] = []

    def decide(now: int, _operation: Operation) -> Fault | None:
        if now == number:
            rig.faults.decide = no_fault
            done.append(act())
        return None

    rig.faults.decide = decide
    return done


def act(what: str, rig: Rig, log: LogHandle, sent: list[bytes]) -> None:
    match what:
        case "compact":
            verbs.compact(rig.uri, log=NAME)
        case "collect":
            verbs.collect(rig.uri, abandoned_after=0)
        case "truncate":
            log.truncate(4)
        case "append":
            sent += fill(log, 1, 1)
        case "read":
            assert values(log) == sent


@pytest.mark.parametrize("first", SOME)
@pytest.mark.parametrize("what", ["compact", "collect", "truncate", "append", "read"])
def test_what_others_do_at_any_operation(scene: Callable[[], Rig], first: int, what: str) -> None:
    number, is_over = first, False
    while not is_over:
        rig = scene()
        with BookKeeper(rig.uri) as keeper:
            log = keeper.create_log(NAME)
            sent = fill(log, 1, 2, 1, 1, 2)
            with rig.faults.installed():
                done = meanwhile(rig, number, partial(act, what, rig, log, sent))
                verbs.compact(rig.uri, log=NAME)
            is_over = not done
            begin = 4 if what == "truncate" and done else 0
            assert_whole(rig, log, sent, begin)
        number += STEP
    assert number > OPERATIONS
