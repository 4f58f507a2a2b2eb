"""Calls to storage that may hang: how long a client waits, and what it remembers."""

import threading
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from bkspark import environment, progress
from bkspark.cluster.guards import BoundToProcess, before_change
from bkspark.errors import OutcomeUnknownError
from bkspark.metadata import freshness, patience
from bkspark.metadata.contract import (
    Answer,
    ListsNames,
    MetadataStore,
    ReadsTogether,
    VersionedBytes,
    answered,
    pays_to_read,
    sessions_of,
    watchable,
)
from bkspark.progress import Progress, overslept, reported_to
from bkspark.protocol.bookies import Quarantine
from bkspark.storage import devices
from bkspark.storage.address import shown_url

# --- patience ------------------------------------------------------------------------------------
# Whether a call without an answer makes progress: slow storage is given time, hanging storage not.
#
# Rule 1. A call makes progress if it moved a piece since the last look (``bkspark.progress``).
#
# Rule 2. A call that computes makes progress: it decodes or checks data already read.
#
# Rule 3. A call also makes progress if its thread waits inside the kernel for a disk, or was just
# woken, and the disk completes requests: requests of other tasks, processes or programs come before
# the call's own. This counts at most ``OTHERS_MAX`` times in a row, since the disk may have lost
# the call's request.
#
# Rule 4. A call whose disk became known only since the last look gets one more time limit. The
# first call of a process to a bookie, or to a metadata store, is such a call.


COMPUTING_TICKS = 10
"""A tenth of a second of processor time within half a time limit; a hanging call uses none."""

OTHERS_MAX = 30
"""Five minutes, for a limit of ten seconds."""


class Patience:
    """Looks at one call, again and again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._seen = progress.count
        self._completed: tuple[str, ...] | None = None
        self._others = 0
        self._ticks = 0
        self._has_looked = False
        self._knows_disk = progress.device is not None

    def begin_anew(self) -> None:
        """Measure progress from now on."""
        self._seen, self._has_looked, self._others = self._progress.count, False, 0

    @property
    def looks_at_half_time(self) -> bool:
        """Whether to look at the disk before the limit is over, to see movement later."""
        return self._progress.device is not None and not self._has_looked

    def look(self) -> None:
        """Note what the disk has completed so far, if known."""
        self._has_looked = True
        self._completed = devices.completed(self._progress.device)
        self._ticks = devices.cpu_ticks(self._progress.thread_id)

    def gets_on(self) -> bool:
        """Whether there was a sign of progress since the last call of this method."""
        before, self._seen = self._seen, self._progress.count
        knew_disk, self._knows_disk = self._knows_disk, self._progress.device is not None
        if before != self._seen:
            self.begin_anew()
            return True
        has_looked, self._has_looked = self._has_looked, False
        if has_looked and self._computes():
            self._others = 0
            return True
        if not knew_disk and self._knows_disk:
            return True
        seen = self._completed
        if not has_looked or seen is None or self._others >= OTHERS_MAX:
            return False
        self._others += 1
        moved = devices.completed(self._progress.device) != seen
        return moved and devices.is_at_work(self._progress.thread_id)

    def _computes(self) -> bool:
        """Whether the call's thread has used the processor since half time."""
        return devices.cpu_ticks(self._progress.thread_id) - self._ticks >= COMPUTING_TICKS


# --- hang memory ---------------------------------------------------------------------------------
# Calls to storage that may hang, and the process-wide memory of hanging storage.
#
# A system call on hanging storage does not return and cannot be cancelled. So each question runs in
# a task of its own, and the asking thread waits for a limited time. No answer in time is no answer:
# nothing is known, least of all an absence.
#
# Rule 1. A place given up, after the full time limit passed without an answer, is not asked by this
# process until the answer has come or ``ASK_AGAIN_SECONDS`` have passed: no thread waits for the
# place twice. Recoveries, repairs and operators' commands about one bookie ask all the same
# (``is_patient``).
#
# Rule 2. A place that owes ``UNANSWERED_MAX`` answers is not asked at all. A hanging call cannot be
# cancelled, so each owed answer may have left a thread behind for ever.
#
# Rule 3. An answer that was no longer needed, because other places were quicker, is owed too. It is
# a sign of a hanging place only after its full time limit.


S = TypeVar("S")
T = TypeVar("T")

ASK_AGAIN_SECONDS = 60.0
"""A disk that was removed by force may be back, while its question is never answered."""

UNANSWERED_MAX = 8


