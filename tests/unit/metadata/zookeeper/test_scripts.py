"""The store in ZooKeeper, of which each answer is scripted: what it says is what is sure."""

import pytest
from kazoo.exceptions import RolledBackError, RuntimeInconsistency

from bkspark.errors import (
    MetadataVersionError,
    OutcomeUnknownError,
)
from bkspark.metadata import patience
from bkspark.metadata.contract import MetadataStore, VersionedBytes

from .calls import CHANGES, KEY, LOOKS, RECORD, TOMBSTONE, asked, wait_for
from .stand_in import Fate, Servers

UNSURE = [Fate.REQUEST_LOST, Fate.ANSWER_LOST, Fate.EXPIRED, Fate.EXPIRED_BEHIND_IT, Fate.CLOSED]
DONE = (Fate.ANSWER_LOST, Fate.EXPIRED_BEHIND_IT)


class TestSentOnce:
    """A change is sent once, and what became of it is not guessed."""

    @pytest.mark.parametrize("fate", UNSURE)
    @pytest.mark.parametrize("change", CHANGES)
    def test_a_change_without_an_answer_is_unknown(
        self, servers: Servers, store: MetadataStore, change: str, fate: Fate
    ) -> None:
        before = servers.tree
        servers.script("multi", fate)
        with pytest.raises(
            OutcomeUnknownError, match="host-1:2181,host-2:2181 gave no definite answer"
        ):
            CHANGES[change](store)
        assert servers.requests == ["multi"]
        assert (servers.tree != before) == (fate in DONE)
        assert store.put("ledgers/3", b"x", None) == 1  # there is a connection again

    @pytest.mark.parametrize("change", CHANGES)
    def test_a_change_that_waited_too_long_is_never_carried_out(
        self, servers: Servers, store: MetadataStore, change: str
    ) -> None:
        before = servers.tree
        servers.script("multi", Fate.SILENT)
        with (
            patience.seconds(0.01),
            pytest.raises(OutcomeUnknownError, match=r"no answer within 0\.01 s"),
        ):
            CHANGES[change](store)
        wait_for(lambda: servers.clients[0].is_stopped)
        servers.wake()
        assert servers.tree == before
        assert store.get(KEY) == VersionedBytes(b"old", 1)
        assert len(servers.clients) == 2

    def test_an_answer_that_names_no_culprit_is_no_success(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        for answer in ([RolledBackError(), RolledBackError()], [RuntimeInconsistency()], []):
            for call in (CHANGES["replace"], LOOKS["get"]):
                servers.script("multi", answer)
                with pytest.raises(OutcomeUnknownError, match="does not say which operation"):
                    call(store)
        servers.script("multi", [True])  # of the marker alone
        with pytest.raises(OutcomeUnknownError, match="put"):
            store.put(KEY, b"new", 1)


class TestLooks:
    """A look may be sent again, and is as new as what any client was told."""

    @pytest.mark.parametrize("fate", UNSURE)
    @pytest.mark.parametrize("kind", ["multi", "any"])
    @pytest.mark.parametrize("look", LOOKS)
    def test_a_look_is_sent_again(
        self, servers: Servers, store: MetadataStore, look: str, kind: str, fate: Fate
    ) -> None:
        expected = LOOKS[look](store)
        script = [fate] if kind == "multi" else [Fate.DONE, fate]
        servers.script(kind, *script)
        assert len(asked(servers, LOOKS[look], store)) == 4
        servers.script(kind, *script)
        assert LOOKS[look](store) == expected

    @pytest.mark.parametrize("look", LOOKS)
    def test_a_look_ends_when_its_time_is_over(
        self, servers: Servers, store: MetadataStore, look: str
    ) -> None:
        servers.script("multi", *[Fate.REQUEST_LOST] * 100_000)
        with patience.seconds(0.02), pytest.raises(OutcomeUnknownError, match="ConnectionLoss"):
            LOOKS[look](store)

    def test_a_look_sees_what_another_client_was_told(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        """Though the server that it asks is behind: the check in front of it takes a quorum."""
        seen = other.get(KEY)
        store.put(KEY, b"newer", 1)
        assert not other.is_current(KEY, seen)
        store.put(KEY, b"newest", 2)
        assert other.get(KEY) == VersionedBytes(b"newest", 3)
        store.put("ledgers/2", b"x", None)
        assert other.list("ledgers") == ["1", "2"]
        store.delete(KEY)
        assert other.get(KEY) is None

    @pytest.mark.parametrize("look", LOOKS)
    def test_a_look_takes_two_requests_that_are_sent_together(
        self, servers: Servers, store: MetadataStore, look: str
    ) -> None:
        kind, path = ("children", "/bk/records/ledgers") if look == "list" else ("get", RECORD)
        assert asked(servers, LOOKS[look], store) == ["multi", f"{kind} {path}"]
        servers.script("multi", Fate.SILENT)
        with patience.seconds(0.01), pytest.raises(OutcomeUnknownError):
            LOOKS[look](store)
        assert servers.requests[2:] == ["multi", f"{kind} {path}"]  # before any answer came


class TestRecords:
    """Records, their versions and their tombstones."""

    def test_number_of_requests(self, servers: Servers, store: MetadataStore) -> None:
        for change in CHANGES.values():
            assert asked(servers, change, store) == ["multi"]
        first = asked(servers, lambda store: store.put("logs/first", b"of its kind", None), store)
        assert first == ["multi"] * 4

    def test_versions_are_one_more_than_the_znode_s(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        assert store.put(KEY, b"2", 1) == 2
        assert servers.tree[RECORD] == (b"2", 1)
        assert store.get(KEY) == VersionedBytes(b"2", 2)

    @pytest.mark.parametrize("expected", [1, 3, 2**31, 2**31 + 1, 2**40])
    def test_a_version_that_is_not_there_is_refused(
        self, servers: Servers, store: MetadataStore, expected: int
    ) -> None:
        store.put(KEY, b"2", 1)
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"x", expected)
        assert store.get(KEY) == VersionedBytes(b"2", 2)

    def test_a_record_is_never_made_twice(self, servers: Servers, store: MetadataStore) -> None:
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"again", None)
        assert servers.tree[RECORD] == (b"old", 0)

    def test_a_deleted_record_never_comes_back(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        store.delete(KEY)
        assert RECORD not in servers.tree
        assert TOMBSTONE in servers.tree
        for expected in (None, 1):
            with pytest.raises(MetadataVersionError):
                store.put(KEY, b"x", expected)
        assert store.get(KEY) is None

    def test_a_tombstone_is_made_for_what_was_never_there(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        store.delete("logs/never")
        assert "/bk/deleted/logs/never" in servers.tree
        assert "/bk/records/logs/never" not in servers.tree
        with pytest.raises(MetadataVersionError):
            store.put("logs/never", b"x", None)

    def test_a_lost_answer_of_a_delete_is_settled_by_the_next(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        servers.script("multi", Fate.ANSWER_LOST)
        with pytest.raises(OutcomeUnknownError):
            store.delete(KEY)
        store.delete(KEY)
        assert store.get(KEY) is None

    def test_making_folders_half_way_does_no_harm(
        self, servers: Servers, store: MetadataStore
    ) -> None:
        servers.script("multi", Fate.DONE, Fate.ANSWER_LOST)
        with pytest.raises(OutcomeUnknownError):
            store.put("logs/a", b"x", None)
        assert "/bk/records/logs" in servers.tree
        assert "/bk/deleted/logs" not in servers.tree
        assert store.put("logs/a", b"x", None) == 1

    def test_a_record_that_changes_all_the_time_is_given_up(
        self, servers: Servers, store: MetadataStore, other: MetadataStore
    ) -> None:
        def comes_and_goes() -> None:
            tree = dict(servers.tree)
            if tree.pop(RECORD, None) is None:
                tree[RECORD] = (b"again", 0)
            servers.tree = tree

        # The first attempt is for a record that is there, the second for one that is not.
        servers.script("multi", *[comes_and_goes] * 20)
        with pytest.raises(OutcomeUnknownError, match="in each attempt"):
            store.delete(KEY)
        assert len(servers.requests) <= 20
