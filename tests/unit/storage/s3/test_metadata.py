"""A metadata store in S3, of which each answer is scripted."""

from collections.abc import Callable
from copy import deepcopy
from itertools import product

import pytest

from bkspark.errors import InvalidRequestError, MetadataVersionError, OutcomeUnknownError
from bkspark.metadata.contract import MetadataStore, VersionedBytes
from bkspark.metadata.uri import format_store, open_store
from tests.thorough import always
from tests.unit.metadata.two_clients import CALLS as PAIRS
from tests.unit.metadata.two_clients import KEY, end_of, one_behind_the_other, records_of

from .stand_in import ANSWER_LOST, BUCKET, BUSY, CONFLICT, ERROR, REQUEST_LOST, Fate, S3Store

URI = f"s3://{BUCKET}/meta"
MANY = 10_000
VERSION = "meta/ledgers/1/000000000000000{}"
TOMBSTONE = "meta/ledgers/~1"
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


@pytest.mark.parametrize("fate", LASTING)
@pytest.mark.parametrize("call", CALLS)
def test_a_look_in_doubt_is_no_absence(
    s3: S3Store, store: MetadataStore, call: str, fate: str
) -> None:
    before = deepcopy(s3.objects)
    s3.script("get_object", *[LASTING[fate]] * MANY)
    with pytest.raises(OutcomeUnknownError) as caught:
        CALLS[call](store)
    assert (READ_BACK in str(caught.value)) == (call in CHANGES)
    assert s3.objects == before


def test_a_put_that_another_client_was_ahead_of_is_lost(s3: S3Store, store: MetadataStore) -> None:
    s3.script("put_object", lambda: open_store(URI).put(KEY, b"new", 1))
    with pytest.raises(MetadataVersionError):
        store.put(KEY, b"new", 1)
    assert s3.objects[VERSION.format(2)].data == b"new"


def test_a_record_that_is_deleted_meanwhile_is_not_put(s3: S3Store, store: MetadataStore) -> None:
    """Folders are none here: the tombstone alone tells, and it is looked for behind the put."""
    s3.script("put_object", lambda: open_store(URI).delete(KEY))
    with pytest.raises((MetadataVersionError, OutcomeUnknownError)):
        store.put(KEY, b"new", 1)
    assert store.get(KEY) is None
    assert TOMBSTONE in s3.objects


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
    s3.script("put_object", Fate(), Fate(), *[BUSY] * MANY)
    with pytest.raises(OutcomeUnknownError, match="503 SlowDown"):
        format_store(URI)
    s3.script("put_object", Fate(), Fate(), ANSWER_LOST)
    format_store(URI)
    format_store(URI).put(KEY, b"x", None)
    with pytest.raises(InvalidRequestError, match="it exists already"):
        format_store(URI)


def test_a_store_that_overwrites_is_refused(s3: S3Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = s3._put_object
    monkeypatch.setattr(s3, "_put_object", lambda **given: real(**given | {"IfNoneMatch": ""}))
    with pytest.raises(InvalidRequestError, match="overwrites objects"):
        format_store(URI)


def test_requests_of_each_call(s3: S3Store, store: MetadataStore) -> None:
    def count(call: Callable[[MetadataStore], object]) -> tuple[int, int, int]:
        s3.requests.clear()
        call(store)
        kinds = [request.partition(" ")[0] for request in s3.requests]
        gets, puts, lists = (kinds.count(k) for k in ("get_object", "put_object", LIST))
        return gets, puts, lists

    assert count(LOOKS["check"]) == (7, 0, 0)
    assert count(LOOKS["get"]) == (8, 0, 1)
    assert count(CHANGES["replace"]) == (13, 1, 0)
    assert count(CHANGES["create"]) == (12, 1, 0)


ALL_PAIRS = list(product(PAIRS, PAIRS))
SOME_PAIRS = [("replace", "replace"), ("replace", "delete"), ("get", "delete")]


@pytest.mark.parametrize(
    ("first", "second"),
    always(SOME_PAIRS, ALL_PAIRS, are_rows=True),
)
def test_another_client_between_any_two_requests(s3: S3Store, first: str, second: str) -> None:
    """What both are told, and what is there then, is as if one had come behind the other.

    Or nothing is sure, where a record is deleted while it is put.
    """
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
        known = [e for e in allowed if all(x in (y, OutcomeUnknownError) for x, y in zip(ends, e))]
        assert records_of(store) in [e[2] for e in known], f"in front of request {position}"
        if OutcomeUnknownError in ends:
            assert "delete" in first + second
    raise AssertionError("it never ended")
