"""Lost requests, lost answers and refusals of Google's and Microsoft's stores: each is a doubt."""

import pickle
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bkspark.bookie import uri
from bkspark.bookie.contract import Bookie, BookieAddress, BookieRoot
from bkspark.cluster import bookie_client
from bkspark.errors import BookieUnavailableError, BookKeeperError
from bkspark.metadata.uri import format_store
from bkspark.storage import connection
from bkspark.storage.address import parse
from bkspark.storage.objects import (
    PART_BYTES,
    PARTS_AT_ONCE,
    Objects,
    Upload,
    require_conditional_creates,
)
from bkspark.testing.bookie_place import (
    CLUSTER,
    ENTRIES,
    INCARNATION,
    JOURNAL,
    MARKER,
    a_cookie,
)
from tests.kit.s3 import ALWAYS

from .azurite import KEY
from .clouds import CLOUDS, Cloud

LARGE = PARTS_AT_ONCE * PART_BYTES + 1
"""Bytes of which all but the last one are sent while they are written."""

pytestmark = [pytest.mark.thorough, pytest.mark.download, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=CLOUDS)
def only_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    start, missing = CLOUDS[request.param]
    if missing:
        pytest.skip(missing)
    with start(tmp_path_factory.mktemp(request.param)) as cloud:
        yield cloud


