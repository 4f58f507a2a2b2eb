"""The edge of the ZooKeeper store: addresses, credentials, markers, connections."""

import contextlib
import multiprocessing
import os
import pickle
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bkspark.errors import InvalidRequestError, OutcomeUnknownError, UnauthorizedError
from bkspark.metadata import kept_sessions, zookeeper_session
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from bkspark.metadata.zookeeper import VALUE_BYTES_MAX, ZooKeeperMetadataStore
from bkspark.metadata.zookeeper_access import FILE_VARIABLE, VARIABLE
from tests.kit.zookeeper import missing, zookeeper

from ...stopwatch import Stopwatch  # noqa: TID252

needs_server = pytest.mark.skipif(bool(missing()), reason=missing())
Call = Callable[[MetadataStore], object]
KEY = "ledgers/0000000000000001"
SECRET = "s3cret-of-the-test"

CALLS: list[Callable[[MetadataStore], object]] = [
    lambda store: store.get(KEY),
    lambda store: store.put(KEY, b"x", None),
    lambda store: store.put(KEY, b"x", 1),
    lambda store: store.is_current(KEY, VersionedBytes(b"x", 1)),
    lambda store: store.list("ledgers"),
    lambda store: store.delete(KEY),
]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with zookeeper(tmp_path_factory.mktemp("zookeeper")) as servers:
        yield servers.hosts


@pytest.fixture
def uri(hosts: str) -> str:
    """A path that nobody has made."""
    return f"zk://{hosts}/{secrets.token_hex(8)}"


@pytest.fixture
def client(hosts: str) -> Iterator[KazooClient]:
    """The back door."""
    client = KazooClient(hosts)
    client.start()
    yield client
    client.stop()
    client.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 1.0)


