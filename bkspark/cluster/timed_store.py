"""A metadata store with a time limit per call: ``STORE_SECONDS``, or the client's choice.

The time limit also holds for each of several calls made together. A hanging call cannot be
cancelled. It may go on after its caller has stopped waiting. Changes are compare-and-set, so the
only consequence is an unknown outcome. A store that owes answers is not asked again for a while,
like a bookie (``hang_memory``).
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from bkspark import environment, progress
from bkspark.cluster.bound import BoundToProcess
from bkspark.cluster.hang_memory import HangMemory, PendingAnswer
from bkspark.errors import BookKeeperError, OutcomeUnknownError
from bkspark.metadata import patience
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.storage import devices
from bkspark.storage.shown import shown_url

T = TypeVar("T")

STORE_SECONDS = patience.DEFAULT_SECONDS
"""The default (``bkspark.metadata.patience``)."""


class PatientStore:
    """Wraps ``inner`` so that its calls wait as long as the client chose."""

    def __init__(self, inner: MetadataStore, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

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
        inner, found = self._inner, dict[str, Future[VersionedBytes | None]]()

        def ask() -> None:
            for name in inner.list(prefix):
                found[name] = _answered(partial(inner.get, f"{prefix}/{name}"))
                progress.made()

        self._ask(ask)
        return {name: answer.result for name, answer in found.items()}

    def delete(self, key: str) -> None:
        self._ask(lambda: self._inner.delete(key))

    def close(self) -> None:
        self._is_closed = True
        self._inner.close()

    def _ask(self, question: Callable[[], T]) -> T:
        """Run ``question``, whose time limit restarts with each sign of progress."""
        self.require_own_process()
        memory, place = environment.the_one(HangMemory), self._inner.uri
        if memory.hangs(place):
            raise self._silence("still does not answer")
        answer = PendingAnswer(question, "ask-metadata-store", device=devices.device_of(place))
        if not answer.comes_within(self.seconds):
            memory.gave_up(place, answer)
            raise self._silence(f"gave no answer within {self.seconds:g} s")
        return answer.result()

    def _silence(self, what: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"the metadata store {shown_url(self._inner.uri)} {what}",
            hint="bring it back, then check whether this was done",
        )


def _answered(question: Callable[[], T]) -> Future[T]:
    found = Future[T]()
    try:
        found.set_result(question())
    except BookKeeperError as error:
        found.set_exception(error)
    return found