class PendingAnswer(Future[T]):
    """The outcome of ``question``, which ``start`` begins; an error is an outcome too.

    A question may run on after its asker has stopped waiting. So a question changes no state that
    its asker uses; its only result is the answer.

    Args:
        device: of the storage asked, if known.
        start: begins the question, perhaps a little later (``environment.Row``); None begins it
            now.

    Attributes:
        progress: signs of progress of the running question.
    """

    def __init__(
        self,
        question: Callable[[], T],
        name: str,
        *,
        device: int | None = None,
        start: environment.Start | None = None,
    ) -> None:
        super().__init__()
        self.progress = progress = Progress()
        progress.device = device

        def work() -> None:
            try:
                with reported_to(progress):
                    found = question()
                self.set_result(found)
            except BaseException as error:
                self.set_exception(error)

        self._task = (start or environment.start)(work, name)

    def is_there_within(self, seconds: float) -> bool:
        """Wait up to ``seconds``; whether the answer has come."""
        self._task.join(seconds)
        return self.done()

    def comes_within(self, seconds: float) -> bool:
        """Wait as long as there is progress at least every ``seconds``; whether the answer has
        come.
        """
        patience = Patience(self.progress)
        while True:
            until = environment.monotonic() + seconds
            if patience.looks_at_half_time and not self.is_there_within(seconds / 2):
                patience.look()
            if self.is_there_within(max(0.0, until - environment.monotonic())):
                return True
            if overslept(until):
                continue  # the process was stopped, so the time begins anew
            if not patience.gets_on():
                return False


