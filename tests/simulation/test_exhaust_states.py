"""Every state of small scopes; the same ends as every schedule, and proof that it would notice."""

import pytest

from bkspark.ledger.recovery.recoverer import Recoverer
from bkspark.protocol.ledger.quorum import Quorum
from bkspark.protocol.ledger.recovery_answers import Displaced
from tests.simulation.__main__ import main
from tests.simulation.exhaustive import lesson as exhaust_lesson
from tests.simulation.exhaustive import pictures as exhaust_pictures
from tests.simulation.exhaustive import states as exhaust_states
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.exhaust import exhaust
from tests.simulation.exhaustive.futures import Futures
from tests.simulation.exhaustive.knowledge import OVER, Knowledge, Known, Numbers
from tests.simulation.exhaustive.lesson import Lesson
from tests.simulation.exhaustive.pictures import Pictures
from tests.simulation.exhaustive.programs import Local, Made, Programs, Waiting
from tests.simulation.exhaustive.run import Scope
from tests.simulation.exhaustive.states import cover
from tests.simulation.scheduler import Process, Task, Violation
from tests.simulation.story import told

from ..thorough import always  # noqa: TID252
from . import mutants
from .test_exhaust import BROKEN

ONE, TWO, THREE = Quorum(1, 1, 1), Quorum(2, 2, 2), Quorum(3, 3, 2)

SCOPES = (
    Scope(THREE),
    Scope(TWO, changes=True, dies=True),
    Scope(ONE, recoverers=2, changes=True),
)

SEEN_BOTH_WAYS = (
    Scope(TWO),
    Scope(TWO, dies=True),
    Scope(TWO, closes=True, dies=True),
    Scope(TWO, changes=True),
    Scope(Quorum(2, 2, 1)),
    Scope(ONE, recoverers=2),
)
"""Few enough schedules to run all of them."""

SEEN_WHOLE = (
    Scope(ONE, closes=True, dies=True),
    Scope(ONE, closes=True, changes=True),
    Scope(ONE, recoverers=2),
    Scope(Quorum(2, 2, 1), dies=True),
)
"""Few enough states to look at all of them in every order."""

SEEN_BY_WHO_FORGETS = (
    Scope(ONE, dies=True, changes=True),
    Scope(ONE, recoverers=2),
    Scope(TWO, changes=True),
)
"""Few enough states to look at all of them for everything that is ever found out."""


@pytest.mark.parametrize("scope", always(SCOPES[-1:], SCOPES), ids=str)
def test_no_state_of_a_small_scope_breaks_a_promise(
    scope: Scope, capsys: pytest.CaptureFixture[str]
) -> None:
    result = cover(scope)
    with capsys.disabled():
        print(f"\n{result}")
    assert result.failed is None, told(result.failed)
    assert result.is_complete
    assert result.ends > 1


@pytest.mark.parametrize("scope", always(SEEN_BOTH_WAYS[:1], SEEN_BOTH_WAYS), ids=str)
def test_states_end_where_schedules_end(scope: Scope) -> None:
    states, schedules = cover(scope), exhaust(scope)
    assert states.is_complete
    assert schedules.is_complete
    assert states.shapes == schedules.shapes
    assert states.ends == schedules.ends
    assert len(states.shapes) > 1


@pytest.mark.parametrize("scope", always([Scope(ONE, recoverers=2)], SEEN_WHOLE), ids=str)
def test_what_is_left_out_leads_to_no_other_end(scope: Scope) -> None:
    some, every = cover(scope), cover(scope, is_reduced=False, is_exact=True)
    assert some.is_complete
    assert every.is_complete
    assert some.states < every.states
    assert some.shapes == every.shapes
    assert some.ends == every.ends


