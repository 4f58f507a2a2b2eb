"""What is alike comes in one order, and nothing else waits for a turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import pytest

from bkspark.protocol.ledger.metadata import (
    FIRST_TERM,
    Fragment,
    LedgerMetadata,
    LedgerSettings,
    LedgerState,
    Member,
)
from bkspark.protocol.ledger.quorum import Quorum
from tests.kit.faulty import METADATA
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.symmetry import Turns, is_too_early
from tests.simulation.scheduler import Process, Scheduler, Task

BOOKIES = ("b1", "b2", "b3")
LOCK = "lock"
TAKEOVER = (METADATA, "put", "ledgers/1")


@dataclass
class LastFirst:
    """Whoever was started last goes first."""

    random: Random = field(default_factory=lambda: Random(1))

    def choose(self, tasks: list[Task], _step: int) -> Task:
        return tasks[-1]


def answered(process: str, *, thing: str = LOCK, access: Access = Access.WAIT) -> Sequence[str]:
    """In which order three lanes of a process touch ``thing``, twice each."""
    scheduler, done = Scheduler(LastFirst()), []
    turns = Turns(scheduler, "writer", BOOKIES)

    def lane(bookie_id: str) -> None:
        for _ in range(2):
            turns.wait(thing, access)
            done.append(bookie_id)
            scheduler.pause()

    owner = Process(process)
    for bookie_id in BOOKIES:
        scheduler.spawn(owner, f"lane-{bookie_id}", partial(lane, bookie_id))
    scheduler.run()
    return done


def test_bookies_that_are_alike_answer_the_writer_in_their_order() -> None:
    firsts = list(dict.fromkeys(answered("writer")))
    assert firsts == list(BOOKIES)


def test_the_second_answer_has_no_turn() -> None:
    assert answered("writer") == ["b1", "b2", "b3", "b3", "b2", "b1"]


@pytest.mark.parametrize(
    ("process", "thing", "access"),
    [
        ("recoverer", LOCK, Access.WAIT),
        ("writer", "inbox of writer/main", Access.WRITE),
        ("writer", "inbox of writer/main", Access.WAIT),
        ("writer", LOCK, Access.WRITE),
        ("writer", LOCK, Access.READ),
    ],
)
def test_nobody_else_waits_and_nothing_else_is_waited_for(
    process: str, thing: str, access: Access
) -> None:
    assert answered(process, thing=thing, access=access) == ["b3", "b3", "b2", "b2", "b1", "b1"]


FRESH = LedgerMetadata(
    ledger_id=1,
    quorum=Quorum(1, 1, 1),
    state=LedgerState.OPEN,
    term=FIRST_TERM,
    token="01",
    fragments=(Fragment(0, FIRST_TERM, (Member("b1", "01"),)),),
    settings=LedgerSettings(),
)
TAKEN = FRESH.in_recovery("02")
CLOSED = FRESH.closed(last_entry_id=-1, length_bytes=0, term=FIRST_TERM, token="01")


def test_recoverers_that_are_alike_take_over_in_their_order() -> None:
    assert not is_too_early(0, TAKEOVER, FRESH)
    assert is_too_early(1, TAKEOVER, FRESH)
    assert not is_too_early(1, TAKEOVER, TAKEN)
    assert is_too_early(2, TAKEOVER, TAKEN)


def test_a_recoverer_waits_with_a_takeover_only() -> None:
    assert not is_too_early(1, TAKEOVER, CLOSED)
    assert not is_too_early(1, None, FRESH)
    assert not is_too_early(1, (METADATA, "get", "ledgers/1"), FRESH)
    assert not is_too_early(1, ("b1", "put", "ledgers/1"), FRESH)
