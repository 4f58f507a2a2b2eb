"""The conformance tests of metadata stores; a backend inherits the tests.

    class TestMyStore(MetadataStoreTests):
        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(f"my://{tmp_path}")

The store must be new and empty. ``PARALLEL`` says whether rivals are processes, as in production,
or threads, for a store that lives in one process. ``Amounts`` are for a store that answers slowly.
"""

import json
import multiprocessing
import pickle
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, ClassVar, Literal

import pytest

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import freshness
from bkspark.metadata.contract import MetadataStore, VersionedBytes, watchable
from bkspark.storage.changes import Changes

# --- metadata rivals -----------------------------------------------------------------------------
# Several processes, or threads, with concurrent use of a single metadata store.


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


# --- metadata conformance ------------------------------------------------------------------------


HOSTILE_KEYS = [
    "",
    "/",
    "../x",
    "ledgers/../../x",
    "ledgers/..",
    "ledgers/.",
    "ledgers//x",
    "ledgers/x/",
    "/ledgers/x",
    "ledgers/.hidden",
    "ledgers/a..b",
    "ledgers/a b",
    "ledgers/a\0",
    "ledgers/a\n",
    "ledgers/é",
    "ledgers/~x",
    "ledgers/" + "x" * 300,
    "METADATA_STORE",
]


def put_many(store: MetadataStore, count: int, key: str = KEY) -> list[VersionedBytes]:
    """Store a new record with ``count`` versions; returns all versions."""
    put = []
    for number in range(count):
        value = b"%d of many" % number
        put.append(VersionedBytes(value, store.put(key, value, number or None)))
    return put


class Amounts:
    """The amount of work in the tests.

    Attributes:
        MANY: versions of a record; more than any store keeps, so the first are gone.
        WRITES: versions put during reads.
        ADDED_EACH: versions put by each of the rivals.
    """

    MANY: ClassVar[int] = 64
    WRITES: ClassVar[int] = 200
    RIVALS: ClassVar[int] = 8
    ADDED_EACH: ClassVar[int] = 20


class CompareAndSetTests(Amounts):
    """A single client at a time."""

    def test_absent_record(self, store: MetadataStore) -> None:
        assert store.get(KEY) is None
        assert not store.is_current(KEY, VersionedBytes(b"x", 1))
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"x", 1)
        assert store.get(KEY) is None

    def test_versions_grow_by_one(self, store: MetadataStore) -> None:
        for version in range(1, 41):
            assert store.put(KEY, b"v%d" % version, version - 1 or None) == version
            assert store.get(KEY) == VersionedBytes(b"v%d" % version, version)

    @pytest.mark.parametrize("expected", [None, 1, 2, 4, 5, 50])
    def test_put_with_another_version_changes_nothing(
        self, store: MetadataStore, expected: int | None
    ) -> None:
        seen = put_many(store, 3)[-1]
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"mine", expected)
        assert store.get(KEY) == seen
        assert store.is_current(KEY, seen)
        assert store.put(KEY, b"next", 3) == 4

    def test_put_with_a_version_of_long_ago_is_lost(self, store: MetadataStore) -> None:
        seen = put_many(store, self.MANY)[-1]
        for expected in (None, *range(1, self.MANY)):
            with pytest.raises(MetadataVersionError):
                store.put(KEY, b"mine", expected)
        assert store.get(KEY) == seen
        assert store.is_current(KEY, seen)

    @pytest.mark.parametrize("expected", [0, -1])
    def test_version_that_cannot_exist_is_refused(
        self, store: MetadataStore, expected: int
    ) -> None:
        with pytest.raises(InvalidRequestError):
            store.put(KEY, b"x", expected)

    def test_records_are_independent(self, store: MetadataStore) -> None:
        store.put("cluster", b"c", None)
        store.put("logs/a", b"a", None)
        store.put("logs/a.b", b"ab", None)
        store.put("logs/a.b", b"ab2", 1)
        assert store.get("cluster") == VersionedBytes(b"c", 1)
        assert store.get("logs/a") == VersionedBytes(b"a", 1)
        assert store.get("logs/a.b") == VersionedBytes(b"ab2", 2)

    @pytest.mark.parametrize("size", [0, 1, 4096, 1 << 20])
    def test_value_comes_back_as_it_was(self, store: MetadataStore, size: int) -> None:
        value = secrets.token_bytes(size)
        store.put(KEY, value, None)
        assert store.get(KEY) == VersionedBytes(value, 1)
        assert store.is_current(KEY, VersionedBytes(value, 1))

    def test_lost_answer_is_recognised_by_reading_back(self, store: MetadataStore) -> None:
        store.put(KEY, b"old", None)
        store.put(KEY, b"new, token 1", 1)  # its answer is lost
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"new, token 1", 1)
        assert store.get(KEY) == VersionedBytes(b"new, token 1", 2)


class CurrentTests(Amounts):
    """``is_current``: the metadata check (R4)."""

    def test_every_change_ends_it(self, store: MetadataStore) -> None:
        seen = put_many(store, 1)
        assert store.is_current(KEY, seen[0])
        for version in range(2, self.MANY):
            store.put(KEY, b"v%d" % version, version - 1)
            assert not any(store.is_current(KEY, old) for old in seen)
            seen.append(VersionedBytes(b"v%d" % version, version))
            assert store.is_current(KEY, seen[-1])

    def test_other_bytes_or_version_are_not_current(self, store: MetadataStore) -> None:
        seen = put_many(store, 3)[-1]
        assert not store.is_current(KEY, VersionedBytes(b"other", 3))
        assert not store.is_current(KEY, VersionedBytes(seen.value, 2))
        assert not store.is_current(KEY, VersionedBytes(seen.value, 4))

    def test_a_change_by_another_client_ends_it(self, store: MetadataStore) -> None:
        seen = put_many(store, 1)[0]
        assert store.is_current(KEY, seen)
        pickle.loads(pickle.dumps(store)).put(KEY, b"other", 1)
        assert not store.is_current(KEY, seen)

    def test_deletion_ends_it(self, store: MetadataStore) -> None:
        seen = put_many(store, 1)[0]
        store.delete(KEY)
        assert not store.is_current(KEY, seen)


