"""Several processes, or threads, with concurrent use of a single metadata store."""

import json
import multiprocessing
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, Literal

from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata.contract import MetadataStore, VersionedBytes

Parallel = Literal["processes", "threads"]
KEY = "ledgers/0000000000000001"
CREATED = 20
# The one barrier of the processes of a pool, inherited by each.
_barrier: Any = None


def run_rivals(
    parallel: Parallel,
    work: Callable[[MetadataStore, int], Any],
    store: MetadataStore,
    count: int,
) -> list[Any]:
    """The results of ``work(store, index)`` by index, all started at the same time."""
    with _pool(parallel, count) as pool:
        futures = [pool.submit(_start, work, store, index) for index in range(count)]
        return [future.result(timeout=120) for future in futures]


def _pool(parallel: Parallel, count: int) -> Executor:
    if parallel == "threads":
        barrier = threading.Barrier(count, timeout=60)
        return ThreadPoolExecutor(count, initializer=_keep, initargs=(barrier,))
    # Not forked: the caller may have threads.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(
        count,
        mp_context=context,
        initializer=_keep,
        initargs=(context.Barrier(count, timeout=60),),
    )


def _keep(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def _start(work: Callable[[MetadataStore, int], Any], store: MetadataStore, index: int) -> Any:
    _barrier.wait()
    return work(store, index)


def tokens(found: VersionedBytes | None) -> list[str]:
    """The tokens added to the record so far."""
    return [] if found is None else list(json.loads(found.value))


def add_tokens(
    store: MetadataStore, _index: int, *, count: int
) -> tuple[set[str], set[str], set[str]]:
    """Add ``count`` tokens. Returns the stored tokens, the refused, and the unknown."""
    done: set[str] = set()
    lost: set[str] = set()
    unknown: set[str] = set()
    while len(done) + len(unknown) < count:
        token = secrets.token_hex(8)
        found = store.get(KEY)
        value = json.dumps([*tokens(found), token]).encode()
        try:
            store.put(KEY, value, found.version if found else None)
            done.add(token)
        except MetadataVersionError:
            lost.add(token)
        except OutcomeUnknownError:
            unknown.add(token)
    return done, lost, unknown


def create(store: MetadataStore, index: int) -> list[bool]:
    """Try to create a row of records; whether each attempt won."""
    wins = []
    for number in range(CREATED):
        try:
            store.put(f"logs/{number}", b"by %d" % index, None)
            wins.append(True)
        except MetadataVersionError:
            wins.append(False)
    return wins
