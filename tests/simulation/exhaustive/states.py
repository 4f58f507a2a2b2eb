"""All states of a small scope: what all its schedules come through, each state once.

A state is what lies in storage together with what each client knows; steps are learnt from runs of
the real code (``programs``), and whatever comes after a state was looked at once. So two
orders cost one of them if they come to the same, also where their steps do not commute: two looks
at what did not change meanwhile, two refusals, two ways to find out one thing.

What is left out, and why nothing is lost with it:

- Of steps that commute with all that others can still do, no other order is tried (persistent
  sets, Godefroid). Which those are follows from what was found behind them: a state is left only
  when no task that was not chosen there can, by anything found behind a chosen one, come in front
  of it. As there are no circles, everything behind is known by then.
- A step that was tried in front of another, and commutes with it, is not tried again behind it
  (sleep sets), here for operations on metadata. The set is a part of what a state is looked up by.
- A step that nobody else sees is made at once: the begin and the end of a task, what it takes from
  its inbox, a look at what never changes.
- Names, as in ``symmetry``.
- Of a state a fingerprint of 64 bits is kept, as in TLC (``memory`` has the odds, and the
  result says them): a state that is taken for another by chance is not looked at.

The path to each end that differs is run for real and must lead there, a last recovery must close
the ledger behind it, and a reader must read all of it. Promises about what is there are checked in
each state (``pictures``); those about how a client came to it (J4, R16) in the schedules
that were run, of which every step that differs is in one.
"""

from collections.abc import Sequence
from struct import Struct

from tests.simulation.exhaustive.coverage import Coverage
from tests.simulation.exhaustive.deeds import Deed, Deeds
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.knowledge import Numbers
from tests.simulation.exhaustive.lesson import Lesson
from tests.simulation.exhaustive.memory import Fingerprints
from tests.simulation.exhaustive.moves import Choice, Clients, Move, Row
from tests.simulation.exhaustive.pictures import Pictures
from tests.simulation.exhaustive.programs import (
    CONSTANT,
    Made,
    Programs,
    State,
    Waiting,
    process_of,
)
from tests.simulation.exhaustive.progress import Progress
from tests.simulation.exhaustive.run import FATE_TASK, WRITER, Scope
from tests.simulation.scheduler import Violation

Memory = dict[bytes, int] | Fingerprints

_SEEN = 0
"""In place of the number of what comes behind a state, as long as that is not known."""


def cover(
    scope: Scope,
    limit: int | None = None,
    *,
    uses_symmetry: bool = True,
    is_reduced: bool = True,
    is_exact: bool = False,
) -> Coverage:
    """Look at every state of ``scope``, or at the first ``limit``; ends at the first violation.

    Args:
        is_reduced: leave out what the module's docstring says.
        is_exact: remember all of every state, not only a fingerprint.
    """
    memory: Memory = {} if is_exact else Fingerprints()
    search = _Search(
        scope, limit, uses_symmetry=uses_symmetry, is_reduced=is_reduced, memory=memory
    )
    search.run()
    if not is_exact:
        search.coverage.prints = len(memory)
    return search.coverage


class _LimitError(Exception):
    """So many states were wanted."""


class _Crossing:
    """A state while it is being looked at.

    Attributes:
        able: tasks that can go on.
        asleep: those whose step was tried before; not tried here.
        tried: the same, with those that were tried here and may sleep from now on.
        chosen: tasks of which nothing that does not commute is left out; ``left``: to be tried yet.
    """

    __slots__ = ("able", "asleep", "chosen", "left", "row", "tried")

    def __init__(self, row: Row, asleep: int) -> None:
        self.row = row
        self.able: dict[str, Choice] = {}
        self.asleep = self.tried = asleep
        self.chosen: list[str] = []
        self.left: list[str] = []

    def choose(self, task: str) -> None:
        if task not in self.chosen:
            self.chosen.append(task)
            self.left.append(task)


