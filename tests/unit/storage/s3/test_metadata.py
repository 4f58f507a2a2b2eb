"""A metadata store in S3, of which each answer is scripted."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bkspark import BookKeeper
from bkspark.admin.damaged_records import find_damaged, set_aside
from bkspark.cluster.cluster import Cluster, init_cluster
from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata import freshness, object_store
from bkspark.metadata.contract import ListsNames, MetadataStore, VersionedBytes
from bkspark.metadata.object_store import DAMAGED, DELETED
from bkspark.metadata.uri import format_store, open_store
from tests.thorough import always
from tests.unit.metadata.two_clients import CALLS as PAIRS
from tests.unit.metadata.two_clients import KEY, end_of, one_behind_the_other, records_of

from .stand_in import (
    ANSWER_LOST,
    BUCKET,
    BUSY,
    CONFLICT,
    ERROR,
    REQUEST_LOST,
    Fate,
    S3Store,
    Stored,
)

URI = f"s3://{BUCKET}/meta"
MANY = 10_000
RECORD = "meta/ledgers/1"
READ_BACK = "read back the current state before trying again"
LIST = "list_objects_v2"
REQUESTS_MAX = 40

CHANGES: dict[str, Callable[[MetadataStore], object]] = {
    "create": lambda store: store.put("ledgers/2", b"new", None),
    "replace": lambda store: store.put(KEY, b"new", 1),
    "delete": lambda store: store.delete(KEY),
}
LOOKS: dict[str, Callable[[MetadataStore], object]] = {
    "get": lambda store: store.get(KEY),
    "list": lambda store: store.list("ledgers"),
    "check": lambda store: store.is_current(KEY, VersionedBytes(b"old", 1)),
}
CALLS = {**CHANGES, **LOOKS}
LASTING = {
    "busy": BUSY,
    "error": ERROR,
    "conflict": CONFLICT,
    "lost": REQUEST_LOST,
    "forbidden": Fate(403, "AccessDenied"),
    "not found": Fate(404, "NotFound"),
    "no bucket": Fate(404, "NoSuchBucket"),
}


@pytest.fixture
def store(s3: S3Store) -> MetadataStore:
    store = format_store(URI)
    store.put(KEY, b"old", None)
    s3.requests.clear()
    return store


@pytest.mark.parametrize("change", ["create", "replace"])
@pytest.mark.parametrize("fate", [ANSWER_LOST, Fate(500, "InternalError", done=True)])
def test_a_change_whose_answer_was_lost_is_recognised(
    s3: S3Store, store: MetadataStore, change: str, fate: Fate
) -> None:
    s3.script("put_object", fate)
    assert CHANGES[change](store) == (1 if change == "create" else 2)


@pytest.mark.parametrize("fate", LASTING)
@pytest.mark.parametrize("change", ["create", "replace", "delete"])
def test_a_change_in_doubt_is_unknown(
    s3: S3Store, store: MetadataStore, change: str, fate: str
) -> None:
    s3.script("put_object", *[LASTING[fate]] * MANY)
    with pytest.raises(OutcomeUnknownError, match="gave no definite answer") as caught:
        CHANGES[change](store)
    assert READ_BACK in str(caught.value)
    assert LASTING[fate].code in str(caught.value)
    assert store.get(KEY) == VersionedBytes(b"old", 1)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("fate", LASTING)
@pytest.mark.parametrize("call", CALLS)
def test_a_look_in_doubt_is_no_absence(s3: S3Store, call: str, fate: str) -> None:
    before = deepcopy(s3.objects)
    store = open_store(URI)
    store.list("ledgers")  # it has read the marker, and no record
    s3.script("get_object", *[LASTING[fate]] * MANY)
    with pytest.raises(OutcomeUnknownError) as caught:
        CALLS[call](store)
    assert (READ_BACK in str(caught.value)) == (call in CHANGES)
    assert s3.objects == before


def test_a_put_that_another_client_was_ahead_of_is_lost(s3: S3Store, store: MetadataStore) -> None:
    s3.script("put_object", lambda: open_store(URI).put(KEY, b"new", 1))
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"new", 1)
    assert store.get(KEY) == VersionedBytes(b"new", 2)


def test_a_record_that_is_deleted_meanwhile_is_not_put(s3: S3Store, store: MetadataStore) -> None:
    s3.script("put_object", lambda: open_store(URI).delete(KEY))
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"new", 1)
    assert store.get(KEY) is None
    assert s3.objects[RECORD].data == DELETED


def test_equal_values_have_no_equal_objects(s3: S3Store, store: MetadataStore) -> None:
    """An ETag that came back would let a put pass that began long ago."""
    etags = {s3.objects[RECORD].etag}
    for version in range(1, 6):
        store.put(KEY, b"old", version)
        etags.add(s3.objects[RECORD].etag)
    assert len(etags) == 6


def meanwhile(s3: S3Store, change: Callable[[MetadataStore], object]) -> Callable[[], None]:
    """Another client's change, before a request takes effect."""

    def act() -> None:
        s3.script("put_object")
        change(open_store(URI))

    return act