class NameTests(Amounts):
    """``list``, ``delete``, keys and addresses."""

    def test_list(self, store: MetadataStore) -> None:
        assert store.list("logs") == []
        for name in ("b", "a", "A", "a.b", "c-d_e"):
            put_many(store, 2, f"logs/{name}")
        store.put("ledgers/f", b"x", None)
        store.put("cluster", b"x", None)
        assert store.list("logs") == ["A", "a", "a.b", "b", "c-d_e"]
        assert store.list("log") == []

    def test_list_shows_records_of_many_versions(self, store: MetadataStore) -> None:
        put_many(store, self.MANY)
        assert store.list("ledgers") == [KEY.partition("/")[2]]

    @pytest.mark.parametrize("key", [KEY, "cluster", "counters/ledger"])
    @pytest.mark.parametrize("count", [1, 35])
    def test_delete_is_for_ever(self, store: MetadataStore, key: str, count: int) -> None:
        seen = put_many(store, count, key)[-1]
        store.put("ledgers/2", b"x", None)
        for _ in range(2):
            store.delete(key)
            assert store.get(key) is None
            for expected in (None, 1, count):
                with pytest.raises(MetadataVersionError):
                    store.put(key, b"again", expected)
            assert store.get(key) is None
            assert not store.is_current(key, seen)
            assert store.list("ledgers") == ["2"]

    def test_deleted_before_it_existed(self, store: MetadataStore) -> None:
        store.delete(KEY)
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"x", None)
        assert store.list("ledgers") == []

    @pytest.mark.parametrize("key", HOSTILE_KEYS)
    def test_hostile_keys_are_refused(self, store: MetadataStore, key: str) -> None:
        for call in (
            lambda: store.get(key),
            lambda: store.put(key, b"x", None),
            lambda: store.is_current(key, VersionedBytes(b"x", 1)),
            lambda: store.list(key),
            lambda: store.delete(key),
        ):
            with pytest.raises(InvalidRequestError):
                call()

    def test_pickled_store_is_the_same_store(self, store: MetadataStore) -> None:
        other = pickle.loads(pickle.dumps(store))
        assert other.uri == store.uri
        store.put(KEY, b"x", None)
        assert other.get(KEY) == VersionedBytes(b"x", 1)
        assert other.put(KEY, b"y", 1) == 2
        assert store.get(KEY) == VersionedBytes(b"y", 2)

    def test_close_may_be_repeated(self, store: MetadataStore) -> None:
        store.get(KEY)
        store.close()
        store.close()


class RivalTests(Amounts):
    """Many clients at a time."""

    PARALLEL: ClassVar[Parallel] = "processes"

    def test_each_version_has_one_winner(self, store: MetadataStore) -> None:
        """Each rival adds its tokens to a list in the record; none is lost, none doubled."""
        work = partial(add_tokens, count=self.ADDED_EACH)
        outcomes = run_rivals(self.PARALLEL, work, store, self.RIVALS)
        found = store.get(KEY)
        assert found is not None
        listed = tokens(found)
        assert found.version == len(listed)
        assert len(set(listed)) == len(listed)
        done, lost, unknown = (set().union(*kind) for kind in zip(*outcomes))
        assert len(done) + len(unknown) == self.RIVALS * self.ADDED_EACH
        assert done <= set(listed) <= done | unknown
        assert not lost & set(listed)

    def test_a_store_that_tells_of_changes_tells_of_each(self, store: MetadataStore) -> None:
        tells, changes = watchable(store), Changes()
        if tells is None:
            return
        seen = put_many(store, 1)[-1]
        with closing(changes), closing(pickle.loads(pickle.dumps(store))) as other:
            if not tells.watch([KEY], changes):
                return  # other hosts change the files
            for _ in range(3):
                with freshness.recent():
                    assert store.get(KEY) == seen
                changes.forget()
                seen = VersionedBytes(b"new", other.put(KEY, b"new", seen.version))
                assert changes.wait(120)

    def test_one_creator_wins(self, store: MetadataStore) -> None:
        outcomes = run_rivals(self.PARALLEL, create, store, self.RIVALS)
        for number, wins in enumerate(zip(*outcomes)):
            assert wins.count(True) == 1
            assert store.get(f"logs/{number}") == VersionedBytes(b"by %d" % wins.index(True), 1)

    def test_get_is_as_new_as_any_finished_put(self, store: MetadataStore) -> None:
        store.put(KEY, b"1", None)
        acknowledged = 1

        def write() -> None:
            nonlocal acknowledged
            for version in range(2, self.WRITES + 1):
                acknowledged = store.put(KEY, b"%d" % version, version - 1)

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not writing.done():
                before = acknowledged
                found = store.get(KEY)
                assert found is not None
                assert found.version >= before
                assert found.value == b"%d" % found.version
                if before > 1:
                    assert not store.is_current(
                        KEY, VersionedBytes(b"%d" % (before - 1), before - 1)
                    )
            writing.result()


class MetadataStoreTests(CompareAndSetTests, CurrentTests, NameTests, RivalTests):
    """The whole contract."""

    @pytest.fixture
    def store(self) -> MetadataStore:
        """A new, empty store."""
        raise NotImplementedError("a backend's tests say which store is tested")
