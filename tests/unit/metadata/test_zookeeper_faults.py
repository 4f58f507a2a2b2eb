"""Answers lost, sessions expired, leaders killed: no change is lost or doubled."""

import contextlib
import json
import secrets
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from bkspark.client.records import Records
from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore, Versioned
from bkspark.metadata.uri import format_store, open_store
from bkspark.testing.zookeeper import ZooKeeperServers, missing, zookeeper

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

KEY = "ledgers/0000000000000001"


class Proxy:
    """Stands between client and server, and loses what it is told to, once."""

    def __init__(self, target: str) -> None:
        self.lose: Literal["request", "answer"] | None = None
        self._target = ("127.0.0.1", int(target.rpartition(":")[2]))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """End every connection and accept none until ``mend``."""
        self._is_cut = True
        self._end_all()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        # Closing alone does not wake up who accepts.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(self._target)
                self._open += [client, server]
                for pair in ((client, server, "request"), (server, client, "answer")):
                    threading.Thread(target=self._carry, args=pair, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, kind: str) -> None:
        with (
            source,
            sink,
            source.makefile("rb") as stream,
            contextlib.suppress(OSError, ValueError),
        ):
            while len(head := stream.read(4)) == 4:
                body = stream.read(int.from_bytes(head, "big"))
                # Pings and the like have no number of their own.
                is_call = struct.unpack(">i", body[:4])[0] > 0
                if is_call and self.lose == kind:
                    self.lose = None
                    break
                sink.sendall(head + body)
            self._end(source, sink)

    def _end_all(self) -> None:
        self._end(*self._open)
        self._open.clear()

    def _end(self, *ended: socket.socket) -> None:
        for each in ended:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("ensemble"), count=3) as servers:
        yield servers


@pytest.fixture
def direct(server: ZooKeeperServers) -> Iterator[MetadataStore]:
    """A new store, reached without the proxy."""
    store = format_store(f"zk://{server.hosts}/tests/{secrets.token_hex(8)}")
    store.put("ledgers/first", b"of its kind", None)
    yield store
    store.close()


@pytest.fixture
def proxy(server: ZooKeeperServers) -> Iterator[Proxy]:
    proxy = Proxy(server.hosts)
    yield proxy
    proxy.close()


@pytest.fixture
def store(direct: MetadataStore, proxy: Proxy, server: ZooKeeperServers) -> Iterator[MetadataStore]:
    """The same store through the proxy, connected."""
    store = open_store(direct.uri.replace(server.hosts, proxy.address))
    assert store.get(KEY) is None
    yield store
    store.close()


def records(store: MetadataStore) -> Records[tuple[str, ...]]:
    """Records that are lists of words."""
    return Records(
        store,
        lambda name: f"ledgers/{name}",
        lambda words, nonce: json.dumps([nonce, *words]).encode(),
        lambda _, data: tuple(json.loads(data)[1:]),
    )


class TestLost:
    """One request or one answer."""

    @pytest.mark.parametrize("expected", [None, 1])
    def test_put_without_an_answer_is_unknown_but_done(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy, expected: int | None
    ) -> None:
        if expected is not None:
            direct.put(KEY, b"old", None)
        proxy.lose = "answer"
        with pytest.raises(OutcomeUnknownError, match="could not surely put"):
            store.put(KEY, b"new", expected)
        assert direct.get(KEY) == Versioned(b"new", (expected or 0) + 1)
        assert store.get(KEY) == direct.get(KEY)

    @pytest.mark.parametrize("expected", [None, 1])
    def test_put_without_a_request_is_unknown_and_not_done(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy, expected: int | None
    ) -> None:
        if expected is not None:
            direct.put(KEY, b"old", None)
        before = direct.get(KEY)
        proxy.lose = "request"
        with pytest.raises(OutcomeUnknownError):
            store.put(KEY, b"new", expected)
        assert store.get(KEY) == before
        assert store.put(KEY, b"new", expected) == (expected or 0) + 1

    def test_records_recognise_their_own_change(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy
    ) -> None:
        mine = records(store)
        proxy.lose = "answer"
        seen = mine.create("x", ("a",))
        proxy.lose = "answer"
        seen = mine.replace("x", ("a", "b"), seen)
        proxy.lose = "answer"
        seen = mine.update("x", lambda words: (*(words or ()), "c"), seen=seen)
        assert proxy.lose is None
        assert seen.stored.version == 3
        assert records(direct).get("x") == seen
        assert seen.value == ("a", "b", "c")
        assert mine.is_current("x", seen)

    def test_records_do_not_take_the_change_of_another_for_theirs(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy
    ) -> None:
        seen = records(store).create("x", ("a",))
        proxy.lose = "request"
        with pytest.raises(OutcomeUnknownError):
            records(store).replace("x", ("same",), seen)
        records(direct).replace("x", ("same",), seen)
        with pytest.raises(MetadataVersionError):
            records(store).replace("x", ("same",), seen)

    @pytest.mark.parametrize("lost", ["request", "answer"])
    def test_looks_are_repeated(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy, lost: Literal["answer"]
    ) -> None:
        direct.put(KEY, b"x", None)
        for look in (
            lambda: store.get(KEY) == Versioned(b"x", 1),
            lambda: store.is_current(KEY, Versioned(b"x", 1)),
            lambda: store.list("ledgers") == [KEY.partition("/")[2], "first"],
        ):
            proxy.lose = lost
            assert look()
            assert proxy.lose is None

    @pytest.mark.parametrize("lost", ["request", "answer"])
    def test_delete_may_be_repeated(
        self, store: MetadataStore, direct: MetadataStore, proxy: Proxy, lost: Literal["answer"]
    ) -> None:
        direct.put(KEY, b"x", None)
        store.delete("ledgers/second")
        proxy.lose = lost
        with pytest.raises(OutcomeUnknownError):
            store.delete(KEY)
        assert (direct.get(KEY) is None) == (lost == "answer")
        store.delete(KEY)
        assert direct.get(KEY) is None


