"""Every schedule of small scopes, with the real client code; and proof that it would notice."""

import pytest

from bkspark.protocol.ledger.quorum import Quorum
from tests.simulation.__main__ import main
from tests.simulation.exhaustive.exhaust import exhaust
from tests.simulation.exhaustive.run import Scope
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from . import mutants

WHOLE = (
    Scope(Quorum(2, 2, 2)),
    Scope(Quorum(2, 2, 2), closes=True),
    Scope(Quorum(2, 2, 2), dies=True),
    Scope(Quorum(2, 2, 2), changes=True),
    Scope(Quorum(3, 3, 2)),
)
"""Every schedule that differs in more than the order of steps that commute."""

ALIKE = (
    Scope(Quorum(2, 2, 1)),
    Scope(Quorum(2, 2, 2), closes=True),
    Scope(Quorum(2, 2, 2), dies=True),
    Scope(Quorum(3, 3, 2)),
    Scope(Quorum(1, 1, 1), recoverers=2),
)
"""Bookies or recoverers that are alike, and few enough schedules to run all for all names."""

BROKEN = (
    ("ack at Qa - 1", Scope(Quorum(2, 2, 2))),
    ("post-check skipped", Scope(Quorum(2, 2, 2))),
    ("post-check before the append", Scope(Quorum(2, 2, 2))),
    ("fence after read", Scope(Quorum(2, 2, 2))),
    ("recovery reads without a fence", Scope(Quorum(2, 2, 2))),
    ("a bookie that has nothing is not fenced", Scope(Quorum(2, 2, 2))),
    ("a record confirms itself", Scope(Quorum(2, 2, 2))),
    ("metadata check skipped", Scope(Quorum(2, 2, 2))),
    ("close without write-back", Scope(Quorum(2, 2, 2), dies=True)),
    ("replacement counted without CAS", Scope(Quorum(2, 2, 2), changes=True)),
    ("update without compare", Scope(Quorum(2, 2, 2), closes=True)),
)


@pytest.mark.parametrize("scope", always(WHOLE[:2], WHOLE), ids=str)
def test_no_schedule_of_a_small_scope_breaks_a_promise(
    scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    result = exhaust(scope)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.failed is None, told(result.failed)
    assert result.is_complete
    assert result.ends > 1


@pytest.mark.thorough
@pytest.mark.parametrize("scope", always(ALIKE[:1], ALIKE), ids=str)
def test_what_is_left_out_is_the_same_but_for_names(scope: Scope) -> None:
    some, every = exhaust(scope), exhaust(scope, uses_symmetry=False)
    assert some.is_complete
    assert every.is_complete
    assert some.schedules < every.schedules
    assert some.shapes == every.shapes
    assert len(some.shapes) > 1


@pytest.mark.parametrize(
    ("name", "scope"), always(BROKEN[:1], BROKEN, are_rows=True), ids=[name for name, _ in BROKEN]
)
def test_a_broken_rule_is_noticed_in_a_small_scope(
    name: str, scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    with mutants.changed(*mutants.MUTANTS[name]):
        result = exhaust(scope)
    assert result.failed is not None
    with capsys.disabled():
        print(f"\n{name}: noticed by schedule {result.schedules + result.redundant + 1}")


@pytest.mark.thorough
def test_the_command_says_what_was_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--exhaust", "1/1/1", "--change"]) == 0
    assert "1/1/1, one entry, one ensemble change, 1 recoverer" in capsys.readouterr().out
    assert main(["--exhaust", "2/2/2", "--all-names"]) == 0
    assert "schedules (all" in capsys.readouterr().out
    assert main(["--exhaust", "2/2/2", "--limit", "5"]) == 0
    assert "not all" in capsys.readouterr().out
    with mutants.changed(*mutants.MUTANTS["post-check skipped"]):
        assert main(["--exhaust", "2/2/2"]) == 1
    assert "VIOLATION" in capsys.readouterr().out
