"""Requests and answers that are lost, and connections: no change is lost or doubled."""

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest

from bkspark.cluster.records import Records
from bkspark.errors import MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import zookeeper_session
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from tests.kit.relay import Relay
from tests.kit.zookeeper import ZooKeeperServers, missing, zookeeper

from ...stopwatch import Stopwatch  # noqa: TID252

pytestmark = [pytest.mark.thorough, pytest.mark.skipif(bool(missing()), reason=missing())]

KEY = "ledgers/0000000000000001"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServers]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers


@pytest.fixture
def direct(server: ZooKeeperServers) -> Iterator[MetadataStore]:
    """A new store, reached without the proxy."""
    store = format_store(f"zk://{server.hosts}/tests/{secrets.token_hex(8)}")
    store.put("ledgers/first", b"of its kind", None)
    yield store
    store.close()


@pytest.fixture
def proxy(server: ZooKeeperServers) -> Iterator[Relay]:
    proxy = Relay(server.hosts)
    yield proxy
    proxy.close()


@pytest.fixture
def store(direct: MetadataStore, proxy: Relay, server: ZooKeeperServers) -> Iterator[MetadataStore]:
    """The same store through the proxy, connected."""
    store = open_store(direct.uri.replace(server.hosts, proxy.address))
    assert store.get(KEY) is None
    yield store
    store.close()


def records(store: MetadataStore) -> Records[tuple[str, ...]]:
    """Records that are lists of words."""
    return Records(
        store,
        "",
        lambda name: f"ledgers/{name}",
        lambda words, nonce: json.dumps([nonce, *words]).encode(),
        lambda _, data: tuple(json.loads(data)[1:]),
    )


class TestLost:
    """One request or one answer."""

    @pytest.mark.parametrize("expected", [None, 1])
    def test_put_without_an_answer_is_unknown_but_done(
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay, expected: int | None
    ) -> None:
        if expected is not None:
            direct.put(KEY, b"old", None)
        proxy.lose = "answer"
        with pytest.raises(OutcomeUnknownError, match="gave no definite answer"):
            store.put(KEY, b"new", expected)
        assert direct.get(KEY) == VersionedBytes(b"new", (expected or 0) + 1)
        assert store.get(KEY) == direct.get(KEY)

    @pytest.mark.parametrize("expected", [None, 1])
    def test_put_without_a_request_is_unknown_and_not_done(
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay, expected: int | None
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
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay
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
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay
    ) -> None:
        seen = records(store).create("x", ("a",))
        records(direct).replace("x", ("same",), seen)
        for lost in (None, "request", "answer"):
            proxy.lose = lost
            with pytest.raises(MetadataVersionError):
                records(store).replace("x", ("same",), seen)

    def test_records_send_a_change_again_that_is_not_there(
        self, store: MetadataStore, proxy: Relay
    ) -> None:
        seen = records(store).create("x", ("a",))
        proxy.lose = "request"
        assert records(store).replace("x", ("b",), seen).stored.version == 2

    @pytest.mark.parametrize("lost", ["request", "answer"])
    def test_looks_are_repeated(
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay, lost: Literal["answer"]
    ) -> None:
        direct.put(KEY, b"x", None)
        for look in (
            lambda: store.get(KEY) == VersionedBytes(b"x", 1),
            lambda: store.is_current(KEY, VersionedBytes(b"x", 1)),
            lambda: store.list("ledgers") == [KEY.partition("/")[2], "first"],
        ):
            proxy.lose = lost
            assert look()
            assert proxy.lose is None

    @pytest.mark.parametrize("lost", ["request", "answer"])
    def test_delete_may_be_repeated(
        self, store: MetadataStore, direct: MetadataStore, proxy: Relay, lost: Literal["answer"]
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
        proxy: Relay,
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
        self, direct: MetadataStore, proxy: Relay, monkeypatch: pytest.MonkeyPatch
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
            assert getting.result() == VersionedBytes(b"1", 1)
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
                lambda: store.is_current(KEY, VersionedBytes(b"1", 1)),
                lambda: store.delete(KEY),
            ):
                with pytest.raises(OutcomeUnknownError, match=servers.hosts), _at_most(7):
                    call()
            monkeypatch.undo()
            servers.start()
            assert store.get(KEY) == VersionedBytes(b"1", 1)
            assert store.put(KEY, b"2", 1) == 2
            store.close()


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    watch = Stopwatch()
    try:
        yield
    finally:
        assert watch.seconds < seconds