class TestNoConnection:
    """For longer than one request."""

    def test_put_that_waited_too_long_is_never_sent(
        self,
        store: MetadataStore,
        direct: MetadataStore,
        proxy: Proxy,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "ANSWER_SECONDS", 0.3)
        proxy.cut()
        time.sleep(0.3)  # until the client has noticed
        with pytest.raises(OutcomeUnknownError, match=r"put .*: no answer within 0\.3 s"):
            store.put(KEY, b"late", None)
        proxy.mend()
        time.sleep(1)
        assert store.get(KEY) is None
        assert direct.put(KEY, b"x", None) == 1

    def test_expired_session_is_replaced(
        self, direct: MetadataStore, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "SESSION_SECONDS", 1.0)
        store = open_store(f"zk://{proxy.address}/tests/{direct.uri.partition('/tests/')[2]}")
        store.put(KEY, b"1", None)
        proxy.cut()
        time.sleep(0.3)
        with ThreadPoolExecutor(2) as pool:
            putting = pool.submit(store.put, KEY, b"2", 1)
            getting = pool.submit(store.get, KEY)
            time.sleep(2.5)  # the servers look every half second
            proxy.mend()
            with pytest.raises(OutcomeUnknownError, match="SessionExpired"):
                putting.result()
            assert getting.result() == Versioned(b"1", 1)
        assert store.put(KEY, b"2", 1) == 2
        store.close()

    def test_killed_server_is_an_error_and_no_hang(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "ANSWER_SECONDS", 1.0)
        with zookeeper(tmp_path) as servers:
            store = format_store(f"zk://{servers.hosts}/bk")
            store.put(KEY, b"1", None)
            servers.kill()
            monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 1.0)
            for call in (
                lambda: store.put(KEY, b"2", 1),
                lambda: store.get(KEY),
                lambda: store.is_current(KEY, Versioned(b"1", 1)),
                lambda: store.delete(KEY),
            ):
                with pytest.raises(OutcomeUnknownError, match=servers.hosts), _at_most(4):
                    call()
            monkeypatch.undo()
            servers.start()
            assert store.get(KEY) == Versioned(b"1", 1)
            assert store.put(KEY, b"2", 1) == 2
            store.close()


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

    def test_leader_that_slept_confirms_nothing_old(self, ensemble: ZooKeeperServers) -> None:
        """``sync`` and ``get`` alone would say here that the old version is the newest."""
        leader = ensemble.leader()
        others = [server.address for server in ensemble.servers if server is not leader]
        with (
            contextlib.closing(format_store(f"zk://{','.join(others)}/slept")) as awake,
            contextlib.closing(open_store(f"zk://{leader.address}/slept")) as asleep,
            ThreadPoolExecutor(2) as pool,
        ):
            seen = Versioned(b"old", awake.put(KEY, b"old", None))
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
            assert getting.result() == Versioned(b"new", 2)

    def test_without_a_quorum_nothing_is_known(
        self, ensemble: ZooKeeperServers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "ANSWER_SECONDS", 1.0)
        monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 1.0)
        alone, *others = ensemble.servers
        with contextlib.closing(format_store(f"zk://{alone.address}/alone")) as store:
            seen = Versioned(b"x", store.put(KEY, b"x", None))
            for server in others:
                server.kill()
            for call in (
                lambda: store.put(KEY, b"y", 1),
                lambda: store.get(KEY),
                lambda: store.is_current(KEY, seen),
                lambda: store.list("ledgers"),
            ):
                with pytest.raises(OutcomeUnknownError), _at_most(4):
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
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(OutcomeUnknownError, MetadataVersionError):
            store.put(KEY, b"new", 1)
        with contextlib.suppress(OutcomeUnknownError):
            if store.get(KEY) == Versioned(b"new", 2):
                return
    raise AssertionError("no new leader")


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    begin = time.monotonic()
    try:
        yield
    finally:
        assert time.monotonic() - begin < seconds
