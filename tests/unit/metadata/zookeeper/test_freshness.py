"""Looks for which an older answer is enough: what they cost, and how old the answer may be.

The servers that answer are as far behind as ZooKeeper allows.
"""

from collections.abc import Callable
from contextlib import closing

import pytest

from bkspark.errors import InvalidRequestError, MetadataVersionError
from bkspark.metadata import freshness
from bkspark.metadata.contract import MetadataStore, VersionedBytes, pays_to_read, watchable
from bkspark.metadata.uri import open_store
from bkspark.storage.changes import Changes

from .calls import KEY, LOOKS, RECORD, URI, asked
from .stand_in import Fate, Servers

GET = ["multi", f"get {RECORD}"]
OLD, NEW = VersionedBytes(b"old", 1), VersionedBytes(b"new", 2)


def change(other: MetadataStore) -> None:
    other.put(KEY, b"new", 1)


class TestFromHere:
    """One quorum write serves a block."""

    def test_one_transaction_serves_all_looks(self, servers: Servers, store: MetadataStore) -> None:
        with freshness.from_here():
            assert asked(servers, lambda store: store.get(KEY), store) == GET
            for look in LOOKS.values():
                assert "multi" not in asked(servers, look, store)

    def test_a_change_serves_the_looks_after_it(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        with freshness.from_here():
            store.put(KEY, b"new", 1)
            servers.requests.clear()
            assert store.get(KEY) == NEW
        assert servers.requests == [f"get {RECORD}"]

    def test_a_refused_change_serves_no_look(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        change(other)
        with freshness.from_here():
            with pytest.raises(MetadataVersionError):
                store.put(KEY, b"x", 1)
            assert asked(servers, lambda store: store.get(KEY), store) == GET

    def test_an_answer_is_as_new_as_the_block(
        self, store: MetadataStore, other: MetadataStore
    ) -> None:
        for look in LOOKS.values():
            look(store)
        change(other)
        with freshness.from_here():
            assert store.get(KEY) == NEW
            assert not store.is_current(KEY, OLD)

    def test_an_inner_block_begins_anew(self, store: MetadataStore, other: MetadataStore) -> None:
        with freshness.from_here():
            assert store.get(KEY) == OLD
            change(other)
            with freshness.from_begin():
                assert store.get(KEY) == OLD
            with freshness.from_here():
                assert store.get(KEY) == NEW

    def test_now_is_now_in_each_block(self, store: MetadataStore, other: MetadataStore) -> None:
        with freshness.from_here():
            store.get(KEY)
            change(other)
            with freshness.now():
                assert store.get(KEY) == NEW

    def test_a_new_session_begins_anew(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.from_here():
            store.get(KEY)
            change(other)
            servers.clients[0].expire()
            assert store.get(KEY) == NEW

    def test_an_answer_to_a_new_session_does_not_count(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.from_here():
            store.get(KEY)
            change(other)
            servers.script("get", servers.clients[0].expire)
            assert store.get(KEY) == NEW

    def test_another_cluster_s_store_is_not_taken_for_it(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        del servers.tree[next(path for path in servers.tree if "METADATA_STORE_1/" in path)]
        with freshness.from_here(), pytest.raises(InvalidRequestError, match="another cluster"):
            store.get(KEY)


class TestRecent:
    """A server tells of changes."""

    def test_what_is_watched_takes_no_request(self, servers: Servers, store: MetadataStore) -> None:
        with freshness.recent():
            assert asked(servers, lambda store: store.get(KEY), store) == [f"get {RECORD}"]
            for _ in range(3):
                assert asked(servers, lambda store: store.is_current(KEY, OLD), store) == []
                assert store.get(KEY) == OLD

    def test_a_change_is_seen_when_the_server_tells_of_it(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.recent():
            store.get(KEY)
            change(other)
            assert store.get(KEY) == OLD
            servers.tell_all()
            assert store.get(KEY) == NEW
            assert not store.is_current(KEY, OLD)

    def test_what_is_deleted_is_seen_too(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.recent():
            store.get(KEY)
            other.delete(KEY)
            servers.tell_all()
            assert store.get(KEY) is None

    @pytest.mark.parametrize("end", ["expire", "tell"])
    def test_a_change_of_the_connection_forgets_all(
        self, servers: Servers, store: MetadataStore, end: str
    ) -> None:
        with freshness.recent():
            store.get(KEY)
            getattr(servers.clients[0], end)()
            assert asked(servers, lambda store: store.get(KEY), store) == [f"get {RECORD}"]

    def test_a_task_that_waits_is_told(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        store.put("ledgers/2", b"old", None)
        other.get("ledgers/2")
        with freshness.recent(), closing(Changes()) as changes:
            store.get(KEY)
            store.get("ledgers/2")
            assert watchable(store).watch([KEY], changes)
            other.put("ledgers/2", b"new", 1)
            servers.tell_all()
            assert not changes.wait(0.0)
            change(other)
            servers.tell_all()
            assert changes.wait(0.0)
            changes.forget()
            store.get(KEY)
            servers.clients[0].expire()
            assert changes.wait(0.0)

    def test_a_task_of_the_next_user_of_the_connection_is_told(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.recent(), closing(Changes()) as changes:
            store.get(KEY)
            count = len(servers.clients)
            store.close()
            with closing(open_store(URI)) as following:
                following.get(KEY)
                assert watchable(following).watch([KEY], changes)
                assert len(servers.clients) == count
                change(other)
                servers.tell_all()
                assert changes.wait(0.0)

    def test_a_watch_that_fires_before_the_answer_is_there(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        client = servers.clients[0]

        def fire(watch: Callable[[object], None]) -> None:
            watch(None)

        client.on_watch = fire
        with freshness.recent():
            assert store.get(KEY) == OLD
            assert asked(servers, lambda store: store.get(KEY), store) == [f"get {RECORD}"]

    def test_an_older_answer_says_nothing_against_a_newer_version(
        self, store: MetadataStore, other: MetadataStore
    ) -> None:
        change(other)
        with freshness.recent():
            assert store.get(KEY) == OLD
            assert store.is_current(KEY, NEW)
            assert not store.is_current(KEY, VersionedBytes(b"another", 1))
        assert not other.is_current(KEY, OLD)


class TestSynced:
    """The servers are asked for news first."""

    def test_a_sync_serves_a_block(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        servers.has_woken = True
        with freshness.synced():
            assert store.get(KEY) == OLD
        change(other)
        with freshness.synced():
            assert store.get(KEY) == NEW
            assert asked(servers, lambda store: store.is_current(KEY, NEW), store) == []
        servers.requests.clear()
        with freshness.synced():
            assert store.list("ledgers") == ["1"]
            assert store.get(KEY) == NEW
        assert [line.split()[0] for line in servers.requests] == ["sync", "children"]

    def test_a_deposed_leader_only_makes_it_late(
        self, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.synced():
            assert store.get(KEY) == OLD
        change(other)
        with freshness.synced():
            assert store.get(KEY) == OLD
        assert store.get(KEY) == NEW


def test_the_metadata_check_accepts_no_newer_version(store: MetadataStore) -> None:
    assert not store.is_current(KEY, VersionedBytes(b"old", 2))


def test_a_guess_is_one_request(servers: Servers, store: MetadataStore) -> None:
    with freshness.guess():
        for _ in range(2):
            assert asked(servers, lambda store: store.get(KEY), store) == [f"get {RECORD}"]


def test_the_store_pays_to_read(store: MetadataStore) -> None:
    assert pays_to_read(store)


def test_a_connection_that_breaks_is_made_anew(servers: Servers, store: MetadataStore) -> None:
    for block in (freshness.from_here, freshness.recent, freshness.synced, freshness.guess):
        servers.script("any", Fate.CLOSED)
        with block():
            assert store.get(KEY) == OLD
