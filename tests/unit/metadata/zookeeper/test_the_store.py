"""Whether a path in ZooKeeper has a store, which one it is, and the connection to it."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bkspark import environment
from bkspark.errors import (
    InvalidRequestError,
    OutcomeUnknownError,
    UnauthorizedError,
)
from bkspark.metadata import patience, zookeeper_session
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.kept_sessions import KeptSessions
from bkspark.metadata.uri import format_store, open_store
from bkspark.metadata.zookeeper_access import VARIABLE

from .calls import CALLS, CHANGES, KEY, LOOKS, RECORD, URI, asked, wait_for
from .stand_in import Client, Fate, Servers


class TestTheStore:
    """Whether it is there, and which one it is."""

    @pytest.mark.parametrize("call", CALLS)
    def test_a_path_without_a_store_is_no_empty_one(
        self, servers: Servers, store: MetadataStore, call: str
    ) -> None:
        for uri in (URI, "zk://host-1/elsewhere"):
            servers.tree = {"/": (b"", 0), **{f"/bk/{k}": (b"", 0) for k in ("records", "deleted")}}
            before = servers.tree
            for one in (store, open_store(uri)):
                with pytest.raises(InvalidRequestError, match="no bkspark cluster at"):
                    CALLS[call](one)
            assert servers.tree == before

    @pytest.mark.parametrize("call", CALLS)
    def test_another_cluster_s_store_is_not_touched(
        self, servers: Servers, store: MetadataStore, call: str
    ) -> None:
        """Its random name is checked in the very transaction that changes something."""
        servers.tree = {"/": (b"", 0)}
        format_store(URI).put(KEY, b"old", None)
        before = servers.tree
        with pytest.raises(InvalidRequestError, match="another cluster has replaced it"):
            CALLS[call](store)
        assert servers.tree == before
        assert open_store(URI).get(KEY) == VersionedBytes(b"old", 1)

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_store_that_is_exchanged_in_front_of_the_change_is_not_touched(
        self, servers: Servers, store: MetadataStore, change: str
    ) -> None:
        def exchange() -> None:
            servers.tree = {"/": (b"", 0)}
            format_store(URI).put(KEY, b"old", None)
            servers.requests.clear()

        servers.script("multi", exchange)
        with pytest.raises(InvalidRequestError, match="another cluster has replaced it"):
            CHANGES[change](store)
        assert servers.tree[RECORD] == (b"old", 0)

    def test_it_is_looked_up_once(self, servers: Servers, store: MetadataStore) -> None:
        fresh = open_store(URI)
        look_up = ["multi", "children /bk/METADATA_STORE_1"]
        assert asked(servers, LOOKS["get"], fresh)[:2] == look_up
        assert asked(servers, LOOKS["get"], fresh) == ["multi", f"get {RECORD}"]

    def test_another_format_is_told(self, servers: Servers, store: MetadataStore) -> None:
        servers.tree = {
            path.replace("METADATA_STORE_1", "METADATA_STORE_2"): node
            for path, node in servers.tree.items()
        }
        for one in (store, open_store(URI)):
            with pytest.raises(InvalidRequestError, match="has another format"):
                one.get(KEY)

    def test_a_store_without_a_name_of_its_own_is_refused(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        """No client could tell it from another one."""
        servers.tree = {
            path: node
            for path, node in servers.tree.items()
            if not path.startswith("/bk/METADATA_STORE_1/")
        }
        before = servers.tree
        for call in CALLS.values():
            with pytest.raises(InvalidRequestError, match="has another format"):
                call(open_store(URI))
        assert servers.tree == before


class TestFormat:
    def test_it_is_made_at_once(self, servers: Servers) -> None:
        servers.script("multi", Fate.REQUEST_LOST)
        with pytest.raises(OutcomeUnknownError):
            format_store(URI)
        assert set(servers.tree) == {"/", "/bk"}
        servers.requests.clear()
        store = format_store(URI)
        assert servers.requests.count("multi") == 1
        assert store.put(KEY, b"x", None) == 1

    def test_the_first_record_makes_the_folders_of_its_kind(self, servers: Servers) -> None:
        """The refusals before are the folder's that is missing, whatever was rolled back."""
        store = format_store(URI)
        store.put(KEY, b"x", None)
        store.delete("logs/a")
        for folder in ("ledgers", "logs"):
            assert {f"/bk/{kind}/{folder}" for kind in ("records", "deleted")} <= set(servers.tree)

    def test_a_lost_answer_is_settled_by_formatting_again(self, servers: Servers) -> None:
        servers.script("multi", Fate.ANSWER_LOST)
        with pytest.raises(OutcomeUnknownError):
            format_store(URI)
        made = servers.tree
        format_store(URI)
        assert servers.tree == made

    def test_what_has_records_or_something_else_is_refused(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        with pytest.raises(InvalidRequestError, match="it exists already"):
            format_store(URI)
        servers.tree["/other/thing"] = servers.tree["/other"] = (b"", 0)
        servers.tree["/full"] = (b"value", 0)
        before = dict(servers.tree)
        for path in ("other", "full"):
            with pytest.raises(InvalidRequestError, match="it has other nodes"):
                format_store(f"zk://host-1/{path}")
        assert servers.tree == before

    def test_what_another_client_makes_meanwhile_is_left(self, servers: Servers) -> None:
        servers.script("multi", lambda: format_store(URI).put(KEY, b"theirs", None))
        with pytest.raises(InvalidRequestError, match="just now"):
            format_store(URI)
        assert open_store(URI).get(KEY) == VersionedBytes(b"theirs", 1)


class TestConnection:
    @pytest.mark.parametrize("call", CALLS)
    def test_what_the_servers_forbid_is_said(
        self, servers: Servers, store: MetadataStore, call: str
    ) -> None:
        servers.script("any", Fate.FORBIDDEN)
        with pytest.raises(UnauthorizedError, match="ZooKeeper does not allow us to"):
            CALLS[call](store)
        assert len(servers.clients) == 1

    def test_servers_that_are_away_were_sent_nothing(
        self, servers: Servers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 0.01)
        servers.is_up = False
        with pytest.raises(OutcomeUnknownError, match="nothing was sent"):
            open_store(URI).put(KEY, b"x", None)
        wait_for(lambda: all(client.is_stopped for client in servers.clients))
        assert servers.requests == []

    def test_the_question_what_the_trouble_is_takes_no_longer(
        self, servers: Servers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        over = threading.Event()
        monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 0.01)
        monkeypatch.setattr(zookeeper_session, "trouble", lambda _hosts: str(over.wait(60)))
        servers.is_up = False
        try:
            with pytest.raises(OutcomeUnknownError) as caught:
                open_store(URI).get(KEY)
        finally:
            over.set()
        assert caught.value.hint.endswith("runs and is connected")

    def test_what_the_trouble_is_is_said(
        self, servers: Servers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(zookeeper_session, "CONNECT_SECONDS", 0.5)
        monkeypatch.setattr(zookeeper_session, "_UNASKED", 0.0)
        monkeypatch.setattr(zookeeper_session, "trouble", lambda _hosts: "; no TLS")
        servers.is_up = False
        with pytest.raises(OutcomeUnknownError) as caught:
            open_store(URI).get(KEY)
        assert caught.value.hint.endswith("; no TLS")

    def test_a_caller_waits_for_another_that_connects_within_its_own_time_limit(
        self, servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connected = threading.Event()
        monkeypatch.setattr(Client, "start_async", lambda _: connected)
        servers.script("any", Fate.CLOSED)
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(store.get, KEY)
            try:
                wait_for(lambda: len(servers.clients) > 1)
                with (
                    patience.seconds(0.01),
                    pytest.raises(OutcomeUnknownError, match="nothing was"),
                ):
                    store.get(KEY)
            finally:
                connected.set()
            assert first.result() == VersionedBytes(b"old", 1)

    def test_kazoo_repeats_no_request_and_logs_no_value(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        settings = servers.clients[0].settings
        assert "command_retry" not in settings
        assert settings["logger"].getEffectiveLevel() >= 20
        assert not settings["auth_data"]

    def test_it_signs_in_and_its_records_belong_to_its_user(
        self, servers: Servers, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, "me:secret")
        format_store(URI)
        settings = servers.clients[-1].settings
        assert settings["auth_data"] == [("digest", "me:secret")]
        assert settings["default_acl"] == zookeeper_session.CREATOR_ALL_ACL

    def test_a_child_process_connects_anew(
        self, servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert store.get(KEY) == VersionedBytes(b"old", 1)
        assert len(servers.clients) == 2
        assert not servers.clients[0].is_stopped

    def test_closing_stops_the_connection_and_the_next_call_makes_another(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        store.close()
        environment.the_one(KeptSessions).end_all()
        assert servers.clients[0].is_stopped
        assert store.get(KEY) == VersionedBytes(b"old", 1)
        assert len(servers.clients) == 2
