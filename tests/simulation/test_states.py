"""Every state of small worlds; the same ends as every schedule, and proof that it would notice."""

from typing import Any

import pytest

from bkspark.cluster.password import Password, make_digester
from bkspark.format import journal
from bkspark.protocol.ledger.metadata import DigestSpec, LedgerState
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.record import header
from tests.simulation.__main__ import main
from tests.simulation.exhaustive.exhaust import exhaust
from tests.simulation.exhaustive.run import Scope as Schedules
from tests.simulation.states.search import Shape, search
from tests.simulation.states.world import Rules, Scope

from ..thorough import always  # noqa: TID252
from . import mutants

ONE, TWO, THREE = Quorum(1, 1, 1), Quorum(2, 2, 2), Quorum(3, 3, 2)

STAND_INS = Scope(ONE, failures=2, spares=2)
"""Bookies that stand in for others in a write-back fail too, and others stand in for them."""

SCOPES = (
    STAND_INS,
    Scope(THREE, dies=True),
    Scope(TWO, recoverers=2, dies=True),
    Scope(TWO, entries=2, failures=1, spares=1),
    Scope(THREE, failures=1, spares=1),
    Scope(THREE, entries=2),
    Scope(THREE, recoverers=2),
    Scope(THREE, failures=2, spares=1),
    Scope(ONE, failures=3, spares=3),
    Scope(TWO, failures=2, spares=2),
    Scope(Quorum(4, 3, 2), failures=1, spares=1),
)

SEEN_BOTH_WAYS = (
    Schedules(TWO),
    Schedules(ONE, recoverers=2),
    Schedules(TWO, dies=True),
    Schedules(Quorum(2, 2, 1)),
    Schedules(THREE),
)
"""Few enough schedules of the real clients to run all of them."""

UNREAD = Rules(reads_metadata=False)
BROKEN = {
    "no post-check": Rules(checks_behind_append=False, reads_metadata=False),
    "post-check before the append": Rules(
        checks_behind_append=False, checks_before_append=True, reads_metadata=False
    ),
    "fence after read": Rules(fences_before_reading=False, reads_metadata=False),
    "no fence": Rules(fences=False, reads_metadata=False),
    "a bookie that has nothing is not fenced": Rules(fences_the_empty=False, reads_metadata=False),
}
"""The fence and the metadata check cover each other, so it takes both to be broken."""

BROKEN_MACHINES = (
    ("ack at Qa - 1", Scope(TWO, dies=True)),
    ("close without write-back", Scope(TWO, dies=True)),
    ("acks of a replaced bookie kept", Scope(TWO, entries=2, failures=1, spares=1)),
    ("absence from Qw - Qa answers", Scope(THREE, failures=2)),
    ("silence counts as absence", Scope(THREE, failures=2)),
)


@pytest.mark.parametrize("scope", always(SCOPES[:3], SCOPES), ids=str)
def test_no_state_of_a_small_world_breaks_a_promise(
    scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    found = search(scope)
    with capsys.disabled():
        print(f"\n{found}")
    assert not found.violation, str(found)
    assert found.is_complete
    assert found.ends > 1


def shapes_of(scope: Schedules) -> set[Shape]:
    """Where all schedules of the real clients end; a header is no record."""
    begun = header(ledger_id=0, term=1, token="0" * 32, quorum=scope.quorum)
    frame = journal.encode(begun, make_digester(DigestSpec(), Password())).frame(0, 0)
    header_bytes = sum(memoryview(piece).nbytes for piece in frame)
    found = set[Shape]()
    shapes: Any = exhaust(scope).shapes
    for state, term, last, _, disks in shapes:
        bookies = [
            (
                any(name.endswith("terms/00000002") for name, _ in files),
                any("/journal/" in name and size not in (0, header_bytes) for name, size in files),
            )
            for _, files in disks
        ]
        found.add((state, term, last, tuple(sorted(bookies))))
    return found


@pytest.mark.parametrize("scope", always(SEEN_BOTH_WAYS[:1], SEEN_BOTH_WAYS), ids=str)
def test_states_end_where_schedules_of_the_real_clients_end(scope: Schedules) -> None:
    """So what carries out instructions here does what threads and Spark tasks do."""
    found = search(Scope(scope.quorum, recoverers=scope.recoverers, dies=scope.dies))
    assert found.is_complete
    assert found.shapes == shapes_of(scope)
    assert len(found.shapes) > 1


@pytest.mark.parametrize("name", BROKEN)
def test_a_runner_that_breaks_a_rule_is_noticed(name: str) -> None:
    found = search(Scope(TWO, rules=BROKEN[name]))
    assert "(I1)" in found.violation
    assert found.story


def test_a_change_that_is_not_stored_is_noticed() -> None:
    rules = Rules(compares_when_changing=False, reads_metadata=False)
    assert "(I2, I3)" in search(Scope(TWO, failures=1, spares=1, rules=rules)).violation


@pytest.mark.parametrize(
    ("name", "scope"),
    always(BROKEN_MACHINES[:2], BROKEN_MACHINES, are_rows=True),
    ids=[name for name, _ in BROKEN_MACHINES],
)
def test_a_machine_that_breaks_a_rule_is_noticed(name: str, scope: Scope) -> None:
    with mutants.changed(*mutants.MUTANTS[name]):
        found = search(scope)
    assert "I" in found.violation
    assert found.story


def test_each_of_two_that_cover_each_other_may_be_missing() -> None:
    for rules in (UNREAD, Rules(checks_behind_append=False)):
        found = search(Scope(TWO, rules=rules))
        assert found.is_complete
        assert not found.violation


def test_a_ledger_is_open_where_nobody_has_taken_it_over() -> None:
    found = search(Scope(TWO, recoverers=0))
    assert {shape[0] for shape in found.shapes} == {LedgerState.OPEN}


def test_recoverers_take_over_one_behind_the_other() -> None:
    assert {shape[1] for shape in search(Scope(ONE, recoverers=2)).shapes} == {2, 3}


def test_the_command_counts_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--exhaust", "2/2/2", "--states", "--change"]) == 0
    told = capsys.readouterr().out
    assert "1 failures, 1 spares" in told
    assert "states (all)" in told
    assert main(["--exhaust", "2/2/2", "--states", "--limit", "5"]) == 0
    assert "5 states (not all)" in capsys.readouterr().out
    with mutants.changed(*mutants.MUTANTS["close without write-back"]):
        assert main(["--exhaust", "2/2/2", "--states", "--crashes", "1"]) == 1
    told = capsys.readouterr().out
    assert "VIOLATION" in told
    assert "takes over" in told
    with pytest.raises(SystemExit):
        main(["--exhaust", "2/2/2", "--states", "--close"])