class TestAddress:
    @pytest.mark.parametrize(
        "uri",
        [
            "zk://h/bk",
            "zk://h1:2181,h2.example.org:2182/bk",
            "zk://[::1]:2181,10.0.0.1/a/b.c/d-e_f",
        ],
    )
    def test_is_kept(self, uri: str) -> None:
        store = open_store(uri)
        assert isinstance(store, ZooKeeperMetadataStore)
        assert store.uri == uri
        assert open_store(uri + "/").uri == uri
        assert pickle.loads(pickle.dumps(store)).uri == uri
        store.close()

    @pytest.mark.parametrize(
        "uri",
        [
            "zk:///bk",
            "zk:/bk",
            "zk://h,/bk",
            "zk://h:0/bk",
            "zk://h:65536/bk",
            "zk://h:x/bk",
            "zk://h /bk",
            "zk://h",
            "zk://h/",
            "zk://h//bk",
            "zk://h/../bk",
            "zk://h/a..b",
            "zk://h/a b",
            "zk://h/a%2Fb",
            "zk://h/zookeeper",
            "zk://h/zookeeper/x",
            "zk://h/" + "x" * 600,
            f"zk://user:{SECRET}@h/bk",
            f"zk://h/bk?auth={SECRET}",
            f"zk://h/bk#{SECRET}",
        ],
    )
    def test_is_refused(self, uri: str) -> None:
        with pytest.raises(InvalidRequestError, match=r"zk://host|/bkspark") as caught:
            open_store(uri)
        assert SECRET not in str(caught.value)

    def test_kazoo_is_imported_when_first_used_and_missed_with_a_hint(self) -> None:
        script = (
            "import sys; sys.modules['kazoo'] = None\n"
            "from bkspark.metadata.uri import open_store\n"
            "open_store('zk://h/bk').get('cluster')"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        assert b"pip install 'bkspark[zookeeper]'" in done.stderr.splitlines()[-1]

    def test_what_is_too_large_is_refused_before_it_is_sent(self) -> None:
        store = open_store("zk://127.0.0.1:1/bk")
        with pytest.raises(InvalidRequestError, match=r"1,040,385 bytes.* takes 1,040,384"):
            store.put(KEY, b"x" * (VALUE_BYTES_MAX + 1), None)
        with pytest.raises(InvalidRequestError, match="too long"):
            store.put("/".join(["k" * 200] * 6), b"x", None)


class TestUnreachable:
    @pytest.mark.usefixtures("impatient")
    def test_wrong_port(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.check_refused(f"127.0.0.1:{port}")

    @pytest.mark.usefixtures("impatient")
    def test_unknown_host(self) -> None:
        self.check_refused("no-such-host.invalid:2181")

    @pytest.mark.usefixtures("impatient")
    @pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
    def test_port_of_something_else(self, answer: bytes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=_answer, args=(server, answer), daemon=True).start()
            self.check_refused(f"127.0.0.1:{server.getsockname()[1]}")
            server.shutdown(socket.SHUT_RDWR)

    def check_refused(self, host: str) -> None:
        store = open_store(f"zk://{host}/bk")
        watch = Stopwatch()
        with pytest.raises(OutcomeUnknownError) as caught:
            store.get(KEY)
        assert watch.seconds < 7
        assert f"no ZooKeeper server answered at {host} within 1 s" in str(caught.value)
        assert "check the address" in caught.value.hint
        store.close()

    def test_nothing_on_stderr(self) -> None:
        script = (
            "from bkspark.metadata import zookeeper_session, uri\n"
            "zookeeper_session.CONNECT_SECONDS = 0.5\n"
            "try: uri.open_store('zk://127.0.0.1:1/bk').get('cluster')\n"
            "except Exception as error: print(type(error).__name__)"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
        assert done.stdout == b"OutcomeUnknownError\n"
        assert done.stderr == b""


@needs_server
class TestMarker:
    @pytest.mark.parametrize("call", CALLS)
    def test_nothing_happens_without_it(
        self, uri: str, client: KazooClient, call: Callable[[MetadataStore], object]
    ) -> None:
        with (
            contextlib.closing(open_store(uri)) as store,
            pytest.raises(InvalidRequestError) as caught,
        ):
            call(store)
        assert f"no bkspark cluster at {uri}" in str(caught.value)
        assert f"bkspark init {uri}" in caught.value.hint
        assert client.exists(_path(uri)) is None

    @pytest.mark.parametrize("call", CALLS)
    def test_store_that_was_taken_away(self, uri: str, client: KazooClient, call: Call) -> None:
        with contextlib.closing(format_store(uri)) as store:
            store.put(KEY, b"x", None)
            client.delete(marker := f"{_path(uri)}/METADATA_STORE_1", recursive=True)
            for said in ("no bkspark cluster", "another cluster has replaced it"):
                with pytest.raises(InvalidRequestError, match=said):
                    call(store)
                client.ensure_path(f"{marker}/another")

    def test_another_format(self, uri: str, client: KazooClient) -> None:
        client.ensure_path(f"{_path(uri)}/METADATA_STORE_2")
        with (
            contextlib.closing(open_store(uri)) as store,
            pytest.raises(InvalidRequestError, match="another format"),
        ):
            store.get(KEY)

    def test_format_takes_an_empty_path_and_no_other(self, uri: str, client: KazooClient) -> None:
        client.ensure_path(_path(uri))
        format_store(uri).close()
        client.create(f"{_path(uri)}/records/~")
        with contextlib.closing(format_store(uri)) as store:  # a client was killed behind the first
            store.put("cluster", b"x", None)
        with pytest.raises(InvalidRequestError, match="exists already"):
            format_store(uri)
        client.ensure_path(f"{_path(uri)}-child/x")
        client.create(f"{_path(uri)}-value", b"x")
        for name in ("child", "value"):
            with pytest.raises(InvalidRequestError, match="other nodes"):
                format_store(f"{uri}-{name}")

    def test_records_are_where_people_look_for_them(self, uri: str, client: KazooClient) -> None:
        with contextlib.closing(format_store(uri)) as store:
            store.put("cluster", b"c", None)
            store.put("ledgers/a", b"a", None)
            store.put("ledgers", b"not a folder", None)
            store.put("ledgers/a/b", b"not inside", None)
            store.delete("ledgers/a")
            assert store.list("ledgers") == []
            assert store.get("ledgers/a/b") == VersionedBytes(b"not inside", 1)
            assert store.list("ledgers/a") == ["b"]
        root = _path(uri)
        assert client.get(f"{root}/records/~/cluster")[0] == b"c"
        assert client.get_children(f"{root}/records/ledgers") == []
        assert client.get_children(f"{root}/deleted/ledgers") == ["a"]


@pytest.mark.thorough
@needs_server
class TestCredentials:
    @pytest.fixture
    def guarded(self, uri: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """A store that was made with credentials, which are gone from the environment."""
        monkeypatch.setenv(VARIABLE, f"bk:{SECRET}")
        with contextlib.closing(format_store(uri)) as store:
            store.put(KEY, b"1", None)
            store.delete("logs/gone")
        monkeypatch.delenv(VARIABLE)
        return uri

    @pytest.mark.parametrize("auth", [None, f"other:{SECRET}"])
    def test_others_get_nothing(
        self, guarded: str, monkeypatch: pytest.MonkeyPatch, auth: str | None
    ) -> None:
        if auth:
            monkeypatch.setenv(VARIABLE, auth)
        with contextlib.closing(open_store(guarded)) as store:
            for call in (*CALLS, lambda store: store.format()):
                with pytest.raises(UnauthorizedError) as caught:
                    call(store)
                assert VARIABLE in caught.value.hint
                assert SECRET not in _everything(caught.value)

    def test_file_serves_as_well(
        self, guarded: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "auth").write_text(f"bk:{SECRET}\n")
        monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "auth"))
        with contextlib.closing(open_store(guarded)) as store:
            assert store.put(KEY, b"2", 1) == 2
            assert SECRET.encode() not in pickle.dumps(store)
            assert SECRET not in repr(vars(store)) + store.uri

    def test_every_znode_is_guarded(self, guarded: str, client: KazooClient) -> None:
        client.add_auth("digest", f"bk:{SECRET}")
        paths = [_path(guarded)]
        for path in paths:
            paths += [f"{path}/{name}" for name in client.get_children(path)]
            assert [acl.id.scheme for acl in client.get_acls(path)[0]] == ["digest"]
        assert len(paths) >= 8

    @pytest.mark.parametrize("auth", [SECRET, f":{SECRET}", f"{SECRET}:", f"bk:{SECRET}\n"])
    def test_malformed_ones_are_not_shown(self, monkeypatch: pytest.MonkeyPatch, auth: str) -> None:
        monkeypatch.setenv(VARIABLE, auth)
        with pytest.raises(InvalidRequestError, match="user:password") as caught:
            open_store("zk://127.0.0.1:1/bk").get(KEY)
        assert SECRET not in _everything(caught.value)

    def test_two_references_or_a_dead_one_are_refused(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "none"))
        with pytest.raises(InvalidRequestError, match="cannot be read: FileNotFoundError"):
            open_store("zk://127.0.0.1:1/bk").get(KEY)
        monkeypatch.setenv(VARIABLE, f"bk:{SECRET}")
        with pytest.raises(InvalidRequestError, match="only one"):
            open_store("zk://127.0.0.1:1/bk").get(KEY)

    def test_logs_do_not_show_them(self, guarded: str) -> None:
        script = (
            "import logging, sys; logging.basicConfig(level=0)\n"
            "from bkspark.metadata.uri import open_store\n"
            "store = open_store(sys.argv[1]); store.get('cluster'); store.close()"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, guarded],
            env=os.environ | {VARIABLE: f"bk:{SECRET}"},
            capture_output=True,
            check=True,
        )
        assert b"kazoo" in done.stderr
        assert SECRET.encode() not in done.stdout + done.stderr