class HangMemory:
    """The memory of a process: ``environment.the_one(HangMemory)``.

    A place is any hashable key on which its askers agree.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._owed: dict[Hashable, dict[Future[Any], float]] = {}
        self._quarantines: dict[str, Quarantine] = {}
        self._domains: dict[str, dict[str, str]] = {}

    def gave_up(self, place: Hashable, answer: "Future[Any]") -> None:
        """Note that ``answer`` did not come within the full time limit."""
        with self._guard:
            self._owed.setdefault(place, {})[answer] = environment.monotonic()

    def did_without(self, place: Hashable, answer: "Future[Any]", seconds: float) -> None:
        """Note that ``answer`` is no longer needed, but may take ``seconds`` more."""
        with self._guard:
            self._owed.setdefault(place, {}).setdefault(answer, environment.monotonic() + seconds)

    def hangs(self, place: Hashable, *, is_patient: bool = False) -> bool:
        """Whether ``place`` must not be asked now.

        Args:
            is_patient: ask even if the place was given up lately.
        """
        if place not in self._owed:
            return False
        with self._guard:
            owed = {answer: at for answer, at in self._owed[place].items() if not answer.done()}
            self._owed[place] = owed
        now = environment.monotonic()
        is_recent = any(now - ASK_AGAIN_SECONDS < at <= now for at in owed.values())
        return (is_recent and not is_patient) or len(owed) >= UNANSWERED_MAX

    def quarantine(self, cluster_id: str) -> Quarantine:
        """The bookies of a cluster that failed lately."""
        return self._quarantines.setdefault(cluster_id, Quarantine())

    def domains(self, cluster_id: str) -> dict[str, str]:
        """The failure domains of a cluster's bookies, as last read; of removed bookies empty.

        A bookie that was moved since may be in another domain. Only preferences rest on this.
        """
        return self._domains.setdefault(cluster_id, {})


# --- timed store ---------------------------------------------------------------------------------
# A metadata store with a time limit per call: ``STORE_SECONDS``, or the client's choice.
#
# The time limit also holds for each of several calls made together. A hanging call cannot be
# cancelled. It may go on after its caller has stopped waiting. Changes are compare-and-set, so the
# only consequence is an unknown outcome. A store that owes answers is not asked again for a while,
# like a bookie (``hang_memory``).


STORE_SECONDS = patience.DEFAULT_SECONDS
"""The default (``bkspark.metadata.patience``)."""


class PatientStore:
    """Wraps ``inner`` so that its calls wait as long as the client chose."""

    def __init__(self, inner: MetadataStore, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds
        self.pays_to_read = pays_to_read(inner)
        self.sessions = sessions_of(inner)
        self.watchable = watchable(inner)
        # What a store can do besides is asked of its attributes, so it has them or has them not.
        if isinstance(inner, ListsNames):
            self.names = self._patiently(inner.names)
        if isinstance(inner, ReadsTogether):
            self.get_keys = self._patiently(inner.get_keys)

    @property
    def uri(self) -> str:
        return self._inner.uri

    def get(self, key: str) -> VersionedBytes | None:
        with patience.seconds(self._seconds):
            return self._inner.get(key)

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        with patience.seconds(self._seconds):
            return self._inner.put(key, value, expected)

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        with patience.seconds(self._seconds):
            return self._inner.is_current(key, seen)

    def list(self, prefix: str) -> list[str]:
        with patience.seconds(self._seconds):
            return self._inner.list(prefix)

    def delete(self, key: str) -> None:
        with patience.seconds(self._seconds):
            self._inner.delete(key)

    def close(self) -> None:
        self._inner.close()

    def _patiently(self, ask: Callable[[S], T]) -> Callable[[S], T]:
        def patiently(asked: S) -> T:
            with patience.seconds(self._seconds):
                return ask(asked)

        return patiently


def patient(store: MetadataStore, seconds: float | None) -> MetadataStore:
    """``store`` with the chosen time limit; unchanged if None was chosen."""
    return store if seconds is None else PatientStore(store, seconds)


class TimedStore(BoundToProcess):
    """Wraps ``inner``; raises ``OutcomeUnknownError`` for a call without an answer in time.

    Args:
        seconds: time limit of a call; None for ``STORE_SECONDS``.
    """

    _shown_as = "connection"

    def __init__(self, inner: MetadataStore, seconds: float | None = None) -> None:
        self._inner = inner
        self._seconds = seconds
        self._is_closed = False
        self.pays_to_read = pays_to_read(inner)
        self.sessions = sessions_of(inner)
        self.watchable = watchable(inner)

    def __del__(self) -> None:
        """Close a store dropped without ``close``, in another thread because closing may take a
        while.
        """
        if not self._is_closed and self.is_of_this_process:
            shown = f"connection to {shown_url(self._inner.uri)}"
            environment.dropped(self, shown, lambda: environment.start(self._inner.close, "close"))

    @property
    def uri(self) -> str:
        return self._inner.uri

    @property
    def seconds(self) -> float:
        """The time limit of a call."""
        return STORE_SECONDS if self._seconds is None else self._seconds

    def get(self, key: str) -> VersionedBytes | None:
        return self._ask(lambda: self._inner.get(key))

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        before_change()
        return self._ask(lambda: self._inner.put(key, value, expected))

    def is_current(self, key: str, seen: VersionedBytes) -> bool:
        return self._ask(lambda: self._inner.is_current(key, seen))

    def list(self, prefix: str) -> list[str]:
        return self._ask(lambda: self._inner.list(prefix))

    def get_all(self, prefix: str) -> dict[str, Callable[[], VersionedBytes | None]]:
        """The result of ``get`` for each record that ``list`` shows, by name.

        One task asks for all, since starting a task takes longer than most answers; each record has
        the time limit of a call of its own. A value of the dict returns or raises like ``get``.
        """
        return self._each(prefix, lambda: self._inner.list(prefix))

    def get_some(
        self, prefix: str, chosen: Callable[[Sequence[str]], Iterable[str]]
    ) -> dict[str, Callable[[], VersionedBytes | None]]:
        """The same for the records that are ``chosen`` of those that ``list`` shows.

        ``chosen`` may get further names, of records that are not there.
        """
        inner = self._inner
        listed = inner.names if isinstance(inner, ListsNames) else inner.list
        return self._each(prefix, lambda: chosen(listed(prefix)))

    def get_each(
        self, prefix: str, names: Iterable[str]
    ) -> dict[str, Callable[[], VersionedBytes | None]]:
        """The same for the records of these names right under ``prefix``."""
        return self._each(prefix, lambda: names)

    def get_keys(self, keys: Sequence[str]) -> dict[str, Callable[[], VersionedBytes | None]]:
        """The same for the records with these ``keys``, by key."""
        return self._each("", lambda: keys)

    def _each(
        self, prefix: str, names: Callable[[], Iterable[str]]
    ) -> dict[str, Callable[[], VersionedBytes | None]]:
        inner, found = self._inner, dict[str, Answer]()
        folder = prefix and f"{prefix}/"

        def ask() -> None:
            wanted = {f"{folder}{name}": name for name in names()}
            if isinstance(inner, ReadsTogether):
                found.update((wanted[key], one) for key, one in inner.get_keys([*wanted]).items())
                return
            for key, name in wanted.items():
                found[name] = answered(partial(inner.get, key))
                progress.made()

        self._ask(ask)
        return found

    def delete(self, key: str) -> None:
        self._ask(lambda: self._inner.delete(key))

    def close(self) -> None:
        self._is_closed = True
        self._inner.close()

    def _ask(self, question: Callable[[], T]) -> T:
        """Run ``question``, whose time limit restarts with each sign of progress."""
        self.require_own_process()
        needed = freshness.needed()

        def as_new() -> T:
            with freshness.at(needed):
                return question()

        memory, place = environment.the_one(HangMemory), self._inner.uri
        if memory.hangs(place):
            raise self._silence("still does not answer")
        answer = PendingAnswer(as_new, "ask-metadata-store", device=devices.device_of(place))
        if not answer.comes_within(self.seconds):
            memory.gave_up(place, answer)
            raise self._silence(f"gave no answer within {self.seconds:g} s")
        return answer.result()

    def _silence(self, what: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"the metadata store {shown_url(self._inner.uri)} {what}",
            hint="bring it back, then check whether this was done",
        )
