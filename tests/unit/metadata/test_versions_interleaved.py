"""Every interleaving of a few clients, at the grain of one verb of the directory.

A client is replayed from the answers it has had so far until it asks for something new: its next
step. A state reached by two schedules is looked into once. Blocks of 2 make pruning frequent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bkspark.errors import BookKeeperError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import versioned_store
from bkspark.metadata.contract import VersionedBytes
from bkspark.metadata.versioned_store import VersionedRecords

KEY = "ledgers/1"
Files = dict[str, bytes]
Client = Callable[["Session"], None]


class MemoryDirectory:
    """``Directory`` in a dictionary of paths; a folder is there if it is in ``folders``."""

    def __init__(self, files: Files, folders: set[str]) -> None:
        self.files, self.folders = files, folders

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if path.rpartition("/")[0] not in self.folders:
            raise FileNotFoundError(path)
        return self.files.setdefault(path, data) is data

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def exists(self, path: str) -> bool:
        return path in self.files

    def list(self, folder: str) -> list[str]:
        found = {path for path in self.files if path.rpartition("/")[0] == folder}
        below = {f"{path}/" for path in self.folders if path and path.rpartition("/")[0] == folder}
        return sorted(path.removeprefix(f"{folder}/") for path in found | below)

    def make_folder(self, path: str) -> None:
        while path:
            self.folders.add(path)
            path = path.rpartition("/")[0]

    def sync(self, folder: str) -> None:
        if folder not in self.folders:
            raise FileNotFoundError(folder)

    def unlink(self, path: str) -> None:
        self.files.pop(path, None)

    def remove_folder(self, path: str) -> None:
        if not self.list(path):
            self.folders.discard(path)


class _Paused(BaseException):
    def __init__(self, step: tuple[Any, ...]) -> None:
        self.step = step


class ReplayedDirectory:
    """Gives the recorded answers, then stops the client at its first new question."""

    def __init__(self, answers: Sequence[Any]) -> None:
        self._answers = iter(answers)

    def ask(self, *step: Any) -> Any:
        for answer in self._answers:
            if isinstance(answer, OSError):
                raise answer
            return answer
        raise _Paused(step)

    def list(self, folder: str) -> list[str]:
        # As unhelpful as POSIX allows: without what is removed or added while it is read.
        first, last = self.ask("list", folder), self.ask("list", folder)
        return [name for name in first if name in last]

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        return lambda *arguments: self.ask(verb, *arguments)


class Session:
    """What a client calls: the store's operations, with begin and end made known.

    Of a finished operation only the result is remembered, or states would never meet again.
    """

    def __init__(self, kind: type[VersionedRecords], done: Sequence[Any], directory: Any) -> None:
        self._records = kind(directory, block=2, mark_levels=2)
        self._done = iter(done)
        self._directory = directory

    def run(self, operation: str, *arguments: Any) -> Any:
        for result in self._done:
            return result
        self._directory.ask("begin", operation, arguments)
        try:
            result = getattr(self._records, operation)(KEY, *arguments)
        except BookKeeperError as error:
            result = type(error)
        return self._directory.ask("end", operation, arguments, result)


# Nobody else can see these happen: they need no place of their own in a schedule.
_TRAILING = ("end", "sync")
_UNSEEN = ("begin", *_TRAILING)
# (results of finished operations, answers in the current one)
Memory = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass
class World:
    """The directory, what really happened (``history``), and what each client has been told."""

    directory: MemoryDirectory
    history: dict[int, bytes] = field(default_factory=dict)
    is_deleted: bool = False
    memories: tuple[Memory, ...] = ()
    begun: tuple[tuple[int, bool], ...] = ()

    def identity(self) -> tuple[Any, ...]:
        names = frozenset(self.directory.files.items()), frozenset(self.directory.folders)
        history = tuple(self.history.values()), self.is_deleted
        return names, history, self.memories, self.begun

    def copy(self) -> "World":
        directory = MemoryDirectory(dict(self.directory.files), set(self.directory.folders))
        return World(directory, dict(self.history), self.is_deleted, self.memories, self.begun)

    @property
    def newest(self) -> int:
        return len(self.history)

    def take(self, client: int, step: tuple[Any, ...]) -> None:
        done, answers = self.memories[client]
        if step[0] == "end":
            self._check(step[1], step[2], step[3], *self.begun[client])
            memory: Memory = ((*done, step[3]), ())
        elif step[0] == "begin":
            self.begun = _replaced(self.begun, client, (self.newest, self.is_deleted))
            memory = (done, (None,))
        else:
            memory = (done, (*answers, self._perform(step)))
        self.memories = _replaced(self.memories, client, memory)

    def _perform(self, step: tuple[Any, ...]) -> Any:
        try:
            answer = getattr(self.directory, step[0])(*step[1:])
        except FileNotFoundError as error:
            return _GONE.setdefault(str(error), error)
        if step[0] == "put_if_absent" and answer:
            self._note(step[1], step[2])
        return tuple(answer) if isinstance(answer, list) else answer

    def _note(self, path: str, data: bytes) -> None:
        name = path.rpartition("/")[2]
        if name.startswith("~"):
            self.is_deleted = True
        elif len(name) == 16 and not self.is_deleted and int(name, 16) not in self.history:
            assert int(name, 16) == self.newest + 1, "versions are not dense"
            self.history[int(name, 16)] = data

    def _check(
        self, operation: str, arguments: Any, result: Any, newest_before: int, was_deleted: bool
    ) -> None:
        match operation, result:
            case "put", int():
                assert self.history.get(result) == arguments[0], "two winners"
            case "put", _ if result is MetadataVersionError:
                assert arguments[0] not in self.history.values(), "a winner was told that it lost"
            case "get", None:
                assert newest_before == 0 or self.is_deleted, "a record was reported as absent"
            case "get", VersionedBytes(value, version):
                assert not was_deleted
                assert self.history.get(version) == value, "a version that never counted was read"
                assert newest_before <= version, "a stale version was read"
            case "is_current", True:
                (seen,) = arguments
                assert not was_deleted, "a deleted record passed for current"
                assert seen.version == newest_before, "an old version passed for current"
                assert self.history[seen.version] == seen.value
            case "is_current", False:
                assert self.is_deleted or arguments[0].version < self.newest
            case _:
                assert operation == "delete" or result is OutcomeUnknownError


# One of each, so that equal worlds are equal.
_GONE: dict[str, FileNotFoundError] = {}


def _replaced(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


@dataclass(frozen=True)
class Scenario:
    """Clients that start at a record with so many versions, one of them made again if so said."""

    versions: int
    clients: tuple[Client, ...]
    made_again: tuple[int, bytes] | None = None


def explore(scenario: Scenario, kind: type[VersionedRecords] = VersionedRecords) -> list[World]:
    """All worlds in which every client is done."""
    start, clients = _start(scenario), scenario.clients
    known_steps: dict[tuple[int, Memory], tuple[Any, ...] | None] = {}

    def next_step(client: int, memory: Memory) -> tuple[Any, ...] | None:
        if (client, memory) not in known_steps:
            try:
                clients[client](Session(kind, memory[0], ReplayedDirectory(memory[1])))
                known_steps[client, memory] = None
            except _Paused as paused:
                known_steps[client, memory] = paused.step
        return known_steps[client, memory]

    def advance(world: World, client: int) -> World | None:
        """The world after the client's next step that others can see."""
        following = world.copy()
        while step := next_step(client, following.memories[client]):
            following.take(client, step)
            if step[0] not in _UNSEEN:
                break
        else:
            return None
        while (step := next_step(client, following.memories[client])) and step[0] in _TRAILING:
            following.take(client, step)
        return following

    seen, waiting, ends = set(), [start], []
    while waiting:
        world = waiting.pop()
        steps = [advance(world, client) for client in range(len(clients))]
        if not any(steps):
            ends.append(world)
        for following in filter(None, steps):
            identity = following.identity()
            if identity not in seen:
                seen.add(identity)
                waiting.append(following)
    return ends