@pytest.mark.thorough
@needs_server
class TestConnection:
    def test_is_made_when_needed_and_ends_with_the_store(
        self, uri: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(kept_sessions.VARIABLE, "0")
        format_store(uri).close()
        before = set(threading.enumerate())  # some of them may end meanwhile
        store = open_store(uri)
        assert set(threading.enumerate()) <= before
        store.get(KEY)
        assert set(threading.enumerate()) - before
        store.close()
        assert store.get(KEY) is None
        del store  # forgotten, not closed
        end = time.monotonic() + 5
        while set(threading.enumerate()) - before and time.monotonic() < end:
            time.sleep(0.01)
        assert set(threading.enumerate()) <= before

    def test_forked_child_has_its_own(self, uri: str) -> None:
        with contextlib.closing(format_store(uri)) as store:
            store.put(KEY, b"1", None)
            child = multiprocessing.get_context("fork").Process(
                target=_put_and_close, args=(store,)
            )
            child.start()
            child.join(120)
            assert child.exitcode == 0
            assert store.get(KEY) == VersionedBytes(b"2", 2)
            assert store.put(KEY, b"3", 2) == 3

    def test_one_that_died_is_replaced(self, uri: str) -> None:
        with contextlib.closing(format_store(uri)) as store:
            assert isinstance(store, ZooKeeperMetadataStore)
            for look in (True, False):
                # Behind its back, as an error in its own thread would.
                store._session._connection.client.stop()
                if not look:
                    with pytest.raises(OutcomeUnknownError):
                        store.put(KEY, b"x", None)
                assert store.get(KEY) is None
            assert store.put(KEY, b"x", None) == 1

    def test_threads_share_one(self, uri: str) -> None:
        with contextlib.closing(format_store(uri)) as store:
            threads = [
                threading.Thread(target=store.put, args=(f"logs/{n}", b"x", None))
                for n in range(20)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(store.list("logs")) == 20


@needs_server
def test_no_server_outlives_its_block(tmp_path: Path) -> None:
    with contextlib.suppress(KeyError), zookeeper(tmp_path) as servers:
        servers.servers[0].pause()
        raise KeyError
    host, _, port = servers.hosts.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))


def _answer(server: socket.socket, answer: bytes) -> None:
    """Accept everybody and say this, whatever they ask."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
        while True:
            client = stack.enter_context(server.accept()[0])
            client.sendall(answer)


def _put_and_close(store: MetadataStore) -> None:
    assert store.put(KEY, b"2", 1) == 2
    store.close()


def _path(uri: str) -> str:
    return "/" + uri.rpartition("/")[2]


def _everything(error: BaseException | None) -> str:
    """What a traceback may show of an error and its causes."""
    return "" if error is None else f"{error!r} {error} {_everything(error.__cause__)}"