def test_a_put_without_an_answer_that_another_client_was_ahead_of_is_lost(
    s3: S3Store, store: MetadataStore
) -> None:
    """Also if both wanted the same."""
    theirs = meanwhile(s3, lambda other: other.put(KEY, b"same", 1))
    s3.script("put_object", REQUEST_LOST, theirs)
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"same", 1)
    assert store.get(KEY) == VersionedBytes(b"same", 2)


@pytest.mark.parametrize(
    "change",
    [lambda other: other.put(KEY, b"theirs", 2), lambda other: other.delete(KEY)],
    ids=["put", "deletion"],
)
def test_a_put_without_an_answer_that_is_hidden_by_a_later_change_is_unknown(
    s3: S3Store, store: MetadataStore, change: Callable[[MetadataStore], object]
) -> None:
    s3.script("put_object", ANSWER_LOST, meanwhile(s3, change))
    with pytest.raises(OutcomeUnknownError, match="before the put of version 2 was confirmed"):
        store.put(KEY, b"mine", 1)


def test_a_deletion_without_an_answer_is_settled_by_a_look(
    s3: S3Store, store: MetadataStore
) -> None:
    s3.script("put_object", ANSWER_LOST)
    store.delete(KEY)
    assert store.get(KEY) is None
    store.delete("logs/a")
    with pytest.raises(MetadataVersionError):
        store.put("logs/a", b"x", None)


def test_a_record_that_changes_is_deleted_all_the_same(s3: S3Store, store: MetadataStore) -> None:
    s3.script("put_object", meanwhile(s3, lambda other: other.put(KEY, b"theirs", 1)))
    store.delete(KEY)
    assert store.get(KEY) is None


def test_a_listing_shows_records_and_nothing_else(s3: S3Store, store: MetadataStore) -> None:
    store.put("ledgers/2", b"", None)
    store.put("ledgers/3", b"", None)
    store.delete("ledgers/3")
    for name in ("ledgers/.probe-1", "ledgers/a b", "ledgers/folder/x", "ledgers/"):
        s3.objects[f"meta/{name}"] = Stored(b"made by another program", {}, "etag")
    assert store.list("ledgers") == ["1", "2"]


def test_an_object_without_its_head_is_a_damaged_record(s3: S3Store, store: MetadataStore) -> None:
    """Its bytes come to its readers, which refuse them; it can be replaced, if it is unchanged."""
    s3.objects[RECORD] = Stored(b"made by another program", {}, "etag")
    assert store.get(KEY) == VersionedBytes(b"made by another program", DAMAGED)
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"new", 1)
    s3.script("put_object", lambda: s3.objects.update({RECORD: Stored(b"changed", {}, "other")}))
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"new", DAMAGED)
    assert store.put(KEY, b"new", DAMAGED) == DAMAGED + 1
    assert store.get(KEY) == VersionedBytes(b"new", DAMAGED + 1)


