"""What a process remembers of storage that hung."""

import os
from concurrent.futures import Future

import pytest

from bkspark import environment
from bkspark.cluster import hanging
from bkspark.cluster.hanging import UNANSWERED_MAX, HangMemory
from bkspark.protocol.bookies import FAILURES_MAX
from bkspark.protocol.ledger.metadata import Member


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(environment, "monotonic", lambda: now[0])
    return now


def test_who_was_given_up_is_not_asked_before_it_has_answered(now: list[float]) -> None:
    memory, answer = HangMemory(), Future[int]()
    assert not memory.hangs("a")
    memory.gave_up("a", answer)
    assert memory.hangs("a")
    assert not memory.hangs("b")
    answer.set_result(1)
    assert not memory.hangs("a")


def test_or_a_minute_later_but_at_once_by_who_cannot_do_without(now: list[float]) -> None:
    memory = HangMemory()
    memory.gave_up("a", Future())
    assert not memory.hangs("a", is_patient=True)
    now[0] += hanging.ASK_AGAIN_SECONDS - 1
    assert memory.hangs("a")
    now[0] += 2
    assert not memory.hangs("a")


def test_who_owes_many_answers_is_not_asked_at_all(now: list[float]) -> None:
    memory, answers = HangMemory(), [Future[int]() for _ in range(UNANSWERED_MAX)]
    for answer in answers:
        assert not memory.hangs("a", is_patient=True)
        memory.gave_up("a", answer)
    now[0] += 10 * hanging.ASK_AGAIN_SECONDS
    assert memory.hangs("a", is_patient=True)
    answers[0].set_result(1)
    assert not memory.hangs("a")


def test_who_was_done_without_hangs_when_it_has_had_all_its_time(now: list[float]) -> None:
    memory, answer = HangMemory(), Future[int]()
    memory.did_without("a", answer, 10)
    assert not memory.hangs("a")
    now[0] += 9
    memory.did_without("a", answer, 10)
    assert not memory.hangs("a")
    now[0] += 2
    assert memory.hangs("a")


def test_who_was_given_up_stays_so_if_it_is_done_without_as_well(now: list[float]) -> None:
    memory, answer = HangMemory(), Future[int]()
    memory.gave_up("a", answer)
    memory.did_without("a", answer, 10)
    assert memory.hangs("a")


def test_bookies_in_quarantine_are_those_of_their_cluster() -> None:
    memory = HangMemory()
    for _ in range(FAILURES_MAX):
        memory.quarantine("c").note_failure(Member("bookie-1", "1" * 32), 5.0)
    assert memory.quarantine("c").bookie_ids(6.0) == {"bookie-1"}
    assert memory.quarantine("d").bookie_ids(6.0) == set()


def test_a_forked_process_has_asked_nobody() -> None:
    environment.the_one(HangMemory).gave_up("a", Future())
    child = os.fork()
    if not child:
        os._exit(environment.the_one(HangMemory).hangs("a"))
    assert os.waitpid(child, 0)[1] == 0
    assert environment.the_one(HangMemory).hangs("a")
