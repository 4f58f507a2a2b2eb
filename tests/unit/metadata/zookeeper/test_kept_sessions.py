"""A closed store leaves its session to the next store of the process, and nothing else."""

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import LockTimeout

from bkspark import environment
from bkspark.errors import InvalidRequestError
from bkspark.metadata import freshness, kept_sessions, zookeeper_session
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.kept_sessions import KeptSessions
from bkspark.metadata.uri import open_store
from bkspark.metadata.zookeeper_access import VARIABLE

from .calls import KEY, RECORD, URI, wait_for
from .stand_in import Client, Fate, Servers

OLD, NEW = VersionedBytes(b"old", 1), VersionedBytes(b"new", 2)


@pytest.fixture
def kept(servers: Servers, store: MetadataStore) -> Iterator[Client]:
    """The client of a session that has no user."""
    store.close()
    yield servers.clients[0]
    environment.the_one(KeptSessions).end_all()


def shelf() -> dict[Any, Any]:
    """The kept sessions by access."""
    found: dict[Any, Any] = environment.the_one(KeptSessions)._shelf._kept
    return found


def is_served_by(servers: Servers, number: int, store: MetadataStore | None = None) -> bool:
    """Whether a store works that uses the connection of that number, and there are no others."""
    store = store or open_store(URI)
    assert store.get(KEY) == OLD
    used: Any = store
    found = used._session._connection.client
    store.close()
    return found is servers.clients[number] and len(servers.clients) == number + 1


def test_the_next_store_uses_it_after_a_question(servers: Servers, kept: Client) -> None:
    servers.requests.clear()
    assert is_served_by(servers, 0)
    assert servers.requests[0] == "exists /"
    assert is_served_by(servers, 0)
    assert not kept.is_stopped


def test_two_stores_at_a_time_have_two_and_one_is_kept(servers: Servers, kept: Client) -> None:
    with freshness.now():
        first, second = open_store(URI), open_store(URI)
        assert first.get(KEY) == second.get(KEY) == OLD
    assert len(servers.clients) == 2
    second.close()
    first.close()
    wait_for(lambda: kept.is_stopped)
    assert not servers.clients[1].is_stopped


def test_other_credentials_have_their_own(
    servers: Servers, kept: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "me:secret")
    assert is_served_by(servers, 1)
    assert servers.clients[1].settings["auth_data"] == [("digest", "me:secret")]


def test_other_servers_have_their_own(servers: Servers, kept: Client) -> None:
    assert is_served_by(servers, 1, open_store(URI.replace("host-2", "host-3")))


@pytest.mark.parametrize("state", ["SUSPENDED", "LOST"])
def test_one_that_loses_its_connection_is_ended(servers: Servers, kept: Client, state: str) -> None:
    kept.tell(state)
    wait_for(lambda: kept.is_stopped)
    assert is_served_by(servers, 1)


@pytest.mark.parametrize("fate", [Fate.REQUEST_LOST, Fate.EXPIRED, Fate.CLOSED])
def test_one_that_does_not_answer_is_replaced(servers: Servers, kept: Client, fate: Fate) -> None:
    servers.script("exists", fate)
    assert is_served_by(servers, 1)
    wait_for(lambda: kept.is_stopped)


def test_a_change_of_its_state_does_not_end_one_in_use(servers: Servers, kept: Client) -> None:
    (session,) = shelf().values()
    store = open_store(URI)
    store.get(KEY)
    kept.tell()
    session.join(60)
    assert not kept.is_stopped
    assert is_served_by(servers, 0, store)


def test_one_without_a_connection_is_not_kept(servers: Servers, store: MetadataStore) -> None:
    servers.clients[0].client_id = None  # type: ignore[assignment]
    store.close()
    assert servers.clients[0].is_stopped


def test_one_with_a_request_on_its_way_is_not_kept(servers: Servers, store: MetadataStore) -> None:
    """The next user would find the change made late."""
    servers.script("multi", store.close)
    store.put(KEY, b"new", 1)
    assert servers.clients[0].is_stopped


def test_one_that_stood_in_a_row_is_not_kept(
    servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A place that was not left would stay as long as the session."""

    def wait_in_vain(timeout: float) -> bool:
        raise LockTimeout

    row = SimpleNamespace(acquire=wait_in_vain)
    monkeypatch.setattr(Client, "Lock", lambda *_: row, raising=False)
    candidate: Any = store
    assert candidate.first_place("wal", "me", 0.0) is None
    store.close()
    assert servers.clients[0].is_stopped


def test_one_with_many_watches_is_not_kept(
    servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_session, "_WATCHES_MAX", 0)
    with freshness.recent():
        store.get(KEY)
    store.close()
    assert servers.clients[0].is_stopped


def test_a_block_of_the_next_user_is_as_new_as_itself(
    servers: Servers, store: MetadataStore, other: MetadataStore
) -> None:
    store.get(KEY)
    store.close()
    other.put(KEY, b"new", 1)
    with freshness.from_here():
        assert open_store(URI).get(KEY) == NEW


def test_the_watches_serve_the_next_user(
    servers: Servers, store: MetadataStore, other: MetadataStore
) -> None:
    with freshness.recent():
        store.get(KEY)
        store.close()
        store = open_store(URI)
        store.list("ledgers")
        servers.requests.clear()
        assert store.get(KEY) == OLD
        assert servers.requests == []
        other.put(KEY, b"new", 1)
        servers.tell_all()
        assert store.get(KEY) == NEW
        assert f"get {RECORD}" in servers.requests
    store.close()


def test_it_ends_when_it_was_idle_for_long(
    servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept_sessions.VARIABLE, "0.01")
    store = open_store(URI)
    store.get(KEY)
    store.close()
    wait_for(lambda: servers.clients[1].is_stopped)
    assert is_served_by(servers, 2)


def test_none_is_kept_for_no_time(
    servers: Servers, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept_sessions.VARIABLE, "0")
    assert is_served_by(servers, 1)
    assert servers.clients[1].is_stopped


@pytest.mark.parametrize("given", ["-1", "soon", "3601", "1e999", "nan"])
def test_an_impossible_time_is_refused(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv(kept_sessions.VARIABLE, given)
    with pytest.raises(InvalidRequestError, match="must be a number of seconds from 0 to 3600"):
        open_store(URI).get(KEY)
    assert servers.clients == []


def test_a_forked_process_has_none(servers: Servers, kept: Client) -> None:
    (session,) = shelf().values()
    child = os.fork()
    if not child:
        code = 1
        try:
            is_untouched = session._ends.empty()
            code = 0 if is_untouched and is_served_by(servers, 1) else 1
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert is_served_by(servers, 0)


def test_all_end_when_nothing_knows_of_them(servers: Servers, kept: Client) -> None:
    """As at the end of the process."""
    environment.THE_REAL_ONE.forget()
    assert kept.is_stopped


def test_none_is_taken_whose_end_has_begun(servers: Servers, kept: Client) -> None:
    found = shelf()
    ((access, session),) = found.items()
    session.tell_end()
    wait_for(lambda: kept.is_stopped)
    found[access] = session  # as if it had been found right before its end
    assert is_served_by(servers, 1)