def test_a_record_of_another_store_is_read_by_its_readers(
    s3: S3Store, store: MetadataStore
) -> None:
    """The marker is this store's, so one object was copied here. The record says its cluster."""
    other = format_store(f"s3://{BUCKET}/other")
    other.put(KEY, b"theirs", None)
    s3.objects[RECORD] = s3.objects["other/ledgers/1"]
    assert store.get(KEY) == VersionedBytes(b"theirs", 1)


@pytest.mark.parametrize("call", CALLS)
def test_a_prefix_without_the_marker_is_no_empty_store(
    s3: S3Store, store: MetadataStore, call: str
) -> None:
    s3.objects.clear()
    for one in (store, open_store(URI)):
        with pytest.raises(InvalidRequestError, match="no bkspark cluster at"):
            CALLS[call](one)
    assert s3.objects == {}


@pytest.mark.parametrize("call", CALLS)
def test_another_cluster_s_store_is_not_touched(
    s3: S3Store, store: MetadataStore, call: str
) -> None:
    s3.objects.clear()
    format_store(URI).put(KEY, b"of the other", None)
    before = deepcopy(s3.objects)
    with pytest.raises(InvalidRequestError, match="another cluster has replaced it"):
        CALLS[call](store)
    assert s3.objects == before


def test_format_is_settled_by_formatting_again(s3: S3Store) -> None:
    trial = [Fate()] * 5
    s3.script("put_object", *trial, *[BUSY] * MANY)
    with pytest.raises(OutcomeUnknownError, match="503 SlowDown"):
        format_store(URI)
    s3.script("put_object", *trial, ANSWER_LOST)
    format_store(URI)
    format_store(URI).put(KEY, b"x", None)
    with pytest.raises(InvalidRequestError, match="it exists already"):
        format_store(URI)