def _start(scenario: Scenario) -> World:
    count = len(scenario.clients)
    world = World(MemoryDirectory({}, {""}), memories=(((), ()),) * count)
    world.begun = ((0, False),) * count
    records = VersionedRecords(world.directory, block=2, mark_levels=2)
    for version in range(1, scenario.versions + 1):
        records.put(KEY, b"before %d" % version, version - 1 or None)
        world.history[version] = b"before %d" % version
    if scenario.made_again:
        version, value = scenario.made_again
        assert world.directory.put_if_absent(f"{KEY}/{version:016x}", value), "not pruned"
    return world


def put(name: bytes, expected: int | None) -> Client:
    return lambda session: session.run("put", name, expected)


def puts(first: int, last: int) -> Client:
    """Puts versions one after the other for as long as it wins."""

    def client(session: Session) -> None:
        for version in range(first, last + 1):
            if session.run("put", b"many %d" % version, version - 1 or None) != version:
                return

    return client


def look(seen: int) -> Client:
    return lambda session: session.run("is_current", VersionedBytes(b"before %d" % seen, seen))


def run(operation: str) -> Client:
    return lambda session: session.run(operation)


def create_and_look(session: Session) -> None:
    if session.run("put", b"mine", 1) == 2:
        session.run("is_current", VersionedBytes(b"mine", 2))


