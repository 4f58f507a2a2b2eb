"""What can be done next in a state, and what comes of it, found once for each client's state.

The inner loop of a search of many million states: everything here could be asked from
``programs`` again at each of them, which keeps it by its meaning and not by where it is
needed. A state is a row of numbers here: what each process knows, then what is at each place.
"""

from dataclasses import dataclass, field

from bkspark.testing.faulty_cluster import METADATA
from tests.simulation.exhaustive.deeds import Deed
from tests.simulation.exhaustive.programs import CONSTANT, Programs, Waiting, process_of
from tests.simulation.exhaustive.run import FATE_TASK
from tests.simulation.exhaustive.symmetry import is_too_early

Row = tuple[int, ...]

_NO_PLACE = 0
"""Whatever is there is not looked at."""


@dataclass(slots=True, eq=False)
class Move:
    """What a task makes of its process, and of the place it looks at, if it does.

    Attributes:
        local: what the process knows then, with all steps made that nobody else sees.
        content: of the place; None if it stays as it is.
        path: the task, and those that make the steps that nobody else sees.
    """

    local: int
    content: int | None
    path: tuple[str, ...]
    deed: Deed


@dataclass(slots=True, eq=False)
class Choice:
    """A task that can go on.

    Attributes:
        process: where its number is in the row; ``place``: the same of what it looks at.
        views: what it looks at in the contents of its place, as far as it was asked.
        moves: what it makes, for each view that was met; None stands for no view.
        rank: what comes first, so that little must be chosen besides.
    """

    task: str
    waiting: Waiting
    process: int
    place: int
    views: dict[int, int]
    rank: tuple[int, str, str]
    is_on_metadata: bool
    moves: dict[int | None, Move] = field(default_factory=dict)

    def move(self, row: Row) -> Move | None:
        """What it makes in this state; None if that is not known yet."""
        return self.moves.get(self.views.get(row[self.place]))


class Client:
    """What a process can do in one of its states.

    Attributes:
        choices: by task.
        ranked: the same, in order of their ranks.
    """

    __slots__ = ("choices", "ranked", "waits")

    def __init__(self, choices: list[Choice], *, waits: bool = False) -> None:
        self.choices = {choice.task: choice for choice in choices}
        self.ranked = sorted(choices, key=lambda choice: choice.rank)
        self.waits = waits


class Clients:
    """All of them, by the number of their state."""

    def __init__(self, programs: Programs, ranks: dict[str, int]) -> None:
        self._programs = programs
        self._ranks = ranks
        self._processes = {name: at for at, name in enumerate(programs.processes)}
        self._places = {
            name: at for at, name in enumerate(programs.places, len(programs.processes))
        }
        self._metadata = self._places[METADATA]
        self._clients: dict[int, Client] = {}
        self._in_turn: dict[tuple[int, int], Client] = {}

    def of(self, row: Row) -> list[Client]:
        """Those who can go on; not those whose turn, by their names, comes later."""
        found = []
        for local in row[: len(self._processes)]:
            client = self._clients.get(local) or self._client(local)
            if client.waits:
                client = self._turns(local, client, row[self._metadata])
            if client.choices:
                found.append(client)
        return found

    def choice(self, waiting: Waiting, *, is_fresh: bool) -> Choice:
        operation = waiting.operation
        looks = operation is not None and operation[1] not in CONSTANT
        return Choice(
            waiting.task,
            waiting,
            self._processes[process_of(waiting.task)],
            self._places[operation[0]] if operation is not None else _NO_PLACE,
            self._programs.views[operation] if operation is not None and looks else {},
            _rank(waiting, is_fresh=is_fresh),
            is_on_metadata=operation is not None and operation[0] == METADATA,
        )

    def _client(self, local: int) -> Client:
        seen = self._programs.locals[local]
        choices = [
            self.choice(waiting, is_fresh=seen.is_fresh)
            for waiting in seen.tasks
            if waiting.is_able
        ]
        waits = any(self._may_wait(choice) for choice in choices)
        client = self._clients[local] = Client(choices, waits=waits)
        return client

    def _may_wait(self, choice: Choice) -> bool:
        return choice.is_on_metadata and self._ranks.get(process_of(choice.task), 0) > 0

    def _turns(self, local: int, client: Client, metadata: int) -> Client:
        found = self._in_turn.get((local, metadata))
        if found is None:
            ledger = self._programs.ledger(metadata)
            found = self._in_turn[local, metadata] = Client(
                [
                    choice
                    for choice in client.choices.values()
                    if not is_too_early(
                        self._ranks.get(process_of(choice.task), 0),
                        choice.waiting.operation,
                        ledger,
                    )
                ]
            )
        return found


def _rank(waiting: Waiting, *, is_fresh: bool) -> tuple[int, str, str]:
    operation, task = waiting.operation, waiting.task
    if task == FATE_TASK:
        return (4, "", task)  # what it prevents would not be seen behind it
    if operation is None or operation[1] in CONSTANT:
        return (0, "", task)
    if operation[0] == METADATA:
        return (1 if is_fresh else 3, "", task)
    return (2, operation[0], task)