def test_a_store_that_overwrites_is_refused(s3: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = s3._put_object
    for condition, words in (
        ("IfNoneMatch", "overwrites objects"),
        ("IfMatch", "does not replace objects only if they are unchanged"),
    ):
        deaf = partial(without, condition, real)
        monkeypatch.setattr(s3, "_put_object", deaf)
        with pytest.raises(InvalidRequestError, match=words):
            format_store(URI)
        assert s3.objects == {}


def without(condition: str, put: Callable[..., object], **given: object) -> object:
    """A put of a store that ignores a condition."""
    return put(**given | {condition: ""})


def test_a_store_that_refuses_each_replacement_is_refused(s3: S3Store) -> None:
    s3.script("put_object", Fate(), Fate(), Fate(), Fate(412, "PreconditionFailed"))
    with pytest.raises(InvalidRequestError, match="If-Match"):
        format_store(URI)


def test_requests_of_each_call(s3: S3Store, store: MetadataStore) -> None:
    def count(call: Callable[[MetadataStore], object]) -> tuple[int, int, int]:
        s3.requests.clear()
        call(store)
        kinds = [request.partition(" ")[0] for request in s3.requests]
        gets, puts, lists = (kinds.count(k) for k in ("get_object", "put_object", LIST))
        return gets, puts, lists

    assert count(LOOKS["check"]) == (1, 0, 0)
    assert count(LOOKS["get"]) == (1, 0, 0)
    assert count(CHANGES["replace"]) == (0, 1, 0)
    assert count(lambda store: store.put(KEY, b"newer", 2)) == (0, 1, 0)
    assert count(CHANGES["create"]) == (1, 1, 0)
    assert count(LOOKS["list"]) == (1, 0, 1)
    assert count(CHANGES["delete"]) == (2, 1, 0)
    assert count(lambda store: store.get("ledgers/9")) == (2, 0, 0)
    for number in range(100):
        store.put(f"ledgers/a{number}", b"x", None)
        store.delete(f"ledgers/a{number}")
    assert count(LOOKS["list"]) == (1, 0, 1)


def names(store: MetadataStore) -> list[str]:
    assert isinstance(store, ListsNames)
    return store.names("ledgers")


class TestSeenObjects:
    """What was read is used again where it is new enough, and for a change of that version."""

    @pytest.fixture
    def other(self, store: MetadataStore) -> MetadataStore:
        """Of another client."""
        assert store.get(KEY) == VersionedBytes(b"old", 1)
        return open_store(URI)

    def test_an_answer_of_the_block_is_used_again(self, s3: S3Store, store: MetadataStore) -> None:
        store.get(KEY)
        s3.requests.clear()
        with freshness.from_here():
            assert store.get(KEY) == store.get(KEY) == VersionedBytes(b"old", 1)
            assert s3.requests == [f"get_object {RECORD}"]
            with freshness.from_begin():
                store.get(KEY)
            assert len(s3.requests) == 1

    def test_a_large_record_is_read_again(
        self, s3: S3Store, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So the memory of what was read has a bound."""
        monkeypatch.setattr(object_store, "_SEEN_BYTES_MAX", len(b"old") - 1)
        with freshness.from_here():
            store.get(KEY)
            s3.requests.clear()
            assert store.get(KEY) == VersionedBytes(b"old", 1)
        assert s3.requests == [f"get_object {RECORD}"]

    @pytest.mark.parametrize(
        "block", [freshness.now, freshness.from_here, freshness.recent, freshness.synced]
    )
    def test_an_answer_from_before_a_block_is_not(
        self, store: MetadataStore, other: MetadataStore, block: Callable[[], Any]
    ) -> None:
        with freshness.from_here():
            store.get(KEY)
            other.put(KEY, b"new", 1)
            with block():
                assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_a_check_always_asks(self, store: MetadataStore, other: MetadataStore) -> None:
        with freshness.from_here():
            seen = store.get(KEY)
            other.put(KEY, b"new", 1)
            assert seen is not None
            assert not store.is_current(KEY, seen)
            assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_after_a_change_of_its_own_a_client_asks_again(
        self, store: MetadataStore, other: MetadataStore
    ) -> None:
        """So a look behind a change is as new as the change."""
        with freshness.from_here():
            store.get(KEY)
            other.put(KEY, b"new", 1)
            store.put("ledgers/2", b"x", None)
            assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_a_look_that_a_change_overtook_is_not_used_again(
        self, s3: S3Store, store: MetadataStore, other: MetadataStore
    ) -> None:
        def change() -> None:
            store.put("ledgers/2", b"x", None)

        with freshness.from_here():
            s3.script("get_object", change)
            store.get(KEY)
            other.put(KEY, b"new", 1)
            assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_a_change_of_what_others_have_changed_is_lost(
        self, s3: S3Store, store: MetadataStore, other: MetadataStore
    ) -> None:
        other.put(KEY, b"new", 1)
        s3.requests.clear()
        with pytest.raises(MetadataVersionError):
            store.put(KEY, b"mine", 1)
        assert s3.requests == [f"put_object {RECORD}", f"get_object {RECORD}"]
        assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_a_change_of_a_version_that_was_not_read_is_made(
        self, store: MetadataStore, other: MetadataStore
    ) -> None:
        """The caller may know of it from another client."""
        assert other.put(KEY, b"new", 1) == 2
        assert store.put(KEY, b"newer", 2) == 3

    def test_a_record_without_an_object_is_looked_for_anew(
        self, s3: S3Store, store: MetadataStore, other: MetadataStore
    ) -> None:
        other.delete(KEY)
        with freshness.from_here():
            assert store.get(KEY) is None
            assert store.get(KEY) is None

    def test_a_listing_in_a_block_spares_a_look_at_what_has_not_changed(
        self, s3: S3Store, store: MetadataStore, other: MetadataStore
    ) -> None:
        store.put("ledgers/2", b"x", None)
        other.put(KEY, b"new", 1)
        with freshness.from_here():
            assert names(store) == ["1", "2"]
            s3.requests.clear()
            assert store.get("ledgers/2") == VersionedBytes(b"x", 1)
            assert s3.requests == []
            assert store.get(KEY) == VersionedBytes(b"new", 2)
        s3.requests.clear()
        store.get("ledgers/2")
        assert s3.requests == ["get_object meta/ledgers/2"]

    def test_a_listing_that_a_change_overtook_spares_nothing(
        self, s3: S3Store, store: MetadataStore, other: MetadataStore
    ) -> None:
        with freshness.from_here():
            s3.script(LIST, lambda: store.put("ledgers/2", b"x", None))
            names(store)
            other.put(KEY, b"new", 1)
            assert store.get(KEY) == VersionedBytes(b"new", 2)

    def test_the_marker_is_looked_at_once_in_a_block(
        self, s3: S3Store, store: MetadataStore
    ) -> None:
        def markers(*calls: Callable[[MetadataStore], object]) -> int:
            s3.requests.clear()
            for call in calls:
                call(store)
            return s3.requests.count("get_object meta/METADATA_STORE")

        with freshness.from_here():
            assert markers(names, LOOKS["list"], CHANGES["create"]) == 1
            assert markers(LOOKS["list"], names) == 1  # anew behind the change
        with freshness.from_here():
            assert markers(names, names) == 1
        assert markers(names, names) == 2

    def test_few_are_remembered(
        self, s3: S3Store, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(object_store, "_SEEN_MAX", 1)
        store.put("ledgers/2", b"x", None)
        with freshness.from_here():
            store.get(KEY)
            store.get("ledgers/2")
            s3.requests.clear()
            store.get(KEY)
        assert s3.requests == [f"get_object {RECORD}"]


ALL_PAIRS = list(product(PAIRS, PAIRS))
SOME_PAIRS = [("replace", "replace"), ("replace", "delete"), ("get", "delete")]


@pytest.mark.parametrize(
    ("first", "second"),
    always(SOME_PAIRS, ALL_PAIRS, are_rows=True),
)
def test_another_client_between_any_two_requests(s3: S3Store, first: str, second: str) -> None:
    """What both are told, and what is there then, is as if one had come behind the other."""
    store, other = format_store(URI), open_store(URI)
    store.put(KEY, b"old", None)
    other.get(KEY)
    allowed = one_behind_the_other(first, second)
    begin = dict(s3.objects)
    for position in range(REQUESTS_MAX):
        s3.objects, told = dict(begin), list[object]()

        def interrupt(told: list[object] = told) -> None:
            s3.script("any")
            told.append(end_of(PAIRS[second], other, b"theirs"))

        s3.script("any", *[Fate()] * position, interrupt)
        mine = end_of(PAIRS[first], store, b"mine")
        s3.script("any")
        if not told:
            assert position > 0
            return
        ends = [mine, *told]
        known = [e for e in allowed if ends == [*e[:2]]]
        assert records_of(store) in [e[2] for e in known], f"in front of request {position}"
        assert OutcomeUnknownError not in ends
    raise AssertionError("it never ended")


def test_a_damaged_object_is_named_and_set_aside(s3: S3Store, tmp_path: Path) -> None:
    init_cluster(URI, [(tmp_path / "b").as_uri()])
    with BookKeeper(URI) as keeper:
        keeper.create_log("x")
    s3.objects["meta/logs/x"] = Stored(b"made by another program", {}, "etag")
    with Cluster(URI) as cluster:
        assert [found.key for found in find_damaged(cluster)] == ["logs/x"]
        kept = set_aside(cluster, "logs/x")
        stored = cluster.store.get(kept)
        assert stored is not None
        assert stored.value == b"made by another program"
        assert list(find_damaged(cluster)) == []
