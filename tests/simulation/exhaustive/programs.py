"""What each client does in each of its states, learnt from schedules that were run.

A step depends on what its process knows and on what it looks at in storage, on nothing else. So a
step that was seen once is known wherever the same two meet again, whatever the other processes
know: a few thousand schedules teach the steps of all of them. Whatever is run checks what was
learnt before.
"""

from collections import defaultdict
from functools import cache
from typing import NamedTuple

from bkspark.format import ledger_metadata
from bkspark.protocol.ledger.metadata import LedgerMetadata
from tests.simulation.exhaustive.dependence import Access
from tests.simulation.exhaustive.knowledge import OVER, Known, Numbers, is_shared
from tests.simulation.exhaustive.run import WRITER, Scope

Operation = tuple[str, str, str]
"""(place, call, name)."""

Files = tuple[tuple[str, bytes, int], ...]
"""What is at a place: name, bytes and version; a file has version 0."""

CONSTANT = frozenset({"open_root", "has_journal"})
"""Calls that look at nothing that ever changes in a scope."""


class State(NamedTuple):
    """All there is at one moment.

    Attributes:
        locals: the number of each process' local state.
        contents: the number of what is at each place.
    """

    locals: tuple[int, ...]
    contents: tuple[int, ...]


class Waiting(NamedTuple):
    """A task between two steps.

    Attributes:
        operation: what its step begins with, None if with nothing that others see.
        is_able: whether it can go on.
    """

    task: str
    operation: Operation | None
    is_able: bool


class Local(NamedTuple):
    """What can be seen of one local state.

    Attributes:
        is_fresh: it has started no task yet.
        acked: the last entry that this client was told is acknowledged.
    """

    tasks: tuple[Waiting, ...]
    is_fresh: bool
    acked: int


class Made(NamedTuple):
    """What a step made of its process, and of the place it looked at; None if of neither."""

    local: int
    content: int | None
    accesses: tuple[tuple[str, Access], ...]


class _Alone(NamedTuple):
    """What a step made of its task, and of the place it looked at."""

    known: int
    waiting: Waiting
    content: int | None
    accesses: tuple[tuple[str, Access], ...]


class Programs:
    """What was learnt of one scope.

    Attributes:
        locals: by number.
        contents: by number.
        runs: schedules that were run.
        operations: of all of them.
        views: a number for what an operation looks at, by what is at its place.
    """

    def __init__(self, scope: Scope, *, uses_symmetry: bool) -> None:
        self.scope = scope
        self.uses_symmetry = uses_symmetry
        self.numbers = Numbers()
        self.locals: list[Local] = []
        self.contents: list[Files] = []
        self.processes: list[str] = []
        self.places: list[str] = []
        self.runs = 0
        self.operations = 0
        self.views: dict[Operation, dict[int, int]] = defaultdict(dict)
        self._local_numbers = Numbers()
        self._content_numbers = Numbers()
        self._keys: list[tuple[str, Known]] = []
        self._alone: dict[tuple[Waiting, int, int | None], _Alone] = {}
        self._steps: dict[tuple[int, str], dict[int | None, Made]] = {}
        self._ledgers: dict[int, LedgerMetadata] = {}

    def known(self, local: int, waiting: Waiting, content: int | None) -> Made | None:
        """What the step of a task makes, if it was seen; ``content`` is of the place it is at."""
        view = self.view(waiting.operation, content)
        made = self._steps.get((local, waiting.task), {}).get(view)
        return self._known_alone(local, waiting, view) if made is None else made

    def learn(self, local: int, waiting: Waiting, content: int | None, made: Made) -> None:
        """A step was seen.

        Raises:
            AssertionError: it made something else before, so that it depends on what is not seen.
        """
        view = self.view(waiting.operation, content)
        before = self._steps.setdefault((local, waiting.task), {}).setdefault(view, made)
        if before != made:
            raise AssertionError(f"{waiting} makes {made}, before it made {before}")
        if all(is_shared(thing) for thing, _ in made.accesses):
            known, then = self._task(local, waiting.task), self._task(made.local, waiting.task)
            # With an operation before it a task waits for nobody of its process.
            if known is not None and then is not None and then[1].operation is not None:
                self._alone[waiting, known[0], view] = _Alone(*then, made.content, made.accesses)

    def _known_alone(self, local: int, waiting: Waiting, view: int | None) -> Made | None:
        """What a step makes that was only seen while the other tasks knew something else.

        If it touches nothing of its process, it neither sees nor changes what those know.
        """
        known = self._task(local, waiting.task)
        alone = None if known is None else self._alone.get((waiting, known[0], view))
        if known is None or alone is None:
            return None
        process, (tasks, left) = self._keys[local]
        tasks = tasks - {(waiting.task, known[0])} | {(waiting.task, alone.known)}
        seen = self.locals[local]
        waits = tuple(alone.waiting if one == waiting else one for one in seen.tasks)
        after = self.local((process, (tasks, left)), seen._replace(tasks=waits))
        made = Made(after, alone.content, alone.accesses)
        self._steps.setdefault((local, waiting.task), {})[view] = made
        return made

    def _task(self, local: int, key: str) -> tuple[int, Waiting] | None:
        """What a task knows, and where it waits; None if it has not begun, or has ended."""
        known = next((number for task, number in self._keys[local][1][0] if task == key), None)
        waiting = next((one for one in self.locals[local].tasks if one.task == key), None)
        return None if known is None or waiting is None else (known, waiting)

    def local(self, key: tuple[str, Known], local: Local) -> int:
        """The number of a local state, and what is seen of it, which is always the same.

        Args:
            key: the name of the process, and what its tasks know.
        """
        number = self._local_numbers[key, local.acked]
        if number == len(self.locals):
            self.locals.append(local)
            self._keys.append(key)
        elif self.locals[number] != local:
            raise AssertionError(f"{local} of {key[0]}, before it was {self.locals[number]}")
        return number

    def dead(self, writer: int) -> int:
        """The number of the writer's state when it has died in state ``writer``."""
        local = Local((), is_fresh=False, acked=self.locals[writer].acked)
        return self.local((WRITER, OVER), local)

    def content(self, files: Files) -> int:
        number = self._content_numbers[files]
        if number == len(self.contents):
            self.contents.append(files)
        return number

    def ledger(self, content: int) -> LedgerMetadata:
        """The ledger, if ``content`` is what the metadata store has."""
        found = self._ledgers.get(content)
        if found is None:
            ((key, encoded, _),) = self.contents[content]
            found = ledger_metadata.decode(int(key.rpartition("/")[2], 16), encoded)
            self._ledgers[content] = found
        return found

    def view(self, operation: Operation | None, content: int | None) -> int | None:
        """A number for what an operation looks at in what is at its place."""
        if operation is None or content is None or operation[1] in CONSTANT:
            return None
        view = self.views[operation].get(content)
        if view is None:
            view = self.views[operation][content] = self._look(operation, content)
        return view

    def _look(self, operation: Operation, content: int) -> int:
        _, call, name = operation
        if call not in ("size", "read", "list"):
            return content
        found = tuple(
            file if call != "list" else file[0]
            for file in self.contents[content]
            if name == (file[0] if call != "list" else file[0].rpartition("/")[0])
        )
        return -2 - self.numbers[call, found]


@cache
def process_of(task: str) -> str:
    """The process of the task with this key."""
    return task.partition("/")[0]