@pytest.fixture
def cloud(only_cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    """Without a fault so far; what fails is tried again until the fault is over."""
    proxy = only_cloud.proxy

    def retry_seconds() -> float:
        return 0.0 if any(fault.times > ALWAYS // 2 for fault in proxy.faults) else 60.0

    monkeypatch.setattr(connection, "PAUSES_SECONDS", (0.001, 0.001))
    monkeypatch.setattr(connection, "retry_seconds", retry_seconds)
    monkeypatch.setattr(connection, "_LONGEST_INTERVAL", 0.01)
    proxy.heal()
    yield only_cloud
    proxy.heal()


@pytest.fixture
def bookie(cloud: Cloud) -> Bookie:
    url = cloud.url()
    uri.storage(url).format(a_cookie())
    cloud.proxy.heal()
    return uri.open_bookie(BookieAddress("b1", INCARNATION, CLUSTER, url))


@pytest.fixture
def root(bookie: Bookie) -> Iterator[BookieRoot]:
    with bookie.open_root() as root:
        yield root


@pytest.fixture
def objects(cloud: Cloud) -> Objects:
    return Objects(parse(cloud.url()))


@pytest.mark.parametrize("status", [0, 500, 503])
def test_a_lost_answer_is_settled_by_a_look(root: BookieRoot, cloud: Cloud, status: int) -> None:
    cloud.proxy.fail(*cloud.put, times=1, reaches_store=True, status=status)
    assert root.put_new(MARKER, b"mine")
    assert cloud.puts()[0] in (200, 201)
    assert root.read(MARKER) == b"mine"
    assert not root.put_new(MARKER, b"mine")


@pytest.mark.parametrize("status", [0, 409, 429, 500, 503])
def test_what_passes_is_sent_again(root: BookieRoot, cloud: Cloud, status: int) -> None:
    cloud.proxy.fail(*cloud.put, times=3, status=status, code="Conflict")
    assert root.put_new(MARKER, b"mine")
    assert cloud.puts()[:3] == [0, 0, 0]
    assert len(cloud.puts()) == 4


@pytest.mark.parametrize("status", [0, 409, 500, 503])
def test_what_is_sent_once_is_sent_once(root: BookieRoot, cloud: Cloud, status: int) -> None:
    """The next request would succeed. The connection was used before, as it always is."""
    makers: list[Callable[[], object]] = [
        lambda: root.put_new(MARKER, b"mine", once=True),
        lambda: root.open_journal(JOURNAL),
    ]
    for make in makers:
        cloud.proxy.heal()
        cloud.proxy.fail(*cloud.put, times=1, status=status, code="Conflict")
        with pytest.raises(BookieUnavailableError):
            make()
        assert cloud.puts() == [0]


@pytest.mark.parametrize("status", [0, 400, 403, 409, 500, 503])
def test_what_lasts_is_unknown(root: BookieRoot, cloud: Cloud, status: int) -> None:
    cloud.proxy.fail(*cloud.put, status=status, code="Conflict")
    with pytest.raises(BookieUnavailableError):
        root.put_new(MARKER, b"mine")
    file = root.create(ENTRIES)
    file.write(b"x")
    with pytest.raises(BookieUnavailableError):
        file.finish()
    cloud.proxy.heal()
    assert root.size(MARKER) is None


@pytest.mark.parametrize("status", [0, 400, 401, 403, 409, 500, 503, None])
def test_no_other_answer_is_an_absence(
    root: BookieRoot, cloud: Cloud, status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = cloud.no_bucket if status is None else (status, "Conflict")
    cloud.proxy.fail("GET", status=told[0], code=told[1])
    looks: list[Callable[[], object]] = [
        lambda: root.read(MARKER),
        lambda: root.read(MARKER, 3, 4),
        lambda: root.size(MARKER),
        lambda: root.list("ledgers"),
    ]
    for look in looks:
        with pytest.raises(BookieUnavailableError):
            look()


def test_a_bucket_that_is_gone_is_no_absence(cloud: Cloud) -> None:
    url = cloud.url()
    bucket = parse(url).bucket
    objects = Objects(parse(url.replace(bucket, "no-such-bucket")))
    asked: list[Callable[[], object]] = [
        lambda: objects.read("name"),
        lambda: objects.entries(""),
        lambda: objects.create("name", b"x"),
        lambda: objects.delete("name"),
    ]
    for ask in asked:
        with pytest.raises(connection.StoreDoubt, match="does not exist"):
            ask()


def test_a_store_is_tried_and_nothing_is_left(cloud: Cloud, objects: Objects) -> None:
    require_conditional_creates(objects)
    assert objects.entries("") == {}


def test_a_large_object_appears_whole_and_if_absent_only(cloud: Cloud, objects: Objects) -> None:
    data = b"a" * (LARGE - 1) + b"end"
    mine, theirs = Upload(objects, "name"), Upload(objects, "name")
    for upload in (mine, theirs):
        upload.write(data)
    assert objects.look("name") is None
    created = mine.finish()
    found = objects.read("name")
    assert found is not None
    assert found.is_by(created)
    assert found.data == data
    assert theirs.finish() is None
    theirs.discard()
    late = Upload(objects, "name")  # begun while the name is taken
    late.write(data)
    assert late.finish() is None
    again = objects.read("name", len(data) - 3, 10)
    assert again is not None
    assert (again.data, again.is_by(created)) == (b"end", True)


@pytest.mark.parametrize("status", [0, 500, 503])
def test_the_end_of_an_upload_whose_answer_is_lost_happens_once(
    cloud: Cloud, objects: Objects, status: int
) -> None:
    upload = Upload(objects, "name")
    upload.write(bytes(LARGE))
    end = "comp=blocklist" if cloud.put[0] == "PUT" else "upload_id"
    cloud.proxy.fail("PUT", end, times=1, reaches_store=True, status=status)
    created = upload.finish()
    found = objects.read("name")
    assert found is not None
    assert (found.size, found.is_by(created)) == (LARGE, True)


@pytest.mark.parametrize("status", [0, 500, 503])
def test_a_part_that_did_not_arrive_is_sent_again(
    cloud: Cloud, objects: Objects, status: int
) -> None:
    upload = Upload(objects, "name")
    part = "comp=block&" if cloud.put[0] == "PUT" else "upload_id"
    cloud.proxy.fail("PUT", part, times=2, status=status)
    upload.write(bytes(LARGE))
    upload.finish()
    found = objects.read("name")
    assert found is not None
    assert found.size == LARGE


@pytest.mark.parametrize("status", [0, 500])
def test_a_changed_record_whose_answer_is_lost(cloud: Cloud, status: int) -> None:
    store = format_store(cloud.url())
    assert store.put("key", b"one", None) == 1
    cloud.proxy.fail(*_any_put(cloud), times=1, reaches_store=True, status=status)
    assert store.put("key", b"two", 1) == 2
    found = store.get("key")
    assert found is not None
    assert (found.value, found.version) == (b"two", 2)


def test_a_slow_store_is_waited_for(root: BookieRoot, cloud: Cloud) -> None:
    """It takes 12 s to send or to fetch what has 6 s without a sign of progress."""
    size = 24 * 2**20
    cloud.proxy.bytes_per_second = 2 * 2**20
    address = BookieAddress("b1", INCARNATION, CLUSTER, cloud.url())
    client = bookie_client.BookieClient(address)
    assert client.ask(lambda: root.put_new(MARKER, bytes(size)), 6.0)
    assert client.ask(lambda: len(root.read(MARKER) or b""), 6.0) == size


def test_each_operation_is_one_request(cloud: Cloud, objects: Objects) -> None:
    created = objects.create("folder/name", b"mine")
    assert created is not None
    objects.read("folder/name")
    objects.look("folder/name")
    assert objects.entries("folder") == {"name": created.etag}
    objects.put_if("folder/name", b"other", created.etag)
    objects.delete("folder/name")
    methods = [method for method, _, _ in cloud.proxy.seen]
    assert methods == [cloud.put[0], "GET", "GET", "GET", cloud.put[0], "DELETE"]


def test_a_listing_begins_behind_a_name(objects: Objects) -> None:
    for name in ("f/a", "f/b", "f/c", "f/d/e", "g"):
        objects.create(name, name.encode())
    assert objects.stored_sizes("f", "a") == {"b": 3, "c": 3}
    assert sorted(objects.entries("f")) == ["a", "b", "c", "d/"]


def test_nothing_secret_gets_out(
    bookie: Bookie, root: BookieRoot, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    store = format_store(cloud.url())
    sent = pickle.dumps((bookie, store))
    secrets = (KEY, "upload_id=", str(cloud.proxy.port))
    assert not any(secret.encode() in sent for secret in secrets)
    upload = Upload(Objects(parse(cloud.url())), "name")
    upload.write(bytes(LARGE))
    for status in (0, 403, 500):
        cloud.proxy.fail("GET", status=status)
        cloud.proxy.fail("PUT", status=status)
        calls: list[Callable[[], Any]] = [
            lambda: root.read(MARKER),
            lambda: store.get("key"),
            upload.finish,
        ]
        for call in calls:
            with pytest.raises((BookKeeperError, connection.StoreDoubt)) as caught:
                call()
            said = "".join(traceback.format_exception(caught.value)) + caught.value.hint
            assert not any(secret in said for secret in secrets[:2])
        cloud.proxy.heal()
    assert not any(secret in caplog.text for secret in secrets[:2])


def _any_put(cloud: Cloud) -> tuple[str, str]:
    return ("PUT", "") if cloud.put[0] == "PUT" else cloud.put