@pytest.mark.parametrize("scope", always([Scope(ONE, recoverers=2)], SEEN_BY_WHO_FORGETS), ids=str)
def test_whoever_has_forgotten_goes_on_as_if_it_knew(
    scope: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgetful: dict[Known, Known] = {}
    made: dict[object, object] = {}
    numbers = Numbers()

    class Remembering(Knowledge):
        """Forgets nothing; ``forgetful`` says what is left of it for whoever does."""

        def __init__(self, numbers_of_all: Numbers) -> None:
            super().__init__(numbers_of_all)
            self._forgetful = Knowledge(numbers)

        def found(self, task: Task, operation: tuple[str, str, str], outcome: object) -> None:
            place, call, name = operation
            super().found(task, (place, f"{call} told", name), outcome)  # of a marker as well
            self._forgetful.found(task, operation, outcome)

        def given(self, task: str, moment: str, value: object) -> None:
            super().given(task, moment, value)
            self._forgetful.given(task, moment, value)

        def goes_on(self, task: str, value: object) -> None:
            self._forgetful.goes_on(task, value)

        def touch(self, task: Task, thing: str, access: Access) -> None:
            super().touch(task, thing, access)
            self._forgetful.touch(task, thing, access)

        def of(self, process: str) -> Known:
            known, left = super().of(process), self._forgetful.of(process)
            assert forgetful.setdefault(known, left) == left
            return known

    class Comparing(Programs):
        """Whoever has the same left makes the same of the same, and has the same left then."""

        def learn(self, local: int, waiting: Waiting, content: int | None, step: Made) -> None:
            super().learn(local, waiting, content, step)
            before, after = (self._left(number) for number in (local, step.local))
            makes = (after, step.content, step.accesses)
            key = (before, waiting, self.view(waiting.operation, content))
            assert made.setdefault(key, makes) == makes

        def _left(self, local: int) -> object:
            name, known = self._keys[local]
            return (name, forgetful.get(known, known), self.locals[local])

    with monkeypatch.context() as patches:
        patches.setattr(exhaust_lesson, "Knowledge", Remembering)
        patches.setattr(exhaust_states, "Programs", Comparing)
        every = cover(scope)
    some = cover(scope)
    assert every.is_complete
    assert some.is_complete
    assert some.states < every.states
    assert some.shapes == every.shapes
    assert some.ends == every.ends


@pytest.mark.parametrize("scope", always([Scope(ONE, recoverers=2)], SEEN_WHOLE), ids=str)
def test_fingerprints_tell_apart_what_differs(scope: Scope) -> None:
    prints, whole = cover(scope), cover(scope, is_exact=True)
    assert prints.prints >= prints.states
    assert whole.prints == 0
    assert "by a chance of" in str(prints)
    assert "chance" not in str(whole)
    prints.prints = 0
    assert prints == whole


@pytest.mark.thorough
def test_names_alone_make_no_other_end() -> None:
    some, every = cover(Scope(TWO, dies=True)), cover(Scope(TWO, dies=True), uses_symmetry=False)
    assert some.states < every.states
    assert some.shapes == every.shapes


@pytest.mark.parametrize(
    ("name", "scope"), always(BROKEN[:1], BROKEN, are_rows=True), ids=[name for name, _ in BROKEN]
)
def test_a_broken_rule_is_noticed_in_some_state(name: str, scope: Scope) -> None:
    with mutants.changed(*mutants.MUTANTS[name]):
        result = cover(scope)
    assert result.failed is not None
    assert result.failed.violation
    assert result.failed.log


def test_what_was_seen_unfenced_is_noticed_before_it_is_forgotten() -> None:
    def lose(*_: object) -> Displaced:
        return Displaced("somebody else was faster (made up)")

    unfenced = mutants.MUTANTS["fence after read"]
    with mutants.changed(*unfenced, (Recoverer, "close", lose)):
        result = cover(Scope(ONE))
    assert result.failed is not None
    assert "(R16)" in result.failed.violation


def test_a_state_that_no_schedule_came_through_is_looked_at_too() -> None:
    def refuse(_places: object, acked: int) -> None:
        if acked == 0:
            raise Violation("nothing may be acknowledged (made up)")

    with mutants.changed((exhaust_pictures, "_require", refuse)):
        result = cover(Scope(ONE))
    assert result.failed is not None
    assert "made up" in result.failed.violation
    assert "acknowledged" in told(result.failed)


def test_the_command_counts_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--exhaust", "2/2/2", "--states"]) == 0
    assert "states (all)" in capsys.readouterr().out
    assert main(["--exhaust", "2/2/2", "--states", "--limit", "5"]) == 0
    assert "5 states (not all)" in capsys.readouterr().out
    with mutants.changed(*mutants.MUTANTS["post-check skipped"]):
        assert main(["--exhaust", "2/2/2", "--states"]) == 1
    assert "VIOLATION" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["--exhaust", "2/2/2", "--states", "--interruptions", "1"])


