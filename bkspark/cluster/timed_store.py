"""A metadata store that may hang: no call to it is waited for longer than ``STORE_SECONDS``, or as
long as was chosen, and of those that are made together none.

A call that hangs cannot be called off. It goes on behind the back of who made it, and what it
changes is changed by compare-and-set: so its outcome is unknown, and nothing else. A store that
owes answers is not asked again for a while, as a bookie is not (``hang_memory``).
"""

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from bkspark import environment, progress
from bkspark.cluster.bound import BoundToProcess
from bkspark.cluster.hang_memory import Answer, HangMemory
from bkspark.errors import BookKeeperError, OutcomeUnknownError
from bkspark.metadata import patience
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.storage import devices
from bkspark.storage.shown import shown_url

T = TypeVar("T")

STORE_SECONDS = patience.DEFAULT_SECONDS
"""If nothing else was chosen (``bkspark.metadata.patience``)."""


class PatientStore:
    """``inner``, whose calls wait as long as a client has chosen."""

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
    """``store``, whose calls wait as long as was chosen; itself if nothing was."""
    return store if seconds is None else PatientStore(store, seconds)


class TimedStore(BoundToProcess):
    """``inner``, with an ``OutcomeUnknownError`` for what it does not answer in time.

    Args:
        seconds: how long a call is waited for; None for ``STORE_SECONDS``.
    """

    _shown_as = "connection"

    def __init__(self, inner: MetadataStore, seconds: float | None = None) -> None:
        self._inner = inner
        self._seconds = seconds
        self._is_closed = False

    def __del__(self) -> None:
        """Of who has dropped it unclosed; what closes it may take a while."""
        if not self._is_closed and self.is_of_this_process:
            shown = f"connection to {shown_url(self._inner.uri)}"
            environment.dropped(self, shown, lambda: environment.start(self._inner.close, "close"))

    @property
    def uri(self) -> str:
        return self._inner.uri

    @property
    def seconds(self) -> float:
        """How long a call is waited for."""
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
        """What ``get`` says of each record that ``list`` shows, by name.

        One task asks for all, since to wait for a task takes longer than most answers do; each has
        the time of a call of its own. A value returns what ``get`` does, or raises it.
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
        """What comes of ``question``, which has its time anew whenever it gets on."""
        self.require_own_process()
        memory, place = environment.the_one(HangMemory), self._inner.uri
        if memory.hangs(place):
            raise self._silence("still does not answer")
        answer = Answer(question, "ask-metadata-store", device=devices.device_of(place))
        if not answer.comes_within(self.seconds):
            memory.gave_up(place, answer)
            raise self._silence(f"gave no answer within {self.seconds:g} s")
        return answer.result()

    def _silence(self, what: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"the metadata store {shown_url(self._inner.uri)} {what}",
            hint="bring it back, then look at what became of this",
        )


def _answered(question: Callable[[], T]) -> Future[T]:
    found = Future[T]()
    try:
        found.set_result(question())
    except BookKeeperError as error:
        found.set_exception(error)
    return found
