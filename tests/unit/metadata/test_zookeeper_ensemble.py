"""Three servers whose leader is killed or sleeps: no change is lost, doubled or overlooked."""

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bkspark.cluster.records import Records
from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

from ...stopwatch import Stopwatch  # noqa: TID252

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]

KEY = "ledgers/0000000000000001"


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("ensemble"), count=3) as servers:
        yield servers


def records(store: MetadataStore) -> Records[tuple[str, ...]]:
    """Records that are lists of words."""
    return Records(
        store,
        "",
        lambda name: f"ledgers/{name}",
        lambda words, nonce: json.dumps([nonce, *words]).encode(),
        lambda _, data: tuple(json.loads(data)[1:]),
    )


class TestEnsemble:
    """Three servers; the leader is the one to hurt."""

    def test_killed_leaders_lose_and_double_nothing(self, ensemble: ZooKeeperServers) -> None:
        uri = f"zk://{ensemble.hosts}/killed"
        format_store(uri).close()
        load = Load(uri)
        with ThreadPoolExecutor(6) as pool:
            working = [pool.submit(load.add_words) for _ in range(6)]
            try:
                # Again until it hit a change in flight.
                for kills in range(1, 7):
                    time.sleep(0.3)
                    leader = ensemble.leader()
                    leader.kill()
                    time.sleep(1.5)
                    leader.restart()
                    if kills >= 2 and load.unanswered:
                        break
            finally:
                load.stop.set()
            for each in working:
                each.result()
        with contextlib.closing(open_store(uri)) as store:
            seen = records(store).get("words")
        assert seen is not None
        assert load.unanswered
        assert seen.stored.version == len(seen.value)
        assert len(set(seen.value)) == len(seen.value)
        assert load.done <= set(seen.value) <= load.done | load.unknown
        # Read-back decided about what the store itself left open.
        assert load.unknown <= load.unanswered

    def test_leader_that_slept_confirms_nothing_old(
        self, ensemble: ZooKeeperServers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """``sync`` and ``get`` alone would say here that the old version is the newest."""
        monkeypatch.setattr(zookeeper_session, "ANSWER_SECONDS", 40.0)
        leader = ensemble.leader()
        others = [server.address for server in ensemble.servers if server is not leader]
        with (
            contextlib.closing(format_store(f"zk://{','.join(others)}/slept")) as awake,
            contextlib.closing(open_store(f"zk://{leader.address}/slept")) as asleep,
            ThreadPoolExecutor(2) as pool,
        ):
            seen = VersionedBytes(b"old", awake.put(KEY, b"old", None))
            assert asleep.is_current(KEY, seen)
            leader.pause()
            try:
                time.sleep(0.1)
                checking = pool.submit(asleep.is_current, KEY, seen)
                getting = pool.submit(asleep.get, KEY)
                _put_when_led(awake)
            finally:
                leader.resume()
            assert checking.result() is False
            assert getting.result() == VersionedBytes(b"new", 2)

    def test_without_a_quorum_nothing_is_known(
        self, ensemble: ZooKeeperServers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "ANSWER_SECONDS", 1.0)
        monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 1.0)
        alone, *others = ensemble.servers
        with contextlib.closing(format_store(f"zk://{alone.address}/alone")) as store:
            seen = VersionedBytes(b"x", store.put(KEY, b"x", None))
            for server in others:
                server.kill()
            for call in (
                lambda: store.put(KEY, b"y", 1),
                lambda: store.get(KEY),
                lambda: store.is_current(KEY, seen),
                lambda: store.list("ledgers"),
            ):
                with pytest.raises(OutcomeUnknownError), _at_most(7):
                    call()
            for server in others:
                server.start()
            monkeypatch.undo()
            alone.wait()
            assert store.get(KEY) is not None


class Load:
    """Clients that add words to one record until they are told to stop."""

    def __init__(self, uri: str) -> None:
        self.stop = threading.Event()
        self.done: set[str] = set()
        self.unknown: set[str] = set()
        # What the store gave no sure answer about, whatever the read-back said.
        self.unanswered: set[str] = set()
        self._uri = uri

    def add_words(self) -> None:
        with contextlib.closing(open_store(self._uri)) as store:
            words = records(_Watched(store, self.unanswered))
            while not self.stop.is_set():
                word = secrets.token_hex(6)
                try:
                    words.update("words", lambda found, word=word: (*(found or ()), word))
                    self.done.add(word)
                except OutcomeUnknownError:
                    self.unknown.add(word)
                except MetadataVersionError:
                    pass  # surely not added


class _Watched:
    """A store that notes the last word of each ``put`` without a sure answer."""

    def __init__(self, store: MetadataStore, unanswered: set[str]) -> None:
        self._store = store
        self._unanswered = unanswered
        self.uri, self.get, self.is_current = store.uri, store.get, store.is_current
        self.list, self.delete, self.close = store.list, store.delete, store.close

    def put(self, key: str, value: bytes, expected: int | None) -> int:
        try:
            return self._store.put(key, value, expected)
        except OutcomeUnknownError:
            self._unanswered.add(json.loads(value)[-1])
            raise


def _put_when_led(store: MetadataStore) -> None:
    """Put version 2, for which a new leader must be there."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        with contextlib.suppress(OutcomeUnknownError, MetadataVersionError):
            store.put(KEY, b"new", 1)
        with contextlib.suppress(OutcomeUnknownError):
            if store.get(KEY) == VersionedBytes(b"new", 2):
                return
    raise AssertionError("no new leader")


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    watch = Stopwatch()
    try:
        yield
    finally:
        assert watch.seconds < seconds