# --- what it stands on -------------------------------------------------------------------------


def test_a_step_that_does_something_else_the_second_time_is_found() -> None:
    programs = Programs(Scope(ONE), uses_symmetry=True)
    waiting = Waiting("writer/main", None, is_able=True)
    local = programs.local(("writer", OVER), Local((), is_fresh=True, acked=-1))
    programs.learn(local, waiting, None, Made(local, None, ()))
    programs.learn(local, waiting, None, Made(local, None, ()))
    with pytest.raises(AssertionError, match="before it made"):
        programs.learn(local, waiting, None, Made(local, None, (("x", Access.READ),)))


def test_a_state_that_looks_different_the_second_time_is_found() -> None:
    programs = Programs(Scope(ONE), uses_symmetry=True)
    able = Local((Waiting("writer/main", None, is_able=True),), is_fresh=True, acked=-1)
    programs.local(("writer", OVER), able)
    with pytest.raises(AssertionError, match="before it was"):
        programs.local(("writer", OVER), able._replace(tasks=()))


def test_who_found_out_the_same_knows_the_same_and_nobody_else() -> None:
    def knowing(*outcomes: object) -> object:
        knowledge, task = Knowledge(numbers), Task(Process("p"), "main", lambda: None, None)
        knowledge.touch(task, "start of p/main", Access.WRITE)
        for outcome in outcomes:
            knowledge.found(task, ("bookie-1", "size", "name"), outcome)
        return knowledge.of("p")

    numbers = Numbers()
    assert knowing(1, None) == knowing(1, None)
    assert len({knowing(1, None), knowing(None, 1), knowing(1), knowing()}) == 4


def test_steps_that_could_come_in_front_are_those_that_do_not_commute() -> None:
    futures = Futures()
    later = futures.steps("a", [("x", Access.READ)]) | futures.steps("b", [("x", Access.WAIT)])
    later |= futures.steps("c", [("x", Access.ADD)]) | futures.steps("d", [("y", Access.WRITE)])
    assert futures.racing("e", [("x", Access.WRITE)], later) == {"a", "c"}
    assert futures.racing("e", [("x", Access.READ)], later) == {"c"}
    assert futures.racing("c", [("x", Access.ADD), ("y", Access.READ)], later) == {"a", "d"}
    later |= futures.steps("f", [("x", Access.WRITE)])
    assert futures.racing("e", [("x", Access.READ)], later) == {"c", "f"}


def test_a_picture_that_breaks_a_promise_is_no_state_to_come_to() -> None:
    programs = Programs(Scope(ONE), uses_symmetry=True)
    lesson = Lesson(programs, [])
    with lesson.run.in_place():
        lesson.play()
    pictures = Pictures(programs, lesson.run.ledger_id)
    pictures.require(lesson.states[0].contents, -1)
    pictures.require(lesson.states[-1].contents, -1)
    with pytest.raises(Violation, match="I2"):
        pictures.require(lesson.states[0].contents, 0)