class _Search:
    def __init__(
        self,
        scope: Scope,
        limit: int | None,
        *,
        uses_symmetry: bool,
        is_reduced: bool,
        memory: Memory,
    ) -> None:
        self.coverage = Coverage(scope)
        self._limit = limit
        self._ranks = scope.ranks if uses_symmetry else {}
        self._is_reduced = is_reduced
        self._programs = Programs(scope, uses_symmetry=uses_symmetry)
        self._deeds = Deeds()
        self._memory = memory
        self._futures = Numbers()
        self._behind: list[int] = []
        self._asleep = Numbers()
        self._settled: dict[int, tuple[int, tuple[str, ...]]] = {}
        self._ends: set[tuple[Row, int]] = set()
        self._path: list[str] = []
        self._progress = Progress()
        self._pictures: Pictures
        self._lesson: Lesson

    def run(self) -> None:
        coverage = self.coverage
        try:
            lesson = self._learn([])
            self._begin(lesson)
            row = (*lesson.states[0].locals, *lesson.states[0].contents)
            for process in range(self._width):
                row = self._settle(row, process)
            self._look(row, 0)
            coverage.is_complete = True
        except (Violation, _LimitError):
            coverage.is_complete = False
        coverage.ends = len({end for end, _ in self._ends})
        coverage.runs, coverage.operations = self._programs.runs, self._programs.operations

    def _begin(self, lesson: Lesson) -> None:
        """The first schedule has shown which processes and places there are."""
        programs = self._programs
        self._pictures = Pictures(programs, lesson.run.ledger_id)
        self._clients = Clients(programs, self._ranks)
        self._width = len(programs.processes)
        self._writer = programs.processes.index(WRITER)
        self._pack = Struct(f"{self._width + len(programs.places) + 1}I").pack

    # --- from state to state ---------------------------------------------------------------

    def _look(self, row: Row, asleep: int) -> int:
        """Try what must be tried in a state; returns all that can come behind it."""
        key = self._pack(*row, self._asleep[asleep])
        number = self._memory.get(key)
        if number:
            return self._behind[number - 1]
        self._visit(row)
        behind = self._cross(_Crossing(row, asleep))
        self._remember(key, behind)
        return behind

    def _cross(self, crossing: _Crossing) -> int:
        behind = 0
        self._wake(crossing)
        while crossing.left:
            task = crossing.left.pop()
            if not (crossing.asleep and self._deeds.sleeper(task, crossing.asleep)):
                behind |= self._try(crossing, crossing.able[task])
            if not crossing.left:
                self._choose_rivals_of_untried(crossing, behind)
        return behind

    def _wake(self, crossing: _Crossing) -> None:
        """Find out who can go on, and choose the first of them, or all if nothing is left out."""
        clients, asleep = self._clients.of(crossing.row), crossing.asleep
        first: Choice | None = None
        for client in clients:
            crossing.able.update(client.choices)
            for choice in client.ranked:
                if not (asleep and self._deeds.sleeper(choice.task, asleep)):
                    if first is None or choice.rank < first.rank:
                        first = choice
                    break
        if not clients:
            self._end(crossing.row)
        elif not self._is_reduced:
            crossing.left = [*crossing.able]
        elif first is not None:
            crossing.choose(first.task)

    def _try(self, crossing: _Crossing, choice: Choice) -> int:
        """Let a task go on, and look at all that comes behind; what can come from there on."""
        path, row = self._path, crossing.row
        move = choice.move(row) or self._foresee(row, choice)
        length = len(path)
        path += move.path
        self.coverage.steps += 1
        deed = move.deed
        behind = self._look(
            self._after(row, choice, move), self._deeds.behind(deed, crossing.tried)
        )
        del path[length:]
        if self._is_reduced:
            if choice.is_on_metadata:
                crossing.tried |= self._deeds.bit(deed)
            self._choose_rivals(crossing, deed, behind)
        return behind | deed.bits

    def _choose_rivals_of_untried(self, crossing: _Crossing, behind: int) -> None:
        """Of those behind whom not everything is seen that could come in front of them.

        That is whoever is asleep, and whoever ends others.
        """
        for task in crossing.chosen:
            sleeper = self._deeds.sleeper(task, crossing.asleep) if crossing.asleep else None
            if sleeper is not None:
                self._choose_rivals(crossing, sleeper, behind)
            elif task == FATE_TASK:
                choice = crossing.able[task]
                move = choice.move(crossing.row) or self._foresee(crossing.row, choice)
                self._choose_rivals(crossing, move.deed, behind)

    def _choose_rivals(self, crossing: _Crossing, deed: Deed, behind: int) -> None:
        """Choose those as well without whom nothing that matters comes in front of ``deed``."""
        for rival in self._deeds.rivals(deed, behind):
            for one in self._leading_to(crossing, rival):
                crossing.choose(one)

    def _leading_to(self, crossing: _Crossing, rival: str) -> list[str]:
        """Tasks that can go on here, one of which must before ``rival`` makes any further step.

        Processes wait for nobody else. A recoverer waits for all of the tasks that it began, and
        begins others only then.
        """
        if rival in crossing.able:
            return [rival]
        process = process_of(rival)
        fellows = [task for task in crossing.able if process_of(task) == process]
        if not fellows or process == WRITER:
            return fellows or list(crossing.able)
        main = f"{process}/main"
        return [next((task for task in fellows if task in (*crossing.chosen, main)), fellows[0])]

    # --- one step --------------------------------------------------------------------------

    def _after(self, row: Row, choice: Choice, move: Move) -> Row:
        after = [*row]
        after[choice.process] = move.local
        if move.content is not None:
            after[choice.place] = move.content
        if choice.task == FATE_TASK:
            after[self._writer] = self._programs.dead(row[self._writer])
        return tuple(after)

    def _foresee(self, row: Row, choice: Choice) -> Move:
        """What a task makes of a state that it was not seen in; remembers it."""
        made = self._made(row, choice)
        move = Move(made.local, made.content, (choice.task,), self._deed(choice, made))
        length = len(self._path)
        self._path.append(choice.task)
        after = self._settle(self._after(row, choice, move), choice.process)
        move.local, move.path = after[choice.process], tuple(self._path[length:])
        del self._path[length:]
        view = self._programs.view(choice.waiting.operation, row[choice.place])
        choice.moves[view] = move
        return move

    def _deed(self, choice: Choice, made: Made) -> Deed:
        return self._deeds.of(choice.task, made.accesses)

    def _made(self, row: Row, choice: Choice) -> Made:
        """What a step makes; a schedule is run to see it if it is not known."""
        local, waiting = row[choice.process], choice.waiting
        content = None if waiting.operation is None else row[choice.place]
        made = self._programs.known(local, waiting, content)
        if made is None:
            self._learn([*self._path, choice.task], row)
            made = self._programs.known(local, waiting, content)
            assert made is not None
        return made

    def _settle(self, row: Row, process: int) -> Row:
        """Let a process make all steps that nobody else sees; adds them to the path."""
        if not self._is_reduced:
            return row
        begin = row[process]
        if begin not in self._settled:
            length = len(self._path)
            end = self._settle_anew(row, process)
            self._settled[begin] = (end, tuple(self._path[length:]))
            del self._path[length:]
        local, made = self._settled[begin]
        self._path += made
        return (*row[:process], local, *row[process + 1 :])

    def _settle_anew(self, row: Row, process: int) -> int:
        tasks = list(self._programs.locals[row[process]].tasks)
        while tasks:
            waiting = tasks.pop(0)
            if not (waiting.is_able and _is_quiet(waiting)):
                continue
            choice = self._clients.choice(waiting, is_fresh=False)
            made = self._made(row, choice)
            if all(_is_own(thing, access) for thing, access in made.accesses):
                row = (*row[:process], made.local, *row[process + 1 :])
                self._path.append(waiting.task)
                tasks = list(self._programs.locals[row[process]].tasks)
        return row[process]

    # --- what is looked at -----------------------------------------------------------------

    def _visit(self, row: Row) -> None:
        """Look at a state, if this was not done before."""
        key, coverage = self._pack(*row, self._asleep[0]), self.coverage
        if self._memory.get(key) is not None:
            return
        if self._limit is not None and coverage.states >= self._limit:
            raise _LimitError
        self._memory[key] = _SEEN
        coverage.states += 1
        self._progress.tell(coverage.states, coverage.steps)
        try:
            self._pictures.require(row[self._width :], self._acked(row))
        except Violation as violation:
            self._fail(str(violation))
            raise

    def _remember(self, key: bytes, behind: int) -> None:
        number = self._futures[behind]
        if number == len(self._behind):
            self._behind.append(behind)
        self._memory[key] = number + 1

    def _fail(self, violation: str) -> None:
        """Run the schedule that led to a broken promise, so that it can be told."""
        self._learn(self._path)
        self.coverage.failed = self._lesson.run.outcome(violation)

    def _end(self, row: Row) -> None:
        """Nothing can go on: close the ledger and read it, if this end is new."""
        if any(self._programs.locals[local].tasks for local in row[: self._width]):
            return  # a recoverer's turn has not come: another order of names is looked at
        end = (row[self._width :], self._acked(row))
        if end not in self._ends:
            self._ends.add(end)
            self._learn(self._path, row, is_end=True)

    def _acked(self, row: Row) -> int:
        return self._programs.locals[row[self._writer]].acked

    def _learn(
        self, begin: Sequence[str], expected: Row | None = None, *, is_end: bool = False
    ) -> Lesson:
        """Run a schedule that begins so.

        Args:
            expected: the state that it comes to, before the last of these steps or behind an end.

        Raises:
            Violation: it breaks a promise.
        """
        lesson = self._lesson = Lesson(self._programs, begin)
        try:
            with lesson.run.in_place():
                lesson.play()
                if is_end:
                    self.coverage.shapes.add(lesson.run.shape())
                    lesson.run.finish()
        except Violation as violation:
            self.coverage.failed = lesson.run.outcome(str(violation))
            raise
        if expected is not None:
            state = State(expected[: self._width], expected[self._width :])
            if lesson.states[len(begin) - (not is_end)] != state:
                raise AssertionError(f"{begin} comes to another state than was foreseen")
        return lesson


def _is_quiet(waiting: Waiting) -> bool:
    return waiting.operation is None or waiting.operation[1] in CONSTANT


def _is_own(thing: str, access: Access) -> bool:
    """Whether no other task has anything to do with it from now on, but for waiting for it."""
    if thing.startswith(("start of ", "end of ")):
        return access is not Access.READ
    return thing.startswith("inbox of ") and ", item " in thing and access is Access.WAIT