SCENARIOS = {
    "three racing creators": Scenario(0, (put(b"a", None), put(b"b", None), put(b"c", None))),
    "sleeping creator": Scenario(0, (put(b"a", None), puts(1, 8))),
    "sleeping writer": Scenario(4, (put(b"a", 4), puts(5, 10))),
    "two sleeping writers in a row": Scenario(4, (put(b"a", 4), put(b"b", 5), puts(5, 10))),
    "sleeping reader": Scenario(8, (run("get"), puts(9, 12)), (3, b"made again")),
    "sleeping checker": Scenario(4, (look(4), put(b"a", 4), puts(5, 8))),
    "late checker": Scenario(8, (look(3), look(8), puts(9, 9)), (3, b"before 3")),
    "reader and two writers": Scenario(4, (run("get"), put(b"a", 4), puts(5, 6))),
    "delete": Scenario(1, (run("delete"), create_and_look, run("get"))),
    "delete of a pruned record": Scenario(5, (run("delete"), put(b"a", 5), look(5))),
    "delete and create": Scenario(0, (run("delete"), put(b"a", None), run("get"))),
    "two deletes": Scenario(1, (run("delete"), run("delete"), put(b"a", 1))),
}


@pytest.fixture(autouse=True)
def _one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    # Attempts of ``get`` know nothing of each other: the second one finds no new kind of state.
    monkeypatch.setattr(versioned_store, "_GET_ATTEMPTS_MAX", 1)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_interleaving_breaks_a_promise(scenario: str) -> None:
    ends = explore(SCENARIOS[scenario])
    assert ends
    for world in ends:
        found = VersionedRecords(world.directory, block=2, mark_levels=2).get(KEY)
        if world.is_deleted:
            assert found is None
        else:
            assert found == VersionedBytes(world.history[world.newest], world.newest)


class WithoutLookAfter(VersionedRecords):
    """A put that trusts put-if-absent alone."""

    _is_made = False

    def _create(self, key: str, version: int, value: bytes) -> bool:
        self._is_made = True
        return super()._create(key, version, value)

    def _is_superseded(self, key: str, version: int) -> bool:
        return not self._is_made and super()._is_superseded(key, version)


class WithPreviousVersionAsProof(WithoutLookAfter):
    """A put that takes the version before its own, still there, for the proof that it won."""

    def _is_superseded(self, key: str, version: int) -> bool:
        previous = f"{key}/{version - 1:016x}"
        is_gone = self._is_made and version > 1 and not self._directory.exists(previous)
        return is_gone or super()._is_superseded(key, version)


class WithoutMarksInLooks(VersionedRecords):
    """Next absent, own present: as if names were never made again."""

    def _never_existed(self, key: str, version: int) -> bool:
        return not self._directory.exists(f"{key}/{version:016x}")


class WithRoundMarksFirst(VersionedRecords):
    def _names(self, key: str, version: int) -> tuple[str, ...]:
        own, *marks, tombstone = super()._names(key, version)
        return (own, *reversed(marks), tombstone)


class WithMarkAfterRemoval(VersionedRecords):
    """Removes versions before it says so."""

    def _prune(self, key: str, newest: int) -> None:
        if newest % self._block == 0:
            for name in self._directory.list(key):
                if len(name) == 16 and int(name, 16) < newest - self._block:
                    self._directory.unlink(f"{key}/{name}")
        super()._prune(key, newest)


class WithoutTombstone(VersionedRecords):
    def delete(self, key: str) -> None:
        for name in self._directory.list(key):
            self._directory.unlink(f"{key}/{name}")
        # Tells the checker, too late, that it is deleted.
        self._directory.put_if_absent("ledgers/~1", b"deleted")


BROKEN = [
    (WithoutLookAfter, "sleeping writer"),
    (WithoutLookAfter, "sleeping creator"),
    (WithPreviousVersionAsProof, "two sleeping writers in a row"),
    (WithoutMarksInLooks, "sleeping reader"),
    (WithoutMarksInLooks, "late checker"),
    (WithRoundMarksFirst, "sleeping writer"),
    (WithMarkAfterRemoval, "sleeping writer"),
    (WithoutTombstone, "delete"),
]


@pytest.mark.parametrize(("kind", "scenario"), BROKEN)
def test_the_exploration_finds_what_a_missing_guard_breaks(
    kind: type[VersionedRecords], scenario: str
) -> None:
    with pytest.raises(AssertionError):
        explore(SCENARIOS[scenario], kind)
